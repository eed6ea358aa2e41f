"""HyperMem without a language model: borders, episodes, facts and topics by vectors, times and words."""

import re
from collections.abc import Sequence, Set
from datetime import timedelta
from itertools import pairwise

import numpy as np

from hgmem.extraction.message_chunks import moment
from hgmem.models.embedding import CheckedEmbedder, Vectors
from hgmem.models.extractive.english import COURTESY, THANKS, absolute_times, in_third_person, tells_time
from hgmem.models.extractive.entity_recognition import names
from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.extractive.selection import highest, nearness_to_centre
from hgmem.systems.hypermem.dialogues import DialogueMessage
from hgmem.systems.hypermem.replies import EpisodeMatchedReply, EpisodeReply, FactReply, RoleReply, TopicReply
from hgmem.text.segmentation import is_question, sentence_texts

PAUSE = timedelta(hours=4)  # a longer one ends an episode
_AROUND = 3  # messages on each side of a possible border that are compared
_LEAST = 4  # messages between two borders that likeness decides
_DEEP = 0.5  # standard deviations by which a dip of likeness lies below the mean
_NEAR = 0.55  # cosine from which an episode joins a topic
_SUBJECT_PHRASES = 3
_SUMMARY_SENTENCES, _NARRATIVE_SENTENCES = 2, 8
_KEYWORDS = 12
_FEWEST_STEMS = 2  # of a fact
_UNSURE = 0.5  # confidence in a sentence that may not stand for itself
_PICTURE = re.compile(r"(?=\[picture: )|(?<=\])\s")


def borders(
    earlier: Sequence[DialogueMessage], messages: Sequence[DialogueMessage], vectors: CheckedEmbedder
) -> tuple[int, ...]:
    """Return the numbers of messages that follow a pause, or at which likeness to what came before dips.

    Likeness is the cosine between the means of the three messages before and the three from a message on (TextTiling,
    Hearst 1997, with sentence vectors).
    """
    every = [*earlier, *messages]
    paused = {
        at
        for at, (before, after) in enumerate(pairwise(every), start=1)
        if before.time and after.time and moment(after.time) - moment(before.time) > PAUSE
    }
    found = set(paused)
    alike = _likeness(vectors.of([message.text for message in every]))
    limit = float(alike.mean() - _DEEP * alike.std()) if len(alike) else 0.0
    last = max((at for at in paused if at <= len(earlier)), default=0)
    for at in range(max(len(earlier), 1), len(every)):
        if at in paused:
            last = at
        elif at - last >= _LEAST and _dips(alike, at - 1, limit) and not paused.intersection(range(at, at + _LEAST)):
            found.add(at)
            last = at
    return tuple(at - len(earlier) for at in sorted(found) if at >= len(earlier))


def _likeness(every: Vectors) -> Vectors:
    """Return for each place between two messages the cosine of what lies before and behind it."""
    found = []
    for at in range(1, len(every)):
        before, behind = every[max(0, at - _AROUND) : at].sum(axis=0), every[at : at + _AROUND].sum(axis=0)
        lengths = float(np.linalg.norm(before) * np.linalg.norm(behind))
        found.append(float(before @ behind) / lengths if lengths else 0.0)
    return np.asarray(found, dtype=np.float32)


def _dips(alike: Vectors, at: int, limit: float) -> bool:
    """Return whether likeness at a place is low and not lower beside it."""
    near = alike[max(0, at - 1) : at + 2]
    return float(alike[at]) <= limit and float(alike[at]) <= float(near.min())


def episode(messages: Sequence[DialogueMessage], vectors: CheckedEmbedder, *, with_facts: bool) -> EpisodeReply:
    """Return an episode's key phrases and central sentences, in the third person, and its facts, rated, if asked."""
    found = facts(messages)
    clear = [fact.content for fact in found if fact.confidence == 1]
    texts = clear or [fact.content for fact in found] or [f"{message.speaker}: {message.text}" for message in messages]
    central = highest(_centrality(texts, vectors), _NARRATIVE_SENTENCES)
    speakers = {message.speaker for message in messages}
    phrases = key_phrases("\n".join(texts), limit=2 * _KEYWORDS, repeated=False)
    phrases = [phrase for phrase in phrases if not _names_people(phrase, speakers)][:_KEYWORDS]
    ratings = fact_roles(found, vectors) if with_facts else ()
    return EpisodeReply(
        subject=", ".join(phrases[:_SUBJECT_PHRASES]) or texts[0][:80],
        summary=" ".join(texts[at] for at in sorted(central[:_SUMMARY_SENTENCES])),
        narrative=" ".join(texts[at] for at in sorted(central)),
        keywords=tuple(phrases),
        facts=tuple(
            fact.model_copy(update={"role": rating.role, "weight": rating.weight})
            for fact, rating in zip(found, ratings, strict=False)
        ),
    )


def facts(messages: Sequence[DialogueMessage]) -> tuple[FactReply, ...]:
    """Return the sentences that say something by themselves, with their speaker, times, and the question before them.

    Greetings, thanks and cheering are left out. The first person is replaced by the speaker. A time such as
    "yesterday" is told beside the day that it means. A sentence without the first person, a name, a time or a number
    may need what was said before it: its confidence is less.
    """
    found: list[FactReply] = []
    people = {message.speaker for message in messages}
    asked = ""
    for number, message in enumerate(messages):
        questions = []
        for text in _sentences(message.text):
            if is_question(text):
                questions.append(text)
            elif _tells(message, text, people):
                found.append(_fact(message, text, number=number, asked=asked, people=people))
        if questions or stems(message.text):
            asked = questions[-1] if questions else ""
    return tuple(found)


