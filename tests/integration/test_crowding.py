"""A corpus among nine near-copies: searches find the same items as without the copies, and only its own."""

import gzip
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from dumping import driver
from toying import installed, learn

from hgmem import HGMem, HGMemError, Settings
from hgmem.graph.builds import built_rows
from hgmem.graph.built import Layer, near_built, worded_built
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.step_evidence import RetrievalConfig, Scene, _limits
from hgmem.sources.lightrag import read_lightrag
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from crowding import MARKS, K, NearEmbedder, Recall, common, marked, recall

pytestmark = pytest.mark.slow  # thousands of near-copies

ENTITIES, CHUNKS, WORDS = 400, 120, 250  # of the synthetic corpus
ENOUGH = 0.99
# A step's request to the index if memory is empty.
OVER = _limits(Scene(scope=Scope(corpus=""), covered=0, entities=0), RetrievalConfig(entities=K))["overfetch"]


def synthetic(seed: int = 7) -> Given:
    """Return a graph whose texts share words, so that many items are near to each other."""
    draw = random.Random(seed)
    syllables = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
    words = ["".join(draw.choices(syllables, k=3)) for _ in range(WORDS)]

    def text(length: int) -> str:
        return " ".join(draw.choices(words, k=length))

    named = dict.fromkeys(f"{text(1)} {text(1)}".title() for _ in range(2 * ENTITIES))
    names = list(named)[:ENTITIES]

    def passage(at: int) -> str:
        one, other, third, *_ = names[at::CHUNKS]
        return f"{one} met {other} when {text(8)}. {third} {text(6)} with {one}. {text(10)}."

    return Given(
        documents=(Document(id="d", title="Words", text="words"),),
        chunks=tuple(GivenChunk(id=f"c{at}", document="d", text=passage(at)) for at in range(CHUNKS)),
        entities=tuple(
            GivenEntity(name=name, type="word", description=text(8), chunks=(f"c{at % CHUNKS}",))
            for at, name in enumerate(names)
        ),
        relations=tuple(
            GivenRelation(source=one, target=other, description=text(6), chunks=("c0",))
            for one, other in pairwise(names)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """The corpus among nine near-copies, and its measurements from before they were added."""

    client: HGMem
    names: list[str]  # of entities
    texts: list[str]  # search texts
    alone: Recall
    foreign: frozenset[str]  # uids of all data of other corpora

    @property
    def amid(self) -> Recall:
        return recall(self.client, self.texts, over=OVER)

    def question(self, number: int) -> str:
        return f"Whom did {self.names[number]} meet, and when?"


def crowd(settings: Settings, name: str, given: Given) -> Iterator[Crowd]:
    embedder = NearEmbedder(DeterministicEmbedder(384))
    arguments = {**settings.model_dump(exclude_none=True), "embedder": embedder}
    others = {mark: f"{name}-{mark}" for mark in MARKS}
    with HGMem.open(name, **arguments) as client:
        client.add_graph(given)
        texts = [one.description for one in given.entities[:: len(given.entities) // 40]]
        alone = recall(client, texts, over=OVER)
        for mark, other in others.items():
            client.add_graph(marked(given, mark), corpus=other)
            client.ask(f"{texts[0]} {mark}?", corpus=other, steps=1)
        yield Crowd(
            client=client,
            names=[one.name for one in given.entities],
            texts=texts,
            alone=alone,
            foreign=frozenset(held(settings, list(others.values()))),
        )
        for corpus in (name, *others.values()):
            client.delete(corpus=corpus)


def held(settings: Settings, corpora: list[str]) -> list[str]:
    with driver(settings) as opened:
        query = "MATCH (n) WHERE n.corpus IN $corpora AND n.uid IS NOT NULL RETURN n.uid AS uid"
        return [row["uid"] for row in opened.execute_query(query, corpora=corpora).records]


@pytest.fixture(scope="module")
def crowded(settings: Settings) -> Iterator[Crowd]:
    yield from crowd(settings, "crowded", synthetic())


def said(value: object) -> Iterator[str]:
    """Yield all texts within a value."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from said(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for one in (*value.keys(), *value.values()):
            yield from said(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from said(one)


def strangers(crowd: Crowd, value: object) -> list[str]:
    """Return the texts within a value that are or name data of another corpus."""
    return [text for text in said(value) if text in crowd.foreign or any(mark in text for mark in MARKS)]


def check(crowd: Crowd, name: str, *, by_words: float = ENOUGH) -> None:
    """Check that searches find the same as without the copies, this part of it by words, and print the recall."""
    amid = crowd.amid
    for where, found in (("alone", crowd.alone), ("among ten", amid)):
        parts = f"entities {found.entities:.3f}, chunks {found.searched:.3f} and {found.chunks:.3f}"
        same = f"{common(crowd.alone.worded, found.worded):.3f}, {common(crowd.alone.scored, found.scored):.3f}"
        print(f"{name}, {where}: recall of {parts}; of what words find alone {same}")  # noqa: T201
    assert min(amid.entities, amid.searched, amid.chunks) >= ENOUGH
    for before, now in ((crowd.alone.worded, amid.worded), (crowd.alone.scored, amid.scored)):
        assert common(before, now) >= by_words
        assert list(map(len, now)) == list(map(len, before))
        assert sum(map(len, now)) > 10 * len(crowd.texts)


def test_searches_among_near_copies_find_what_is_nearest_in_the_corpus_itself(crowded: Crowd) -> None:
    check(crowded, f"synthetic, {ENTITIES} entities, {CHUNKS} chunks")


def test_searches_in_a_novel_among_its_near_copies_find_what_is_nearest_in_it(settings: Settings, shared: Path) -> None:
    given = replace(read_lightrag(shared / "gods_of_mars"), relations=())
    for novel in crowd(settings, "novel", given):
        # The index chooses 200 of 754 chunks, of which a step ranks 100, by the words of all ten corpora.
        check(novel, "a novel's graph", by_words=0.9)


def test_nothing_of_another_corpus_is_in_what_a_question_gives(crowded: Crowd) -> None:
    client = crowded.client
    answer = client.ask(crowded.question(3), steps=3)
    again = client.ask(crowded.question(9), memory=answer.memory, steps=2)
    client.build("remindrag")
    others = [client.ask(crowded.question(3), system=system) for system in ("naive", "bm25", "hybrid", "remindrag")]

    assert answer.citations
    assert len(again.steps) > len(answer.steps)
    assert all(other.citations for other in others)
    assert strangers(crowded, [answer, again, *others]) == []
    assert strangers(crowded, list(client.stream(crowded.question(5), steps=2))) == []


def test_nothing_of_another_corpus_is_in_what_is_read_back(crowded: Crowd) -> None:
    client = crowded.client
    answer = client.ask(crowded.question(7), steps=3)
    memory = client.memory(answer.memory)
    found = [memory, client.memory(answer.memory, step=1), client.memories(), client.status(), client.documents()]
    found += [client.lineage(point.uid) for point in memory.points]

    assert memory.points
    assert len(client.documents()) == 1
    assert client.status().entities == ENTITIES
    assert strangers(crowded, found) == []


# What systems build ---------------------------------------------------------------------------------------------

HOUSES = 60  # documents of each of the ten corpora, each with a row in the layer that is searched


def houses(seed: int = 3) -> Given:
    """Return documents that share words, with one chunk each."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(("ba", "ke", "li", "mo", "nu"), k=2)) for _ in range(24)]
    texts = {f"h{at}": " ".join((f"house{at}", *draw.choices(words, k=30))) for at in range(HOUSES)}
    return Given(
        documents=tuple(Document(id=name, title=name, text="words") for name in texts),
        chunks=tuple(GivenChunk(id=name, document=name, text=text) for name, text in texts.items()),
        entities=(GivenEntity(name="Pier", chunks=("h0",)),),
    )


@dataclass(frozen=True, kw_only=True)
class BuiltCrowd:
    """The corpus among nine near-copies that have the same builds; `alone` are its hits by words without them."""

    client: HGMem
    layer: Layer
    texts: list[str]
    alone: list[list[tuple[str, float]]]
    foreign: frozenset[str]

    def worded(self) -> list[list[tuple[str, float]]]:
        found = [worded_built(self.client._database, layer=self.layer, text=text, k=5) for text in self.texts]
        return [[(row["uid"], score) for row, score in hits] for hits in found]


@pytest.fixture(scope="module")
def built_crowd(settings: Settings) -> Iterator[BuiltCrowd]:
    arguments = {**settings.model_dump(exclude_none=True), "embedder": NearEmbedder(DeterministicEmbedder(64))}
    others = {mark: f"built-{mark}" for mark in MARKS}
    given = houses()
    with installed(), HGMem.open("built", **arguments) as client:
        client.add_graph(given)
        client.build("toy")
        crowd = BuiltCrowd(
            client=client,
            layer=Layer(scope=Scope(corpus="built"), system="toy", kind="ToyGist"),
            texts=[" ".join(chunk.text.split()[:8]) for chunk in given.chunks[::3]],
            alone=[],
            foreign=frozenset(),
        )
        alone = crowd.worded()
        for mark, other in others.items():
            client.add_graph(marked(given, mark), corpus=other)
            client.build("toy", corpus=other)
        learn(client)
        yield replace(crowd, alone=alone, foreign=frozenset(held(settings, list(others.values()))))
        for corpus in ("built", *others.values()):
            client.delete(corpus=corpus)


def test_a_search_in_a_layer_finds_its_own_nearest_rows_and_no_others(built_crowd: BuiltCrowd) -> None:
    client = built_crowd.client
    rows = built_rows(client._database, corpus="built", system="toy", kind="ToyGist", vectors=True)
    uids, matrix = [row["uid"] for row in rows], np.array([row["embedding"] for row in rows])
    assert len(uids) == HOUSES
    for text in built_crowd.texts:
        query = client.embedder.embed([text], kind="query")[0]
        found = [
            row["uid"] for row, _ in near_built(client._database, layer=built_crowd.layer, query=query, k=K, over=60)
        ]
        scores = matrix @ query
        worst = np.sort(scores)[-K] - 1e-6
        assert len(set(found)) == K
        assert all(scores[uids.index(uid)] >= worst for uid in found)


def test_a_search_by_words_in_a_layer_finds_what_it_finds_alone(built_crowd: BuiltCrowd) -> None:
    found = built_crowd.worded()
    assert found == built_crowd.alone  # with their scores
    assert all(hits for hits in found)
    assert not built_crowd.foreign & {uid for hits in found for uid, _ in hits}


def test_no_row_that_another_corpus_built_is_in_anything(built_crowd: BuiltCrowd, tmp_path: Path) -> None:
    client = built_crowd.client
    answer = client.ask("Which is house7?", system="toy")
    client.export(tmp_path / "some")
    archive = gzip.decompress((tmp_path / "some").read_bytes()).decode()
    found = [
        answer,
        client.memory(answer.memory),
        client.status(),
        client.build("toy"),
        client.check(),
        archive.split('"'),
    ]

    assert answer.steps[0].retrieved[0].built
    assert client.status().builds[0].rows["ToyGist"] == HOUSES
    assert client.check().ok
    strange = [text for text in said(found) if text in built_crowd.foreign or any(mark in text for mark in MARKS)]
    assert strange == []


FAILING: Mapping[str, Callable[[HGMem, str], object]] = {
    "a document that is not there": lambda client, _: client.delete(document="nothing"),
    "a memory that is not there": lambda client, _: client.memory("nothing"),
    "a point that is not there": lambda client, _: client.lineage("nothing"),
    "a memory as a point": lambda client, memory: client.lineage(memory),
    "a step that is not there": lambda client, memory: client.ask(memory=memory, at_step=99),
    "no step": lambda client, memory: client.memory(memory, step=99),
    "a system that can't go on": lambda client, memory: client.ask("?", memory=memory, system="naive"),
    "an empty question": lambda client, _: client.ask(" "),
}


@pytest.mark.parametrize("what", FAILING)
def test_nothing_of_another_corpus_is_in_an_error(crowded: Crowd, what: str) -> None:
    memory = crowded.client.memories()
    uid = memory[0].uid if memory else crowded.client.ask(crowded.question(1), steps=1).memory
    with pytest.raises(HGMemError) as error:
        FAILING[what](crowded.client, uid)

    assert strangers(crowded, [str(error.value), error.value.memory]) == []


def test_a_stranger_would_be_noticed(crowded: Crowd) -> None:
    other = crowded.client.documents(corpus=f"crowded-{MARKS[0]}")
    assert strangers(crowded, other)
    assert strangers(crowded, {"a": [next(iter(crowded.foreign))]})
