"""Another embedder for a corpus: all vectors or none, resumed after a kill, and no reads in between."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from dumping import Dump, check_vector
from letters import LETTERS, QUESTION
from moving import hold, moved, rich

from hgmem import Document, HGMem, UsageError
from hgmem.corpus import reembedding
from hgmem.corpus import reembedding as filling
from hgmem.errors import ConflictError, ModelError
from hgmem.extraction.contributions import entity_text, own_relation_text, relation_text
from hgmem.graph.corpus import find_corpus, lock_corpus
from hgmem.graph.memory import Lease, create_memory, lease_memory
from hgmem.models.embedding import TextKind, Vectors
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Question

Open = Callable[..., HGMem]


class Other(DeterministicEmbedder):
    """Another embedder; counts the texts, and may fail after some."""

    def __init__(self, name: str = "other", dimensions: int = 16, *, most: int = 10_000) -> None:
        super().__init__(dimensions)
        self.name, self.most, self.texts = name, most, 0

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        if self.texts + len(texts) > self.most:
            raise ModelError("the embedder is gone")
        self.texts += len(texts)
        return super().embed(texts, kind=kind)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches, so that there are several."""
    monkeypatch.setattr(filling, "BATCH", 4)
    monkeypatch.setattr(reembedding, "CLEARED", 4)


def texts(found: Dump) -> list[tuple[str, str]]:
    """Return the vector and the text of all nodes and relations that should have one."""
    entities = found.of("Entity")
    said = [
        (chunk["embedding"], chunk["text"])
        for chunk in found.of("Chunk").values()
        if chunk["status"] in ("done", "embedded")
    ]
    said += [(point["embedding"], point["description"]) for point in found.of("MemoryPoint").values()]
    said += [(one["embedding"], entity_text(one["name"], one["description"])) for one in entities.values()]
    for joined in found.relationships:
        kind, source, target, relation = eval(joined)  # written by `moved`
        if kind == "RELATES":
            ends, own = (entities[source], entities[target]), relation["memory"]
            keywords = eval(relation["keywords"])
            text = (
                own_relation_text([end["name"] for end in ends], relation["description"])
                if own
                else relation_text([end["key"] for end in ends], relation["description"], keywords)
            )
            said.append((relation["embedding"], text))
    return said


def test_every_vector_is_the_other_embedders_and_nothing_else_changes(
    open_client: Open, settings: Settings, small: None
) -> None:
    client = rich(open_client, settings, builds=False)  # a build's vectors depend on more: see test_builds.py
    before = moved(settings, client.corpus)
    made = client.reembed(Other())
    found = moved(settings, client.corpus)

    said = texts(found)
    assert made == len(said) > 40
    for vector, text in said:
        assert len(json.loads(vector)) == 16
        check_vector(json.loads(vector), text)
    assert client.status().embedding_model == "other"
    assert without_vectors(found) == without_vectors(before)
    client.reembed(DeterministicEmbedder())
    assert moved(settings, client.corpus) == before


def test_the_corpus_is_then_asked_with_the_other_embedder_alone(open_client: Open) -> None:
    client = open_client()
    client.add_graph(LETTERS)
    client.reembed(Other())
    with pytest.raises(UsageError, match="hgmem reembed --corpus"):
        client.ask(QUESTION)
    other = open_client(embedder=Other())
    assert other.ask(QUESTION).status == "answered"
    assert other.check().ok


def without_vectors(found: Dump) -> dict[str, Any]:
    left_out = {"embedding", "embedding_model", "dimensions"}
    return {
        uid: (labels, {name: value for name, value in properties.items() if name not in left_out})
        for uid, (labels, properties) in found.nodes.items()
    }


def test_the_embedder_that_the_corpus_has_leaves_nothing_to_do(client: HGMem, settings: Settings) -> None:
    client.add_graph(LETTERS)
    before = moved(settings, client.corpus)
    assert client.reembed("deterministic") == 0
    assert moved(settings, client.corpus) == before


# Interruptions --------------------------------------------------------------------------------------------------


def test_what_was_embedded_before_it_failed_is_not_embedded_again(client: HGMem, small: None) -> None:
    client.add_graph(LETTERS)
    first, second = Other(most=10), Other()
    with pytest.raises(ModelError, match="is gone"):
        client.reembed(first)
    for refused in (
        lambda: client.ask("Who?"),
        lambda: client.add(Document(id="d", text="one")),
        lambda: client.delete(document="d"),
        lambda: client.export("nowhere"),
    ):
        with pytest.raises(UsageError, match=r"with 'other': wait .*hgmem reembed --corpus t\w+ --model other"):
            refused()
    made = client.reembed(second)

    assert first.texts > 0
    assert second.texts == made
    assert first.texts + made == len(LETTERS.chunks) + len(LETTERS.entities) + len(LETTERS.relations)
    assert client.status().status == "ready"


def test_another_embedder_begins_anew(client: HGMem, settings: Settings, small: None) -> None:
    client.add_graph(LETTERS)
    with pytest.raises(ModelError):
        client.reembed(Other(most=10))
    third = Other("third", 8)
    assert client.reembed(third) == third.texts
    assert {len(json.loads(vector)) for vector, _ in texts(moved(settings, client.corpus))} == {8}