def _tells(message: DialogueMessage, text: str, people: Set[str]) -> bool:
    """Return whether a sentence is more than a word, and more than courtesy: what people say of themselves is."""
    told = stems(text)
    polite = all(stem in COURTESY or _names_people(stem, people) for stem in told)
    of_others = in_third_person(text, message.speaker).startswith(f"{message.speaker}: ")
    if polite and (of_others or not THANKS.isdisjoint(told)) and not absolute_times(text, message.time):
        return False
    return len(told) >= _FEWEST_STEMS or (bool(told) and tells_time(text))  # a month may be no stem


def _sentences(text: str) -> list[str]:
    """Return the sentences of a message. What is on a picture, in brackets, is one of its own."""
    return [sentence for part in _PICTURE.split(text) for sentence in sentence_texts(part)]


def _names_people(phrase: str, people: Set[str]) -> bool:
    """Return whether a phrase only names people, in full or by the beginnings of their names."""
    words = {word.casefold() for name in people for word in name.split()}
    spoken = [word.removesuffix("'s") for word in phrase.casefold().split()]
    return all(any(word == name or (name.startswith(word) and len(word) > 2) for name in words) for word in spoken)


def _fact(message: DialogueMessage, text: str, *, number: int, asked: str, people: Set[str]) -> FactReply:
    named = [name for name in names([text])[0] if not _names_people(name.text, people)]
    times = absolute_times(text, message.time)
    content = in_third_person(text, message.speaker)
    alone = not content.startswith(f"{message.speaker}: ") or times or named or any(map(str.isdigit, text))
    return FactReply(
        content=content,
        messages=(number,),
        confidence=1.0 if alone else _UNSURE,
        time="; ".join(times),
        place=", ".join(name.text for name in named if name.kind == "location"),
        keywords=tuple(dict.fromkeys(name.text for name in named)),
        questions=(asked,) if asked else (),
    )


def fact_roles(found: Sequence[FactReply], vectors: CheckedEmbedder) -> tuple[RoleReply, ...]:
    """Return a role by what each fact tells, and as its weight how near it is to the mean of all."""
    if not found:
        return ()
    weights = _centrality([fact.content for fact in found], vectors)
    best = int(np.argmax(weights))
    return tuple(
        RoleReply(number=at, role=_role_of_fact(fact, core=at == best), weight=round(float(weights[at]), 4))
        for at, fact in enumerate(found)
    )


def _role_of_fact(fact: FactReply, *, core: bool) -> str:
    if core:
        return "core"
    if fact.time:
        return "temporal"
    return "spatial" if fact.place else "detail"


def matching(nearness: Sequence[float]) -> tuple[int, ...]:
    """Return the number of the nearest topic, if it is near enough."""
    if not nearness:
        return ()
    best = max(range(len(nearness)), key=nearness.__getitem__)
    return (best,) if nearness[best] >= _NEAR else ()


def matching_each(near: Sequence[Sequence[tuple[int, float]]], *, first: int) -> tuple[EpisodeMatchedReply, ...]:
    """Return for each episode the nearest topic, or the earlier episode that began one, if it is near enough.

    `near` has for each episode numbers with cosines: below `first` those of topics, then those of the episodes.
    """
    begun: dict[int, int] = {}  # the topic of each episode, or itself if it began one
    for number, cosines in enumerate(near, start=first):
        found: dict[int, list[float]] = {}
        for other, cosine in cosines:
            found.setdefault(begun.get(other, other), []).append(cosine)
        best = matching([sum(each) / len(each) for each in found.values()])
        begun[number] = list(found)[best[0]] if best else number
    return tuple(EpisodeMatchedReply(number=at, matches=(to,) if to != at else ()) for at, to in begun.items())


def topic(
    title: str, episodes: Sequence[tuple[str, str]], vectors: CheckedEmbedder, *, people: Sequence[str]
) -> TopicReply:
    """Return a topic's key phrases, the summary of its most central episode, and its episodes' roles and weights.

    Each episode is its subject and summary.
    """
    texts = [f"{subject}. {summary}" for subject, summary in episodes]
    weights = _centrality(texts, vectors)
    best = int(np.argmax(weights))
    every = " ".join(texts)
    found = [
        *key_phrases(every, limit=2 * _KEYWORDS, repeated=True),
        *key_phrases(every, limit=_KEYWORDS, repeated=False),
    ]
    phrases = [phrase for phrase in dict.fromkeys(found) if not _names_people(phrase, frozenset(people))][:_KEYWORDS]
    return TopicReply(
        title=", ".join(phrases[:_SUBJECT_PHRASES]) or title,
        summary=episodes[best][1],
        keywords=tuple(phrases),
        roles=tuple(
            RoleReply(number=at, role=_role_of_episode(at, len(texts), best), weight=round(float(weights[at]), 4))
            for at in range(len(texts))
        ),
    )


def _role_of_episode(at: int, many: int, best: int) -> str:
    if at == best and many > 2:
        return "key_moment"
    if at == 0:
        return "initiating"
    return "concluding" if at == many - 1 else "developing"


def _centrality(texts: Sequence[str], vectors: CheckedEmbedder) -> Vectors:
    """Return the cosine of each text to the mean of all, at least 0."""
    near: Vectors = np.clip(nearness_to_centre(vectors.of(texts)), 0.0, 1.0)
    return near
