"""How HyperMem answers: facts, episodes and messages that the search keeps, as evidence of one step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hgmem.errors import UsageError
from hgmem.graph.conversations import conversations_of_speaker
from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.models.reranking import find_reranker
from hgmem.retrieval.fusion import FUSION, PROPOSED_NEAREST, hybrid_chunks, reciprocal_ranks
from hgmem.retrieval.rendering import statements, tokens_of, within
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.hypermem.build import BUILD
from hgmem.systems.hypermem.dialogues import sortable
from hgmem.systems.hypermem.recipes import RECIPES, TOLD_FACTS, UNBUILT_TOKENS, HyperMemConfig
from hgmem.systems.hypermem.statements import KINDS, Depths, Recalled, recall, unbuilt_chunks
from hgmem.systems.single_step import ANSWER_TOKENS, SingleStep
from hgmem.text.language import counted
from hgmem.values.conversations import MessagePlace
from hgmem.values.evidence import BuiltHit, BuiltPassage, Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

_DEPTH = 100  # ranks of a level, and of the search of messages, that are fused; rows that a reranker reads
_FACT_TOKENS, _NARRATIVE_TOKENS = 40, 250  # for estimates
_LEVELS = dict(zip(("topics", "episodes", "facts"), KINDS, strict=True))
_TITLES = {"Topic": "title", "Episode": "subject", "Fact": "content"}
_READ = {"Topic": "summary", "Episode": "narrative", "Fact": "content"}  # what a reranker reads (official code)
_WORDS = Ranking(k=_DEPTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a question finds: rows by kind, chunks with their scores, and those that are shown.

    `unbuilt` is how many of these are shown for messages that are in no episode yet.
    """

    rows: Mapping[str, Sequence[Recalled]]
    scores: Mapping[str, float]
    shown: Sequence[Chunk]
    unbuilt: int


def search(services: Services, question: str, *, scope: Scope, config: HyperMemConfig) -> Searched:
    """Return what a question finds, level by level, and the messages to show.

    Raises `UsageError` if it asks for what a person said whom the corpus does not know.
    """
    asked = (question, services.embed([question], kind="query")[0])
    rows = _levels(services, asked, scope=scope, config=config)
    newest = _newest(services, scope=scope, config=config)
    known: dict[str, Chunk] = {}
    if config.chunk_search:
        searched = hybrid_chunks(services.database, asked, scope=scope, ranking=_WORDS, fusion=FUSION)
        known = {chunk.uid: chunk for chunk, _ in searched}
    scores = _ranked_chunks(rows, list(known), config)
    known |= find_chunks(services.database, corpus=scope.corpus, uids=[uid for uid in scores if uid not in known])
    for chunk in newest:
        known.pop(chunk.uid, None)
    ranked = [heard for uid in scores if uid in known and (heard := _counted(known[uid], config))]
    kept = within(ranked, tokens=config.evidence_tokens) if config.evidence_tokens else []
    shown = sorted([*newest, *kept], key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    if config.speaker and not shown and not any(rows.values()):
        _check_speaker(services, config.speaker)
    return Searched(rows=rows, scores=scores, shown=shown, unbuilt=len(newest))


def _levels(
    services: Services, asked: tuple[str, Any], *, scope: Scope, config: HyperMemConfig
) -> Mapping[str, Sequence[Recalled]]:
    """Return the rows that each level keeps, by one statement, or with a reranker by one for each level."""
    depths = _depths(config)
    if not config.reranker:
        return recall(services.database, scope=scope, asked=asked, depths=depths, given={})
    rank = find_reranker(config.reranker)
    wider = replace(depths, **{level: max(_DEPTH, getattr(depths, level)) for level in config.levels})
    given: dict[str, Sequence[str]] = {}
    found: dict[str, Sequence[Recalled]] = {}
    for level, kind in _LEVELS.items():
        if level not in config.levels:
            continue
        rows = recall(services.database, scope=scope, asked=asked, depths=wider, given=given)[kind]
        scores = rank(asked[0], [str(row.properties[_READ[kind]]) for row in rows]) if rows else []
        best = sorted(range(len(rows)), key=lambda at: (-scores[at], at))[: getattr(depths, level)]
        found[kind] = [replace(rows[at], score=float(scores[at])) for at in best]
        given[level] = [row.uid for row in found[kind]]
    return {kind: found.get(kind, ()) for kind in KINDS}


def _depths(config: HyperMemConfig) -> Depths:
    numbers = (config.topics, config.episodes, config.facts)
    topics, episodes, facts = (
        number if level in config.levels else 0 for level, number in zip(_LEVELS, numbers, strict=True)
    )
    return Depths(
        topics=topics,
        episodes=episodes,
        facts=facts,
        inherit=config.inherit,
        depth=max(_DEPTH, *numbers),
        over=max(PROPOSED_NEAREST, *numbers),
        as_of=config.as_of,
        speaker=config.speaker,
    )


def _ranked_chunks(
    rows: Mapping[str, Sequence[Recalled]], searched: Sequence[str], config: HyperMemConfig
) -> dict[str, float]:
    """Return chunks with their scores, best first: behind facts or found by the question, then behind episodes."""
    ranked = reciprocal_ranks([_behind(rows["Fact"])])
    for uid, share in reciprocal_ranks([searched]).items():
        ranked[uid] = ranked.get(uid, 0.0) + config.chunk_search * share
    best = dict(sorted(ranked.items(), key=lambda item: (-item[1], item[0])))
    return best | {uid: 0.0 for uid in _behind(rows["Episode"]) if uid not in best}


def _behind(rows: Iterable[Recalled]) -> list[str]:
    return list(dict.fromkeys(uid for row in rows for uid in row.chunks))


def _newest(services: Services, *, scope: Scope, config: HyperMemConfig) -> list[Chunk]:
    """Return the newest chunks with messages of no episode, as far as their budget goes."""
    unbuilt = unbuilt_chunks(services.database, scope=scope)
    found = [counted_chunk for chunk in unbuilt if (counted_chunk := _counted(chunk, config))]
    found.sort(key=lambda chunk: sortable(chunk.messages[-1].time), reverse=True)
    kept: list[Chunk] = []
    left = UNBUILT_TOKENS
    for chunk in found:
        left -= tokens_of(chunk)
        if left < 0:
            break
        kept.append(chunk)
    return kept


def _check_speaker(services: Services, speaker: str) -> None:
    if not conversations_of_speaker(services.database, corpus=services.corpus, speaker=speaker):
        raise UsageError(
            f"corpus {services.corpus!r} has no message of speaker {speaker!r}: names are those of the citations"
        )


def _counted(chunk: Chunk, config: HyperMemConfig) -> Chunk | None:
    """Return a chunk as far as it was said in time, None if nothing was, or nothing by the speaker."""
    if not config.as_of and not config.speaker:
        return chunk
    messages = tuple(place for place in chunk.messages if not config.as_of or "" < sortable(place.time) <= config.as_of)
    if not messages or (config.speaker and all(place.speaker != config.speaker for place in messages)):
        return None
    whole = len(messages) == len(chunk.messages)
    return chunk if whole else replace(chunk, text=_blanked(chunk, messages).rstrip(), messages=messages)


def _blanked(chunk: Chunk, messages: Sequence[MessagePlace]) -> str:
    """Return the text of a chunk with blanks for all but these messages, whose places stay."""
    text = " " * len(chunk.text)
    for place in messages:
        start = chunk.text.rfind("\n", 0, place.start) + 1
        text = text[:start] + chunk.text[start : place.end] + text[place.end :]
    return text


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
        statements=tuple(_statements(told, found.shown)) if by_messages else (),
        notes=_notes(found),
    )