def test_a_run_that_ends_while_it_clears_goes_on_clearing(
    client: HGMem, settings: Settings, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add_graph(LETTERS)

    def interrupted() -> Iterator[str]:
        yield "clear_chunk_vectors"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reembedding, "CLEARING", interrupted())
        with pytest.raises(KeyboardInterrupt):
            client.reembed(Other(dimensions=64))  # as long as the former ones
    client.reembed(Other(dimensions=64))
    for vector, text in texts(moved(settings, client.corpus)):
        check_vector(json.loads(vector), text)
    assert client.status().embedding_model == "other"


KILLED = """
import sys, time
sys.path.append({tests!r})
from hgmem import HGMem
from hgmem.corpus import reembedding as filling
from test_reembedding import Other

filling.BATCH = 4
class Slow(Other):
    def embed(self, texts, *, kind):
        found = super().embed(texts, kind=kind)
        print(self.texts, flush=True)
        if self.texts >= 8:
            time.sleep(60)
        return found
with HGMem.open({corpus!r}) as client:
    client.reembed(Slow())
"""


@pytest.mark.slow
def test_a_run_that_is_killed_is_gone_on_with(
    open_client: Open, environment: dict[str, str], small: None, tmp_path: Path
) -> None:
    client = open_client(claim_timeout=1, heartbeat=0.3)
    client.add_graph(LETTERS)
    code = KILLED.format(tests=str(Path(__file__).parent), corpus=client.corpus)
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert [int(running.stdout.readline()) for _ in range(3)] == [4, 5, 9]  # the last four are not stored
        with pytest.raises(ConflictError, match="is being re-embedded by another process"):
            client.reembed(Other())
        os.kill(running.pid, signal.SIGKILL)
    time.sleep(1.5)
    second = Other()
    client.reembed(second)

    everything = len(LETTERS.chunks) + len(LETTERS.entities) + len(LETTERS.relations)
    assert second.texts == everything - 5
    assert client.status().status == "ready"


# Concurrency ----------------------------------------------------------------------------------------------------


def test_while_a_question_is_answered_nothing_is_embedded_and_a_run_that_died_loses_its_memory(
    client: HGMem, settings: Settings
) -> None:
    client.add_graph(LETTERS)
    memory = client.ask(QUESTION, steps=1).memory
    hold(settings, memory, "PT0S")
    before = moved(settings, client.corpus)
    with pytest.raises(ConflictError, match=f"is in use by a question .*{memory}"):
        client.reembed(Other())
    assert moved(settings, client.corpus) == before

    hold(settings, memory, "PT1H")
    client.reembed(Other())
    assert client.memory(memory).status == "interrupted"
    assert "run" not in moved(settings, client.corpus).of("Memory")[memory]


def test_no_memory_is_begun_or_gone_on_with_meanwhile(client: HGMem) -> None:
    client.add_graph(LETTERS)
    memory = client.ask(QUESTION, steps=1).memory
    with pytest.raises(ModelError):
        client.reembed(Other(most=0))
    database, new = client._database, {"system": "hgmem", "model": "m", "question": "?", "settings": "{}"}
    with pytest.raises(UsageError, match="is not ready"):
        create_memory(database, lease=Lease(corpus=client.corpus, memory="m" + "0" * 16, run="r"), properties=new)
    lease = Lease(corpus=client.corpus, memory=memory, run="r")
    with pytest.raises(UsageError, match="is not ready"):
        lease_memory(database, lease=lease, question=Question(text="?"), timeout=60, owner=None)
    assert [one.uid for one in client.memories()] == [memory]


def test_a_memory_that_is_begun_waits_for_the_claim_and_is_then_refused(client: HGMem) -> None:
    client.add_graph(LETTERS)
    began, results = threading.Event(), []

    def asking() -> None:
        began.wait(10)
        try:
            results.append(client.ask(QUESTION, steps=1))
        except UsageError as error:
            results.append(str(error))

    def work(transaction: Any) -> None:
        lock_corpus(transaction, corpus=client.corpus)
        began.set()
        time.sleep(1)  # it has seen a ready corpus, and is about to write
        transaction.run("mark_corpus", corpus=client.corpus, status="re-embedding")

    thread = threading.Thread(target=asking)
    thread.start()
    client._database.write(work)
    thread.join(30)
    assert results == [
        f"corpus {client.corpus!r} is not ready: it was deleted or is being written; check it with `hgmem corpora`"
    ]
    assert client.memories() == []


def test_an_indexer_under_way_writes_no_vector_of_the_former_embedder(open_client: Open, settings: Settings) -> None:
    class Late(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if not done:
                done.append(client.reembed(Other(dimensions=64)))
            return super().embed(texts, kind=kind)

    done: list[int] = []
    client = open_client()
    client.add_graph(LETTERS)
    with pytest.raises(ConflictError, match="was re-embedded or deleted during"):
        open_client(embedder=Late()).add(Document(id="late", text="Captain Rhee met Tobit Quill in Port Ellis."))
    assert done
    other = open_client(embedder=Other(dimensions=64))
    other.add(Document(id="late", text="Captain Rhee met Tobit Quill in Port Ellis."))
    for vector, text in texts(moved(settings, client.corpus)):
        check_vector(json.loads(vector), text)


def test_an_embedder_that_cannot_be_used_changes_nothing(open_client: Callable[..., HGMem], settings: Settings) -> None:
    client = open_client(embedding_backend="onnx")  # which needs no PyTorch to say so
    client.add_graph(LETTERS)
    before = moved(settings, client.corpus)
    with pytest.raises(ModelError, match="is not on this machine"):
        client.reembed("no-such-model")
    assert moved(settings, client.corpus) == before
    assert find_corpus(client._database, corpus=client.corpus) is not None
