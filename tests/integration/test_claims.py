"""Leases taken over while a write waits for a lock: the write sees the new holder and writes nothing."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import neo4j
import pytest
from dumping import driver
from rivals import overtaken

from hgmem import HGMem, Settings
from hgmem.errors import ConflictError
from hgmem.graph.corpus import create_corpus, lease_corpus, renew_corpus, write_leased
from hgmem.graph.database import Database
from hgmem.graph.memory import Lease, create_memory, release_memory, renew_memory, write_answer, write_step
from hgmem.values.records import Answer, Step, StepChanges

Write: TypeAlias = Callable[[Database, str], None]
RUN, RIVAL = "ours", "theirs"
STEP = Step(number=1, question="Who?", strategy="global")

OF_CORPUS: dict[str, Write] = {
    "renew": lambda database, name: renew_corpus(database, corpus=name, run=RUN),
    "release": lambda database, name: write_leased(
        database, "release_corpus", corpus=name, run=RUN, status="ready", imported=None
    ),
    "embedder": lambda database, name: write_leased(
        database, "set_embedder", corpus=name, run=RUN, embedding_model="ours", dimensions=9, schema_version=2
    ),
    "begin": lambda database, name: write_leased(
        database, "begin_reembedding", corpus=name, run=RUN, embedding_model="ours", dimensions=9
    ),
    "cleared": lambda database, name: write_leased(database, "mark_cleared", corpus=name, run=RUN),
    "reembedded": lambda database, name: write_leased(
        database, "release_reembedding", corpus=name, run=RUN, status="ready"
    ),
}


def _lease(corpus: str) -> Lease:
    return Lease(corpus=corpus, memory=f"{corpus}m", run=RUN)


def _answer(corpus: str) -> Answer:
    return Answer(
        uid=f"{corpus}a", question="Who?", text="Ada.", status="answered", corpus=corpus, system="hgmem",
        memory=f"{corpus}m", model="scripted", step=1,
    )  # fmt: skip


def _write_step(database: Database, corpus: str) -> None:
    lease = _lease(corpus)
    write_step(database, lease=lease, step=STEP, changes=StepChanges(), vectors={})


def _write_answer(database: Database, corpus: str) -> None:
    write_answer(database, lease=_lease(corpus), answer=_answer(corpus), status="answered")


OF_MEMORY: dict[str, Write] = {
    "renew": lambda database, name: renew_memory(database, lease=_lease(name)),
    "release": lambda database, name: release_memory(database, lease=_lease(name), status="ready"),
    "step": _write_step,
    "answer": _write_answer,
}


@pytest.fixture
def held(client: HGMem, settings: Settings) -> Iterator[neo4j.Driver]:
    """A separate driver; our run holds the leases of the client's corpus and of one memory."""
    name = client.corpus
    create_corpus(client._database, corpus=name, status="ready", embedder=("deterministic", 64), settings={})
    create_memory(client._database, lease=_lease(name), properties={"question": "Who?"})
    assert lease_corpus(client._database, corpus=name, run=RUN, status="ready", timeout=60)
    with driver(settings) as opened:
        yield opened


@pytest.mark.parametrize("write", OF_CORPUS)
def test_a_corpus_that_was_taken_over_meanwhile_stays_the_rivals(write: str, held: neo4j.Driver, client: HGMem) -> None:
    _overtaken(held, client, OF_CORPUS[write], "MATCH (n:Corpus {name: $corpus})")


@pytest.mark.parametrize("write", OF_MEMORY)
def test_a_memory_that_was_taken_over_meanwhile_stays_the_rivals(write: str, held: neo4j.Driver, client: HGMem) -> None:
    _overtaken(held, client, OF_MEMORY[write], "MATCH (n:Memory {corpus: $corpus})")
    assert client.memory(f"{client.corpus}m").steps == client.memory(f"{client.corpus}m").answers == ()


def _overtaken(held: neo4j.Driver, client: HGMem, write: Write, match: str) -> None:
    """Let a rival take the lease during our write."""
    raised = overtaken(
        held,
        lambda: write(client._database, client.corpus),
        f"{match} SET n.run = $run, n.heartbeat = datetime('2026-01-01')",
        corpus=client.corpus,
        run=RIVAL,
    )
    assert [type(error) for error in raised] == [ConflictError]
    [now] = held.execute_query(f"{match} RETURN n.run, toString(n.heartbeat)", corpus=client.corpus).records
    assert now.values() == [RIVAL, "2026-01-01T00:00:00Z"]
