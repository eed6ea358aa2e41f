"""Promises of a corpus: kept where only hgmem wrote, and each seen, by its name and alone, where it is broken.

A break is made and looked at in one transaction, which is then rolled back: so each begins with the same corpus.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting
from neo4j import Driver

from hgmem import Checkup, Document, HGMem, Settings, UsageError
from hgmem.checking import check
from hgmem.checking import contents, memories
from hgmem.checking.promises import PROMISES
from hgmem.extract import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.corpus import mark_corpus
from hgmem.graph.database import Transaction
from hgmem.memory import EvolveReply, Insertion, Revision

TOM = Insertion(entities=("Bo", "Cleo", "Old Tom"), description="Bo trades with Old Tom.")
DESCRIBED = Extraction(
    entities=(ExtractedEntity(name="Old Tom", type="person", description="A trader."),),
    relations=(ExtractedRelation(source="Bo", target="Old Tom", description="They trade."),),
)
LOG = "Captain Rhee commands the ferry Aurora of the Nordhavn Line. The Aurora sails to Kelpie Island. " * 12


class RolledBack(Exception):
    """Ends a transaction without a trace."""


def fill(client: HGMem) -> None:
    """Let a corpus live: every kind of memory, a document that went, one that was cut into several chunks."""
    model = client.model
    client.add_graph(LETTERS)
    client.model = HGMem.open(client.corpus, **client.settings.model_dump(exclude_none=True)).model
    client.add([Document(id="log", text=LOG), Document(id="gone", text="Josse Arkwell left the Brass Key with Dace.")])
    passing = client.ask("Where did Josse Arkwell leave the Brass Key?")
    client.delete(document=next(str(row["uid"]) for row in client.documents() if row["title"] == "gone"))
    assert client.memory(passing.memory).answers[0].citations
    client.model = model
    for how in ({"recipe": "default"}, {"recipe": "paper"}, {"settings": {"update": "keep", "merge": "off"}}):
        client.ask(QUESTION, steps=3, **how)
    first = client.ask(QUESTION, steps=2)
    client.ask("And what did Cleo leave?", memory=first.memory, steps=2)
    client.ask("Who is Eve?", system="naive")
    revise = [EvolveReply(insert=(TOM,)), EvolveReply(update=(Revision(point=0, description="They trade in May."),))]
    client.model = wanting(evolve=lambda _: revise.pop(0), describe=lambda _: DESCRIBED)
    client.ask(QUESTION, recipe="code", steps=2)


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[HGMem]:
    """A client of a corpus that has seen much, beside another corpus."""
    given = settings.model_dump(exclude_none=True)
    name = f"t{secrets.token_hex(6)}"
    with HGMem.open(name, **given, embedder="deterministic", model=wanting()) as client:
        fill(client)
        client.add_graph(LETTERS, corpus=f"{name}b")
        yield client
        client.delete()
        client.delete(corpus=f"{name}b")


def names(found: Checkup) -> dict[str, int]:
    return {one.name: one.count for one in found.findings}


@pytest.fixture
def broken(client: HGMem) -> Callable[[str], Checkup]:
    """Breaks a corpus with a statement, looks, and lets nothing of it stay."""

    def breaking(text: str) -> Checkup:
        seen: list[Checkup] = []

        def work(transaction: Transaction) -> None:
            services = client._services(None)
            run = transaction._transaction.run(text, corpus=client.corpus, other=f"{client.corpus}b")
            assert run.consume().counters.contains_updates, "the statement broke nothing"
            seen.append(check(replace(services, database=transaction)))  # type: ignore[arg-type]
            raise RolledBack

        with pytest.raises(RolledBack):
            client._database.write(work)
        return seen[0]

    return breaking


def test_a_corpus_that_hgmem_alone_wrote_keeps_every_promise(client: HGMem) -> None:
    found = client.check()

    assert (names(found), found.notes, found.ok) == ({}, (), True)
    assert {one.system for one in client.memories()} == {"hgmem", "naive"}
    assert len(client.memories()) == 7
