"""How HyperMem answers: facts, episodes and messages that the search keeps, as evidence of one step."""

from collections.abc import Sequence

from hgmem.graph.retrieval import Scope
from hgmem.retrieval.rendering import statements
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.hypermem.build import BUILD
from hgmem.systems.hypermem.recipes import RECIPES, HyperMemConfig
from hgmem.systems.hypermem.search import Searched, search
from hgmem.systems.hypermem.statements import KINDS, Recalled
from hgmem.systems.single_step import ANSWER_TOKENS, SingleStep
from hgmem.text.plurals import counted
from hgmem.values.evidence import BuiltHit, BuiltPassage, Evidence, Hit, Retrieved, Subquery

_FACT, _NARRATIVE = 40, 250  # tokens, for estimates


def retrieve(services: Services, question: str, *, scope: Scope, config: HyperMemConfig) -> Evidence:
    """Return what the levels keep, and what of it the answer is shown.

    Where messages are shown, facts and narratives are what the system knows, with the numbers of the messages that they
    rest on. Else the answer cites the facts and episodes themselves.
    """
    found = search(services, question, scope=scope, config=config)
    rank = {uid: at for at, uid in enumerate(found.scores, start=1)}
    hits = tuple(
        Hit(uid=chunk.uid, rank=rank.get(chunk.uid, len(rank) + 1), score=found.scores.get(chunk.uid, 0.0))
        for chunk in sorted(found.shown, key=lambda chunk: rank.get(chunk.uid, len(rank) + 1))
    )
    retrieved = Retrieved(
        subquery=Subquery(text=question, strategy="topics" if "topics" in config.levels else config.levels[0]),
        chunks=hits,
        built=tuple(_hit(row, at) for kind in KINDS for at, row in enumerate(found.rows[kind], start=1)),
    )
    told = _told(found, config)
    by_messages = bool(found.shown)
    return Evidence(
        retrieved=(retrieved,),
        chunks=tuple(found.shown),
        built=() if by_messages else tuple(_passage(row) for row in told),
        statements=tuple(_statements(told, found)) if by_messages else (),
        notes=_notes(found),
    )


def _told(found: Searched, config: HyperMemConfig) -> list[Recalled]:
    """Return the rows whose words are shown: episodes in order of time, then facts, the best first.

    Where messages are shown, facts of others are left out: nothing could be cited for them.
    """
    shown = {chunk.uid for chunk in found.shown}
    facts = [row for row in found.rows["Fact"] if not shown or shown.intersection(row.chunks)]
    episodes = [row for row in found.rows["Episode"] if not config.as_of or "" < row.properties["time"] <= config.as_of]
    ordered = sorted(episodes, key=lambda row: str(row.properties["time"]))
    return [
        *(ordered if "episodes" in config.show else ()),
        *(facts[: config.told_facts] if "facts" in config.show else ()),
    ]


def _statements(told: Sequence[Recalled], found: Searched) -> list[str]:
    shown = {chunk.uid for chunk in found.shown}
    return statements([(_text(row), [uid for uid in row.chunks if uid in shown]) for row in told], found.shown)


def _text(row: Recalled) -> str:
    """Return what a row tells, with its time."""
    values = row.properties
    day = str(values["time"])[:10]
    if row.kind == "Episode":
        told = f" ({day})" if day else ""
        return f"{values['subject']}{told}: {values['narrative']}"
    when = "; ".join(part for part in (values["when"], values["place"], f"said {day}" if day else "") if part)
    return f"{values['content']} ({when})" if when else str(values["content"])


def _passage(row: Recalled) -> BuiltPassage:
    title = str(row.properties["subject"]) if row.kind == "Episode" else ""
    return BuiltPassage(
        uid=row.uid,
        kind=row.kind,
        text=_text(row),
        title=title,
        document=str(row.properties["document"]),
        chunks=row.chunks,
    )


def _hit(row: Recalled, rank: int) -> BuiltHit:
    names = {"Topic": "title", "Episode": "subject", "Fact": "content"}
    return BuiltHit(
        uid=row.uid, kind=row.kind, rank=rank, text=str(row.properties[names[row.kind]]), score=round(row.score, 6)
    )


def _notes(found: Searched) -> tuple[str, ...]:
    notes = []
    if found.unbuilt:
        notes.append(f"{counted(found.unbuilt, 'chunk', 'chunks')} with messages of no episode yet shown as they are")
    return tuple(notes)


def cost(config: HyperMemConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the one call of the answer, and about how many tokens its prompt has at most."""
    facts = config.told_facts * _FACT if "facts" in config.show else 0
    episodes = config.episodes * _NARRATIVE if "episodes" in config.show else 0
    return 1, ANSWER_TOKENS + facts + episodes + config.evidence_tokens + config.unbuilt_tokens


SYSTEM = SingleStep(
    name="hypermem",
    summary="Keeps conversations as topics, episodes and facts, and searches them from the top down.",
    config=HyperMemConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    build=BUILD,
    costing=cost,
)
