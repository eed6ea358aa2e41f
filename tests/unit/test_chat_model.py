"""Tasks over a scripted chat: requests, and the handling of replies."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from hgmem.errors import BadReplyError, ModelError
from hgmem.models.llm.chat import Completion, Format, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.models.llm.chat_model import ChatModel
from hgmem.models.prompts import read_prompt
from hgmem.models.reply import Reply, TextReply

PLAN = '{"judgement": "local", "concerns": ["Who hid the orrery?"]}'
READY = '{"ready": true}'


class Planning(Reply):
    judgement: Literal["sufficient", "local", "global"]
    concerns: tuple[str, ...] = ()


class Answering(TextReply):
    """The answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    question: str = "Where is the orrery?"
    name: ClassVar[str] = "plan"
    prompt_file: ClassVar[Path] = Path()
    reply_type: ClassVar[type[Planning]] = Planning

    def fields(self) -> Mapping[str, str]:
        return {"question": self.question}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    question: str = "Where is the orrery?"
    name: ClassVar[str] = "answer"
    prompt_file: ClassVar[Path] = Path()
    reply_type: ClassVar[type[Answering]] = Answering

    def fields(self) -> Mapping[str, str]:
        return {"question": self.question}


Said = str | Completion | Exception


class Script:
    """A chat whose replies come from a function of the request; `probe` replies to probes."""

    name = "scripted"
    endpoint = "http://localhost/v1"

    def __init__(self, *said: Said, probe: Callable[[Request], Said] = lambda _: READY) -> None:
        self.formats: tuple[Format, ...] = ("json_schema", "json_object", "text")
        self.requests: list[Request] = []
        self.probes: list[Request] = []
        self.closed = False
        self._said = iter(said)
        self._probe = probe

    def complete(self, request: Request, /) -> Completion:
        if request.task == "probe":
            self.probes.append(request)
            return self.given(self._probe(request))
        self.requests.append(request)
        return self.given(next(self._said))

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        self.requests.append(request)
        try:
            for said in self._said:
                if isinstance(said, Exception):
                    raise said
                yield said
        finally:
            self.closed = True

    def given(self, said: Said) -> Completion:
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Completion) else Completion(text=said)


class Kept(dict[str, str]):
    """A store in RAM."""

    def put(self, key: str, text: str, /) -> None:
        self[key] = text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("plan", "answer"):
        tmp_path.joinpath(f"{name}.md").write_text(
            f"<!-- {name} -->\n# System\nBe brief.\n# User\nQ: {{{{question}}}}\n"
        )
    for task in (Plan, Answer):
        monkeypatch.setattr(task, "prompt_file", tmp_path / f"{task.name}.md")
    return tmp_path


def refused(request: Request) -> FormatRefusedError:
    return FormatRefusedError(f"no {request.format}")


# Requests -----------------------------------------------------------------------------------------------------


def test_a_task_is_asked_with_its_prompt_and_its_schema() -> None:
    chat = Script(PLAN)
    reply = ChatModel(chat).reply(Plan())
    assert reply == Planning(judgement="local", concerns=("Who hid the orrery?",))
    assert reply.notes == ()
    (request,) = chat.requests
    assert [(each.role, each.content) for each in request.messages] == [
        ("system", "Be brief."),
        ("user", "Q: Where is the orrery?"),
    ]
    assert (request.task, request.format, request.sampling) == ("plan", "json_schema", Sampling())
    assert request.schema is not None
    assert list(request.schema["properties"]) == ["judgement", "concerns"]


def test_a_text_is_asked_for_without_a_format_and_without_a_probe() -> None:
    chat = Script("<think>hm</think>In the crypt [1].")
    assert ChatModel(chat).reply(Answer()).text == "In the crypt [1]."
    assert (chat.requests[0].format, chat.requests[0].schema, chat.probes) == ("text", None, [])


