"""Tests of rerankers: a server that misbehaves, and a CrossEncoder of sentence-transformers, small and untrained."""

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from wire import Asked, Dropped, Failing, Reranked, WireServer, too_many

from hgmem.client.connecting import adapted_reranker, find_reranker
from hgmem.client.diagnosis import check_reranker
from hgmem.client.servers import reranker_place, roles
from hgmem.errors import AccessError, ModelError, UsageError
from hgmem.models.llm.rate_limits import UnavailableError
from hgmem.models.metering import measuring
from hgmem.models.reranking import CheckedReranker, CrossEncoderReranker
from hgmem.settings import Settings, load

KEY = "key-of-the-reranker"
QUERY = "where is the boat"
TEXTS = ["the boat lies in the harbour", "apple trees", "a red boat", "nothing of it"]
torch_alone = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence_transformers is not installed"
)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Loads settings with a reranker of a server, and with a key of another one in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-another-server")
    monkeypatch.setattr("hgmem.models.llm.rate_limits.FIRST_BACKOFF", 0.02)

    def loading(server: WireServer, **given: Any) -> Settings:
        usual = {"reranker": "big", "reranker_base_url": server.base_url, "model_attempts": 2}
        return load(**{"cache": tmp_path, **usual, **given})

    return loading


def made(settings: Settings) -> CheckedReranker:
    found = find_reranker(settings)
    assert found is not None
    return found


# A server -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", KEY])
def test_a_server_gets_all_texts_at_once_and_its_own_key_or_none(key: str, settings: Any) -> None:
    with WireServer() as server, measuring() as meter:
        found = made(settings(server, reranker_api_key=key))
        assert found.rerank(QUERY, [*TEXTS, ""]) == [0.5, 0, 0.25, 0, 0]
        assert found.rerank(QUERY, []) == []
        [asked] = server.reranked
    assert asked.body == {
        "model": "big",
        "query": QUERY,
        "documents": [*TEXTS, " "],
        "top_n": 5,
        "return_documents": False,
    }
    assert asked.headers["authorization"] == f"Bearer {key or 'none'}"
    usage = meter.usage()
    assert (usage.calls, usage.texts) == ({"reranking": {"big": 1}}, {"reranking": 5})
    assert usage.seconds["reranking"]["big"] > 0


def rows(*scores: float, places: Sequence[Any] = (0, 1, 2, 3)) -> Reranked:
    return Reranked(rows=[{"index": at, "relevance_score": one} for at, one in zip(places, scores, strict=False)])


@pytest.mark.parametrize(
    ("does", "kind", "said"),
    [
        (rows(0.5, 0.1), ModelError, "returned 2 scores for 4 texts: lower `rerank`"),
        (rows(0.5, 0.1, float("nan"), 0.2), ModelError, "returned the score nan: use another model, or rerank=0"),
        (
            rows(1, 2, 3, 4, places=(0, 1, 2, 7)),
            ModelError,
            "returned the invalid index 7 for 4 texts: use another server",
        ),
        (
            rows(1, 2, 3, 4, places=(0, 1, 1, 3)),
            ModelError,
            "returned the index 1 twice for 4 texts: use another server",
        ),
        (
            rows(1, 2, 3, 4, places=(0, 1, 2, "x")),
            ModelError,
            "returned the invalid index 'x' for 4 texts: use another server",
        ),
        (Reranked(rows=[{"place": 3}]), ModelError, "returned an invalid response: check HGMEM_RERANKER_BASE_URL"),
        (Failing(200, raw="<html>hello"), ModelError, "returned an invalid response: check HGMEM_RERANKER_BASE_URL"),
        (
            Reranked(delay=5),
            UnavailableError,
            "did not reply within 1 s: check that it is running, and HGMEM_RERANKER_BASE_URL (2 attempts)",
        ),
        (
            Failing(404, "The model `big` does not exist."),
            AccessError,
            "not found: check HGMEM_RERANKER and HGMEM_RERANKER_BASE_URL (The model `big` does not exist.)",
        ),
        (Failing(401, f"Invalid key {KEY}"), AccessError, "rejected the API key: check HGMEM_RERANKER_API_KEY"),
        (
            Failing(500, "input (2793 tokens) is too large to process (current batch size: 2048)"),
            ModelError,
            "rejected a text that is too long for it: use a model for longer texts, or index with a lower "
            "HGMEM_CHUNK_TOKENS (input (2793 tokens) is too large to process (current batch size: 2048))",
        ),
        (
            Failing(400, "This model's maximum context length is 512 tokens."),
            ModelError,
            "rejected a text that is too long for it: use a model for longer texts, or index with a lower "
            "HGMEM_CHUNK_TOKENS (This model's maximum context length is 512 tokens.)",
        ),
        (Failing(400, "no query"), ModelError, "rejected the request: no query"),
        (
            Failing(500, "no memory"),
            UnavailableError,
            "failed with status 500 (check that it is running, and HGMEM_RERANKER_BASE_URL): no memory (2 attempts)",
        ),
        (
            Dropped(),
            UnavailableError,
            "cannot be reached: check that it is running, and HGMEM_RERANKER_BASE_URL (2 attempts)",
        ),
    ],
)
def test_what_a_server_does_wrong_is_one_line(does: Any, kind: type[ModelError], said: str, settings: Any) -> None:
    with WireServer(reranking=lambda _: does) as server:
        found = made(settings(server, reranker_api_key=KEY, reranker_timeout=1))
        with pytest.raises(ModelError) as raised:
            found.rerank(QUERY, TEXTS)
        where = "" if "the score nan" in said else f" at {server.base_url}"
        assert str(raised.value) == f"reranker 'big'{where} {said}"
        assert (type(raised.value), "\n" in str(raised.value)) == (kind, False)
        assert KEY not in str(raised.value)
        assert len(server.reranked) == (2 if kind is UnavailableError else 1)


