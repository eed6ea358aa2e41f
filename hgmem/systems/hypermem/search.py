"""Search from the top down: topics, their episodes, the facts of these, and the messages behind them (section 4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hgmem.errors import UsageError
from hgmem.graph.conversations import conversations_of_speaker
from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.models.reranking import find_reranker
from hgmem.retrieval.context_packing import tokens_of, within
from hgmem.retrieval.hybrid_search import hybrid_chunks
from hgmem.retrieval.step_evidence import FUSION, PROPOSED_NEAREST, reciprocal_ranks
from hgmem.services import Services
from hgmem.systems.hypermem.question_kinds import kind_of
from hgmem.systems.hypermem.recipes import ADAPTIVE, HyperMemConfig
from hgmem.systems.hypermem.statements import KINDS, Depths, Recalled, recall, unbuilt_chunks
from hgmem.systems.hypermem.times import sortable
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk

_DEPTH = 100  # ranks of the search of messages that are fused
_READ = {"Topic": "summary", "Episode": "narrative", "Fact": "content"}  # what a reranker reads (official code)
_WORDS = Ranking(k=_DEPTH, over=10_000, k1=1.5, b=0.75)


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
    query = services.embed([question], kind="query")[0]
    rows = _levels(services, (question, query), scope=scope, config=config)
    newest = _newest(services, scope=scope, config=config)
    searched = _searched_chunks(services, (question, query), scope=scope, config=config)
    scores = _ranked_chunks(rows, [chunk.uid for chunk in searched], config)
    known = {chunk.uid: chunk for chunk in searched}
    known |= find_chunks(services.database, corpus=scope.corpus, uids=[uid for uid in scores if uid not in known])
    held = {chunk.uid for chunk in newest}
    order = [chunk for uid in scores if uid in known and uid not in held and (chunk := _counted(known[uid], config))]
    kept = within(order, tokens=config.evidence_tokens) if config.evidence_tokens else []
    shown = sorted([*newest, *kept], key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    if config.speaker and not shown and not any(rows.values()):
        _check_speaker(services, config.speaker)
    return Searched(rows=rows, scores=scores, shown=shown, unbuilt=len(newest))


def _levels(
    services: Services, asked: tuple[str, Any], *, scope: Scope, config: HyperMemConfig
) -> Mapping[str, Sequence[Recalled]]:
    """Return the rows that each level keeps, by one statement, or with a reranker by one for each level."""
    depths = _depths(asked[0], config)
    if not config.reranker:
        return recall(services.database, scope=scope, asked=asked, depths=depths, given={})
    rank = find_reranker(config.reranker)
    wider = replace(depths, **{name: max(config.candidates, getattr(depths, name)) for name in config.levels})
    given: dict[str, Sequence[str]] = {}
    found: dict[str, Sequence[Recalled]] = {}
    for level, kind in zip(("topics", "episodes", "facts"), KINDS, strict=True):
        if level not in config.levels:
            continue
        rows = recall(services.database, scope=scope, asked=asked, depths=wider, given=given)[kind]
        scores = rank(asked[0], [str(row.properties[_READ[kind]]) for row in rows]) if rows else []
        best = sorted(range(len(rows)), key=lambda at: (-scores[at], at))[: getattr(depths, level)]
        found[kind] = [replace(rows[at], score=float(scores[at])) for at in best]
        given[level] = [row.uid for row in found[kind]]
    return {kind: found.get(kind, ()) for kind in KINDS}


def _depths(question: str, config: HyperMemConfig) -> Depths:
    numbers = ADAPTIVE[kind_of(question)] if config.adaptive else (config.topics, config.episodes, config.facts)
    topics, episodes, facts = (
        number if level in config.levels else 0
        for level, number in zip(("topics", "episodes", "facts"), numbers, strict=True)
    )
    return Depths(
        topics=topics,
        episodes=episodes,
        facts=facts,
        fusion=config.fusion,
        inherit=config.inherit,
        depth=max(_DEPTH, config.candidates, *numbers),
        over=max(PROPOSED_NEAREST, *numbers),
        as_of=config.as_of,
        speaker=config.speaker,
    )


def _searched_chunks(
    services: Services, asked: tuple[str, Any], *, scope: Scope, config: HyperMemConfig
) -> list[Chunk]:
    """Return the chunks that the question itself finds, the best first."""
    if not config.chunk_search:
        return []
    found = hybrid_chunks(services.database, asked, scope=scope, ranking=_WORDS, fusion=FUSION)
    return [chunk for chunk, _ in found]


def _ranked_chunks(
    rows: Mapping[str, Sequence[Recalled]], searched: Sequence[str], config: HyperMemConfig
) -> dict[str, float]:
    """Return chunks with their scores, best first: behind facts or found by the question, then behind episodes."""
    ranked = reciprocal_ranks([_behind(rows["Fact"])], constant=config.fusion)
    for uid, share in reciprocal_ranks([searched], constant=config.fusion).items():
        ranked[uid] = ranked.get(uid, 0.0) + config.chunk_search * share
    best = dict(sorted(ranked.items(), key=lambda item: (-item[1], item[0])))
    return best | {uid: 0.0 for uid in _behind(rows["Episode"]) if uid not in best}


def _behind(rows: Iterable[Recalled]) -> list[str]:
    return list(dict.fromkeys(uid for row in rows for uid in row.chunks))


def _newest(services: Services, *, scope: Scope, config: HyperMemConfig) -> list[Chunk]:
    """Return the newest chunks with messages of no episode, as far as their budget goes."""
    if not config.unbuilt_tokens:
        return []
    found = [chunk for one in unbuilt_chunks(services.database, scope=scope) if (chunk := _counted(one, config))]
    found.sort(key=lambda chunk: sortable(chunk.messages[-1].time), reverse=True)
    kept: list[Chunk] = []
    left = config.unbuilt_tokens
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
    held = tuple(place for place in chunk.messages if not config.as_of or "" < sortable(place.time) <= config.as_of)
    if not held or (config.speaker and all(place.speaker != config.speaker for place in held)):
        return None
    same = len(held) == len(chunk.messages)
    return chunk if same else replace(chunk, text=_blanked(chunk, held).rstrip(), messages=held)


def _blanked(chunk: Chunk, held: Sequence[MessagePlace]) -> str:
    """Return the text of a chunk with blanks for all but these messages, whose places stay."""
    text = " " * len(chunk.text)
    for place in held:
        start = chunk.text.rfind("\n", 0, place.start) + 1
        text = text[:start] + chunk.text[start : place.end] + text[place.end :]
    return text
