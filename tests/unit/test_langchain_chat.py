"""LangChain's chat models as a chat."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from hgmem.errors import BudgetError, ModelError
from hgmem.models.llm.chat import Completion, Request, Sampling, UnavailableError
from hgmem.models.llm.langchain_chat import LangChainChat
from hgmem.models.prompts import Message

REQUEST = Request(
    task="plan",
    messages=(
        Message(role="system", content="Be brief."),
        Message(role="user", content="Where is it?"),
        Message(role="assistant", content="Where is what?"),
        Message(role="user", content="The orrery."),
    ),
    sampling=Sampling(),
)


class Watching(BaseCallbackHandler):
    """Records the arguments of a model's calls."""

    def __init__(self) -> None:
        self.started: list[tuple[list[tuple[str, Any]], str | None, list[str] | None]] = []

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **more: Any) -> None:
        said = [(message.type, message.content) for message in messages[0]]
        self.started.append((said, more.get("name"), more.get("tags")))


class Failing(GenericFakeChatModel):
    """A model that raises."""

    error: Any
    messages: Iterator[AIMessage | str] = iter(())

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def _stream(self, *_: Any, **__: Any) -> Any:
        raise self.error


class Streaming(GenericFakeChatModel):
    """A model that streams these chunks."""

    chunks: list[AIMessageChunk]
    messages: Iterator[AIMessage | str] = iter(())

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for chunk in self.chunks:
            yield ChatGenerationChunk(message=chunk)


def saying(message: AIMessage | str) -> LangChainChat:
    return LangChainChat(GenericFakeChatModel(messages=iter([message])))


def usage(prompt: int, completion: int, cached: int = 0) -> Any:
    counted = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    return {**counted, "input_token_details": {"cache_read": cached}} if cached else counted


def test_the_messages_come_to_the_model_with_its_owners_callbacks_and_tags() -> None:
    watching = Watching()
    chat = LangChainChat(FakeListChatModel(responses=["yes"], callbacks=[watching], tags=["mine"]))
    assert chat.complete(REQUEST) == Completion(text="yes")
    said = [("system", "Be brief."), ("human", "Where is it?"), ("ai", "Where is what?"), ("human", "The orrery.")]
    assert watching.started == [(said, "plan", ["mine"])]
    assert [each for each in chat.stream(REQUEST) if isinstance(each, str)] == ["y", "e", "s"]
    assert watching.started[1] == watching.started[0]


def test_a_chat_is_called_what_the_model_is_called() -> None:
    class Named(FakeListChatModel):
        model_name: str = ""
        model: str = "mistral-x"

    named = LangChainChat(Named(responses=[]))
    assert (named.name, named.endpoint, named.formats) == ("mistral-x", "langchain:Named", ("text",))
    assert LangChainChat(Named(responses=[], model_name="gpt-x")).name == "gpt-x"
    assert LangChainChat(FakeListChatModel(responses=[])).name == "FakeListChatModel"


def test_tokens_are_those_that_the_model_counts() -> None:
    done = saying(AIMessage("yes", usage_metadata=usage(7, 2, 3))).complete(REQUEST)
    assert done == Completion(text="yes", prompt_tokens=7, completion_tokens=2, cached_tokens=3)


@pytest.mark.parametrize(
    ("told", "cut"),
    [
        ({"finish_reason": "length"}, True),
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"finish_reason": "stop", "stop_reason": None}, False),
        ({}, False),
    ],
)
def test_a_completion_that_is_cut_says_so(told: dict[str, Any], cut: bool) -> None:
    assert saying(AIMessage("x", response_metadata=told)).complete(REQUEST).cut is cut
    chunks = [AIMessageChunk("x"), AIMessageChunk("", response_metadata=told)]
    *_, done = LangChainChat(Streaming(chunks=chunks)).stream(REQUEST)
    assert done == Completion(text="x", cut=cut)


def test_of_blocks_those_of_text_count() -> None:
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        "b",
        {"type": "tool_use"},
    ]
    assert saying(AIMessage(content=blocks)).complete(REQUEST).text == "ab"


def test_a_stream_comes_in_pieces_and_ends_with_the_completion() -> None:
    chunks = [
        AIMessageChunk("", usage_metadata=usage(7, 0, 3)),
        AIMessageChunk("a "),
        AIMessageChunk([{"type": "text", "text": "b"}]),
        AIMessageChunk("", usage_metadata=usage(0, 2)),
    ]
    done = Completion(text="a b", prompt_tokens=7, completion_tokens=2, cached_tokens=3)
    assert list(LangChainChat(Streaming(chunks=chunks)).stream(REQUEST)) == ["a ", "b", done]


class APIConnectionError(Exception):
    pass


class RateLimitError(Exception):
    pass


class MyTimeoutError(TimeoutError):
    pass


@pytest.mark.parametrize("error", [APIConnectionError("gone"), RateLimitError("slow down"), MyTimeoutError("late")])
def test_what_may_pass_is_unavailable_with_its_cause(error: Exception) -> None:
    chat = LangChainChat(Failing(error=error))
    for asking in (chat.complete, lambda request: list(chat.stream(request))):
        with pytest.raises(UnavailableError, match=f"'Failing'.*{type(error).__name__}: {error}") as raised:
            asking(REQUEST)
        assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [ValueError("bad\nthing"), RateLimitError("insufficient_quota"), KeyError()])
def test_anything_else_is_an_error_with_its_cause(error: Exception) -> None:
    chat = LangChainChat(Failing(error=error))
    for asking in (chat.complete, lambda request: list(chat.stream(request))):
        with pytest.raises(ModelError, match=f"{type(error).__name__}.*configuration of the LangChain model") as raised:
            asking(REQUEST)
        assert not raised.value.retryable
        assert raised.value.__cause__ is error
        assert "\n" not in str(raised.value)


def test_errors_of_ours_come_through() -> None:
    with pytest.raises(BudgetError, match=r"^spent$"):
        LangChainChat(Failing(error=BudgetError("spent"))).complete(REQUEST)
