"""A system that answers from the headings down: sections near the question, then the chunks beneath them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from headings_system.build import BUILD, Config
from hgmem.graph.built import Layer, near_built, worded_built
from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.graph.values import vector
from hgmem.memory.browser.favourites import Favourite
from hgmem.retrieval.rendering import within
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.systems.verbs import Verb
from hgmem.values.evidence import BuiltHit, Evidence


def retrieve(services: Services, question: str, *, scope: Scope, config: Config) -> Evidence:
    """Return the chunks beneath the sections that are nearest to the question by vector and words."""
    query = services.embed([question], kind="query")[0]
    layer = Layer(scope=scope, system="headings", kind="Section")
    near = near_built(services.database, layer=layer, query=query, k=20, over=150)
    worded = worded_built(services.database, layer=layer, text=question, k=20)
    texts = {row["uid"]: row["text"] for row, _ in (*near, *worded)}
    best = fuse([row["uid"] for row, _ in found] for found in (near, worded))[: config.sections]
    built = [BuiltHit(uid=uid, kind="Section", rank=at, text=texts[uid]) for at, uid in enumerate(best, start=1)]
    beneath = {"corpus": scope.corpus, "uids": best, "vector": vector(query), "k": config.chunks}
    below = {row["uid"]: row["score"] for row in services.database.run("headings_chunks", **beneath)}
    chunks = find_chunks(services.database, corpus=scope.corpus, uids=list(below))
    kept = within([chunks[uid] for uid in below if uid in chunks][: config.chunks], tokens=config.tokens)
    return evidence_of(question, [(chunk, below[chunk.uid]) for chunk in kept], strategy="headings", built=built)


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which sections the outline shows."""

    depth: Annotated[int, "Maximum level of headings."] = 6


def outline(services: Services, arguments: Which) -> list[Row]:
    """Return the sections of the corpus in order, indented by their levels."""
    return services.database.run("headings_outline", corpus=services.corpus, depth=arguments.depth)


SPEC = SingleStep(
    name="headings",
    summary="Answers from the headings down: sections near the question, then their chunks.",
    config=Config,
    recipes={"default": Config(), "narrow": Config(sections=1, chunks=3, tokens=600)},
    retrieve=retrieve,
    passage_option="chunks",
    statements=Path(__file__).with_name("headings.cypher"),
    build=BUILD,
    verbs=[Verb(name="outline", summary="Print the outline of the corpus.", arguments=Which, run=outline, built=True)],
    favourites=[Favourite.read(Path(__file__).with_name("outline.cypher"))],
)
