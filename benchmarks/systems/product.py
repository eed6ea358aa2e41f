"""hgmem itself: `import_graph` into a new corpus, `add_graph` into one with data, `gather` for a step."""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any, cast

import numpy as np
from graphs import Found, Graph, Step

from hgmem import HGMem, __version__
from hgmem.corpus.importing import import_graph
from hgmem.extraction.contributions import entity_text, relation_text
from hgmem.graph.retrieval import Scope
from hgmem.models.embedding import TextKind, Vectors
from hgmem.retrieval.step_evidence import RetrievalConfig, Scene, gather
from hgmem.text.identity import key, uid
from hgmem.values.evidence import Subquery
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

REMEMBER = """
CREATE (m:Memory {uid: $memory, corpus: $corpus, memory: $memory, system: 'hgmem', model: 'made', question: 'What?',
                  settings: '{}', status: 'answered', created_at: datetime()})
WITH m UNWIND $points AS point
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: point.uid, corpus: $corpus, memory: $memory, born: 1,
                                         description: 'Made.'})
WITH p, point UNWIND point.entities AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
MERGE (p)-[:INVOLVES]->(e)
"""


class Precomputed:
    """An embedder that looks vectors up by their text."""

    name = "precomputed"

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.dimensions = 384

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the vectors of known texts."""
        return cast("Vectors", np.stack([self.known[text] for text in texts]))

    def learn(self, graph: Graph) -> None:
        """Replace the known vectors by those of a graph."""
        texts = {
            "entities": [entity_text(one["name"], one["description"]) for one in graph.entities],
            "relations": [
                relation_text(sorted((key(one["source"]), key(one["target"]))), one["description"], _keywords(one))
                for one in graph.relations
            ],
            "chunks": [one["text"] for one in graph.chunks],
        }
        self.known = {
            text: vector for kind, of in texts.items() for text, vector in zip(of, graph.vectors[kind], strict=True)
        }


class System:
    """See `serve.Benched`."""

    def open(self, place: dict[str, str]) -> dict[str, str]:
        """Connect."""
        self._embedder = Precomputed()
        self._client = HGMem.open(
            "bench", embedder=self._embedder, uri=place["uri"], username=place["username"], password=place["password"]
        )
        self._database = self._client._database
        self._sizes: dict[str, int] = {}
        return {"hgmem": __version__}

    def write(self, graph: Graph, corpus: str) -> Callable[[], None]:
        """Return a function that writes a graph in hgmem's input format."""
        self._embedder.learn(graph)
        brought = given(graph)

        def written() -> None:
            if corpus in self._sizes:
                self._client.add_graph(brought, corpus=corpus)
            else:
                import_graph(self._client._services(corpus), brought)
            self._sizes[corpus] = self._sizes.get(corpus, 0) + len(brought.entities)

        return written

    def hold(self, corpus: str, entities: int) -> None:
        """Record the size of an existing corpus that will be added to."""
        self._sizes[corpus] = entities

    @property
    def driver(self) -> Any:
        """The driver of the database."""
        return self._database._driver

    def step(self, step: Step) -> Callable[[], Found]:
        """Store the memory; return a function that runs one step's retrieval."""
        memory, points = self._remembered(step)
        targets = {names: uid for uid, names in points.items()}
        subqueries = tuple(
            Subquery(
                text=query.text,
                strategy="local" if step.local else "global",
                targets=(targets[query.entities],) if step.local else (),
            )
            for query in step.queries
        )
        vectors = np.stack([query.vector for query in step.queries])
        scene = Scene(
            scope=Scope(corpus=step.corpus, memory=memory, language="en"),
            covered=len({name for names in step.memory for name in names}),
            entities=self._sizes.get(step.corpus, 2_000),
        )

        def retrieved() -> Found:
            evidence, _ = gather(self._database, subqueries, vectors, scene=scene, config=RetrievalConfig())
            return Found(
                entities=tuple(entity.name for entity in evidence.entities),
                relations=len(evidence.relations),
                chunks=tuple(chunk.source_id for chunk in evidence.chunks),
            )

        return retrieved

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def _remembered(self, step: Step) -> tuple[str, dict[str, tuple[str, ...]]]:
        """Return the memory's uid, empty if there is none, and its points by uid."""
        if not step.memory:
            return "", {}
        memory = f"bench{token_hex(8)}"
        points = {f"{memory}-{at}": names for at, names in enumerate(step.memory)}
        rows = [
            {"uid": point, "entities": [uid(step.corpus, "entity", key(name)) for name in names]}
            for point, names in points.items()
        ]
        self._database._driver.execute_query(REMEMBER, memory=memory, corpus=step.corpus, points=rows)
        return memory, points


def given(graph: Graph) -> Given:
    """Return a graph in hgmem's input format."""
    return Given(
        documents=tuple(Document(id=id_, text="", title=id_) for id_ in {one["document"]: 0 for one in graph.chunks}),
        chunks=tuple(GivenChunk(id=one["id"], document=one["document"], text=one["text"]) for one in graph.chunks),
        entities=tuple(
            GivenEntity(name=one["name"], type=one["type"], description=one["description"], chunks=tuple(one["chunks"]))
            for one in graph.entities
        ),
        relations=tuple(
            GivenRelation(
                source=one["source"],
                target=one["target"],
                description=one["description"],
                keywords=_keywords(one),
                weight=one["weight"],
                chunks=tuple(one["chunks"]),
            )
            for one in graph.relations
        ),
    )


def _keywords(relation: dict[str, Any]) -> tuple[str, ...]:
    said = relation["keywords"]
    return (said,) if isinstance(said, str) else tuple(said)
