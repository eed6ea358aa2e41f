"""A system in a package of its own, which tests everything that a corpus promises of what systems build."""

from collections.abc import Sequence
from pathlib import Path

from hgmem.graph.built import Layer, chunks_beneath, near_built, worded_built
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.memory.browser.favourites import Favourite
from hgmem.retrieval.answer import built_passages
from hgmem.services import Services
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import BuiltHit, Evidence
from toy_system.build import BUILD, INVARIANTS, Config
from toy_system.statements import FILE, toy_members
from toy_system.tasks import PROMPTS, Reword
from toy_system.verbs import VERBS


def retrieve(services: Services, question: str, *, scope: Scope, config: Config) -> Evidence:
    """Return the chunks beneath the topics nearest to the question, their gists, and the gist with its words."""
    asked = services.reply(Reword(question=question)).text if config.reword else question
    vector = services.embed([asked], kind="query")[0]
    topics, gists = (Layer(scope=scope, system="toy", kind=kind) for kind in ("ToyTopic", "ToyGist"))
    near = near_built(services.database, layer=topics, query=vector, k=config.best, over=50)
    worded = worded_built(services.database, layer=gists, text=asked, k=1)
    built = [
        BuiltHit(uid=row["uid"], kind=row["kind"], rank=rank, score=score, text=row["text"])
        for found in (near, worded)
        for rank, (row, score) in enumerate(found, start=1)
    ]
    found = [*built, *_members(services, built)]
    if config.cite_topics:
        cited = built_passages(services, [row for row, _ in near], query=vector)
        return evidence_of(asked, (), strategy="topics", built=found, cited=cited)
    return evidence_of(asked, _chunks(services, built), strategy="topics", built=found)


def _members(services: Services, built: Sequence[BuiltHit]) -> list[BuiltHit]:
    """Return the gists of the topics, behind the hits."""
    held = {hit.uid for hit in built}
    rows = toy_members(services.database, corpus=services.corpus, uids=list(held))
    fresh = [row for row in rows if row["uid"] not in held]
    return [
        BuiltHit(uid=row["uid"], kind=row["kind"], rank=rank, text=row["text"])
        for rank, row in enumerate(fresh, start=len(built) + 1)
    ]


def _chunks(services: Services, built: Sequence[BuiltHit]) -> list[tuple[object, float]]:
    beneath = chunks_beneath(services.database, corpus=services.corpus, uids=[hit.uid for hit in built])
    scores: dict[str, float] = {}
    for hit in built:
        for uid in beneath.get(hit.uid, ()):
            scores.setdefault(uid, hit.score)
    chunks = find_chunks(services.database, corpus=services.corpus, uids=list(scores))
    return [(chunks[uid], score) for uid, score in scores.items() if uid in chunks]


SPEC = SingleStep(
    name="toy",
    summary="Answers from topics of gists. A test of systems in packages of their own.",
    config=Config,
    retrieve=retrieve,
    passage_option="best",
    recipes={"short": Config(words=6)},
    prompts=PROMPTS,
    statements=FILE,
    build=BUILD,
    verbs=VERBS,
    favourites=[Favourite.read(Path(__file__).with_name("topics.cypher"))],
    invariants=INVARIANTS,
)
