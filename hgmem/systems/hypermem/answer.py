"""How HyperMem answers: facts, episodes and messages that the search keeps, as evidence of one step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

from hgmem.errors import UsageError
from hgmem.graph.database import Database
from hgmem.graph.documents import conversations_of_speaker
from hgmem.graph.full_text import OVER, Ranking, Texts, worded
from hgmem.graph.retrieval import Scope, find_chunks, to_chunk
from hgmem.graph.values import Runner, loaded_messages, vector
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.extractive.english import asks_before
from hgmem.models.extractive.entity_recognition import names
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import within
from hgmem.retrieval.step_evidence import FUSION, PROPOSED_NEAREST, hybrid_chunks, reciprocal_ranks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.costs import HEADING, around, packed
from hgmem.systems.hypermem.dialogues import sortable
from hgmem.systems.hypermem.names import other_names
from hgmem.systems.hypermem.recipes import TOLD_FACTS, TOLD_TOKENS, UNBUILT_TOKENS, HyperMemConfig
from hgmem.systems.hypermem.shown import (
    Found,
    Shown,
    Wanted,
    in_force,
    listed,
    passages,
    select,
    text_of,
    written_by_model,
)
from hgmem.systems.hypermem.standing import LAST, Recalled, chained, ended_facts, to_recalled
from hgmem.systems.hypermem.times import NO_DAYS, days_asked
from hgmem.text.language import counted
from hgmem.text.tokens import count
from hgmem.values.conversations import MessagePlace
from hgmem.values.evidence import BuiltHit, BuiltPassage, Ended, Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

_DEPTH = 100  # ranks of a level, and of the search of messages, that are fused
_DEEPER = 5  # times as deep a search of messages goes again while too few count: said too late, or by others
_EXACT = 2_000  # rows that count, up to which words are counted in all of them
FIRST = "0"  # a text before every time
KINDS = ("Topic", "Episode", "Fact")
_LEVELS = dict(zip(("topics", "episodes", "facts"), KINDS, strict=True))
_TITLES = {"Topic": "title", "Episode": "subject", "Fact": "content"}
_READ = {"Topic": "summary", "Episode": "narrative", "Fact": "content"}  # what a reranker reads (official code)
_SEARCH = {True: 0.1, False: 1}  # weight of the search of messages beside facts of a language model, and of rules
_ANY_DAY = "2000-01-01"  # to see whether a question tells any time
_ACROSS = "across"  # topics that count, though they are of several documents and only some of these count
_LAYERS = Ranking(k=OVER)  # rows of a level that fit the words, among which the levels above choose

Asked: TypeAlias = tuple[str, Any]  # a question and its unit vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How many rows of each level are kept (0: the level is not searched), and how a level is ranked.

    `inherit` is the weight of the rank of the row above, beside a weight of 1 of each of a row's own two. `depth` are
    the ranks of a level that count, `fusion` is the constant of reciprocal rank fusion (official code: 60). `since`
    and `until` are times as rows have them. A row without a time counts unless one of them is given. With `stems`, as
    they are stored, rows count that hold all of one of the lists. With days that it `begins` and `ends`, what overlaps
    them counts. With `holding`, facts that hold at `until` come before those that have ended.
    """

    topics: int
    episodes: int
    facts: int
    inherit: float
    depth: int
    over: int
    fusion: int = FUSION
    since: str = ""
    until: str = LAST
    speaker: str = ""
    stems: tuple[tuple[str, ...], ...] = ()
    begins: str = ""
    ends: str = ""
    holding: bool = False


Rows: TypeAlias = Mapping[str, Sequence[Recalled]]  # that levels keep, by kind