def test_a_task_is_drawn_by_its_own_sampling() -> None:
    cold = Sampling(temperature=0, max_tokens=10)
    chat = Script(PLAN, "text")
    own = {"plan": {"temperature": 0, "max_tokens": 10}}
    model = ChatModel(chat, sampling=Sampling(temperature=1), per_task=own)
    model.reply(Plan())
    model.reply(Answer())
    assert [request.sampling for request in chat.requests] == [cold, Sampling(temperature=1)]


def test_what_the_wire_raises_comes_through() -> None:
    with pytest.raises(UnavailableError, match="nobody"):
        ChatModel(Script(UnavailableError("nobody"))).reply(Answer())


# Choice of format ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probe", "found"),
    [
        (lambda _: READY, "json_schema"),
        (lambda _: Completion(text='{"re', cut=True), "json_schema"),
        (lambda _: "", "json_schema"),
        (lambda _: f"<think>am I?</think>{READY}", "json_schema"),
        (lambda request: refused(request) if request.format == "json_schema" else READY, "json_object"),
        (lambda request: "Yes!" if request.format == "json_schema" else READY, "json_object"),
        (lambda _: f"```json\n{READY}\n```", "text"),
        (lambda request: refused(request), "text"),
    ],
)
def test_the_best_format_that_the_server_understands_is_found_once(
    probe: Callable[[Request], Said], found: Format
) -> None:
    chat, kept = Script(PLAN, PLAN, PLAN, probe=probe), Kept()
    model = ChatModel(chat, store=kept)
    model.reply(Plan())
    model.reply(Plan())
    tried = [request.format for request in chat.probes]
    assert tried == ["json_schema", "json_object"][: len(tried)]
    ChatModel(chat, store=kept).reply(Plan())
    assert [request.format for request in chat.probes] == tried
    assert [request.format for request in chat.requests] == [found] * 3
    assert all((request.schema is not None) == (found == "json_schema") for request in chat.requests)


def test_a_chat_that_knows_text_alone_is_not_probed() -> None:
    chat, kept = Script(PLAN), Kept()
    chat.formats = ("text",)
    ChatModel(chat, store=kept).reply(Plan())
    assert (chat.probes, chat.requests[0].format, kept) == ([], "text", {})


def test_what_is_known_of_another_model_or_server_is_not_believed() -> None:
    kept = Kept()
    ChatModel(Script(PLAN, probe=refused), store=kept).reply(Plan())
    for name, endpoint in (("other", Script.endpoint), (Script.name, "http://elsewhere/v1")):
        chat = Script(PLAN)
        chat.name, chat.endpoint = name, endpoint
        ChatModel(chat, store=kept).reply(Plan())
        assert chat.requests[0].format == "json_schema"


def test_a_store_that_holds_nonsense_is_not_believed() -> None:
    chat, kept = Script(PLAN, PLAN), Kept()
    ChatModel(chat, store=kept).reply(Plan())
    (key,) = kept
    kept[key] = "xml"
    ChatModel(chat, store=kept).reply(Plan())
    assert len(chat.probes) == 2


def slow_probe(said: Said) -> Callable[[Request], Said]:
    def probe(_: Request) -> Said:
        time.sleep(0.2)
        return said

    return probe


def test_eight_threads_at_once_probe_once() -> None:
    chat = Script(*[PLAN] * 8, probe=slow_probe(READY))
    model = ChatModel(chat)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: model.reply(Plan()), range(8)))
    assert (len(replies), len(chat.probes)) == (8, 1)


def test_threads_that_wait_for_a_probe_share_its_failure_and_the_next_one_probes_again() -> None:
    chat = Script(PLAN, probe=slow_probe(UnavailableError("nobody")))
    model = ChatModel(chat)
    together = threading.Barrier(8)

    def ask(_: int) -> str:
        together.wait()
        with pytest.raises(UnavailableError) as raised:
            model.reply(Plan())
        return str(raised.value)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == ["nobody"] * 8
    assert len(chat.probes) == 1
    chat._probe = lambda _: READY
    assert model.reply(Plan()).judgement == "local"


