"""Indexing: the data of a run, and the same graph after repeats, reordering, failures, kills and rivals."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dumping import check, driver, dump

from hgmem import Document, HGMem
from hgmem.corpus.findings import INVARIANTS
from hgmem.corpus.paging import batches
from hgmem.errors import ModelError, UsageError
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.extraction.tasks import Extract
from hgmem.models.embedding import TextKind, Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.settings import Settings
from hgmem.sources.files import load
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.text.identity import key, uid

Open = Callable[..., HGMem]
Extractor = Callable[[Any], object]
EXTRACTIVE = ExtractiveModel(DeterministicEmbedder())


class CountingEmbedder(DeterministicEmbedder):
    """The deterministic embedder; records its texts."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.texts += texts
        return super().embed(texts, kind=kind)


def extracting(reply: Extractor = EXTRACTIVE.reply) -> ScriptedModel:
    """Return a model that records its chunks."""
    return ScriptedModel({"extract": reply})


def by_text(extractions: dict[str, Extraction]) -> ScriptedModel:
    """Return a model that extracts the graph that a chunk's first word stands for."""
    return extracting(lambda task: extractions[task.text.split()[0]])


def saying(*names: str, relations: Sequence[tuple[str, str]] = ()) -> Extraction:
    return Extraction(
        entities=tuple(ExtractedEntity(name=name, type="person", description=f"{name} is there.") for name in names),
        relations=tuple(
            ExtractedRelation(source=one, target=other, description=f"{one} knows {other}.") for one, other in relations
        ),
    )


@pytest.fixture(scope="module")
def documents(affair: Path) -> list[Document]:
    """Some documents of the demo corpus that share entities."""
    found = [item for item in load(affair, max_bytes=10**6) if isinstance(item, Document)]
    return found[:4]


@pytest.fixture(scope="module")
def long(documents: list[Document]) -> Document:
    """One document of many chunks."""
    return Document(id="long", text="\n\n".join(document.text for document in documents))


class Killed(BaseException):
    """Ends a run like a signal."""


def killing(monkeypatch: pytest.MonkeyPatch, client: HGMem, *, after: int) -> list[str]:
    """Let the client write only `after` transactions; return the list that records them."""
    write = client._database.write_as
    written: list[str] = []

    def limited(name: str, work: Callable[..., object], *arguments: object, **named: object) -> object:
        if len(written) == after:
            raise Killed
        written.append(name)
        return write(name, work, *arguments, **named)

    monkeypatch.setattr(client._database, "write_as", limited)
    return written


# Written data ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(affair: Path) -> list[Document]:
    return [item for item in load(affair, max_bytes=10**6) if isinstance(item, Document)]


def test_a_folder_is_indexed_whole(client: HGMem, settings: Settings, affair: Path, whole: list[Document]) -> None:
    report = client.add(affair)
    status, found = client.status(), dump(settings, client.corpus)

    assert (report.documents, report.unchanged, report.failed) == (len(whole), 0, 0)
    assert (status.documents, status.failed, status.pending) == (len(whole), 0, 0)
    assert status.chunks == len(found.of("Chunk")) > len(whole)
    assert status.entities == len(found.of("Entity")) > 100
    assert status.relations == len(found.joined("RELATES")) > 100
    check(found)


def test_offsets_are_exact_and_chunks_follow_one_another(
    client: HGMem, settings: Settings, documents: list[Document]
) -> None:
    texts = [
        replace(document, text="\ufeff\r\n" + document.text.replace("the", "t\U0001f600")) for document in documents
    ]
    client.add(texts)
    found = dump(settings, client.corpus)
    text_of = {uid(client.corpus, "document", one.id or one.source): one.text for one in texts}
    chunks = found.of("Chunk")

    assert {chunk["document"] for chunk in chunks.values()} == text_of.keys()
    for chunk in chunks.values():
        assert text_of[chunk["document"]][chunk["start"] : chunk["end"]] == chunk["text"]
    placed = sorted((chunk["document"], chunk["position"], chunk["uid"]) for chunk in chunks.values())
    wanted = {(here[2], after[2]) for here, after in pairwise(placed) if here[0] == after[0]}
    assert {(here, after) for here, after, _ in found.joined("NEXT_CHUNK")} == wanted
    assert len(found.joined("NEXT_CHUNK")) == len(wanted) > 5