def retrieve(services: Services, question: str, *, scope: Scope, config: HyperMemConfig) -> Evidence:
    """Return what the levels keep, and what of it the answer is shown.

    Where messages are evidence, facts and narratives are what the system knows, with the numbers of the messages that
    they rest on. Else the answer cites the facts and episodes themselves, and the messages that no episode holds yet.
    Raises `UsageError` if the question asks for what a person said whom the corpus does not know.
    """
    scope = with_speaker(services, scope, config.speaker)
    others = other_names(services, [name.text for name in names([question])[0]])
    asked = (" ".join((question, *others)), services.embed([question], kind="query")[0])
    wanted = _wanted(services, question, scope=scope, config=config)
    standing = "messages" in config.show and not (wanted.by_model or asks_before(question))
    depths = replace(_depths(config), holding=standing)
    rows = _levels(services, asked, scope=scope, config=config, depths=depths)
    newest = _newest(services, scope=scope, config=config)
    scores: dict[str, float] = {}
    if config.evidence_tokens and "messages" in config.show:
        if wanted.days != NO_DAYS:
            depths = replace(depths, begins=wanted.days[0], ends=wanted.days[1])
            rows = _of_days(rows, _levels(services, asked, scope=scope, config=config, depths=depths))
        uids = [row.uid for row in rows["Fact"]]
        how = chained(services.database, scope=scope, uids=uids, until=config.as_of or LAST)
        rows = {**rows, "Fact": in_force(rows["Fact"], how, wanted)}
        weight = config.chunk_search * _SEARCH[wanted.by_model]
        scores, ranked = _ranked(services, asked, rows, scope=scope, config=replace(config, chunk_search=weight))
        fresh = {chunk.uid for chunk in newest}
        heard = [part for chunk in ranked if chunk.uid not in fresh and (part := _counted(chunk, config))]
        found = Found(facts=rows["Fact"], episodes=_ended(rows, config), chunks=heard, standing=how)
        shown = select(services, found, wanted, config=config)
    else:
        shown = _told(services, rows, config)
    chunks = sorted([*newest, *shown.chunks], key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    fresh_note = f"{counted(len(newest), 'chunk')} with messages of no episode yet shown as they are"
    return Evidence(
        retrieved=(_retrieved(question, rows, chunks, scores=scores, config=config),),
        chunks=tuple(chunks),
        built=shown.built,
        statements=shown.statements,
        ended=_no_longer(services, chunks, shown.built, scope=scope, config=config),
        notes=(*shown.notes, fresh_note) if newest else shown.notes,
    )


def _no_longer(
    services: Services, chunks: Iterable[Chunk], built: Iterable[BuiltPassage], *, scope: Scope, config: HyperMemConfig
) -> tuple[Ended, ...]:
    """Return what the passages tell that has ended, for an answer without a language model."""
    if serving(services.model, AnswerQuestion.name).name != ExtractiveModel.name:
        return ()
    uids = dict.fromkeys([*(chunk.uid for chunk in chunks), *(uid for row in built for uid in row.chunks)])
    return ended_facts(services.database, scope=scope, chunks=uids, until=config.as_of or LAST)


def _retrieved(
    question: str, rows: Rows, chunks: Sequence[Chunk], *, scores: Mapping[str, float], config: HyperMemConfig
) -> Retrieved:
    """Return the hits of a question: chunks that are shown, by their ranks, and the rows that the levels keep."""
    rank = {uid: at for at, uid in enumerate(scores, start=1)}
    hits = [Hit(uid=one.uid, rank=rank.get(one.uid, len(rank) + 1), score=scores.get(one.uid, 0.0)) for one in chunks]
    return Retrieved(
        subquery=Subquery(text=question, strategy="topics" if "topics" in config.levels else config.levels[0]),
        chunks=tuple(sorted(hits, key=lambda hit: hit.rank)),
        built=tuple(_hit(row, at) for kind in KINDS for at, row in enumerate(rows[kind], start=1)),
    )


def _wanted(services: Services, question: str, *, scope: Scope, config: HyperMemConfig) -> Wanted:
    """Return what a question asks for, its times seen from the last day of the conversations, or from `as_of`."""
    days = NO_DAYS
    if days_asked(question, last=_ANY_DAY) != NO_DAYS:
        rows = services.database.run("last_messages", corpus=scope.corpus, documents=scope.uids)
        times = [sortable(place.time) for row in rows for place in loaded_messages(row["messages"])]
        last = min(max(times, default=""), config.as_of or LAST)
        days = days_asked(question, last=last) if last else NO_DAYS
    return Wanted(days=days, listed=listed(question), by_model=written_by_model(services))


def _of_days(rows: Rows, of_days: Rows) -> Rows:
    """Return rows with those of the days that a question tells before the others."""
    return {kind: list({row.uid: row for row in (*of_days[kind], *rows[kind])}.values()) for kind in KINDS}


def with_speaker(services: Services, scope: Scope, speaker: str) -> Scope:
    """Return the part of a scope in which a person speaks, all of it if none is named.

    Raises `UsageError` if the corpus has no message of the person.
    """
    if not speaker:
        return scope
    found = conversations_of_speaker(services.database, corpus=scope.corpus, speaker=speaker)
    if not found:
        raise UsageError(
            f"corpus {scope.corpus!r} has no message of speaker {speaker!r}: names are those of the citations"
        )
    return replace(scope, documents=tuple(uid for uid in found if scope.documents is None or uid in scope.documents))


def _levels(services: Services, asked: Asked, *, scope: Scope, config: HyperMemConfig, depths: Depths) -> Rows:
    """Return the rows that each level keeps, by one statement, or with a reranker by one for each level."""
    if not config.rerank:
        return recall(services.database, scope=scope, asked=asked, depths=depths, given={})
    wider = replace(depths, **{level: max(config.rerank, getattr(depths, level)) for level in config.levels})
    given: dict[str, Sequence[str]] = {}
    found: dict[str, Sequence[Recalled]] = {}
    for level, kind in _LEVELS.items():
        if level not in config.levels:
            continue
        rows = recall(services.database, scope=scope, asked=asked, depths=wider, given=given)[kind]
        ranked = services.reranked(asked[0], rows, most=config.rerank, text=_reread)[: getattr(depths, level)]
        found[kind] = [row if score is None else replace(row, score=score) for row, score in ranked]
        given[level] = [row.uid for row in found[kind]]
    return {kind: found.get(kind, ()) for kind in KINDS}


def _reread(row: Recalled) -> str:
    return str(row.properties[_READ[row.kind]])


def recall(
    database: Runner, *, scope: Scope, asked: Asked, depths: Depths, given: Mapping[str, Sequence[str]]
) -> dict[str, list[Recalled]]:
    """Return the topics, episodes and facts that a question (text and unit vector) finds, by kind, best first.

    `given` has the rows (uids) of the levels `topics` and `episodes` that were searched before. Where only some
    documents count and a topic also tells of others, topics are not searched: they would show those.
    """
    text, query = asked
    filters = (depths.speaker, depths.since, depths.until, depths.stems, depths.begins, scope.documents)
    unfiltered = filters == ("", "", LAST, (), "", None)
    counting = None if unfiltered else _counting(database, scope=scope, depths=depths)
    if counting and counting.pop(_ACROSS, None):
        depths = replace(depths, topics=0)
    searched = [level for level in _LEVELS if getattr(depths, level)]
    words = _by_words(database, text, scope=scope, kinds=[_LEVELS[level] for level in searched], counting=counting)
    rows = database.run(
        "recall",
        corpus=scope.corpus,
        vector=vector(query),
        layers=[
            {
                "kind": kind,
                "whole": level == searched[0],
                "worded": words.get(kind, []),
                "uids": None if counting is None else counting.get(kind, []),
            }
            for level, kind in _LEVELS.items()
        ],
        given={level: list(given[level]) if level in given else None for level in ("topics", "episodes")},
        limits=asdict(depths),
    )
    found: dict[str, list[Recalled]] = {kind: [] for kind in KINDS}
    for row in rows:
        if row["row"]["uid"] is not None:  # deleted while the statement ran
            found[KINDS[row["level"]]].append(to_recalled(row, KINDS[row["level"]]))
    return found


def _counting(database: Runner, *, scope: Scope, depths: Depths) -> dict[str, list[str]]:
    """Return by kind the rows (uids) that count by documents, times, speaker and stems."""
    rows = database.run("counting_rows", corpus=scope.corpus, documents=scope.uids, limits=asdict(depths))
    return {row["kind"]: row["uids"] for row in rows}


def _by_words(
    database: Runner, text: str, *, scope: Scope, kinds: Sequence[str], counting: Mapping[str, Sequence[str]] | None
) -> dict[str, list[str]]:
    """Return by kind the rows (uids) that fit the words of a text best, of those that count if not all do.

    Of many facts or episodes that count, the index finds those of the scope's documents. A topic has no document.
    """
    layers = []
    for kind in kinds:
        uids = None if counting is None else counting.get(kind, ())
        among = uids if uids is not None and (kind == "Topic" or len(uids) <= _EXACT) else None
        layers.append(Texts(texts={0: text}, system="hypermem", kind=kind, among=among))
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    wanted = None if counting is None else {kind: set(uids) for kind, uids in counting.items()}
    for row in worded(database, scope=scope, layers=layers, ranking=_LAYERS):
        if wanted is None or row["uid"] in wanted.get(row["kind"], ()):
            found[row["kind"]].append(row["uid"])
    return found


def _depths(config: HyperMemConfig) -> Depths:
    numbers = {level: getattr(config, level) for level in _LEVELS}
    kept: dict[str, Any] = {level: number if level in config.levels else 0 for level, number in numbers.items()}
    return Depths(
        **kept,
        inherit=config.inherit,
        depth=max(_DEPTH, config.rerank, *numbers.values()),
        over=max(PROPOSED_NEAREST, config.rerank, *numbers.values()),
        since=FIRST if config.as_of else "",
        until=config.as_of or LAST,
        speaker=config.speaker,
    )


def _ranked(
    services: Services, asked: Asked, rows: Rows, *, scope: Scope, config: HyperMemConfig
) -> tuple[dict[str, float], list[Chunk]]:
    """Return chunks and their scores (by uid), best first.

    Those behind facts or found by the question come before others behind episodes.
    """
    known: dict[str, Chunk] = {}
    if config.chunk_search:
        known = {chunk.uid: chunk for chunk in _searched(services.database, asked, scope=scope, config=config)}
    ranked = reciprocal_ranks([_behind(rows["Fact"])])
    for uid, share in reciprocal_ranks([list(known)]).items():
        ranked[uid] = ranked.get(uid, 0.0) + config.chunk_search * share
    scores = dict(sorted(ranked.items(), key=lambda item: (-item[1], item[0])))
    scores |= {uid: 0.0 for uid in _behind(rows["Episode"]) if uid not in scores}
    known |= find_chunks(services.database, corpus=scope.corpus, uids=[uid for uid in scores if uid not in known])
    return scores, [known[uid] for uid in scores if uid in known]


def _searched(database: Database, asked: Asked, *, scope: Scope, config: HyperMemConfig) -> list[Chunk]:
    """Return the chunks that count and fit the question best: `_DEPTH`, or all that are found."""
    depth = _DEPTH
    while True:
        ranking = Ranking(k=depth, titles=config.titles)
        found = hybrid_chunks(database, asked, scope=scope, ranking=ranking)
        counting = [chunk for chunk, _ in found if _counted(chunk, config)]
        if len(counting) == len(found) or len(counting) >= _DEPTH or len(found) < depth:
            return counting[:_DEPTH]
        depth *= _DEEPER


def _behind(rows: Iterable[Recalled]) -> list[str]:
    return list(dict.fromkeys(uid for row in rows for uid in row.chunks))


def _newest(services: Services, *, scope: Scope, config: HyperMemConfig) -> list[Chunk]:
    """Return the newest chunks with messages of no episode, as far as their budget goes."""
    unbuilt = _unbuilt(services.database, scope=scope)
    found = [part for chunk in unbuilt if (part := _counted(chunk, config))]
    found.sort(key=lambda chunk: sortable(chunk.messages[-1].time), reverse=True)
    return within(found, tokens=UNBUILT_TOKENS, least=0)


def _unbuilt(database: Runner, *, scope: Scope) -> list[Chunk]:
    """Return the chunks of conversations that hold a message of no episode, the newest of each conversation first."""
    found = []
    for row in database.run("unbuilt_chunks", corpus=scope.corpus, documents=scope.uids):
        chunk, lasts = to_chunk(row["chunk"]), set(row["lasts"])
        ended = [at for at, place in enumerate(chunk.messages) if place.id in lasts]
        if not lasts or (ended and ended[-1] + 1 < len(chunk.messages)):
            found.append(chunk)
    return found


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


def _told(services: Services, rows: Rows, config: HyperMemConfig) -> Shown:
    """Return what is shown where no messages are: episodes in order of time, then facts, the best first.

    The best that fit into `TOLD_TOKENS` are shown, facts before episodes.
    """
    wanted = [
        *(rows["Fact"][:TOLD_FACTS] if "facts" in config.show else ()),
        *(_ended(rows, config) if "episodes" in config.show else ()),
    ]
    sums = list(accumulate(count(text_of(row)) for row in wanted))
    told = [row for row, used in zip(wanted, sums, strict=True) if used <= TOLD_TOKENS]
    ordered = sorted((row for row in told if row.kind == "Episode"), key=lambda row: str(row.properties["ends"]))
    left = counted(len(wanted) - len(told), "fact or narrative", "facts and narratives")
    return Shown(
        built=passages(services, [*ordered, *(row for row in told if row.kind == "Fact")]),
        notes=(f"{left} did not fit into {TOLD_TOKENS:,} tokens",) if len(told) < len(wanted) else (),
    )


def _ended(rows: Rows, config: HyperMemConfig) -> list[Recalled]:
    """Return the episodes that had ended by `as_of`."""
    return [row for row in rows["Episode"] if not config.as_of or "" < row.properties["ends"] <= config.as_of]


def _hit(row: Recalled, rank: int) -> BuiltHit:
    text = str(row.properties[_TITLES[row.kind]])
    return BuiltHit(uid=row.uid, kind=row.kind, rank=rank, text=text, score=round(row.score, 6))


def cost(config: HyperMemConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the one call of the answer, and how many tokens its prompt has at most."""
    numbers = {"facts": min(TOLD_FACTS, config.facts), "episodes": config.episodes}
    told = sum(number for shown, number in numbers.items() if shown in config.show)
    messages = UNBUILT_TOKENS + (config.evidence_tokens if "messages" in config.show else 0)
    return 1, around(AnswerQuestion) + TOLD_TOKENS + told * HEADING + packed(messages)