def test_a_format_that_is_refused_later_is_stepped_down_from_for_good() -> None:
    chat, kept = Script(FormatRefusedError("no"), FormatRefusedError("no"), PLAN, PLAN), Kept()
    model = ChatModel(chat, store=kept)
    assert model.reply(Plan()).notes == ()
    model.reply(Plan())
    assert [request.format for request in chat.requests] == ["json_schema", "json_object", "text", "text"]
    assert list(kept.values()) == ["text"]


def test_a_server_that_refuses_even_text_is_an_error() -> None:
    with pytest.raises(ModelError, match="no text"):
        ChatModel(Script(FormatRefusedError("no text"), probe=refused)).reply(Plan())


# Retries ------------------------------------------------------------------------------------------------------


def test_an_unreadable_reply_is_asked_for_again_with_what_is_wrong() -> None:
    chat = Script('<think>hm</think>{"judgement": "maybe"}', PLAN)
    reply = ChatModel(chat).reply(Plan())
    assert reply.notes == ("asked again: judgement: 'maybe' is not one of sufficient, local, global",)
    first, second = chat.requests
    assert second.sampling == first.sampling
    assert second.messages[:2] == first.messages
    said, wish = second.messages[2:]
    assert (said.role, said.content, wish.role) == ("assistant", '{"judgement": "maybe"}', "user")
    assert "'maybe' is not one of sufficient, local, global" in wish.content


def test_an_empty_reply_is_asked_for_again_without_an_empty_message() -> None:
    chat = Script("<think>hm</think>", PLAN)
    assert ChatModel(chat).reply(Plan()).notes == ("asked again: the reply was empty",)
    assert [message.role for message in chat.requests[1].messages] == ["system", "user"]
    assert "the reply was empty" in chat.requests[1].messages[1].content


def test_a_long_bad_reply_is_sent_back_in_short() -> None:
    chat = Script("no " * 10_000, PLAN)
    ChatModel(chat).reply(Plan())
    assert 1000 < len(chat.requests[1].messages[2].content) < 5000


def test_a_reply_that_is_unreadable_twice_is_an_error_with_what_was_said_last() -> None:
    with pytest.raises(
        BadReplyError, match=r"'scripted' returned no usable reply to task 'plan'.*no JSON object"
    ) as raised:
        ChatModel(Script("no", "never")).reply(Plan())
    assert (raised.value.task, raised.value.text) == ("plan", "never")


@pytest.mark.parametrize("task", [Plan(), Answer()])
def test_a_reply_that_is_cut_is_asked_for_again_with_twice_the_tokens(task: Plan | Answer) -> None:
    chat = Script(Completion(text=PLAN, cut=True), PLAN)
    reply = ChatModel(chat, sampling=Sampling(max_tokens=2048)).reply(task)
    assert reply.notes == ("asked again: the reply was truncated at 2,048 tokens",)
    first, second = chat.requests
    assert second == replace(first, sampling=replace(first.sampling, max_tokens=4096))


def test_a_reply_that_is_still_cut_is_an_error_that_names_the_setting() -> None:
    chat = Script(Completion(text=PLAN, cut=True), Completion(text=PLAN, cut=True))
    with pytest.raises(
        BadReplyError, match="'plan' was truncated at 4,096 tokens: set HGMEM_MAX_TOKENS higher"
    ) as raised:
        ChatModel(chat).reply(Plan())
    assert (raised.value.text, len(chat.requests)) == (PLAN, 2)


def test_an_unreadable_reply_that_comes_cut_the_second_time_is_an_error() -> None:
    with pytest.raises(BadReplyError, match="HGMEM_MAX_TOKENS"):
        ChatModel(Script("no", Completion(text=PLAN, cut=True))).reply(Plan())


# Streams ------------------------------------------------------------------------------------------------------


