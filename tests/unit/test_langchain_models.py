"""Our models as LangChain models: requests, refusals, caching, and imports."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wire import Failing, Said, WireServer

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import Generation
from pydantic import ValidationError

from hgmem import HGMem
from hgmem.client.connecting import adapted_embedder, adapted_model, find_model
from hgmem.errors import AccessError, UsageError
from hgmem.extraction.tasks import Extract
from hgmem.langchain import HGMemCache, HGMemChatModel, HGMemEmbeddings
from hgmem.langchain.conversation import until
from hgmem.models.embedders import OpenAIEmbedder
from hgmem.models.llm.chat import Completion
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder

Open = Callable[..., HGMemChatModel]
EXTRACTION = '{"entities": [{"name": "Ida Berg", "type": "person", "description": "A ferrywoman."}], "relations": []}'


@pytest.fixture
def server() -> Iterator[WireServer]:
    """A server that repeats the last message."""
    with WireServer(lambda asked: Said(asked.messages[-1]["content"])) as served:
        yield served


@pytest.fixture
def chat(server: WireServer) -> Open:
    """Opens a chat model of that server."""
    return lambda **given: HGMemChatModel(model="big", base_url=server.base_url, **given)


def client(server: WireServer, cache: Path, **given: Any) -> HGMem:
    """A client whose database is not queried."""
    settings = load(model="big", openai_base_url=server.base_url, cache=cache, **given)
    embedder = adapted_embedder(DeterministicEmbedder())
    nowhere: Any = None
    model = find_model(settings, embedder=embedder)
    return HGMem(nowhere, corpus="none", settings=settings, model=model, embedder=embedder)


# The chat model -----------------------------------------------------------------------------------------------


def test_messages_come_to_the_server_in_their_roles(server: WireServer, chat: Open) -> None:
    messages = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "Where "}, "is it?"]),
        AIMessage("Where is what?"),
        ChatMessage(role="user", content="The orrery."),
    ]
    reply = chat(api_key="mine").invoke(messages)
    (asked,) = server.requests

    assert [(one["role"], one["content"]) for one in asked.messages] == [
        ("system", "Be brief."),
        ("user", "Where is it?"),
        ("assistant", "Where is what?"),
        ("user", "The orrery."),
    ]
    assert asked.headers["authorization"] == "Bearer mine"
    assert reply.content == "The orrery."
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["total_tokens"] == server.prompt_tokens + server.completion_tokens
    assert reply.response_metadata["model_name"] == "big"
    assert reply.response_metadata["finish_reason"] == "stop"


def test_what_is_not_given_is_what_hgmem_is_set_to(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MODEL": "small", "TEMPERATURE": "0.3", "MAX_TOKENS": "77", "SEED": "5"}.items():
        monkeypatch.setenv(f"HGMEM_{name}", value)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    HGMemChatModel().invoke("a")
    HGMemChatModel(temperature=None, seed=6).bind(max_tokens=9).invoke("a")
    sent = [
        {name: one.body.get(name) for name in ("model", "temperature", "max_tokens", "seed")} for one in server.requests
    ]

    assert sent[0] == {"model": "small", "temperature": 0.3, "max_tokens": 77, "seed": 5}
    assert sent[1] == {"model": "small", "temperature": None, "max_tokens": 9, "seed": 6}


def test_without_a_model_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no language model is set: pass model=, or set HGMEM_MODEL"):
        HGMemChatModel()
    with pytest.raises(UsageError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        HGMemChatModel(model="gpt-x")
    with pytest.raises(ValidationError):
        HGMemChatModel(model="gpt-x", temperature=9)


@pytest.mark.parametrize(
    ("messages", "more", "said"),
    [
        ([ToolMessage("x", tool_call_id="1")], {}, "message type 'tool' is not supported"),
        ([AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}])], {}, "does not support tool calls"),
        (
            [HumanMessage([{"type": "image_url", "image_url": {"url": "x"}}])],
            {},
            "content part of type 'image_url' is not supported",
        ),
        ([ChatMessage(role="critic", content="x")], {}, "message type 'chat' is not supported"),
        ([HumanMessage("x")], {"tools": []}, "does not support 'tools': use temperature"),
    ],
)
def test_what_it_can_not_do_is_refused_before_anything_is_sent(
    messages: Any, more: Any, said: str, server: WireServer, chat: Open
) -> None:
    for asking in (chat().invoke, lambda *given, **named: list(chat().stream(*given, **named))):
        with pytest.raises(UsageError, match=said):
            asking(messages, **more)
    assert server.requests == []


def test_a_stream_comes_in_pieces_and_ends_with_the_tokens(server: WireServer, chat: Open) -> None:
    pieces = list(chat().stream("one two three"))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece

    assert len([piece for piece in pieces if piece.content]) > 1
    assert whole.content == "one two three"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == server.completion_tokens == 3
    assert whole.response_metadata["finish_reason"] == "stop"


def test_a_reply_that_is_cut_says_so_and_one_that_is_refused_is_an_error() -> None:
    replies = iter([Said("one", finish="length"), Failing(401, "Incorrect API key provided")])
    with WireServer(lambda _: next(replies)) as server:
        chat = HGMemChatModel(model="big", base_url=server.base_url)
        assert chat.invoke("a").response_metadata["finish_reason"] == "length"
        with pytest.raises(AccessError, match="rejected the API key"):
            chat.invoke("a")


def test_stops_end_a_reply_whole_or_streamed(chat: Open) -> None:
    text = "one two three four"
    for stops, left in ((["two"], "one "), (["three", "wo thr"], "one t"), (["nine"], text), ([""], text)):
        assert chat().invoke(text, stop=stops).content == left
        assert "".join(str(one.content) for one in chat(stop=stops).stream(text)) == left


@example(pieces=["ab", "b"], stops=["b", "abb"])  # one stop ends before another that began earlier
@given(
    st.lists(st.text(alphabet="ab", max_size=5), max_size=6),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
)
def test_where_a_stop_is_found_does_not_depend_on_the_pieces(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    found = [text.find(stop) for stop in stops if stop in text]
    end = Completion(text=text)
    heard = list(until([*pieces, end], stops))

    assert "".join(one for one in heard if isinstance(one, str)) == text[: min(found, default=len(text))]
    assert ([one for one in heard if isinstance(one, Completion)] == [end]) is not bool(found)


def test_the_model_of_a_client_shares_its_limits(tmp_path: Path) -> None:
    with WireServer(lambda asked: Said(EXTRACTION if asked.system else "ok", delay=0.05)) as server:
        hg = client(server, tmp_path, workers=1, temperature=0.25)
        chat = HGMemChatModel.of(hg)
        chat.batch([f"question {at}" for at in range(5)], {"max_concurrency": 5})
        assert server.most_at_once == 1
        assert {one.body["temperature"] for one in server.requests} == {0.25}
        assert chat.chat is hg.model.chat  # type: ignore[attr-defined]
        assert HGMemChatModel.of(hg, temperature=1).invoke("a").content == "ok"
        assert server.requests[-1].body["temperature"] == 1
    extractive = HGMem(
        None, corpus="none", settings=load(), model=adapted_model(Nobody(), load()), embedder=hg.embedder
    )  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the client's model is 'nobody', which is not a chat model"):
        HGMemChatModel.of(extractive)


class Nobody:
    """A model without a chat."""

    name = "nobody"

    def reply(self, task: Any, /) -> Any:
        raise NotImplementedError


def test_as_a_model_of_hgmem_it_answers_tasks() -> None:
    with WireServer(lambda _: Said(EXTRACTION)) as server:
        model = adapted_model(HGMemChatModel(model="big", base_url=server.base_url), load())
        assert model.name == "big"
        assert model.reply(Extract(text="Ida Berg.")).entities[0].name == "Ida Berg"


def test_what_it_is_set_to_shows_no_key(chat: Open) -> None:
    told = chat(api_key="secret", temperature=0.5)
    assert "secret" not in repr(told) + str(told._identifying_params)
    assert told._identifying_params["temperature"] == 0.5
    assert told._get_ls_params()["ls_provider"] == "hgmem"
    assert "chat" not in told.model_dump()


def test_copies_share_what_is_open_and_it_is_not_pickled(chat: Open, tmp_path: Path) -> None:
    model, cache = chat(), HGMemCache(cache=tmp_path)
    copied = copy.deepcopy(model)
    assert copied.invoke("a b").content == "a b"
    assert (copied.chat is model.chat, copied is model) == (True, False)
    cache.update("a", "b", [Generation(text="c")])
    assert copy.deepcopy(cache).lookup("a", "b") == [Generation(text="c")]
    embeddings = HGMemEmbeddings(OpenAIEmbedder("small", api_key="k"))
    assert copy.deepcopy(embeddings).model == "openai:small"
    for one, held in ((model, "LimitedChat"), (cache, "Store"), (embeddings, "OpenAIEmbedder")):
        with pytest.raises(
            UsageError, match=f"'{held}' cannot be pickled .*create it there, or create there what holds it"
        ):
            pickle.dumps(one)
    cache.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temperature": "hot"}, "temperature='hot' is not a valid temperature: use a number from 0 to 2"),
        ({"temperature": True}, "temperature=True is not a valid temperature"),
        ({"top_p": 0}, "top_p=0 is not a valid top_p: use a number above 0 and at most 1"),
        ({"max_tokens": 0}, "max_tokens=0 is not a valid number of tokens: use an integer of at least 1"),
        ({"seed": "s"}, "seed='s' is not an integer"),
        ({"stop": 3}, "stop=3 is not a list of strings"),
        ({"stop": "a"}, "stop='a' is not a list of strings"),
    ],
)
def test_what_a_reply_can_not_be_drawn_with_is_refused_before_anything_is_sent(
    given: dict[str, Any], said: str, server: WireServer, chat: Open
) -> None:
    for asking in (lambda: chat().invoke("a", **given), lambda: list(chat().stream("a", **given))):
        with pytest.raises(UsageError, match=said):
            asking()
    assert server.requests == []


# The cache ----------------------------------------------------------------------------------------------------


def test_what_was_said_is_kept_on_disk_for_the_same_model_and_prompt(
    server: WireServer, chat: Open, tmp_path: Path
) -> None:
    first = chat(cache=HGMemCache(cache=tmp_path)).invoke("a b")
    assert chat(cache=HGMemCache(cache=tmp_path)).invoke("a b").content == first.content == "a b"
    assert len(server.requests) == 1
    chat(cache=HGMemCache(cache=tmp_path), temperature=0).invoke("a b")
    chat(cache=HGMemCache(cache=tmp_path)).invoke("a c")
    chat(cache=HGMemCache(cache=tmp_path)).invoke("a b", stop=["b"])
    assert len(server.requests) == 4


def test_any_model_of_langchain_can_have_it_and_it_can_be_emptied(tmp_path: Path) -> None:
    cache = HGMemCache(cache=tmp_path)
    chat = FakeListChatModel(responses=["one", "two"], cache=cache)
    assert [chat.invoke("a").content, chat.invoke("a").content] == ["one", "one"]
    plain = FakeListLLM(responses=["three", "four"], cache=cache)
    assert [plain.invoke("a"), plain.invoke("a")] == ["three", "three"]
    cache._store.put("of hgmem", "its own")
    cache.clear()
    assert chat.invoke("a").content == "two"
    assert cache._store.get("of hgmem") == "its own"
    cache.close()


# Embeddings ---------------------------------------------------------------------------------------------------


class Noting(DeterministicEmbedder):
    """Records the kind of each embedding call."""

    def __init__(self) -> None:
        super().__init__(8)
        self.kinds: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
        self.kinds.append(kind)
        return super().embed(texts, kind=kind)


def test_questions_and_documents_are_told_apart_and_vectors_are_the_embedders() -> None:
    own = Noting()
    embeddings = HGMemEmbeddings(own)
    assert embeddings.embed_query("a b") == pytest.approx(own.embed(["a b"], kind="query")[0].tolist())
    assert len(embeddings.embed_documents(["a", "b"])) == 2
    assert embeddings.embed_documents([]) == []
    assert own.kinds == ["query", "query", "document", "document"]
    assert embeddings.model == "deterministic"


def test_there_and_back_again_it_is_the_same_embedder() -> None:
    back = adapted_embedder(HGMemEmbeddings("deterministic"))
    assert (back.name, back.dimensions) == ("deterministic", DeterministicEmbedder().dimensions)
    with pytest.raises(UsageError, match="'int' is not an embedder"):
        HGMemEmbeddings(3)


# Imports ------------------------------------------------------------------------------------------------------


def run(script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_langchain_is_imported_by_nothing_but_the_package_for_it() -> None:
    done = run("import sys, hgmem.client, hgmem.cli; print('langchain_core' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_without_langchain_the_error_says_what_to_install() -> None:
    done = run("import sys; sys.modules['langchain_core'] = None; import hgmem, hgmem.client; import hgmem.langchain")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: hgmem.langchain needs langchain-core, which is not installed: run pip install 'hgmem[langchain]'"
    )
