"""The answer task of all systems: what a system knows and numbered passages in, a text with checked citations out."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated, Any

from hgmem.graph.built import nearest_beneath
from hgmem.graph.retrieval import find_chunks
from hgmem.models.embedding import CheckedEmbedder, Vectors
from hgmem.models.extractive.english import asks_before, asks_when, in_third_person, with_days
from hgmem.models.extractive.entity_recognition import Aspect, aspects, names
from hgmem.models.extractive.key_phrases import WORDS, stems
from hgmem.models.extractive.selection import diverse, nearness_to_centre
from hgmem.models.extractive.sentences import Passage, Ranked, bridge, in_common, known_by, passages, quotable, rank
from hgmem.models.prompts import PromptTask, flag
from hgmem.models.reply import TextReply
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Language, PromptMemory, Text
from hgmem.services import Services
from hgmem.text.segmentation import Span, collapse, is_question, sentences, words
from hgmem.values.evidence import BuiltPassage, Citable, Ended
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Citation

BEHIND = 3  # chunks that stand behind a cited row
MARKER = re.compile(r"\[(\d+)\]")
_LACKING = "NOT ENOUGH"
_NOT_ENOUGH = re.compile(rf"\W*{_LACKING}\b\W*(.*)", re.S)
_SEVERAL = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)+\]")  # [1, 2] is [1][2]
_NUMBER = re.compile(r"\d+")
_DIGITS = 9  # a longer number can't be valid
_OPEN = re.compile(r"[\[\d]")  # after these, removing a marker could join its surroundings to another marker
_ENDED = re.compile(r"[.!?…:;|`。！？][\"'”’»)\]*_]*\s*$")  # before a marker that ends a claim
_GOES_ON = ",;:.!?)–—"  # after a marker that does not
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,;:!?]|$)")
_CONSIDERED = 40
_SENTENCES = 4
_MOST_SENTENCES = 5
_ASKS = 0.1
_FARTHEST = 0.15
_BELOW_BEST = 0.55
_REMEMBERED = 0.08
_NO_LONGER = 0.3
_NEW_ASPECT = 0.35
_REPETITION = 0.5
_ALIKE = 0.85
_LONGEST = 1_200
_STRANGE = 0.12  # benchmarks/FINDINGS.md, "A question about something else"
_NOT_ABOUT_IT = (
    "no passage has much in common with the question: the sentences are the nearest there are, and may not answer it"
)
_CENTRAL, _MOST_CENTRAL = 8, 2_000  # sentences that stand for all, and those among which they are chosen


class AnswerReply(TextReply):
    """The answer's text. Its markers `[n]` cite passages by number, from 1."""

    @property
    def missing(self) -> str | None:
        """What a tentative answer says that is missing, None if it is an answer."""
        found = _NOT_ENOUGH.match(self.text)
        return collapse(found[1]) if found else None


