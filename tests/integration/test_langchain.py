"""hgmem in LangChain: results, and the runs that a tracer sees."""

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.tools import ToolException
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from letters import LETTERS, QUESTION, SENTENCES
from playing import playing
from pydantic import BaseModel, ValidationError
from runs import Collector, Told, every, told, used
from wire import WireServer

from hgmem import Answer, HGMem
from hgmem.errors import ModelError, UsageError
from hgmem.langchain import HGMemRetriever, HGMemRunnable, HGMemTool
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.replies import EvolveReply
from hgmem.testing import ScriptedModel
from hgmem.values.events import Answered, Planned, QuestionAccepted

Open = Callable[..., HGMem]


class Playing(BaseChatModel):
    """A LangChain chat model that plays the letters, counts tokens, and streams its answers."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "playing"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._said(messages), usage_metadata=TOKENS))])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Iterator[Any]:
        for word in self._said(messages).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=TOKENS))

    def _said(self, messages: list[BaseMessage]) -> str:
        from wire import Asked

        kinds = {"system": "system", "human": "user", "ai": "assistant"}
        said = [{"role": kinds[message.type], "content": message.content} for message in messages]
        asked = Asked(number=1, path="", headers={}, body={"messages": said})
        return self.script(asked).text or ""


TOKENS: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}


def step(number: int, *tasks: str, kind: str = "llm") -> Told:
    calls = tuple(Told(task, kind, (f"hgmem:task:{task}",)) for task in tasks)
    return Told(f"step {number}", "chain", (f"hgmem:step:{number}",), calls)


def answering() -> Told:
    return Told("answer", "llm", ("hgmem:task:answer",))


LOOK = Told("clues", "llm", ("hgmem:task:clues",))  # whose clues the first step searches for
TWO_STEPS = (LOOK, step(1, "step"), step(2, "evolve"))


# The tree of runs ---------------------------------------------------------------------------------------------


def test_steps_and_calls_of_any_model_are_runs_below_the_runnables(letters: Any) -> None:
    tracer = Collector()
    client = letters()
    answer = HGMemRunnable(client=client, steps=2).invoke(QUESTION, {"callbacks": [tracer]})
    (root,) = tracer.roots

    assert told(root) == Told("HGMemRunnable", "chain", (), (*TWO_STEPS, answering()))
    assert root.outputs == {"output": answer}
    assert root.inputs == {"input": QUESTION}
    assert all(run.end_time is not None and run.error is None for run in every(root))
    first = next(run for run in every(root) if run.name == "step 1")
    assert first.inputs == {"step": 1, "subqueries": [QUESTION]}
    assert first.outputs is not None
    assert first.outputs["judgement"] == "local"
    assert first.outputs["subqueries"] == ["Local query 1", "Global query 1"]
    assert [one["kind"] for one in first.outputs["operations"]] == ["insert", "insert"]
    assert first.outputs["entities"] > 0
    wrote = next(run for run in every(root) if run.name == "answer")
    assert wrote.outputs is not None
    assert "Anna sold it [1]." in wrote.outputs["generations"][0][0]["text"]
    assert QUESTION in str(wrote.inputs)
    assert (wrote.extra["metadata"]["ls_model_name"], used(wrote)) == ("scripted", None)


def test_awaited_and_streamed_the_tree_is_the_same(letters: Any) -> None:
    runnable = HGMemRunnable(client=letters(), steps=2)
    whole = Told("HGMemRunnable", "chain", (), (*TWO_STEPS, answering()))

    async def streamed(tracer: Collector) -> list[Any]:
        return [event async for event in runnable.astream(QUESTION, {"callbacks": [tracer]})]

    awaited, stream, astream = Collector(), Collector(), Collector()
    answer = asyncio.run(runnable.ainvoke(QUESTION, {"callbacks": [awaited]}))
    events = list(runnable.stream(QUESTION, {"callbacks": [stream]}))
    others = asyncio.run(streamed(astream))

    assert isinstance(answer, Answer)
    assert [type(event) for event in events] == [type(event) for event in others]
    assert (type(events[0]), type(events[-1])) == (QuestionAccepted, Answered)
    assert [told(root) for tracer in (awaited, stream, astream) for root in tracer.roots] == [whole] * 3


def test_calls_of_langchains_own_models_are_their_runs_with_what_the_caller_said(letters: Any) -> None:
    model = Playing(script=playing(), tags=["mine"])
    client = letters(model=model)
    tracer = Collector()
    config = {"callbacks": [tracer], "tags": ["all"], "metadata": {"tenant": "t1"}, "run_name": "the affair"}
    HGMemRunnable(client=client, steps=2).invoke(QUESTION, config)
    (root,) = tracer.roots

    assert told(root) == Told("the affair", "chain", (), (*TWO_STEPS, answering()))
    calls = [run for run in every(root) if run.run_type == "llm"]
    assert [used(run)["total_tokens"] for run in calls] == [9] * 4
    assert all({"mine", "all"} <= set(run.tags or ()) for run in calls)
    assert {run.extra["metadata"]["tenant"] for run in every(root)} == {"t1"}
    assert {run.extra["invocation_params"]["_type"] for run in calls} == {"playing"}


def test_requests_to_a_server_are_runs_with_the_tokens_that_it_counted(letters: Any, open_client: Open) -> None:
    letters()
    with WireServer(playing()) as server:
        usual = {"openai_base_url": server.base_url, "openai_api_key": "k"}
        client = open_client(model="test-model", **usual)
        tracer = Collector()
        answer = HGMemRunnable(client=client, steps=2).invoke(QUESTION, {"callbacks": [tracer]})
    (root,) = tracer.roots
    calls = [run for run in every(root) if run.run_type == "llm"]

    assert told(root).below == (*TWO_STEPS, answering())
    assert sum(used(run)["input_tokens"] for run in calls) == answer.usage.prompt_tokens > 0
    assert sum(used(run)["output_tokens"] for run in calls) == answer.usage.completion_tokens > 0
    assert {run.extra["metadata"]["ls_model_name"] for run in calls} == {"test-model"}


@pytest.mark.parametrize("own", [False, True])
def test_two_questions_at_once_never_cross(own: bool, letters: Any) -> None:
    client = letters(model=Playing(script=playing()) if own else None)
    runnable = HGMemRunnable(client=client, steps=2)
    questions = [f"{QUESTION} ({at})" for at in range(4)]

    async def both(tracers: list[Collector]) -> list[Answer]:
        asking = [
            runnable.ainvoke(question, {"callbacks": [tracer], "tags": [question]})
            for question, tracer in zip(questions, tracers, strict=True)
        ]
        return list(await asyncio.gather(*asking))

    awaited, batched = [Collector() for _ in questions], [Collector() for _ in questions]
    answers = asyncio.run(both(awaited))
    configs: Any = [{"callbacks": [one], "tags": [text]} for one, text in zip(batched, questions, strict=True)]
    again = runnable.batch(questions, configs)

    for question, answer, tracer in zip(questions * 2, [*answers, *again], [*awaited, *batched], strict=True):
        (root,) = tracer.roots
        assert answer.question == question
        assert root.outputs == {"output": answer}
        runs = every(root)
        assert len({run.trace_id for run in runs}) == 1
        assert all(question in (run.tags or ()) for run in runs if run.run_type == "llm")
        assert all(question in str(run.inputs) for run in runs if run.name in ("clues", "evolve", "step", "answer"))
        assert [run.name for run in runs].count("answer") == 1


def test_a_question_that_fails_ends_every_run_with_its_error(letters: Any) -> None:
    tracer = Collector()
    client = letters(step=lambda _: ModelError("the model is gone"))
    with pytest.raises(ModelError, match="the model is gone"):
        HGMemRunnable(client=client, steps=2).invoke(QUESTION, {"callbacks": [tracer]})
    (root,) = tracer.roots

    assert told(root).below == (LOOK, step(1, "step"))
    broken = [run.name for run in every(root) if run.error and "the model is gone" in run.error]
    assert broken == ["HGMemRunnable", "step 1", "step"]
    assert all(run.end_time is not None for run in every(root))


class Raising(BaseCallbackHandler):
    """Records how every run ends, and raises at the end of the first one with a given name."""

    raise_error = True

    def __init__(self, at: str) -> None:
        self.at = at
        self.names: dict[UUID, str] = {}
        self.ends: list[tuple[str, str]] = []

    def _begun(self, *_: Any, run_id: UUID, name: str = "", **__: Any) -> None:
        self.names[run_id] = name

    def _ended(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self.ends.append((self.names[run_id], "end"))
        if self.names[run_id] == self.at:
            raise RuntimeError("the callback is broken")

    def _broken(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self.ends.append((self.names[run_id], "error"))

    on_chain_start = on_chat_model_start = _begun
    on_chain_end = on_llm_end = _ended
    on_chain_error = on_llm_error = _broken


@pytest.mark.parametrize(
    ("at", "below"),
    [
        ("step 1", [*((name, "end") for name in ("clues", "step", "step 1"))]),
        ("step", [("clues", "end"), ("step", "end"), ("step 1", "error")]),
    ],
)
def test_a_callback_that_raises_at_the_end_of_a_run_does_not_hear_of_another_end(
    at: str, below: list[tuple[str, str]], letters: Any
) -> None:
    handler = Raising(at)
    with pytest.raises(RuntimeError, match="the callback is broken"):
        HGMemRunnable(client=letters(), steps=2).invoke(QUESTION, {"callbacks": [handler]})
    assert handler.ends == [*below, ("HGMemRunnable", "error")]


def test_a_stream_that_is_closed_asks_no_more_and_its_runs_end(letters: Any) -> None:
    tracer, client = Collector(), letters(clues=lambda _: time.sleep(0.2) or CluesReply())
    stream = HGMemRunnable(client=client, steps=3).stream(QUESTION, {"callbacks": [tracer]})
    assert isinstance(next(stream), QuestionAccepted)
    stream.close()
    asked = len(client.model.tasks)
    time.sleep(0.5)

    assert len(client.model.tasks) == asked <= 1
    assert client.memories()[0].status == "interrupted"
    assert all(run.end_time is not None for root in tracer.roots for run in every(root))


def test_a_cancelled_question_ends_before_its_next_call(letters: Any) -> None:
    called = threading.Event()

    def slowly(_: object) -> CluesReply:
        called.set()
        time.sleep(0.5)
        return CluesReply()

    client = letters(clues=slowly)

    async def cancelled(asking: Any) -> None:
        question = asyncio.ensure_future(asking)
        assert await asyncio.to_thread(called.wait, 60)
        called.clear()
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question

    for asked in (HGMemRunnable(client=client), HGMemRetriever(client=client), HGMemTool(client=client)):
        before = len(client.model.tasks)
        asyncio.run(cancelled(asked.ainvoke(QUESTION)))  # type: ignore[attr-defined]
        after = len(client.model.tasks)
        time.sleep(0.8)
        assert len(client.model.tasks) == after == before + 1
    assert {one.status for one in client.memories()} == {"interrupted"}


def test_the_events_of_langchain_have_the_answer_piece_by_piece(letters: Any, open_client: Open) -> None:
    letters()

    async def pieces(client: HGMem) -> list[str]:
        runnable = HGMemRunnable(client=client, steps=1)
        return [
            event["data"]["chunk"].content
            async for event in runnable.astream_events(QUESTION, version="v2")
            if event["event"] == "on_chat_model_stream" and "hgmem:task:answer" in event["tags"]
        ]

    own = open_client(model=Playing(script=playing()))
    assert [one for one in asyncio.run(pieces(own)) if one] == ["Anna", "sold", "it", "[1]."]
    with WireServer(playing()) as server:
        client = open_client(model="test-model", openai_base_url=server.base_url, openai_api_key="k")
        said = asyncio.run(pieces(client))
        assert len(said) > 1
        assert "".join(said) == "Anna sold it [1]."


# The runnable -------------------------------------------------------------------------------------------------


def test_a_question_may_say_how_it_is_asked(letters: Any) -> None:
    client = letters()
    first = HGMemRunnable(client=client, steps=2).invoke({"question": QUESTION, "steps": 1})
    assert [one.number for one in first.steps] == [1]
    second = HGMemRunnable(client=client, memory=first.memory).invoke("And then?", steps=1)
    assert (second.memory, [one.number for one in second.steps]) == (first.memory, [1, 2])
    bound = HGMemRunnable(client=client).bind(steps=2, recipe="paper").invoke(QUESTION)
    assert len(bound.steps) == 2
    assert [task.name for task in client.model.tasks[-3:]] == ["evolve", "merge", "answer"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 1}, "the input has no 'question', only 'steps'"),
        (3, "a question must be a string or a mapping with 'question', not int"),
        ({"question": QUESTION, "depth": 3}, "'depth' is not a valid argument"),
        ({"question": QUESTION, 3: 4}, "3 is not a valid argument: choose from corpus"),
        ({"question": 3}, "the question must be a string, not int"),
        ({"question": QUESTION, "corpus": 3}, "corpus=3 is not a corpus name"),
        ({"question": QUESTION, "steps": True}, "steps=True must be an integer of at least 1"),
        ({"question": QUESTION, "answer": "no"}, "answer='no' must be True or False"),
        (
            {"question": QUESTION, "watcher": None},
            "HGMemRunnable does not accept 'watcher'.*callbacks in the RunnableConfig",
        ),
        ("  ", "the question is empty"),
    ],
)
def test_what_is_no_question_is_refused(asked: Any, said: str, letters: Any) -> None:
    runnable = HGMemRunnable(client=letters())
    with pytest.raises(UsageError, match=said):
        runnable.invoke(asked)
    with pytest.raises(UsageError, match=said):
        asyncio.run(runnable.ainvoke(asked))
    with pytest.raises(UsageError, match=said):
        list(runnable.stream(asked))


def test_in_a_chain_the_answer_is_handed_on_streamed_or_not(letters: Any) -> None:
    chain = {"question": RunnablePassthrough()} | HGMemRunnable(client=letters(), steps=1) | (lambda one: one.text)

    async def streamed() -> list[str]:
        return [part async for part in chain.astream(QUESTION)]

    assert chain.invoke(QUESTION) == "Anna sold it [1]."
    assert list(chain.stream(QUESTION)) == ["Anna sold it [1]."]
    assert asyncio.run(chain.ainvoke(QUESTION)) == "Anna sold it [1]."
    assert asyncio.run(streamed()) == ["Anna sold it [1]."]
    assert HGMemRunnable(client=chain.middle[0].client).get_output_jsonschema()["title"]


# The retriever ------------------------------------------------------------------------------------------------


def test_documents_come_best_first_with_where_they_are_from_and_no_answer_is_written(letters: Any) -> None:
    client = letters()
    found = HGMemRetriever(client=client, k=3, steps=2).invoke(QUESTION)
    passages = client.passages(found[0].metadata["memory"], limit=3)
    best = found[0]

    assert [one.page_content for one in found] == [one.chunk.text for one in passages]
    assert best.id == best.metadata["chunk"] == passages[0].chunk.uid
    assert {
        name: best.metadata[name] for name in ("corpus", "title", "source", "source_id", "rank", "score", "step")
    } == {
        "corpus": client.corpus,
        "title": "Letters",
        "source": "",
        "source_id": passages[0].chunk.source_id,
        "rank": 1,
        "score": passages[0].score,
        "step": 1,
    }
    start, end = best.metadata["start"], best.metadata["end"]
    assert "\n".join(SENTENCES)[start:end] == best.page_content
    points = {point.uid: point.description for point in client.memory(best.metadata["memory"]).points}
    assert best.metadata["points"]
    assert all(points[one["uid"]] == one["description"] for one in best.metadata["points"])
    assert "answer" not in [task.name for task in client.model.tasks]


def test_a_memory_goes_on_and_its_answer_can_be_asked_for_afterwards(letters: Any) -> None:
    client = letters()
    retriever = HGMemRetriever(client=client, steps=1)
    first = retriever.invoke(QUESTION)[0].metadata["memory"]
    second = retriever.invoke("And what did Cleo leave?", memory=first)

    assert {one.metadata["memory"] for one in second} == {first}
    assert {one.metadata["step"] for one in second} <= {1, 2}
    assert client.ask(memory=first).question == "And what did Cleo leave?"


def test_one_look_takes_no_call_of_a_model_and_gives_as_many_as_are_wanted(letters: Any) -> None:
    client = letters()
    plain = HGMemRetriever(client=client, system="naive", k=5)
    assert len(plain.invoke(QUESTION)) == 5
    assert len(plain.invoke(QUESTION, k=2)) == 2
    assert client.model.tasks == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k=0 is not a valid number of documents: use an integer of at least 1"),
    ({"k": True}, "k=True is not a valid number of documents"),
    ({"k": "3"}, "k='3' is not a valid number of documents"),
    ({"kk": 2}, r"'kk' is not a valid argument: choose from k, corpus, ((?!watcher|answer|at_step).)*$"),
    ({"corpus": 3}, "corpus=3 is not a corpus name: pass a string"),
    ({"steps": True}, "steps=True must be an integer of at least 1"),
    ({"settings": 3, "system": "naive"}, "settings=3 must map option names to values"),
    ({"max_tokens": 1.5}, "max_tokens=1.5 must be an integer of at least 1"),
    ({"memory": 3}, "memory=3 is not a memory uid"),
    ({"answer": True}, r"does not accept 'answer'.*write it later with HGMem.ask\(memory=…\)"),
    ({"watcher": print}, "does not accept 'watcher'.*pass callbacks in the RunnableConfig"),
    ({"at_step": 1}, r"does not accept 'at_step'.*HGMem.passages\(memory, step=…\)"),
]


def test_what_can_not_be_retrieved_is_refused_before_anything_is_asked(letters: Any) -> None:
    client = letters()
    retriever = HGMemRetriever(client=client)
    for given, said in REFUSED:
        with pytest.raises(UsageError, match=said):
            retriever.invoke(QUESTION, **given)
        with pytest.raises(UsageError, match=said):
            asyncio.run(retriever.ainvoke(QUESTION, **given))
        with pytest.raises(ValidationError, match=said if "valid argument" not in said else "'?kk"):
            HGMemRetriever(client=client, **given)
    assert (client.model.tasks, client.memories()) == ([], [])


def test_a_retriever_refuses_filters_that_no_document_matches(open_client: Open) -> None:
    client = open_client(model=ScriptedModel({}))
    with pytest.raises(UsageError, match=r"corpus .* not found"):
        HGMemRetriever(client=client).invoke(QUESTION)
    client.add_graph(LETTERS)
    with pytest.raises(UsageError, match="no document of corpus"):
        HGMemRetriever(client=client).invoke(QUESTION, filters={"year": 3})
    with pytest.raises(UsageError, match="has title 'Nobody': the values of title are"):
        HGMemRetriever(client=client, filters={"title": "Nobody"}).invoke(QUESTION)


def test_the_retrievers_run_has_the_steps_below_and_the_documents(letters: Any) -> None:
    for own in (None, Playing(script=playing(), tags=["mine"])):
        client, tracer = letters(model=own), Collector()
        retriever = HGMemRetriever(client=client, steps=2, tags=["mem"], metadata={"kind": "graph"})
        found = retriever.invoke(QUESTION, {"callbacks": [tracer], "tags": ["outer"]})
        again = asyncio.run(retriever.ainvoke(QUESTION, {"callbacks": [tracer]}))

        assert [told(root) for root in tracer.roots] == [Told("HGMemRetriever", "retriever", (), TWO_STEPS)] * 2
        assert [root.outputs for root in tracer.roots] == [{"documents": found}, {"documents": again}]
        assert {"mem", "outer"} <= set(tracer.roots[0].tags or ())
        assert all("outer" in (run.tags or ()) for run in every(tracer.roots[0]))


def test_batches_keep_to_the_concurrency_that_is_asked_for(letters: Any) -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def slowly(_: object) -> EvolveReply:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.2)
        with lock:
            under_way -= 1
        return EvolveReply()

    retriever = HGMemRetriever(client=letters(evolve=slowly), steps=1, k=2)
    questions = [f"{QUESTION} ({at})" for at in range(6)]
    for limit, batch in (
        (2, lambda: retriever.batch(questions, {"max_concurrency": 2})),
        (3, lambda: asyncio.run(retriever.abatch(questions, {"max_concurrency": 3}))),
    ):
        most = 0
        found = batch()
        assert [len(one) for one in found] == [2] * 6
        assert most == limit


def test_a_retriever_awaited_leaves_the_event_loop_alone(letters: Any) -> None:
    retriever = HGMemRetriever(client=letters(evolve=lambda _: time.sleep(0.5) or EvolveReply()), steps=1)

    async def both() -> int:
        beats = 0
        task = asyncio.create_task(retriever.ainvoke(QUESTION))
        while not task.done():
            await asyncio.sleep(0.01)
            beats += 1
        assert task.result()
        return beats

    assert asyncio.run(both()) > 20


def test_it_composes_with_prompts_and_models(letters: Any) -> None:
    client = letters()
    retriever = HGMemRetriever(client=client, steps=1, k=2)

    def quoted(documents: list[Any]) -> str:
        return "\n".join(one.page_content for one in documents)

    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    heard: list[str] = []
    model = RunnableLambda(lambda value: heard.append(value.to_string()) or AIMessage("Anna."))
    chain = {"context": retriever | quoted, "question": RunnablePassthrough()} | prompt | model
    tracer = RunCollectorCallbackHandler()

    assert chain.invoke(QUESTION, {"callbacks": [tracer]}).content == "Anna."
    assert len([text for text in SENTENCES if text in heard[0]]) == 2
    (root,) = tracer.traced_runs
    assert [run.name for run in every(root) if run.run_type == "retriever"] == ["HGMemRetriever"]
    assert [run.name for run in every(root) if run.name.startswith("step ")] == ["step 1"]


def test_its_fields_can_be_configured_checked_and_written_down(letters: Any) -> None:
    client = letters()
    retriever = HGMemRetriever(client=client, steps=1, k=3, recipe="paper", filters={"title": ["Letters"]})
    fields = retriever.configurable_fields(k=ConfigurableField(id="k"))

    assert len(fields.invoke(QUESTION, {"configurable": {"k": 1}})) == 1
    told = retriever.model_dump(exclude_none=True)
    assert "client" not in told
    assert HGMemRetriever(client=client, **told) == retriever
    for wrong in ({"k": 0}, {"steps": "many"}):
        with pytest.raises(ValidationError):
            HGMemRetriever(client=client, **wrong)
    with pytest.raises(ValidationError, match="instance of HGMem"):
        HGMemRetriever(client="harbour")


# The tool -----------------------------------------------------------------------------------------------------


CALL: Any = {"name": "hgmem", "args": {"question": QUESTION}, "id": "c1", "type": "tool_call"}


def test_the_tool_gives_the_text_and_the_answer_and_its_run_has_the_steps_below(letters: Any) -> None:
    tool, tracer = HGMemTool(client=letters(), steps=2), Collector()
    message = tool.invoke(CALL, {"callbacks": [tracer]})
    awaited = asyncio.run(tool.ainvoke(CALL, {"callbacks": [tracer]}))

    assert message.content == awaited.content == "Anna sold it [1]."
    assert isinstance(message.artifact, Answer)
    assert message.artifact.citations[0].quote == SENTENCES[0]
    assert [told(root) for root in tracer.roots] == [Told("hgmem", "tool", (), (*TWO_STEPS, answering()))] * 2
    on = tool.invoke({**CALL, "args": {"question": "And then?", "memory": message.artifact.memory}})
    assert on.artifact.memory == message.artifact.memory
    assert tool.invoke({"question": QUESTION}) == "Anna sold it [1]."


def test_errors_are_those_of_tools_and_an_agent_may_read_them(letters: Any) -> None:
    client = letters(answer=lambda _: ModelError("the model is gone"))
    with pytest.raises(ToolException, match=r"the model is gone \(continue with memory 'm[0-9a-f]+'\)"):
        HGMemTool(client=client, steps=1).invoke(CALL)
    with pytest.raises(ToolException, match="memory, point or answer 'nothing' not found"):
        asyncio.run(HGMemTool(client=client).ainvoke({**CALL, "args": {"question": "?", "memory": "nothing"}}))
    message = HGMemTool(client=client, steps=1, handle_tool_error=True).invoke(CALL)
    assert message.status == "error"
    assert "the model is gone" in message.content
    with pytest.raises(ValidationError, match="question"):
        HGMemTool(client=client).invoke({})


def test_what_a_model_is_told_of_the_tool(letters: Any) -> None:
    schema: Any = HGMemTool.model_fields["args_schema"].default
    assert issubclass(schema, BaseModel)
    properties = schema.model_json_schema()
    assert properties["required"] == ["question"]
    assert set(properties["properties"]) == {"question", "memory"}


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_a_runnable_is_a_tool_without_saying_what_it_takes(letters: Any) -> None:
    runnable = HGMemRunnable(client=letters(), steps=1, settings={"hints": 1})
    tool = runnable.as_tool(name="letters", description="Looks into letters.")
    message = tool.invoke({**CALL, "name": "letters"})

    assert (tool.name, tool.description) == ("letters", "Looks into letters.")
    assert (set(tool.args), tool.get_input_jsonschema()["required"]) == ({"question", "memory"}, ["question"])
    assert message.content == "Anna sold it [1]."
    assert (message.artifact.question, len(message.artifact.steps)) == (QUESTION, 1)
    assert (tool.client, tool.settings) == (runnable.client, {"hints": 1})
    assert tool.invoke({"question": "And then?", "memory": message.artifact.memory}) == "Anna sold it [1]."

    plain: Any = runnable.as_tool()
    assert plain.name == "hgmem"
    assert asyncio.run(plain.ainvoke({"question": QUESTION})) == "Anna sold it [1]."
    with pytest.raises(ToolException, match="the question is empty"):
        plain.invoke({"question": ""})
    typed = runnable.as_tool(arg_types={"question": str, "steps": int})
    assert isinstance(typed.invoke({"question": QUESTION, "steps": 1}), Answer)


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_a_retriever_is_a_tool_for_nothing(letters: Any) -> None:
    tool = HGMemRetriever(client=letters(), steps=1, k=1).as_tool(name="letters", description="Looks into letters.")
    found = tool.invoke({"__arg1": QUESTION} if "__arg1" in tool.args else QUESTION)
    assert [one.page_content in SENTENCES for one in found] == [True]


def test_planned_events_come_while_the_question_goes_on(letters: Any) -> None:
    events = HGMemRunnable(client=letters(), steps=2).stream({"question": QUESTION})
    planned = [event.step for event in events if isinstance(event, Planned)]
    assert planned == [1, 2]


@pytest.mark.parametrize("kind", [HGMemRetriever, HGMemRunnable, HGMemTool])
def test_copies_share_the_client_and_it_is_not_pickled(kind: Any, letters: Any) -> None:
    client = letters()
    asked = kind(client=client, steps=1, settings={"hints": 1})
    first = asked.invoke(QUESTION)
    for copied in (copy.copy(asked), copy.deepcopy(asked), asked.model_copy(deep=True)):
        assert copied.client is client
        assert copied == asked
        assert type(copied.invoke(QUESTION)) is type(first)
    assert copy.deepcopy(asked).settings is not asked.settings
    chain = copy.deepcopy(asked.with_config(tags=["one"]) | RunnableLambda(lambda found: [found]))
    assert type(chain.invoke(QUESTION)[0]) is type(first)
    assert copy.deepcopy(client) is copy.copy(client) is client
    for held in (asked, chain.first, client):
        with pytest.raises(UsageError, match=r"'HGMem' cannot be pickled .*open another client there \(HGMem.open\)"):
            pickle.dumps(held)


@pytest.mark.parametrize("kind", [HGMemRetriever, HGMemRunnable, HGMemTool])
def test_a_misspelt_field_is_refused(kind: Any, letters: Any) -> None:
    with pytest.raises(ValueError, match="filter"):
        kind(client=letters(), filter={"source": "nothing*"})