def test_uids_are_of_corpus_kind_and_key(client: HGMem, settings: Settings, documents: list[Document]) -> None:
    client.add(documents)
    found = dump(settings, client.corpus)
    entities = found.of("Entity")
    for one, entity in entities.items():
        assert entity["key"] == key(entity["name"])
        assert one == uid(client.corpus, "entity", entity["key"])
    for source, target, relation in found.joined("RELATES"):
        ends = (entities[source]["key"], entities[target]["key"])
        assert relation["uid"] == uid(client.corpus, "relation", *ends)


def test_self_loops_and_names_without_a_key_are_dropped(client: HGMem, open_client: Open, settings: Settings) -> None:
    extraction = saying("Ada", " ", "", relations=[("Ada", " ADA\u00a0"), ("Ada", ""), ("Bo", "ada"), ("ada", "BO")])
    open_client(model=by_text({"one": extraction})).add(Document(id="d", text="one"))
    found = dump(settings, client.corpus)

    assert sorted(entity["key"] for entity in found.of("Entity").values()) == ["ada", "bo"]
    ((_, _, relation),) = found.joined("RELATES")
    assert relation["weight"] == 2
    check(found)


NASTY = [
    "null \x00 character",
    "'); MATCH (n) DETACH DELETE n //",
    '"}) RETURN n; DROP INDEX chunk_text',
    "`backticks` and ${dollar} and $corpus and \\u0027 and \\",
    "\u202eright to left\u202c, \U0001f600, e\u0301, \u0130stanbul",
    "line\nbreak\tand /* comment */",
]


def test_text_is_data_whatever_it_says(open_client: Open, settings: Settings) -> None:
    extractions = {
        f"t{number}": Extraction(
            entities=(ExtractedEntity(name=text, type=text, description=text), ExtractedEntity(name="Ada")),
            relations=(ExtractedRelation(source=text, target="Ada", description=text, keywords=(text,)),),
        )
        for number, text in enumerate(NASTY)
    }
    documents = [
        Document(id=text, text=f"t{number} {text}", title=text, metadata={text: text})
        for number, text in enumerate(NASTY)
    ]
    client = open_client(model=by_text(extractions))
    report = client.add(documents)
    found = dump(settings, client.corpus)

    assert report.errors == []
    assert client.add(documents).unchanged == len(NASTY)
    assert {document["title"] for document in found.of("Document").values()} == set(NASTY)
    assert {chunk["text"] for chunk in found.of("Chunk").values()} == {one.text.strip() for one in documents}
    assert {entity["type"] for entity in found.of("Entity").values()} == {*NASTY, ""}
    assert {relation["keywords"][0] for _, _, relation in found.joined("RELATES")} == set(NASTY)
    check(found)


# Repeats and order ----------------------------------------------------------------------------------------------


