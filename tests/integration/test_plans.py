"""Query plans of a question's statements: they follow relationships from bound nodes, for any size of the database.

A plan that looks up a corpus by its index reads the whole corpus. The planner prefers it when its statistics are small,
and keeps the plan until they have grown a lot.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import neo4j
import pytest
from planning import forced
from test_retrieval import graph

from hgmem import HGMem
from hgmem.graph.statements import KEPT, statements
from hgmem.local import Server
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Given

pytestmark = pytest.mark.in_order  # they share a server, and each state begins by deleting all data

# What a question runs, as test_recipes.py makes sure.
STATEMENTS = (
    *(
        "find_corpus",
        "corpus_language",
        "corpus_of",
        "find_memory",
        "count_entities",
        "create_memory",
        "lease_memory",
        "renew_memory",
        "release_memory",
    ),
    *("memory_points", "memory_steps", "memory_answers", "point_scores"),
    "overview",
    *("scopes", "worded", "retrieve", "near_chunks", "documents_beside", "neighbours", "find_entities", "find_chunks"),
    "chunks_beside",
    *("mentioned_entities", "classes_of_chunks"),
    *("chunks_of_entities", "chunks_around_points", "nearest_supports", "write_step", "write_answer"),
)
# How many chunks or built rows there are, where the words of a query are rare.
COUNTS = ["NodeIndexSeek RANGE INDEX b:Built(corpus)", "NodeIndexSeek RANGE INDEX c:Chunk(corpus)"]
CLASS = "NodeIndexSeek RANGE INDEX member:Entity(canonical_uid)"  # the members of one entity's class
# Lookups that are not by unique keys and allowed, each with its reason.
ALLOWED = {
    **{name: [CLASS] for name in ("memory_points", "overview", "scopes", "neighbours", "find_entities")},
    **{
        name: [CLASS]
        for name in ("classes_of_chunks", "chunks_of_entities", "chunks_around_points", "mentioned_entities")
    },
    "count_entities": ["NodeIndexSeek RANGE INDEX e:Entity(corpus)"],  # of a small corpus: it stops at a limit
    "retrieve": [*COUNTS, "NodeIndexSeek RANGE INDEX e:Entity(corpus)", CLASS],  # exact search, of a small corpus
    "worded": COUNTS,
}


def without(given: Given, *, relations: bool = False, mentions: bool = False) -> Given:
    """Return a graph without its relations, or without its chunks' mentions."""
    return replace(
        given,
        relations=() if relations else tuple(replace(one, chunks=()) for one in given.relations),
        entities=tuple(replace(one, chunks=() if mentions else one.chunks) for one in given.entities),
    )


SMALL = graph(2, entities=20)
STATES: Mapping[str, Given | None] = {
    "nothing": None,
    "entities alone": Given(entities=without(graph(1, entities=200), relations=True, mentions=True).entities),
    "no relations": without(graph(1, entities=200), relations=True),
    "no mentions": without(graph(1, entities=200), mentions=True),
    "a small corpus": SMALL,
    "a larger one": graph(1, entities=900),
}


@pytest.fixture(scope="module")
def open_there(another_server: Server) -> Callable[[str], HGMem]:
    """Opens clients of a server without other data."""

    def opening(corpus: str) -> HGMem:
        password = another_server.password.get_secret_value()
        access = {"uri": another_server.uri, "username": another_server.username, "password": password}
        return HGMem.open(corpus, embedder=DeterministicEmbedder(64), **access)

    return opening


@pytest.fixture(scope="module")
def kept() -> dict[str, list[Any]]:
    """The plans of the first state."""
    return {}


@pytest.fixture(scope="module", params=STATES)
def state(request: pytest.FixtureRequest, open_there: Callable[[str], HGMem]) -> Iterator[neo4j.Session]:
    """A session on a server with only this data."""
    given = STATES[request.param]
    with open_there(request.param.replace(" ", "-")) as client, client._database._driver.session() as session:
        session.run("MATCH (n) DETACH DELETE n").consume()
        if given is not None:
            client.add_graph(given)
        yield session


def planned(session: neo4j.Session, query: str) -> dict[str, Any]:
    """Return a fresh plan."""
    plan = session.run(forced(query), {"in": {}}).consume().plan
    assert plan
    return plan


def lookups(session: neo4j.Session, query: str) -> list[str]:
    """Return the lookups of a fresh plan, except those by unique keys, and its hash joins."""
    return sorted({found for node in nodes(planned(session, query)) if (found := lookup(node))})


def work(plan: dict[str, Any]) -> list[Any]:
    """Return the plan's operators with the words of their details: without numbers, caches, and what orders them."""
    found = []
    for node in nodes(plan):
        name = node["operatorType"].partition("@")[0]
        details = re.sub(r"cache\[([^\]]*)\]|\d+", r"\1", node["args"].get("Details", ""))
        if name not in ("CacheProperties", "Eager"):
            found.append((name, sorted(re.findall(r"[\w.$']+", details))))
    return sorted(found)


def lookup(node: dict[str, Any]) -> str:
    """Return the operator with its lookup if it reads more than bound or unique nodes; else an empty string."""
    name, details = node["operatorType"].partition("@")[0], node["args"].get("Details", "")
    if "HashJoin" in name or "Scan" in name or ("Seek" in name and "Unique" not in name):
        return f"{name} {re.sub(r' WHERE .*|anon_[0-9]+', '', details)}"
    return ""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("children", []):
        yield from nodes(child)


@pytest.mark.parametrize("sampled", [False, True], ids=["at once", "sampled"])
def test_a_question_expands_from_what_is_bound(state: neo4j.Session, sampled: bool) -> None:
    if sampled:  # otherwise the planner uses old statistics of the indexes
        state.run("CALL db.prepareForReplanning()").consume()
    found = {name: lookups(state, statements()[name].query) for name in STATEMENTS}

    assert {name: plan for name, plan in found.items() if plan} == ALLOWED


def test_a_plan_that_is_kept_is_the_same_for_any_size(state: neo4j.Session, kept: dict[str, list[Any]]) -> None:
    assert {name for name, one in statements().items() if KEPT in one.query} == set(STATEMENTS)
    found = {name: work(planned(state, statements()[name].query)) for name in STATEMENTS}
    kept.update(kept or found)
    assert [name for name in STATEMENTS if found[name] != kept[name]] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "MATCH (v)-[r:RELATES {corpus: $in.corpus}]-(u) USING INDEX r:RELATES(corpus) RETURN v, r, u",
            "UndirectedRelationshipIndexSeek RANGE INDEX (v)-[r:RELATES(corpus)]-(u)",
        ),
        (
            "MATCH (c:Chunk {corpus: $in.corpus}) USING INDEX c:Chunk(corpus) RETURN c",
            "NodeIndexSeek RANGE INDEX c:Chunk(corpus)",
        ),
        ("MATCH (c:Chunk) USING SCAN c:Chunk WHERE $in.corpus <> '' RETURN c", "NodeByLabelScan c:Chunk"),
        (
            "MATCH (a:Entity {corpus: $in.corpus}), (b:Entity {corpus: $in.corpus}) WHERE a.name = b.name RETURN a",
            "ValueHashJoin a.name = b.name",
        ),
    ],
)
def test_what_reads_a_whole_corpus_is_seen(open_there: Callable[[str], HGMem], text: str, found: str) -> None:
    with open_there("seen") as client, client._database._driver.session() as session:
        session.run("MATCH (n) DETACH DELETE n").consume()
        client.add_graph(without(graph(1, entities=60), relations=True))
        assert found in lookups(session, f"CYPHER 25 {text}")