def _told(found: Searched, config: HyperMemConfig) -> list[Recalled]:
    """Return the rows whose words are shown: episodes in order of time, then facts, the best first.

    Where messages are shown, facts of others are left out: nothing could be cited for them.
    """
    shown = {chunk.uid for chunk in found.shown}
    facts = [row for row in found.rows["Fact"] if not shown or shown.intersection(row.chunks)]
    episodes = [row for row in found.rows["Episode"] if not config.as_of or "" < row.properties["ends"] <= config.as_of]
    ordered = sorted(episodes, key=lambda row: str(row.properties["ends"]))
    return [
        *(ordered if "episodes" in config.show else ()),
        *(facts[:TOLD_FACTS] if "facts" in config.show else ()),
    ]


def _statements(told: Sequence[Recalled], chunks: Sequence[Chunk]) -> list[str]:
    shown = {chunk.uid for chunk in chunks}
    return statements([(_text(row), [uid for uid in row.chunks if uid in shown]) for row in told], chunks)


def _text(row: Recalled) -> str:
    """Return what a row tells, with its time."""
    values = row.properties
    if row.kind == "Episode":
        day = str(values["ends"])[:10]
        return f"{values['subject']}{f' ({day})' if day else ''}: {values['narrative']}"
    day = str(values["said_at"])[:10]
    parts = [part for part in (values["event_time"], values["place"], f"said {day}" if day else "") if part]
    return f"{values['content']} ({'; '.join(parts)})" if parts else str(values["content"])


def _passage(row: Recalled) -> BuiltPassage:
    return BuiltPassage(
        uid=row.uid,
        kind=row.kind,
        text=_text(row),
        title=str(row.properties["subject"]) if row.kind == "Episode" else "",
        document=str(row.properties["document"]),
        chunks=row.chunks,
    )


def _hit(row: Recalled, rank: int) -> BuiltHit:
    text = str(row.properties[_TITLES[row.kind]])
    return BuiltHit(uid=row.uid, kind=row.kind, rank=rank, text=text, score=round(row.score, 6))


def _notes(found: Searched) -> tuple[str, ...]:
    if not found.unbuilt:
        return ()
    return (f"{counted(found.unbuilt, 'chunk', 'chunks')} with messages of no episode yet shown as they are",)


def cost(config: HyperMemConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the one call of the answer, and about how many tokens its prompt has at most."""
    facts = TOLD_FACTS * _FACT_TOKENS if "facts" in config.show else 0
    episodes = config.episodes * _NARRATIVE_TOKENS if "episodes" in config.show else 0
    return 1, ANSWER_TOKENS + facts + episodes + config.evidence_tokens + UNBUILT_TOKENS


SYSTEM = SingleStep(
    name="hypermem",
    summary="Keeps conversations as topics, episodes and facts, and searches them from the top down.",
    config=HyperMemConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    build=BUILD,
    cost=cost,
)
