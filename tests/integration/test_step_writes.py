"""Rows of a system's own, written in the transaction of its step: all of it or nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dumping import driver, dump
from letters import LETTERS, QUESTION

from hgmem import HGMem, UsageError
from hgmem.errors import ConflictError, GraphError
from hgmem.graph.retrieval import near_chunks
from hgmem.graph.statements import add, parse
from hgmem.systems.registry import _loaders
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import Write

NOTES = """
// name: note(corpus, memory, text, chunk) write
// Keep a note that rests on a chunk.
CYPHER 25 MATCH (c:Chunk {uid: $chunk, corpus: $corpus}) USING INDEX c:Chunk(uid)
CREATE (n:Built:Note {uid: $memory + '-' + $text, corpus: $corpus, system: 'noting', kind: 'Note', key: $text,
                      text: $text, memory: $memory})-[:RESTS_ON]->(c);

// name: amend(corpus, memory, text, more) write
// Add to a note of this question, which an earlier statement of the transaction may have written.
CYPHER 25 MATCH (n:Built {uid: $memory + '-' + $text, corpus: $corpus}) USING INDEX n:Built(uid)
SET n.text = n.text + $more;

// name: read_note(corpus, text) read
CYPHER 25 MATCH (n:Built {uid: $text, corpus: $corpus}) USING INDEX n:Built(uid) RETURN n.text AS text;

// name: note_anywhere(text) write
CYPHER 25 CREATE (:Built {uid: $text, text: $text});

// name: note_in(corpus, text) write
CYPHER 25 CREATE (:Built {uid: $text, corpus: $corpus});
"""

Writes = Callable[[str], Sequence[Write]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The system has one option, as each system has."""

    best: int = 1


@pytest.fixture
def noting(client: HGMem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Writes], HGMem]:
    """Installs a system whose step writes what a function of the retrieved chunk returns."""
    path = tmp_path / "notes.cypher"
    path.write_text(NOTES, encoding="utf-8")
    monkeypatch.setattr("hgmem.graph.statements._added", {})
    add(parse(path))  # as the registry does with the file that a system names
    client.add_graph(LETTERS)

    def installed(writes: Writes) -> HGMem:
        def retrieve(services: Any, question: str, *, scope: Any, config: Config) -> Any:
            vector = services.embed([question], kind="query")[0]
            found = near_chunks(services.database, scope=scope, query=vector, k=config.best, over=50)
            return evidence_of(question, found, writes=writes(found[0][0].uid))

        spec = SingleStep(name="noting", summary="Notes.", config=Config, retrieve=retrieve, passage_option="best")
        known = {**_loaders(), "noting": lambda: spec}
        monkeypatch.setattr("hgmem.systems.registry._loaders", lambda: known)
        return client

    return installed


def note(text: str, chunk: str) -> Write:
    return Write(statement="note", parameters={"text": text, "chunk": chunk})


def amend(text: str, more: str) -> Write:
    return Write(statement="amend", parameters={"text": text, "more": more})


def notes(client: HGMem) -> dict[str, str]:
    held = dump(client.settings, client.corpus)
    return {str(one["uid"]): str(one["text"]) for one in held.of("Built").values()}


def test_a_steps_own_rows_are_written_with_it_in_order(noting: Callable[[Writes], HGMem]) -> None:
    client = noting(lambda chunk: [note("a", chunk), amend("a", "1"), amend("a", "2"), note("b", chunk)])
    answer = client.ask(QUESTION, system="noting")
    assert notes(client) == {f"{answer.memory}-a": "a12", f"{answer.memory}-b": "b"}
    assert (len(client.memory(answer.memory).steps), answer.status) == (1, "answered")
    calls = answer.usage.calls["neo4j"]
    assert (calls["write_step"], calls["note"], calls["amend"]) == (1, 2, 2)
    assert client.passages(answer.memory, limit=3)  # retrieves again, and writes nothing
    assert len(notes(client)) == 2
    client.delete(document="letters")  # the rows rest on its text
    assert notes(client) == {}


def test_a_step_without_own_rows_takes_no_further_round_trip(noting: Callable[[Writes], HGMem]) -> None:
    client = noting(lambda _: ())
    ours, naive = (client.ask(QUESTION, system=system).usage.calls["neo4j"] for system in ("noting", "naive"))
    assert sum(ours.values()) <= sum(naive.values())


def test_a_statement_that_fails_takes_the_whole_step_back(noting: Callable[[Writes], HGMem]) -> None:
    client = noting(lambda chunk: [note("a", chunk), note("a", chunk)])
    with pytest.raises(GraphError, match="'note' failed"):
        client.ask(QUESTION, system="noting")
    (memory,) = client.memories()
    assert (memory.steps, memory.status, notes(client)) == (0, "interrupted", {})


def test_a_run_that_lost_its_lease_writes_nothing(noting: Callable[[Writes], HGMem]) -> None:
    def taken_over(chunk: str) -> Sequence[Write]:
        with driver(client.settings) as opened:
            opened.execute_query("MATCH (m:Memory {corpus: $corpus}) SET m.run = 'another'", corpus=client.corpus)
        return [note("a", chunk)]

    client = noting(taken_over)
    with pytest.raises(ConflictError, match="is no longer held by this run"):
        client.ask(QUESTION, system="noting")
    assert (client.memories()[0].steps, notes(client)) == (0, {})


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (Write(statement="none"), "'none': it does not exist: name a statement of a Cypher file"),
        (Write(statement="read_note", parameters={"text": "a"}), "'read_note': its mode is 'read': use a statement"),
        (Write(statement="note_anywhere", parameters={"text": "a"}), "'note_anywhere': it takes no $corpus: declare"),
        (
            Write(statement="note_in", parameters={"text": "a", "corpus": "another"}),
            "'note_in': its $corpus is that of the question: omit 'corpus' from its parameters",
        ),
        (
            Write(statement="note", parameters={"text": "a", "chunk": "c", "memory": "another"}),
            "'note': its $memory is that of the question: omit 'memory' from its parameters",
        ),
        (
            Write(statement="note", parameters={"text": "a"}),
            "'note': it was given the parameters ['text']: give ['chunk', 'text']",
        ),
    ],
    ids=lambda one: one.statement if isinstance(one, Write) else "",
)
def test_a_statement_that_cannot_be_part_of_a_step_is_refused(
    noting: Callable[[Writes], HGMem], write: Write, why: str
) -> None:
    client = noting(lambda chunk: [note("a", chunk), write])
    with pytest.raises(UsageError) as error:
        client.ask(QUESTION, system="noting")
    assert f"system 'noting' cannot write statement {why}" in str(error.value)
    assert "\n" not in str(error.value)
    assert (client.memories()[0].steps, notes(client)) == (0, {})