def test_a_server_that_comes_back_is_asked_again_and_within_its_limits(settings: Any) -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def reranking(asked: Asked) -> Any:
        nonlocal at_once, most
        if asked.number == 1:
            return too_many(1)
        with lock:
            at_once += 1
            most = max(most, at_once)
        server.wait(0.1)
        with lock:
            at_once -= 1
        return Reranked()

    with WireServer(reranking=reranking) as server:
        found = made(settings(server, workers=2))
        with ThreadPoolExecutor(6) as pool:
            scores = list(pool.map(lambda _: found.rerank(QUERY, TEXTS), range(6)))
    assert scores == 6 * [[0.5, 0, 0.25, 0]]
    assert (most, len(server.reranked)) == (2, 7)


def test_the_doctor_asks_the_server_without_reranking(settings: Any) -> None:
    with WireServer() as server:
        found = settings(server, reranker_api_key=KEY)
        assert check_reranker(found) == roles(found, {})["reranking"] + ", which responds"
        assert roles(found, {})["reranking"] == f"big at {server.base_url}"
        assert (server.reranked, server.listings[0]["authorization"]) == ([], f"Bearer {KEY}")
        assert KEY not in repr(reranker_place(found))
    with pytest.raises(ModelError, match=r"reranker 'big' at .* cannot be reached: .*HGMEM_RERANKER_BASE_URL"):
        check_reranker(found)
    assert check_reranker(load()) == "none, which is fine unless a recipe has `rerank`"


# Objects of the caller's ----------------------------------------------------------------------------------------


class Own:
    name = "own"

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def rerank(self, query: str, texts: Sequence[str], /) -> Any:
        return self.scores


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1.0], r"returned scores of shape \(1,\) for 2 texts: use a model with one score for each text"),
        ([[1.0, 2.0], [2.0, 3.0]], r"returned scores of shape \(2, 2\) for 2 texts"),
        ([1.0, float("inf")], "returned the score inf"),
        (["good", "bad"], "returned list, not scores"),
        (None, r"returned scores of shape \(\) for 2 texts"),
    ],
)
def test_scores_of_ones_own_are_checked(scores: Any, said: str) -> None:
    with pytest.raises(ModelError, match=f"reranker 'own' {said}"):
        adapted_reranker(Own(scores)).rerank(QUERY, TEXTS[:2])
    with pytest.raises(UsageError, match="'int' is not a reranker: pass a name, or an object with `name` and"):
        adapted_reranker(3)


# A CrossEncoder ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers that has one output."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = sorted({word for text in TEXTS for word in re.findall(r"\w+", text)})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    numbered = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(vocab=numbered, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks).save_pretrained(folder)
    torch.manual_seed(26)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@torch_alone
@pytest.mark.weights
def test_a_cross_encoder_scores_each_text_with_the_question(weights: Path) -> None:
    from sentence_transformers import CrossEncoder

    found = made(load(reranker=str(weights)))
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: found.rerank(QUERY, TEXTS), range(8))
    expected = CrossEncoder(str(weights)).predict([(QUERY, text) for text in TEXTS])
    assert len(set(first)) == len(TEXTS)
    assert first == pytest.approx([float(score) for score in expected], abs=1e-5)
    assert others == 7 * [first]
    assert found.rerank("apple trees", TEXTS) != pytest.approx(first, abs=1e-5)
    assert len(found.rerank(QUERY, ["boat " * 2_000])) == 1
    assert check_reranker(load(reranker=str(weights))) == f"{weights}, weights in {weights}, run by PyTorch"


@torch_alone
@pytest.mark.weights
def test_weights_that_are_none_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    for name in (str(tmp_path), "nobody/nothing"):
        with pytest.raises(ModelError, match=f"reranker '{name}' is not on this machine: .*DOWNLOAD=1.* as reranker="):
            CrossEncoderReranker(name).rerank(QUERY, TEXTS)
    with pytest.raises(
        ModelError, match="the weights of reranker 'nobody/nothing' are not on this machine: set HGMEM_"
    ):
        check_reranker(load(reranker="nobody/nothing"))


@torch_alone
@pytest.mark.weights
@pytest.mark.parametrize("download", ["0", "1"])
def test_nothing_is_downloaded_unless_it_is_allowed(download: str, tmp_path: Path) -> None:
    code = (
        "from hgmem.client.connecting import find_reranker; from hgmem.settings import load\n"
        "find_reranker(load()).rerank('a', ['b'])"
    )
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        env = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_address[1]}", "HF_HOME": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "HGMEM_RERANKER": "nobody/nothing", "HGMEM_DOWNLOAD": download, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        hub.shutdown()
    told = " and could not be downloaded: check its name and the connection" if download == "1" else ": pass the path"
    assert f"reranker 'nobody/nothing' is not on this machine{told}" in run.stderr
    assert ("HGMEM_DOWNLOAD=1" in run.stderr) == (download == "0")
    assert bool(asked) == (download == "1")


@torch_alone
@pytest.mark.weights
def test_a_command_that_has_loaded_pytorch_ends_without_a_list_of_leaks() -> None:
    code = "import sentence_transformers\nfrom hgmem.cli import main\nmain()"
    run = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_server_of_rerankers_needs_the_name_of_one() -> None:
    with pytest.raises(UsageError, match="HGMEM_RERANKER_BASE_URL needs a reranker: set HGMEM_RERANKER"):
        reranker_place(Settings(reranker_base_url="http://127.0.0.1:9/v1"))
