"""Archives: a corpus moves from one Neo4j to another completely or not at all."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from dumping import Dump, check_vector, driver, dump
from hypothesis import HealthCheck
from hypothesis import given as drawn
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from moving import TEXTS, hold, kinds, moved, rich

from hgmem import Checkup, DocumentError, HGMem, UsageError
from hgmem.corpus.archive.lines import Chain
from hgmem.corpus.archive.records import ARCHIVED, footer
from hgmem.errors import ConflictError, GraphError, HGMemError
from hgmem.graph import restoring
from hgmem.graph.corpus import create_corpus, lease_corpus
from hgmem.graph.record_types import OF_MEMORIES, RECORD_TYPES
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder
from hgmem.values import as_json
from hgmem.values.inputs import Document, Given, GivenEntity

Open = Callable[..., HGMem]
NAME = "moving-house"


@dataclass(frozen=True, kw_only=True)
class Archived:
    """A deleted rich corpus: its archive, its former data, and the findings of its integrity check."""

    path: Path
    wanted: Dump
    checkup: Checkup

    def records(self) -> list[dict[str, Any]]:
        """Return all lines of the archive, including the first and the last."""
        return [json.loads(line) for line in gzip.decompress(self.path.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def archived(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Archived:
    opened: list[HGMem] = []

    def opening(**arguments: object) -> HGMem:
        opened.append(HGMem.open(NAME, **{**settings.model_dump(exclude_none=True), **arguments}))
        return opened[-1]

    client = rich(opening, settings)
    path = tmp_path_factory.mktemp("archives") / "whole.jsonl.gz"
    done = client.export(path)
    assert (done.corpus, done.written, done.notes) == (NAME, True, ())
    wanted, checkup = moved(settings, NAME), client.check()
    client.delete()
    for each in opened:
        each.close()
    return Archived(path=path, wanted=wanted, checkup=checkup)


@pytest.fixture
def place(open_client: Open) -> HGMem:
    """A client of the target corpus, which does not exist yet."""
    return open_client(corpus=NAME)


@pytest.fixture
def other(client: HGMem, settings: Settings) -> Iterator[None]:
    """Another corpus, which must not change."""
    client.add(Document(id="other", text="Captain Rhee commands the ferry Aurora."))
    client.ask("Who commands the Aurora?")
    before = moved(settings, client.corpus)
    yield
    assert moved(settings, client.corpus) == before


def written(records: list[dict[str, Any]], path: Path) -> Path:
    """Write records as an archive with valid digests and counts."""
    plain = [{name: value for name, value in record.items() if name != "digest"} for record in records[:-1]]
    chain, counts = Chain(), {}
    for record in plain[1:]:
        counts[record["kind"]] = counts.get(record["kind"], 0) + 1
    path.write_bytes(gzip.compress(b"".join(chain.line(record) for record in (*plain, footer(counts)))))
    return path


# Round trip -----------------------------------------------------------------------------------------------------


def test_a_corpus_comes_back_uid_for_uid_and_property_for_property(
    archived: Archived, place: HGMem, settings: Settings, other: None
) -> None:
    done = place.import_archive(archived.path)
    found = moved(settings, NAME)

    assert (done.corpus, done.written) == (NAME, True)
    assert found.nodes.keys() == archived.wanted.nodes.keys()
    assert found.nodes == archived.wanted.nodes
    assert found.relationships == archived.wanted.relationships
    assert place.check() == archived.checkup


def test_the_corpus_of_these_tests_has_every_kind_and_every_field(archived: Archived) -> None:
    records = archived.records()
    there = {name: {field for record in records if record["kind"] == name for field in record} for name in ARCHIVED}
    wanted = {name: {field.name for field in of_type.archived} for name, of_type in ARCHIVED.items()}

    assert {name: wanted[name] - there[name] for name in wanted} == {name: set() for name in wanted}
    assert kinds(archived.wanted) == {*RECORD_TYPES} - {"RELATIONSHIP"} | {
        *("Corpus", "FROM_DOCUMENT", "HAS_STEP", "ASKED", "HAS_POINT", "HAS_ANSWER", "HAS_CITATION", "DeadPoint"),
        *("HAS_UNIT", "MADE", "ToyGist", "ToyTopic", "TOY_IN"),
    }


def test_no_claim_no_secret_and_nothing_of_another_corpus_is_exported(archived: Archived, settings: Settings) -> None:
    text = gzip.decompress(archived.path.read_bytes()).decode()
    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else "?"

    assert settings.neo4j_uri not in text
    assert password not in text
    assert not [record for record in archived.records() if {"run", "heartbeat"} & record.keys()]


def test_the_copy_answers_is_continued_and_is_indexed_without_a_new_call(
    archived: Archived, place: HGMem, settings: Settings
) -> None:
    place.import_archive(archived.path)
    uid = next(memory.uid for memory in place.memories() if memory.system == "hgmem")
    steps = len(place.memory(uid).steps)
    assert place.ask("Who sold the mill?").status == "answered"
    place.ask("Who sold the mill?", memory=uid, steps=1)
    assert len(place.memory(uid).steps) > steps
    report = place.add(Document(id="owners", title="owners", metadata={"page": 1}, text=TEXTS["owners"]))
    assert (report.unchanged, report.chunks) == (1, 0)
    place.delete(document=str(place.documents()[0]["uid"]))


def test_a_step_says_when_it_was_written_in_its_answer_and_in_the_copy(client: HGMem, tmp_path: Path) -> None:
    client.add(Document(id="ferry", text="Captain Rhee commands the ferry Aurora."))
    answer = client.ask("Who commands the Aurora?")
    client.export(tmp_path / "some")
    client.delete()
    client.import_archive(tmp_path / "some")
    memory = client.memory(answer.memory)
    assert [one.created_at for one in memory.steps] == [one.created_at for one in answer.steps]
    assert [step["created_at"] for step in as_json.row(memory)["steps"]] == [one.created_at for one in answer.steps]
    times = [datetime.fromisoformat(one.created_at) for one in (memory, *memory.steps)]
    assert times == sorted(times)


def test_an_export_of_the_copy_is_the_same_file(archived: Archived, place: HGMem, tmp_path: Path) -> None:
    place.import_archive(archived.path)
    place.export(tmp_path / "again.jsonl.gz")
    assert (tmp_path / "again.jsonl.gz").read_bytes() == archived.path.read_bytes()


def test_the_same_archive_again_writes_nothing(archived: Archived, place: HGMem, settings: Settings) -> None:
    place.import_archive(archived.path)
    before = moved(settings, NAME, without=frozenset())
    again = place.import_archive(archived.path)
    assert (again.written, again.counts["Memory"]) == (False, 7)
    assert moved(settings, NAME, without=frozenset()) == before


def test_the_same_archive_again_says_what_was_lost_since(archived: Archived, place: HGMem, settings: Settings) -> None:
    place.import_archive(archived.path)
    place.delete(document=str(place.documents()[0]["uid"]))
    before = moved(settings, NAME, without=frozenset())
    with pytest.raises(UsageError, match=r"has lost records since .* of kind 'Document' are left"):
        place.import_archive(archived.path)
    assert moved(settings, NAME, without=frozenset()) == before


def test_without_memories_only_the_corpus_moves(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path
) -> None:
    place.import_archive(archived.path)
    place.export(tmp_path / "bare.jsonl.gz", memories=False)
    place.delete()
    done = place.import_archive(tmp_path / "bare.jsonl.gz")
    found = moved(settings, NAME)

    assert not done.counts.keys() & OF_MEMORIES
    learnt = [uid for uid, (_, node) in archived.wanted.nodes.items() if node.get("learnt")]
    of_corpus = {uid: node for uid, node in archived.wanted.nodes.items() if node[1].get("memory", "") == ""}
    assert learnt
    assert found.nodes == {uid: node for uid, node in of_corpus.items() if uid not in learnt}


def test_without_embeddings_the_import_makes_the_same_vectors(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path
) -> None:
    place.import_archive(archived.path)
    place.export(tmp_path / "light.jsonl.gz", embeddings=False)
    place.delete()
    place.import_archive(tmp_path / "light.jsonl.gz")
    found = moved(settings, NAME)

    assert b'"embedding":' not in gzip.decompress((tmp_path / "light.jsonl.gz").read_bytes())
    assert plain(found) == plain(archived.wanted)
    assert found.relationships == archived.wanted.relationships


def plain(found: Dump) -> dict[str, Any]:
    """Return all nodes but those of builds, to whose rows the next build gives vectors."""
    return {uid: node for uid, node in found.nodes.items() if not {"Build", "Unit", "Built"} & set(node[0])}


def test_an_archive_of_another_embedder_keeps_its_vectors_and_names_it(
    archived: Archived, place: HGMem, settings: Settings, open_client: Open
) -> None:
    class Other(DeterministicEmbedder):
        name = "another"

    client = open_client(corpus=NAME, embedder=Other(3))
    client.import_archive(archived.path)
    assert moved(settings, NAME) == archived.wanted
    with pytest.raises(UsageError, match=r"embedded with 'deterministic'.*hgmem reembed --corpus moving-house"):
        client.ask("Who?")


# Errors ---------------------------------------------------------------------------------------------------------


def test_a_corpus_that_holds_something_is_refused(archived: Archived, place: HGMem, settings: Settings) -> None:
    place.add_graph(Given(entities=(GivenEntity(name="Ada"),)))
    before = moved(settings, NAME)
    with pytest.raises(
        UsageError, match="holds 0 documents, 1 entities and 0 memories: an archive can only be imported under"
    ):
        place.import_archive(archived.path)
    assert moved(settings, NAME) == before


@pytest.mark.slow
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@drawn(st.data())
def test_an_archive_that_was_changed_is_refused_whole(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path, data: st.DataObject
) -> None:
    lines = gzip.decompress(archived.path.read_bytes()).splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 2))
    inside = data.draw(st.integers(0, len(lines[at]) - 1))
    flipped = lines[at][:inside] + bytes([lines[at][inside] ^ data.draw(st.integers(1, 255))]) + lines[at][inside + 1 :]
    spoilt = {
        "flipped": [*lines[:at], flipped, *lines[at + 1 :]],
        "dropped": lines[:at] + lines[at + 1 :],
        "doubled": lines[: at + 1] + lines[at:],
        "swapped": [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
        "cut": lines[: at + 1],
    }[data.draw(st.sampled_from(["flipped", "dropped", "doubled", "swapped", "cut"]))]
    (tmp_path / "spoilt").write_bytes(gzip.compress(b"".join(spoilt)))

    with pytest.raises(DocumentError, match=r"spoilt', line \d+: "):
        place.import_archive(tmp_path / "spoilt")
    assert dump(settings, NAME).nodes == {}


def test_an_archive_under_another_name_is_refused(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path, corpus: str
) -> None:
    header, *rest = archived.records()
    renamed = written([{**header, "corpus": corpus}, *rest], tmp_path / "renamed")
    with pytest.raises(DocumentError, match=f"does not belong to corpus '{corpus}'"):
        place.import_archive(renamed)
    assert corpus not in {row["corpus"] for row in place.corpora()}


def test_uids_that_another_corpus_has_fail_the_import_whole(
    archived: Archived, place: HGMem, client: HGMem, other: None, settings: Settings, tmp_path: Path
) -> None:
    theirs = client.memories()[0].uid
    text = json.dumps(archived.records()).replace(a_memory(archived), theirs)
    with pytest.raises(GraphError, match="already exists"):
        place.import_archive(written(json.loads(text), tmp_path / "stolen"))
    assert dump(settings, NAME).nodes == {}


def a_memory(archived: Archived) -> str:
    return next(str(record["uid"]) for record in archived.records() if record["kind"] == "Memory")


# Early ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [GraphError("the server is gone"), KeyboardInterrupt()])
def test_an_import_that_fails_leaves_nothing_and_the_next_begins_anew(
    archived: Archived, place: HGMem, settings: Settings, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    restore = restoring.restore

    def failing(*held: Any, name: str, **given: Any) -> None:
        if name != "INVOLVES":
            restore(*held, name=name, **given)
            return
        assert moved(settings, NAME).of("Memory")  # half of it is written
        with pytest.raises(UsageError, match="importing"):
            place.ask("Who?")
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "restore", failing)
        with pytest.raises(type(error)):
            place.import_archive(archived.path)
    assert dump(settings, NAME).nodes == {}
    place.import_archive(archived.path)
    assert moved(settings, NAME) == archived.wanted


def test_what_a_killed_import_left_is_removed_by_the_next(
    archived: Archived, open_client: Open, settings: Settings
) -> None:
    client = open_client(corpus=NAME, claim_timeout=0.3, heartbeat=0.1)
    database = client._database
    create_corpus(database, corpus=NAME, status="importing", embedder=("another", 3), settings={})
    assert lease_corpus(database, corpus=NAME, run="killed", status="importing", timeout=0.3)
    with driver(settings) as opened:
        opened.execute_query("CREATE (:Document {uid: 'left', corpus: $corpus})", corpus=NAME)
    with pytest.raises(ConflictError, match="is being imported by another process"):
        open_client(corpus=NAME).import_archive(archived.path)
    time.sleep(0.5)
    client.import_archive(archived.path)
    assert moved(settings, NAME) == archived.wanted


def test_an_archive_that_is_changed_while_it_is_read_is_refused_whole(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "changing"
    path.write_bytes(archived.path.read_bytes())
    other = gzip.compress(b"nothing")

    def report(progress: Any) -> None:
        if not progress.done:
            path.write_bytes(other)

    with pytest.raises(HGMemError):
        place.import_archive(path, report=report)
    assert dump(settings, NAME).nodes == {}


# Concurrent writes ----------------------------------------------------------------------------------------------


def test_an_unknown_corpus_and_one_that_is_being_written_are_not_exported(
    place: HGMem, client: HGMem, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="not found"):
        place.export(tmp_path / "none")
    create_corpus(client._database, corpus=client.corpus, status="importing", embedder=("a", 3), settings={})
    with pytest.raises(UsageError, match="status importing"):
        client.export(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_what_comes_while_it_is_exported_is_left_out_and_said_so(
    archived: Archived, place: HGMem, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    place.import_archive(archived.path)
    writer = open_client(corpus=NAME)
    came: list[bool] = []

    def report(progress: Any) -> None:
        if progress.done and not came:
            came.append(True)
            writer.add(Document(id="late", text="Captain Rhee met Tobit Quill in Port Ellis."))

    done = place.export(tmp_path / "meanwhile", report=report)
    assert any("changed during the export" in note for note in done.notes)
    assert any("refer to later additions" in note for note in done.notes)
    place.delete()
    place.import_archive(tmp_path / "meanwhile")
    place.add(Document(id="late", text="Captain Rhee met Tobit Quill in Port Ellis."))
    assert "Tobit Quill" in {entity["name"] for entity in dump(settings, NAME).of("Entity").values()}


def test_a_memory_that_is_being_worked_on_is_left_out_and_one_that_died_is_not(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path
) -> None:
    place.import_archive(archived.path)
    live, dead, *_ = [one.uid for one in place.memories()]
    hold(settings, live, "PT0S")
    hold(settings, dead, "PT1H")
    done = place.export(tmp_path / "some")
    place.delete()
    place.import_archive(tmp_path / "some")

    assert done.notes == (f"skipped memory {live}: it is in use; export again when its run has ended",)
    assert live not in {one.uid for one in place.memories()}
    assert {one.uid: one.status for one in place.memories()}[dead] == "interrupted"


def test_properties_of_other_people_are_left_out_and_named(
    archived: Archived, place: HGMem, settings: Settings, tmp_path: Path
) -> None:
    place.import_archive(archived.path)
    with driver(settings) as opened:
        opened.execute_query("MATCH (e:Entity {corpus: $corpus}) SET e.pagerank = 0.5", corpus=NAME)
    done = place.export(tmp_path / "some")
    assert done.notes == ("skipped properties that hgmem did not write: Entity.pagerank, Provisional.pagerank",)


def test_vectors_stand_for_their_texts(archived: Archived) -> None:
    for point in archived.wanted.of("MemoryPoint").values():
        check_vector(json.loads(point["embedding"]), point["description"])