@dataclass(frozen=True, kw_only=True)
class AnswerQuestion(PromptTask):
    """The task of writing the answer. `[n]` cites the n-th of `passages`, from 1.

    `memory` is what the system has worked out, and may be empty. With `theme` false, the question says nothing to look
    for. With `tentative`, the reply may be that the passages are not enough.
    """

    question: Text
    memory: PromptMemory
    passages: Annotated[tuple[Citable, ...], lambda found: rendering.passages(found, start=1)]
    form: Annotated[str, lambda form: form or "as long as the question needs, in plain prose"] = ""
    language: Language = ""
    theme: bool = True
    tentative: Annotated[bool, flag] = False
    name = "answer"
    reply_type = AnswerReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        memory = "" if self.memory == PromptMemory() else rendering.remembered(self.memory, self.passages)
        return {**super().fields(), "memory": memory}

    def extractive(self, vectors: CheckedEmbedder) -> AnswerReply:
        """Return the sentences that best cover the question, each with its marker, without a language model.

        What has ended comes after what holds, unless the question asks for what was, and is told with its end. Where
        the question asks for a time, words such as "yesterday" in a message are followed by the day. Where the
        question says nothing to look for, the sentences are the central ones of the passages. Passages are not
        enough if they lack a name of the question.
        """
        if self.tentative:
            held = [frozenset(stems(passage.text)) for passage in self.passages]
            named = [aspect for aspect in aspects(self.question) if aspect.name]
            missing = [aspect.text for aspect in named if not any(aspect.stems <= each for each in held)]
            if missing:
                return AnswerReply(text=f"{_LACKING}: {', '.join(missing)}")
        if not self.theme:
            return AnswerReply(text=_central_sentences(self.passages, vectors))
        found = known_by(_sentences(self.passages), [self.question], self.memory.classes)
        chosen = [*_with_persons(_answering(self.question, found, self.memory, vectors), self.passages)]
        ended = {one.text: one for one in self.memory.ended}
        ends = [ended.get(_told(each)) if ended else None for each in chosen]
        if asks_when(self.question):
            chosen = [replace(each, text=with_days(each.text, each.time)) for each in chosen]
        chosen = [_with_end(each, end) if end else each for each, end in zip(chosen, ends, strict=True)]
        text = _quoting(chosen)
        strange = bool(text) and in_common(found, self.question) < _STRANGE
        return AnswerReply(text=text).noted([_NOT_ABOUT_IT] if strange else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """An answer with valid citations only, and notes on the markers that were removed."""

    text: str
    citations: tuple[Citation, ...] = ()
    notes: tuple[str, ...] = ()


def _answering(
    question: str, found: Sequence[Passage], memory: PromptMemory, vectors: CheckedEmbedder
) -> list[Passage]:
    """Return the few sentences that best cover the question."""
    remembered = [collapse(text) for text in (*memory.statements, *(point.description for point in memory.points))]
    by = {} if asks_before(question) else {one.text: one.by for one in memory.ended}
    found = [_with_points(passage, remembered) for passage in (_replacing(found, by) if by else found)]
    prior = {passage: _prior(passage, remembered) for passage in found}
    if by:
        prior = {each: score - _NO_LONGER * (_told(each) in by) for each, score in prior.items()}
    ranked = rank(found, [question], vectors, limit=_CONSIDERED, prior=prior)
    bridged = bridge(ranked, lambda text: _names(text) if any(text in statement for statement in remembered) else [])
    chosen = [each.passage for each in _chosen(bridged, aspects(question))]
    return [*chosen[:1], *sorted(chosen[1:], key=_place)]  # the best first, then in order


def _with_persons(chosen: Sequence[Passage], found_in: Sequence[Citable]) -> Iterator[Passage]:
    """Yield the sentences, before one that begins with a pronoun for a person also the one that it follows."""
    every = (sentence for row in passages(found_in) for sentence in row)
    places = {_place(each): each for each in every if each.whole and not MARKER.search(each.text)}
    told = set(map(_place, chosen))
    for sentence in chosen:
        before = (sentence.chunk, sentence.at - 1)
        if before in places and before not in told and next(iter(words(sentence.text)), "") in WORDS["persons"]:
            told.add(before)
            yield places[before]
        yield sentence


def _central_sentences(found_in: Sequence[Citable], vectors: CheckedEmbedder) -> str:
    """Return up to eight sentences of the passages in order, verbatim, each followed by its marker `[n]`.

    They are nearest to the mean of all, and unlike each other.
    """
    found = _sentences(found_in)[:_MOST_CENTRAL]
    if not found:
        return ""
    every = vectors.of([sentence.text for sentence in found])
    chosen = diverse(every, nearness_to_centre(every), [1] * len(found), budget=_CENTRAL)
    return _quoting(sorted((found[at] for at in chosen), key=_place))


def _sentences(found_in: Sequence[Citable]) -> list[Passage]:
    """Return the sentences that may be quoted. A "[3]" in a source text would be read as a marker."""
    every = quotable(passages(found_in))
    return [passage for passage in every if not MARKER.search(passage.text)] or every


def _place(sentence: Passage) -> tuple[int, int]:
    return sentence.chunk, sentence.at


def _quoting(sentences: Iterable[Passage]) -> str:
    return " ".join(f"{each.text} [{each.chunk + 1}]" for each in sentences)


def _names(text: str) -> list[str]:
    return [name.text for name in names([text])[0]]


def _with_points(passage: Passage, remembered: Sequence[str]) -> Passage:
    """Return the passage with the words of the points that hold it among those around it."""
    points = (stems(text) for text in remembered if passage.text in text)
    return replace(passage, around=passage.around.union(*points))


def _told(passage: Passage) -> str:
    """Return what a passage says, in the third person, as rules make facts of it."""
    return in_third_person(passage.text, passage.speaker)


def _replacing(found: Sequence[Passage], by: Mapping[str, str]) -> list[Passage]:
    """Return the passages, those that replaced others (`by`) also with the words of these, for which may be asked."""
    words_of: dict[str, frozenset[str]] = {}
    for each in found:
        if newer := by.get(_told(each)):
            words_of[newer] = words_of.get(newer, each.stems) | each.stems
    return [replace(each, stems=each.stems | words_of.get(_told(each), each.stems)) for each in found]


def _with_end(passage: Passage, end: Ended) -> Passage:
    """Return the passage with the day on which it ended before its last full stop."""
    told = passage.text.rstrip(".!?…")
    day = f"until {end.until[:10]}" if end.until else "no longer"
    return replace(passage, text=f"{told} ({day}{', it seems' * end.guess}){passage.text[len(told) :]}")


def _prior(passage: Passage, remembered: Sequence[str]) -> float:
    """Return a passage's prior score: a bonus if memory holds it, a penalty if it is a question."""
    asks = is_question(passage.text.rstrip("\"'”’»"))
    return _REMEMBERED * any(passage.text in text for text in remembered) - _ASKS * asks


def _chosen(ranked: Sequence[Ranked], wanted: Sequence[Aspect]) -> list[Ranked]:
    """Return the sentences to quote: near the question, dissimilar, and together covering its aspects."""
    chosen: list[Ranked] = []
    covered: set[str] = set()
    least = max(_FARTHEST, _BELOW_BEST * ranked[0].score) if ranked else 0.0
    left = [each for each in ranked if each.score >= least] or list(ranked[:1])
    while left and len(chosen) < _MOST_SENTENCES:
        best = max(left, key=lambda each: _gain(each, chosen, wanted, covered))
        fresh = {each.text for each in wanted if each.covered_by(best.passage.stems)} - covered
        if len(chosen) >= _SENTENCES and not fresh:
            break
        chosen.append(best)
        covered |= fresh
        room = _LONGEST - sum(len(each.passage.text) for each in chosen)
        left = [each for each in left if each is not best and _adds(each, best) and len(each.passage.text) < room]
    return chosen


def _gain(each: Ranked, chosen: Sequence[Ranked], wanted: Sequence[Aspect], covered: AbstractSet[str]) -> float:
    fresh = sum(1 for aspect in wanted if aspect.text not in covered and aspect.covered_by(each.passage.stems))
    alike = max((float(each.vector @ other.vector) for other in chosen), default=0.0)
    return each.score + _NEW_ASPECT * fresh / max(len(wanted), 1) - _REPETITION * max(alike - 0.5, 0.0)


def _adds(each: Ranked, best: Ranked) -> bool:
    mine, theirs = each.passage.stems, best.passage.stems
    return float(each.vector @ best.vector) < _ALIKE and len(mine & theirs) < _ALIKE * len(mine)


def built_passages(
    services: Services, rows: Sequence[Mapping[str, Any]], *, query: Vectors, titled: str = ""
) -> tuple[BuiltPassage, ...]:
    """Return rows, as searches return them, as passages with the chunks behind them that are nearest to a unit vector.

    `titled` names the property that is their title. Without it, a passage is shown with its kind. The heading of its
    document follows, if the row rests on one alone.
    """
    uids = [row["uid"] for row in rows]
    behind = nearest_beneath(services.database, corpus=services.corpus, uids=uids, query=query, k=BEHIND)
    found = origins(services, {row["uid"]: behind.get(row["uid"], ()) for row in rows if row["document"]})
    return tuple(
        BuiltPassage(
            uid=row["uid"],
            kind=row["kind"],
            text=row["text"],
            title=str(row.get(titled, "")) if titled else "",
            origin=found.get(row["uid"], ""),
            document=row["document"],
            chunks=tuple(behind.get(row["uid"], ())),
        )
        for row in rows
    )


def origins(services: Services, behind: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the headings of the documents that rows (uids) rest on, from the chunks (uids) behind each."""
    firsts = {uid: chunks[0] for uid, chunks in behind.items() if chunks}
    known = find_chunks(services.database, corpus=services.corpus, uids=list(dict.fromkeys(firsts.values())))
    return {uid: rendering.heading(known[chunk], place=False) for uid, chunk in firsts.items() if chunk in known}


def cite(text: str, passages: Sequence[Citable]) -> Cited:
    """Return the text with markers numbered in order of first use, without invalid ones.

    A marker stands for one quote: two claims supported by different sentences of a passage get two markers.
    """
    order: dict[tuple[int, Span], int] = {}
    unknown: list[str] = []

    def renumber(found: re.Match[str]) -> str:
        number = int(found[1]) if len(found[1]) <= _DIGITS else 0
        if not 1 <= number <= len(passages):
            unknown.append(found[1])
            return " " if _OPEN.search(text[: found.start()][-1:]) else ""
        quoted = _quoted(_claim(text, found.start()), passages[number - 1])
        return f"[{order.setdefault((number, quoted), len(order) + 1)}]"

    text = _SEVERAL.sub(lambda found: "".join(f"[{number}]" for number in _NUMBER.findall(found[0])), text)
    renumbered = MARKER.sub(renumber, text)
    if unknown:
        renumbered = _SPACE_BEFORE.sub("", renumbered)
    return Cited(
        text=renumbered.strip(),
        citations=tuple(_citation(marker, passages[number - 1], span) for (number, span), marker in order.items()),
        notes=tuple(f"marker [{number}] was removed: no evidence has that number" for number in unknown),
    )


def _quoted(claim: str, passage: Citable) -> Span:
    """Return the span of the sentence that shares most words with the claim, else of the whole text.

    In a conversation it stays within one message, else it is the first one.
    """
    text, messages = passage.text, passage.messages if isinstance(passage, Chunk) else ()
    places = [Span(message.start, message.end) for message in messages if message.start < message.end]
    parts = places or [Span(0, len(text))]
    wanted = Counter(words(claim))
    best, most = parts[0], 0.0
    for part in parts:
        for span in sentences(text[part.start : part.end]):
            found = Span(part.start + span.start, part.start + span.end)
            sentence_words = Counter(words(text[found.start : found.end]))
            shared = (wanted & sentence_words).total()
            score = 2 * shared / max(1, wanted.total() + sentence_words.total())
            if score > most:
                best, most = found, score
    return best


def _claim(text: str, at: int) -> str:
    """Return the claim before the marker at `at`: its sentence, without what an earlier marker in it ended."""
    before = MARKER.sub(lambda found: " " * len(found[0]), text[:at]).rstrip()
    spans = sentences(before)
    start = spans[-1].start if spans else 0
    for marker in MARKER.finditer(text, start, len(before)):
        following = before[marker.end() :].lstrip()[:1]
        if _ENDED.search(text[: marker.start()][-4:]) or not (following.islower() or following in _GOES_ON):
            start = marker.end()
    return before[start:]


def _citation(marker: int, passage: Citable, span: Span) -> Citation:
    quote = passage.text[span.start : span.end]
    if isinstance(passage, BuiltPassage):
        return Citation(
            marker=marker,
            chunk="",
            document=passage.document,
            title=passage.title or passage.kind,
            quote=quote,
            built=passage.uid,
            behind=passage.chunks,
        )
    around = (message for message in passage.messages if message.start <= span.start and span.end <= message.end)
    message = next(around, None)
    return Citation(
        marker=marker,
        chunk=passage.uid,
        document=passage.document,
        title=passage.title,
        quote=quote,
        start=None if passage.start is None else passage.start + span.start,
        end=None if passage.start is None else passage.start + span.end,
        source_id=passage.source_id,
        message=message.id if message else "",
        speaker=message.speaker if message else "",
        time=message.time if message else "",
    )
