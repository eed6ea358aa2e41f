"""Rate limits are respected, transient errors are retried, and replies are counted."""

import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import openai
import pytest
from pydantic import ValidationError
from wire import Answered, Asked, Dropped, Said, WireServer, too_many

from hgmem.errors import BudgetError, ModelError
from hgmem.models.llm.chat import Completion, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.models.llm.rate_limits import LONGEST, Gate, LimitedChat, Limits
from hgmem.models.metering import measuring, timed
from hgmem.models.prompts import Message
from hgmem.settings import Settings

TEN = "one two three four five six seven eight nine ten"  # as many tokens, by hgmem.text.tokens
REQUEST = Request(
    task="evolve",
    messages=(Message(role="system", content="be brief"), Message(role="user", content="where is it")),
    sampling=Sampling(),
)
ESTIMATE = 5  # tokens of the messages, by hgmem.text.tokens


class Clock:
    """A clock that advances only during sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


class FakeChat:
    """A chat that returns, raises or streams the next item of a list."""

    name = "fake"
    endpoint = "http://fake/v1"
    formats = ("json_object", "text")

    def __init__(self, *does: object, clock: Clock | None = None, takes: float = 0.0) -> None:
        self.does = list(does)
        self.clock = clock
        self.takes = takes
        self.times: list[float] = []
        self.kept: list[Iterator[str | Completion]] = []
        self.closed = 0

    def next(self) -> object:
        if self.clock:
            self.times.append(self.clock.now)
            self.clock.now += self.takes
        does = self.does.pop(0) if self.does else Completion(text="ok", prompt_tokens=7, completion_tokens=3)
        if isinstance(does, BaseException):
            raise does
        return does

    def complete(self, request: Request, /) -> Completion:
        does = self.next()
        assert isinstance(does, Completion)
        return does

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        source = self.pieces()
        self.kept.append(source)  # so that it ends when closed, not when garbage-collected
        return source

    def pieces(self) -> Iterator[str | Completion]:
        does = self.next()
        try:
            for each in does if isinstance(does, list) else [does]:
                if isinstance(each, BaseException):
                    raise each
                if self.clock:
                    self.clock.now += self.takes
                yield each
        finally:
            self.closed += 1


def limited(chat: FakeChat, **limits) -> LimitedChat:
    clock = chat.clock or Clock()
    return LimitedChat(chat, Gate(Limits(**limits), clock=clock, sleep=clock.sleep))


def gone(retry_after: float | None = None) -> UnavailableError:
    return UnavailableError("model 'fake' is not there", retry_after=retry_after)


def test_it_is_the_chat_that_it_wraps():
    found = limited(FakeChat())
    assert (found.name, found.endpoint, found.formats) == ("fake", "http://fake/v1", ("json_object", "text"))


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"tokens_per_minute": -1}, {"model_attempts": 0}])
def test_limits_below_one_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValidationError, match=f"{next(iter(wrong))}"):
        Settings(**wrong)


# Retries ------------------------------------------------------------------------------------------------------


def test_what_may_pass_is_asked_again_later_and_later():
    clock = Clock()
    chat = FakeChat(*[gone() for _ in range(4)], clock=clock)
    assert limited(chat, attempts=5).complete(REQUEST).text == "ok"

    assert len(chat.times) == 5
    for nth, slept in enumerate(clock.slept):
        assert 0.5 * 2**nth <= slept <= 2**nth


def test_the_wait_before_another_attempt_differs_from_caller_to_caller():
    waits = set()
    for _ in range(5):
        clock = Clock()
        limited(FakeChat(gone(), clock=clock)).complete(REQUEST)
        waits.add(clock.slept[0])
    assert len(waits) > 1


def test_after_the_last_attempt_the_error_says_how_many_there_were():
    chat = FakeChat(*[gone() for _ in range(9)], clock=Clock())
    with pytest.raises(UnavailableError, match=r"'fake' is not there \(3 attempts\)") as caught:
        limited(chat, attempts=3).complete(REQUEST)

    assert len(chat.times) == 3
    assert caught.value.retryable


@pytest.mark.parametrize("error", [ModelError("no"), FormatRefusedError("no"), KeyboardInterrupt()])
def test_what_will_not_pass_is_not_asked_again(error: BaseException):
    chat = FakeChat(error, clock=Clock())
    with pytest.raises(type(error)):
        limited(chat).complete(REQUEST)

    assert len(chat.times) == 1


def test_a_server_that_says_when_is_asked_then():
    clock = Clock()
    chat = FakeChat(gone(retry_after=17), clock=clock)
    limited(chat).complete(REQUEST)

    assert chat.times == [1000.0, 1017.0]


def test_after_a_429_nobody_asks_until_the_server_wants_to_be_asked():
    clock = Clock()
    chat = FakeChat(gone(retry_after=17), clock=clock)
    found = limited(chat, attempts=1)
    with pytest.raises(UnavailableError):
        found.complete(REQUEST)
    found.complete(REQUEST)
    list(found.stream(REQUEST))

    assert chat.times == [1000.0, 1017.0, 1017.0]


def test_a_server_that_wants_to_be_left_alone_for_long_is_not_waited_for():
    clock = Clock()
    chat = FakeChat(gone(retry_after=3600), clock=clock)
    found = limited(chat)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="'fake' at http://fake/v1 is rate-limited for 3,600 s"):
            found.complete(REQUEST)

    assert clock.slept == []
    assert len(chat.times) == 1
    clock.now += 3600
    assert found.complete(REQUEST).text == "ok"
    assert LONGEST < 3600


def test_an_interrupt_ends_the_waiting_and_leaves_the_place_to_others():
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    chat = FakeChat(gone())
    found = LimitedChat(chat, Gate(Limits(concurrency=1), sleep=interrupted))
    with pytest.raises(KeyboardInterrupt):
        found.complete(REQUEST)
    assert found.complete(REQUEST).text == "ok"


# Rate limits --------------------------------------------------------------------------------------------------


def test_no_sixty_seconds_see_more_requests_than_are_allowed():
    clock = Clock()
    chat = FakeChat(clock=clock, takes=1.0)
    found = limited(chat, requests_per_minute=4)
    for _ in range(12):
        found.complete(REQUEST)

    assert len(chat.times) == 12
    assert max(sum(at <= other < at + 60 for other in chat.times) for at in chat.times) == 4
    assert chat.times[-1] - chat.times[0] < 125  # and not slower than that


def test_no_sixty_seconds_see_more_tokens_than_are_allowed_as_the_server_counted_them():
    clock = Clock()
    chat = FakeChat(*[Completion(text="x", prompt_tokens=60, completion_tokens=40) for _ in range(7)], clock=clock)
    found = limited(chat, tokens_per_minute=299 + ESTIMATE)
    for _ in range(7):
        found.complete(REQUEST)

    assert chat.times == [1000.0, 1000.0, 1000.0, 1060.0, 1060.0, 1060.0, 1120.0]


def test_tokens_are_estimated_before_they_are_known():
    clock = Clock()
    chat = FakeChat(clock=clock)
    found = limited(chat, tokens_per_minute=10 + ESTIMATE - 1)  # the reply is 10 tokens
    found.complete(REQUEST)
    found.complete(REQUEST)

    assert chat.times == [1000.0, 1060.0]


def test_a_request_that_is_larger_than_the_limit_goes_alone():
    clock = Clock()
    chat = FakeChat(clock=clock)
    found = limited(chat, tokens_per_minute=2)
    found.complete(REQUEST)
    found.complete(REQUEST)

    assert chat.times == [1000.0, 1060.0]


def test_attempts_that_nobody_answered_cost_no_tokens_but_are_requests():
    clock = Clock()
    chat = FakeChat(gone(), clock=clock)
    limited(chat, tokens_per_minute=ESTIMATE).complete(REQUEST)
    assert chat.times[1] < 1002

    again = FakeChat(gone(), clock=Clock())
    limited(again, requests_per_minute=1).complete(REQUEST)
    assert again.times == [1000.0, 1060.0]


def test_no_more_requests_than_allowed_are_under_way_together():
    with WireServer(lambda asked: Said("x", delay=0.02)) as server:
        found = LimitedChat(WireChat(server), Gate(Limits(concurrency=3)))
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda _: found.complete(REQUEST), range(24)))

    assert (server.most_at_once, server.answered) == (3, 24)


def test_who_waits_for_another_attempt_leaves_the_place_to_others():
    chat = FakeChat(gone())
    others: list[str] = []
    sleeping = Gate(Limits(concurrency=1), sleep=lambda seconds: others.append(found.complete(REQUEST).text))
    found = LimitedChat(chat, sleeping)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(found.complete, REQUEST).result(5).text == "ok"
    assert others == ["ok"]


# Counting -----------------------------------------------------------------------------------------------------


def test_what_was_answered_is_counted_as_the_server_counted_it():
    chat = FakeChat(
        gone(), Completion(text="x", prompt_tokens=60, completion_tokens=40, cached_tokens=50), clock=Clock()
    )
    with measuring() as meter, measuring() as budget:
        limited(chat).complete(REQUEST)

    usage = meter.usage()
    assert usage.calls == {"request": {"evolve": 1}}
    assert usage.tokens == {"evolve": {"prompt": 60, "completion": 40, "cached": 50, "estimated": 0}}
    assert (budget.taken, budget.paid) == (1, 100)


def test_where_the_server_counts_nothing_tokens_are_estimates_and_marked():
    chat = FakeChat(Completion(text=TEN), Completion(text=TEN, prompt_tokens=60), clock=Clock())
    found = limited(chat)
    with measuring() as first, measuring() as budget:
        found.complete(REQUEST)
    with measuring() as second:
        found.complete(REQUEST)

    reply = first.usage().completion_tokens
    assert reply == 10
    assert first.usage().tokens == {
        "evolve": {"prompt": ESTIMATE, "completion": reply, "cached": 0, "estimated": ESTIMATE + reply}
    }
    assert second.usage().tokens == {"evolve": {"prompt": 60, "completion": reply, "cached": 0, "estimated": reply}}
    assert budget.paid == ESTIMATE + reply


def test_waiting_counts_as_nobodys_request():
    clock = Clock()
    chat = FakeChat(gone(retry_after=30), clock=clock, takes=2.0)
    found = limited(chat, requests_per_minute=2)
    with measuring() as meter:
        found.complete(REQUEST)
        found.complete(REQUEST)

    assert sum(clock.slept) > 30
    assert meter.usage().seconds == {"request": {"evolve": 4.0}}


def test_the_seconds_of_requests_are_taken_from_those_of_the_task(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr("hgmem.models.metering.time.perf_counter", clock)
    chat = FakeChat(clock=clock, takes=2.0)
    with measuring() as meter, timed("model", "evolve"):
        limited(chat).complete(REQUEST)
        clock.now += 1

    assert meter.usage().seconds == {"request": {"evolve": 2.0}, "model": {"evolve": 1.0}}


def test_what_nobody_answered_is_neither_counted_nor_paid():
    chat = FakeChat(gone(), ModelError("refused"), clock=Clock())
    with measuring() as meter, measuring() as budget, pytest.raises(ModelError, match="refused"):
        limited(chat).complete(REQUEST)

    assert meter.usage().calls == {}
    assert meter.usage().tokens == {}
    assert (budget.taken, budget.paid) == (0, 0)


def test_a_budget_that_is_spent_sends_nothing_and_counts_against_no_limit():
    clock = Clock()
    chat = FakeChat(clock=clock)
    found = limited(chat, requests_per_minute=2)
    with measuring(max_calls=1):
        found.complete(REQUEST)
        for _ in range(3):
            with pytest.raises(BudgetError):
                found.complete(REQUEST)
    found.complete(REQUEST)

    assert chat.times == [1000.0, 1000.0]


def test_each_attempt_is_taken_from_the_budget_and_given_back():
    chat = FakeChat(gone(), gone(), clock=Clock())
    with measuring(max_calls=1) as budget:
        assert limited(chat).complete(REQUEST).text == "ok"
    assert budget.taken == 1


# Streams ------------------------------------------------------------------------------------------------------

DONE = Completion(text="a b", prompt_tokens=7, completion_tokens=2)


def test_a_stream_is_passed_on_and_counted_by_its_completion():
    chat = FakeChat(["a", " b", DONE], clock=Clock(), takes=1.0)
    with measuring() as meter, measuring() as budget:
        assert list(limited(chat).stream(REQUEST)) == ["a", " b", DONE]

    usage = meter.usage()
    assert usage.calls == {"request": {"evolve": 1}}
    assert usage.seconds == {"request": {"evolve": 4.0}}
    assert usage.tokens == {"evolve": {"prompt": 7, "completion": 2, "cached": 0, "estimated": 0}}
    assert (budget.taken, budget.paid) == (1, 9)


def test_what_is_done_with_the_pieces_takes_no_time_of_the_request():
    clock = Clock()
    with measuring() as meter:
        for _ in limited(FakeChat(["a", " b", DONE], clock=clock, takes=1.0)).stream(REQUEST):
            clock.now += 100

    assert meter.usage().seconds == {"request": {"evolve": 4.0}}


def test_a_stream_that_has_not_begun_is_asked_again():
    chat = FakeChat([gone()], gone(retry_after=9), ["a", DONE], clock=Clock())
    assert list(limited(chat).stream(REQUEST)) == ["a", DONE]

    assert chat.times[2] >= chat.times[1] + 9


def test_a_stream_that_breaks_after_its_first_piece_is_not_asked_again_but_counted():
    chat = FakeChat([TEN, gone()], clock=Clock())
    got: list[str | Completion] = []
    with measuring() as meter, measuring() as budget, pytest.raises(UnavailableError, match="not there"):
        got.extend(limited(chat).stream(REQUEST))

    assert (got, len(chat.times)) == ([TEN], 1)
    assert meter.usage().tokens["evolve"]["estimated"] == ESTIMATE + 10
    assert (budget.taken, budget.paid) == (1, ESTIMATE + 10)


@pytest.mark.parametrize("closing", ["closed", "forgotten"])
def test_a_stream_that_nobody_wants_any_longer_counts_what_was_heard_and_leaves_its_place(closing: str):
    chat = FakeChat([TEN, TEN, DONE], clock=Clock())
    found = limited(chat, concurrency=1)
    with measuring() as meter, measuring() as budget:
        stream = found.stream(REQUEST)
        next(stream)
    if closing == "closed":
        stream.close()
    else:
        del stream
        gc.collect()

    assert chat.closed == 1
    assert meter.usage().calls == {"request": {"evolve": 1}}
    assert meter.usage().tokens == {
        "evolve": {"prompt": ESTIMATE, "completion": 10, "cached": 0, "estimated": ESTIMATE + 10}
    }
    assert (budget.taken, budget.paid) == (1, ESTIMATE + 10)
    assert found.complete(REQUEST).text == "ok"


def test_a_stream_that_is_under_way_holds_its_place():
    found = limited(FakeChat(["a", DONE]), concurrency=1)
    stream = found.stream(REQUEST)
    next(stream)
    answered = threading.Event()

    def ask() -> None:
        found.complete(REQUEST)
        answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert not answered.wait(0.1)
    stream.close()
    assert answered.wait(5)
    asking.join()


# HTTP ---------------------------------------------------------------------------------------------------------


class WireChat:
    """A minimal chat over HTTP."""

    name = "wire"
    formats = ("text",)

    def __init__(self, server: WireServer) -> None:
        self.endpoint = server.base_url
        self.client = openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0)

    def complete(self, request: Request, /) -> Completion:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        try:
            got = self.client.chat.completions.create(model=self.name, messages=messages)
        except openai.RateLimitError as error:
            raise UnavailableError("429", retry_after=float(error.response.headers["retry-after"])) from error
        except openai.APIConnectionError as error:
            raise UnavailableError("nobody") from error
        usage = got.usage
        return Completion(
            text=got.choices[0].message.content,
            prompt_tokens=usage and usage.prompt_tokens,
            completion_tokens=usage and usage.completion_tokens,
        )

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        raise NotImplementedError


def test_over_the_wire_a_429_stops_everybody_and_the_counts_are_the_servers():
    seen: list[float] = []
    together = threading.Barrier(4)

    def answer(asked: Asked) -> Answered:
        seen.append(time.monotonic())
        if asked.number <= 4:
            together.wait(10)
            return too_many(1)
        return Dropped() if asked.number == 5 else Said("here it is", delay=0.02)

    with WireServer(answer) as server, ThreadPoolExecutor(12) as pool, measuring() as meter, measuring() as budget:
        found = LimitedChat(WireChat(server), Gate(Limits(concurrency=4)))
        asking = [pool.submit(copy_context().run, found.complete, REQUEST) for _ in range(12)]
        assert [each.result(20).text for each in asking] == ["here it is"] * 12

    assert seen[4] - seen[3] >= 1
    assert len(seen) == 4 + 1 + 12
    assert server.most_at_once == 4
    usage = meter.usage()
    assert usage.requests == server.answered == budget.taken == 12
    assert (usage.prompt_tokens, usage.completion_tokens) == (server.prompt_tokens, server.completion_tokens)
    assert budget.paid == server.prompt_tokens + server.completion_tokens