def test_a_second_run_writes_nothing_and_calls_no_model(
    open_client: Open, settings: Settings, affair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_client().add(affair)
    before = dump(settings, open_client().corpus, times=True)
    model, embedder = extracting(), CountingEmbedder()
    client = open_client(model=model, embedder=embedder)
    written = killing(monkeypatch, client, after=0)
    report = client.add(affair)

    assert (report.documents, report.chunks, report.failed) == (0, 0, 0)
    assert report.unchanged > 10
    assert (model.tasks, embedder.texts, written) == ([], [], [])
    assert dump(settings, client.corpus, times=True) == before


@pytest.mark.parametrize("order", ["backwards", "one by one", "in small groups"])
def test_the_graph_is_the_same_in_any_order_of_work(
    client: HGMem,
    settings: Settings,
    documents: list[Document],
    order: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.add(documents)
    wanted = dump(settings, client.corpus)
    client.delete()
    if order == "one by one":
        for document in (*documents[3:], *documents[:3]):
            client.add(document)
    elif order == "backwards":
        client.add(documents[::-1])
    else:
        monkeypatch.setattr("hgmem.corpus.parallel_calls.GROUP", 3)
        monkeypatch.setattr("hgmem.corpus.documents.DOCUMENTS", 2)
        monkeypatch.setitem(batches.__kwdefaults__, "size", 7)
        client.add(documents)

    assert dump(settings, client.corpus) == wanted


def test_a_document_without_text_is_done_at_once_and_for_good(client: HGMem, settings: Settings) -> None:
    client.add(Document(id="empty", text=" \n "))
    before = dump(settings, client.corpus, times=True)
    assert client.status().documents == 1
    assert client.add(Document(id="empty", text=" \n ")).unchanged == 1
    assert dump(settings, client.corpus, times=True) == before


# Without identity -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([Document(id="a", text="one"), Document(text="two", title="Two")], "'Two' has neither id nor source"),
        ([Document(id="a", text="one"), Document(source="a", text="two")], "'a' is a duplicate"),
    ],
)
def test_documents_that_cannot_be_told_apart_are_refused_before_anything_is_written(
    client: HGMem, documents: list[Document], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        client.add(documents)
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


def test_a_document_is_known_by_its_id_else_by_its_source(client: HGMem) -> None:
    client.add([Document(id="a", source="b", text="one"), Document(source="b", text="two")])
    assert {row["uid"] for row in client.documents()} == {uid(client.corpus, "document", name) for name in ("a", "b")}


# Edits ----------------------------------------------------------------------------------------------------------


def test_an_edited_document_leaves_nothing_of_its_old_text(
    open_client: Open, settings: Settings, documents: list[Document]
) -> None:
    model = extracting()
    client = open_client(model=model)
    old = documents[2]
    paragraph = "Zacharias Quillfeather sold the Ravensund Orrery to Zacharias Quillfeather of Umberholm."
    edited = [*documents[:2], replace(old, text=old.text[: len(old.text) // 2]), *documents[3:]]

    client.add([*documents[:2], replace(old, text=old.text + "\n\n" + paragraph), *documents[3:]])
    first = dump(settings, client.corpus)
    assert any("quillfeather" in entity["key"] for entity in first.of("Entity").values())
    model.tasks.clear()
    report = client.add(edited)
    second = dump(settings, client.corpus)

    assert (report.documents, report.unchanged) == (1, len(documents) - 1)
    assert {task.text for task in model.tasks if isinstance(task, Extract)} == {
        chunk["text"] for name, chunk in second.of("Chunk").items() if name not in first.of("Chunk")
    }
    assert not any("quillfeather" in entity["key"] for entity in second.of("Entity").values())
    assert first.of("Entity").keys() - second.of("Entity").keys()
    client.delete()
    client.add(edited)
    assert dump(settings, client.corpus) == second


def test_what_others_support_stays_and_speaks_for_them_alone(open_client: Open, settings: Settings) -> None:
    said = {
        "one": saying("Ada", "Bo", relations=[("Ada", "Bo")]),
        "two": saying("ADA", "Cy", relations=[("ADA", "Cy")]),
        "three": saying("Dee"),
    }
    client = open_client(model=by_text(said))
    client.add([Document(id="x", text="one"), Document(id="y", text="two")])
    client.add(Document(id="y", text="three"))
    found = dump(settings, client.corpus)

    assert sorted(entity["name"] for entity in found.of("Entity").values()) == ["Ada", "Bo", "Dee"]
    ada = found.of("Entity")[uid(client.corpus, "entity", "ada")]
    assert ada["description"] == "Ada is there."
    assert len(found.joined("RELATES")) == 1
    check(found)


# Failures -------------------------------------------------------------------------------------------------------


def test_a_failed_chunk_is_listed_and_retried_and_the_rest_is_indexed(
    open_client: Open, settings: Settings, long: Document
) -> None:
    open_client().add(long)
    wanted = dump(settings, open_client().corpus)
    open_client().delete()
    failing = sorted(chunk["text"] for chunk in wanted.of("Chunk").values())[3]

    def reply(task: Extract) -> object:
        return ModelError("no more tokens") if task.text == failing else EXTRACTIVE.reply(task)

    client = open_client(model=extracting(reply))
    report = client.add(long)
    status = client.status()
    found = dump(settings, client.corpus)

    assert (report.failed, report.chunks) == (1, len(wanted.of("Chunk")) - 1)
    assert "no more tokens" in report.errors[0]
    assert (status.failed, status.pending) == (1, 0)
    (failure,) = status.failures
    assert found.of("Chunk")[failure["chunk"]]["text"] == failing
    assert failure["error"] == "no more tokens"
    assert [row["status"] for row in client.documents()] == ["pending"]
    check(found)

    model = extracting()
    again = open_client(model=model)
    assert again.add(long).failed == 0
    assert [task.text for task in model.tasks if isinstance(task, Extract)] == [failing]
    assert again.status().failed == 0
    assert dump(settings, client.corpus) == wanted


def test_what_failed_is_extracted_later_without_the_documents(
    open_client: Open, settings: Settings, long: Document
) -> None:
    open_client().add(long)
    wanted = dump(settings, open_client().corpus)
    open_client().delete()
    texts = sorted(chunk["text"] for chunk in wanted.of("Chunk").values())

    def failing(*, until: int) -> HGMem:
        def reply(task: Extract) -> object:
            return ModelError("no more tokens") if task.text in texts[:until] else EXTRACTIVE.reply(task)

        return open_client(model=extracting(reply))

    failing(until=5).add(long)
    first = failing(until=5).plan_retry()
    again = failing(until=2).retry_failed()
    status = failing(until=0).status()
    last = failing(until=0).retry_failed()

    assert (first.documents, first.chunks, first.calls) == (1, 5, 5)
    assert (again.documents, again.chunks, again.failed) == (1, 3, 2)
    assert (status.failed, {failure["attempts"] for failure in status.failures}) == (2, {"2"})
    assert (last.chunks, last.failed) == (2, 0)
    assert dump(settings, open_client().corpus) == wanted
    assert open_client().retry_failed().documents == 0


def test_an_embedder_that_fails_ends_the_run_and_the_next_goes_on(
    open_client: Open, settings: Settings, long: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hgmem.corpus.parallel_calls.GROUP", 4)
    open_client().add(long)
    wanted = dump(settings, open_client().corpus)
    open_client().delete()

    class Failing(CountingEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            if len(self.texts) > 6:
                raise ModelError("the embedder is gone")
            return super().embed(texts, kind=kind)

    with pytest.raises(ModelError, match="the embedder is gone"):
        open_client(embedder=Failing()).add(long)
    assert [chunk["status"] for chunk in dump(settings, open_client().corpus).of("Chunk").values()].count(
        "extracted"
    ) == 8
    open_client().add(long)
    assert dump(settings, open_client().corpus) == wanted


# Kills ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("group", "after"), [(2, 0), (2, 5), (64, 5)])
def test_ctrl_c_keeps_the_chunks_that_were_finished(
    open_client: Open,
    settings: Settings,
    long: Document,
    after: int,
    group: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hgmem.corpus.parallel_calls.GROUP", group)
    open_client().add(long)
    wanted = dump(settings, open_client().corpus)
    open_client().delete()
    given, replied = iter(range(100)), []

    def reply(task: Extract) -> object:
        if next(given) == after:
            raise KeyboardInterrupt
        replied.append(task.text)
        return EXTRACTIVE.reply(task)

    with pytest.raises(KeyboardInterrupt):
        open_client(model=extracting(reply), workers=2).add(long)
    kept = [
        chunk["text"] for chunk in dump(settings, open_client().corpus).of("Chunk").values() if "extraction" in chunk
    ]
    assert sorted(kept) == sorted(replied)
    assert len(kept) >= after

    model = extracting()
    open_client(model=model).add(long)
    asked = [task.text for task in model.tasks if isinstance(task, Extract)]
    assert sorted([*asked, *kept]) == sorted(chunk["text"] for chunk in wanted.of("Chunk").values())
    assert dump(settings, open_client().corpus) == wanted


@pytest.fixture(scope="module")
def editions() -> tuple[list[Document], list[Document], ScriptedModel]:
    """Two editions of three documents that share entities and relations, and a model that extracts them."""
    said = {
        "a": saying("Ada", "Bo", relations=[("Ada", "Bo"), ("Flo", "Gus")]),
        "b": saying("Bo", "Cy", relations=[("Bo", "Cy"), ("Ada", "Bo"), ("FLO", "GUS")]),
        "c": saying("ADA", "Dee", relations=[("Dee", "ADA")]),
        "d": saying("Cy", "Eve", relations=[("Bo", "CY")]),
    }
    old = [Document(id="1", text="a"), Document(id="2", text="b"), Document(id="3", text="c")]
    new = [Document(id="1", text="d"), Document(id="2", text="b"), Document(id="4", text="c and more")]
    return old, new, by_text(said)


def told_to_go_on(client: HGMem) -> set[str]:
    """Return the names of a check's findings in a corpus with an interrupted run; check that each has a remedy."""
    findings = client.check().findings
    assert all(one.remedy.startswith(("resume the ", "index the document again")) for one in findings), findings
    return {one.name for one in findings}


@pytest.mark.slow
def test_a_run_killed_before_any_of_its_writes_is_made_good_by_the_next(
    open_client: Open,
    settings: Settings,
    editions: tuple[list[Document], list[Document], ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new, model = editions
    client = open_client(model=model)
    client.add(old)
    client.add(new)
    wanted = dump(settings, client.corpus)
    kills = 0
    passing: set[str] = set()
    for after in range(100):
        client.delete()
        client.add(old)
        with monkeypatch.context() as patch:
            written = killing(patch, client, after=after)
            try:
                client.add(new)
                break
            except Killed:
                kills += 1
        passing |= told_to_go_on(client)
        client.add(new)
        assert dump(settings, client.corpus) == wanted, f"killed after {written}"
    assert kills > 10
    assert passing == {name for name, promise in INVARIANTS.items() if promise.passing} | {"document-status"}


def test_a_deletion_killed_before_any_of_its_writes_is_made_good_by_the_next(
    open_client: Open,
    settings: Settings,
    editions: tuple[list[Document], list[Document], ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, _, model = editions
    client = open_client(model=model)
    client.add(old[1:])
    wanted = dump(settings, client.corpus)
    gone = uid(client.corpus, "document", old[0].id)
    for after in range(100):
        client.add(old)
        with monkeypatch.context() as patch:
            written = killing(patch, client, after=after)
            try:
                client.delete(document=gone)
                break
            except Killed:
                pass
        told_to_go_on(client)
        client.delete(document=gone)
        assert dump(settings, client.corpus) == wanted, f"killed after {written}"
    assert after > 3


# Rivals ---------------------------------------------------------------------------------------------------------


def together(*runs: Callable[[], object]) -> list[BaseException]:
    """Run all concurrently; return their exceptions."""
    raised: list[BaseException] = []
    ready = threading.Barrier(len(runs))

    def run(one: Callable[[], object]) -> None:
        ready.wait()
        try:
            one()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_two_indexers_of_the_same_documents_end_in_one_graph(
    open_client: Open, settings: Settings, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = open_client(), open_client()
    client.add(documents)
    wanted = dump(settings, client.corpus)
    monkeypatch.setattr("hgmem.corpus.parallel_calls.GROUP", 4)
    for _ in range(2):
        client.delete()
        assert together(lambda: client.add(documents), lambda: other.add(documents[::-1])) == []
        assert dump(settings, client.corpus) == wanted
        assert client.status().pending == 0


def test_two_indexers_of_different_documents_that_share_entities_end_in_one_graph(
    open_client: Open, settings: Settings, documents: list[Document]
) -> None:
    client, other = open_client(), open_client()
    client.add(documents)
    wanted = dump(settings, client.corpus)
    client.delete()
    assert together(lambda: client.add(documents[::2]), lambda: other.add(documents[1::2])) == []
    assert dump(settings, client.corpus) == wanted


def test_of_two_extractions_of_a_chunk_the_first_counts(open_client: Open, settings: Settings) -> None:
    document = Document(id="d", text="one")
    rival = open_client(model=by_text({"one": saying("Ada", "Bo", relations=[("Ada", "Bo")])}))

    def reply(task: object) -> object:
        rival.add(document)
        return saying("Ada", "Cy", relations=[("Ada", "Cy")])

    open_client(model=extracting(reply)).add(document)
    found = dump(settings, rival.corpus)
    assert sorted(entity["name"] for entity in found.of("Entity").values()) == ["Ada", "Bo"]
    assert [chunk["status"] for chunk in found.of("Chunk").values()] == ["done"]
    check(found)


def test_a_chunk_that_another_run_finished_has_not_failed(open_client: Open, settings: Settings) -> None:
    document = Document(id="d", text="one")
    rival = open_client(model=by_text({"one": saying("Ada")}))

    def reply(task: object) -> object:
        rival.add(document)
        return ModelError("too late")

    client = open_client(model=extracting(reply))
    client.add(document)
    (chunk,) = dump(settings, client.corpus).of("Chunk").values()
    assert (chunk["status"], "error" in chunk) == ("done", False)
    assert client.add(document).unchanged == 1


# Embedders ------------------------------------------------------------------------------------------------------


def test_another_embedder_is_refused_with_the_remedy(
    open_client: Open, settings: Settings, documents: list[Document]
) -> None:
    client = open_client()
    client.add(documents[0])
    before = dump(settings, client.corpus, times=True)

    class Other(DeterministicEmbedder):
        name = "other"

    with pytest.raises(
        UsageError, match=r"'deterministic', not 'other': .*=deterministic, or pass embedder=… in Python"
    ):
        open_client(embedder=Other()).add(documents)
    with pytest.raises(
        UsageError, match=r"64-dimensional vectors, but 'deterministic' returns 32: set HGMEM_EMBEDDING_MODEL"
    ):
        open_client(embedder=DeterministicEmbedder(32)).add(documents)
    assert dump(settings, open_client().corpus, times=True) == before


def test_an_embedder_that_fails_at_its_first_text_leaves_no_corpus(
    open_client: Open, documents: list[Document]
) -> None:
    class Flat(DeterministicEmbedder):
        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            return super().embed(texts, kind=kind)[:, :-1]

    failing = open_client(embedder=Flat())
    with pytest.raises(ModelError, match="expected 64 dimensions"):
        failing.add(documents)
    assert failing.corpus not in [row["corpus"] for row in failing.corpora()]


def test_a_vector_without_direction_or_of_another_length_is_never_stored(
    open_client: Open, settings: Settings, documents: list[Document]
) -> None:
    class Bad(DeterministicEmbedder):
        vectors = np.zeros((0, 0), dtype=np.float32)

        def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            return np.full((len(texts), self.width), self.value, dtype=np.float32)

        def __init__(self, width: int, value: float) -> None:
            super().__init__()
            self.width, self.value = width, value

    open_client().add(documents[1])
    for bad in (Bad(64, 0.0), Bad(64, float("nan")), Bad(64, float("inf")), Bad(63, 1.0)):
        with pytest.raises(ModelError, match="embedder 'deterministic' returned"):
            open_client(embedder=bad).add(documents[0])
    chunks = dump(settings, open_client().corpus).of("Chunk").values()
    pending = [chunk for chunk in chunks if chunk["status"] == "pending"]
    assert pending
    assert not [chunk for chunk in pending if "embedding" in chunk or "extraction" in chunk]


# Concurrency ----------------------------------------------------------------------------------------------------


def test_indexing_and_deleting_leave_other_corpora_as_they_were(
    open_client: Open, settings: Settings, corpus: str, documents: list[Document]
) -> None:
    other = open_client(corpus=f"{corpus}-other")
    other.add(documents)
    before = dump(settings, other.corpus, times=True)
    client = open_client()
    client.add(documents)
    client.add(replace(documents[0], text="Ada met Bo."))
    client.delete(document=uid(client.corpus, "document", documents[1].id or documents[1].source))
    assert dump(settings, other.corpus, times=True) == before
    client.delete()
    assert dump(settings, other.corpus, times=True) == before
    with driver(settings) as opened, opened.session() as session:
        left = session.run("MATCH (n) WHERE n.corpus = $corpus RETURN count(n) AS left", corpus=client.corpus).single()
    assert left
    assert left["left"] == 0