def test_a_text_comes_in_pieces_without_its_thinking() -> None:
    pieces = ["<thi", "nk>who", "?</", "think>\n\n", "In the", " <crypt", "> [1]", ".", Completion(text="all of it")]
    chat = Script(*pieces)
    got = list(ChatModel(chat).stream(Answer()))
    assert "".join(got) == "In the <crypt> [1]."
    assert len(got) >= 4
    assert chat.requests[0].format == "text"


def test_thinking_that_no_tag_opens_is_known_from_the_replies_before() -> None:
    chat = Script("who?</think>{}", f"who?</think>{PLAN}", "who", "?</think>In the", " crypt.", Completion(text=""))
    model = ChatModel(chat)
    model.reply(Plan())
    assert list(model.stream(Answer())) == ["In the", " crypt."]


def test_a_stream_that_ends_cut_is_an_error_after_its_pieces() -> None:
    pieces = ChatModel(Script("In the", Completion(text="In the", cut=True))).stream(Answer())
    assert next(pieces) == "In the"
    with pytest.raises(BadReplyError, match="HGMEM_MAX_TOKENS") as raised:
        next(pieces)
    assert raised.value.text == "In the"


@pytest.mark.parametrize("said", [[], ["<think>hm"], [" ", "\n"]])
def test_a_stream_without_a_text_is_an_error(said: list[str]) -> None:
    with pytest.raises(BadReplyError, match="returned an empty reply to task 'answer'"):
        list(ChatModel(Script(*said, Completion(text=""))).stream(Answer()))


def test_only_texts_are_streamed() -> None:
    with pytest.raises(TypeError, match="task 'plan' returns Planning, not text"):
        ChatModel(Script(PLAN)).stream(Plan())


def test_whoever_stops_listening_hangs_up() -> None:
    chat = Script("In the", " crypt", Completion(text=""))
    pieces = ChatModel(chat).stream(Answer())
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert chat.closed


# Keys ---------------------------------------------------------------------------------------------------------


def test_a_key_stands_for_everything_that_a_reply_depends_on(folder: Path) -> None:
    def key(task: Plan | Answer, chat: Script, **settings: object) -> str:
        return ChatModel(chat, **settings).key(task)  # type: ignore[arg-type]

    elsewhere, other = Script(), Script()
    elsewhere.endpoint, other.name = "http://elsewhere", "other"
    keys = [
        key(Plan(), Script()),
        key(Plan(), elsewhere),
        key(Plan(), other),
        key(Answer(), Script()),
        key(Plan(question="\ud800?"), Script()),
        key(Plan(), Script(), sampling=Sampling(seed=1)),
        key(Plan(), Script(), per_task={"plan": {"max_tokens": 7}}),
    ]
    folder.joinpath("plan.md").write_text("<!-- p -->\n# System\nBe long.\n# User\nQ: {{question}}\n")
    read_prompt.cache_clear()
    keys.append(key(Plan(), Script()))
    assert len(set(keys)) == len(keys)
    assert key(Plan(), Script(), per_task={"answer": {"seed": 1}}) == keys[-1]
    assert {len(each) for each in keys} == {64}


def test_a_key_asks_nobody() -> None:
    chat = Script()
    ChatModel(chat).key(Plan())
    assert (chat.probes, chat.requests) == ([], [])


def test_a_key_is_the_same_in_another_process(folder: Path) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import test_chat_model as t\n"
        "t.Plan.prompt_file = pathlib.Path(sys.argv[2]) / 'plan.md'; print(t.ChatModel(t.Script()).key(t.Plan()))"
    )
    arguments = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert said.stdout.strip() == ChatModel(Script()).key(Plan())


def test_a_probe_is_small_and_says_what_it_wants() -> None:
    chat = Script(PLAN)
    ChatModel(chat).reply(Plan())
    (probe,) = chat.probes
    assert probe.sampling.max_tokens <= 256
    assert READY in probe.messages[0].content
    assert json.dumps(probe.schema)
