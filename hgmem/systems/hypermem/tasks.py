"""The tasks of HyperMem: divide messages, write episodes and facts, and sort episodes into topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.prompts import quoted
from hgmem.models.reply import with_fields
from hgmem.systems.hypermem import extractive
from hgmem.systems.hypermem.dialogues import DialogueMessage, gap_between, lines
from hgmem.systems.hypermem.replies import (
    EPISODE_ROLES,
    FACT_ROLES,
    BoundaryReply,
    EpisodeReply,
    FactReply,
    FactsReply,
    MatchesReply,
    RolesReply,
    StartsReply,
    TopicReply,
    TopicTextReply,
)

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class DivideMessages:
    """Ask at which of several messages an episode begins. `earlier` are those of the episode that is still open."""

    earlier: tuple[DialogueMessage, ...]
    messages: tuple[DialogueMessage, ...]
    longest: int
    name: ClassVar[str] = "divide"
    prompt_file: ClassVar[Path] = PROMPTS / "divide.md"
    reply_type: ClassVar[type[StartsReply]] = StartsReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "earlier": quoted(lines(self.earlier)) if self.earlier else "",
            "messages": quoted(lines(self.messages, start=0)),
            "longest": str(self.longest),
        }

    def extractive(self, vectors: VectorCache) -> StartsReply:
        """Return where neighbouring messages are least alike, and where somebody paused, without a language model."""
        return StartsReply(starts=extractive.borders(self.earlier, self.messages, vectors))


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectBoundary:
    """Ask whether an episode ends before a message (paper, section 3.1: one call a message)."""

    history: tuple[DialogueMessage, ...]
    message: DialogueMessage
    name: ClassVar[str] = "boundary"
    prompt_file: ClassVar[Path] = PROMPTS / "boundary.md"
    reply_type: ClassVar[type[BoundaryReply]] = BoundaryReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "history": quoted(lines(self.history)),
            "message": quoted(lines([self.message])),
            "gap": gap_between(self.history[-1], self.message),
        }

    def extractive(self, vectors: VectorCache) -> BoundaryReply:
        """Return whether the message is unlike those before it, or follows a pause, without a language model."""
        return BoundaryReply(should_end=bool(extractive.borders(self.history, [self.message], vectors)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteEpisode:
    """Ask for an episode's subject, summary, narrative and keywords, `with_facts` also for its facts.

    `earlier` are the last messages before it.
    """

    title: str
    earlier: tuple[DialogueMessage, ...]
    messages: tuple[DialogueMessage, ...]
    with_facts: bool
    name: ClassVar[str] = "episode"
    prompt_file: ClassVar[Path] = PROMPTS / "episode.md"
    reply_type: ClassVar[type[EpisodeReply]] = EpisodeReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "title": quoted(self.title),
            "earlier": quoted(lines(self.earlier)) if self.earlier else "",
            "messages": quoted(lines(self.messages, start=0)),
            "facts": "yes" if self.with_facts else "",
            "roles": ", ".join(FACT_ROLES),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply without facts, where none are asked for."""
        return schema if self.with_facts else with_fields(schema, schema["properties"].keys() - {"facts"})

    def extractive(self, vectors: VectorCache) -> EpisodeReply:
        """Return central sentences, key phrases and the sentences that stand for themselves, verbatim."""
        return extractive.episode(self.messages, vectors, with_facts=self.with_facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFacts:
    """Ask for the facts of an episode (paper, section 3.1: from each episode)."""

    narrative: str
    messages: tuple[DialogueMessage, ...]
    name: ClassVar[str] = "facts"
    prompt_file: ClassVar[Path] = PROMPTS / "facts.md"
    reply_type: ClassVar[type[FactsReply]] = FactsReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"narrative": quoted(self.narrative), "messages": quoted(lines(self.messages, start=0))}

    def extractive(self, vectors: VectorCache) -> FactsReply:
        """Return the sentences that stand for themselves, without a language model."""
        return FactsReply(facts=extractive.facts(self.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFacts:
    """Ask for the role and weight of each fact of an episode."""

    narrative: str
    facts: tuple[FactReply, ...]
    name: ClassVar[str] = "fact_roles"
    prompt_file: ClassVar[Path] = PROMPTS / "fact_roles.md"
    reply_type: ClassVar[type[RolesReply]] = RolesReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        listed = "\n".join(f"[{number}] {fact.content}" for number, fact in enumerate(self.facts))
        return {"narrative": quoted(self.narrative), "facts": quoted(listed), "roles": ", ".join(FACT_ROLES)}

    def extractive(self, vectors: VectorCache) -> RolesReply:
        """Return roles by what a fact tells, and weights by how central it is, without a language model."""
        return RolesReply(roles=extractive.fact_roles(self.facts, vectors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A topic that an episode may join. `nearness` is the episode's mean cosine to those that lead to it."""

    key: str
    title: str
    summary: str
    nearness: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTopics:
    """Ask which topics an episode belongs to: of a shortlist (paper), or of all, ten at a time (official code)."""

    subject: str
    summary: str
    topics: tuple[Candidate, ...]
    name: ClassVar[str] = "topic_match"
    prompt_file: ClassVar[Path] = PROMPTS / "topic_match.md"
    reply_type: ClassVar[type[MatchesReply]] = MatchesReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        listed = "\n".join(
            f"[{number}] {_titled(topic.title, topic.summary)}" for number, topic in enumerate(self.topics)
        )
        return {"subject": quoted(self.subject), "summary": quoted(self.summary), "topics": quoted(listed)}

    def extractive(self, vectors: VectorCache) -> MatchesReply:
        """Return the nearest topic if it is near enough, without a language model."""
        return MatchesReply(matches=extractive.matching([topic.nearness for topic in self.topics]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTopic:
    """Ask for the text of a topic: of one episode, or of a topic that an episode has joined (paper, section 3.1)."""

    subject: str
    summary: str
    topic: Candidate | None
    name: ClassVar[str] = "topic_text"
    prompt_file: ClassVar[Path] = PROMPTS / "topic_text.md"
    reply_type: ClassVar[type[TopicTextReply]] = TopicTextReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        topic = _titled(self.topic.title, self.topic.summary) if self.topic else ""
        return {
            "subject": quoted(self.subject),
            "summary": quoted(self.summary),
            "topic": quoted(topic) if topic else "",
        }

    def extractive(self, vectors: VectorCache) -> TopicTextReply:
        """Return the topic's text as it is, or that of the episode, without a language model."""
        if self.topic:
            return TopicTextReply(title=self.topic.title, summary=self.topic.summary)
        return TopicTextReply(title=self.subject, summary=self.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An episode of a topic: its subject, summary and time."""

    subject: str
    summary: str
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEpisodes:
    """Ask for the roles and weights of a topic's episodes, `with_text` also for the topic's text.

    `people` are those who speak in them.
    """

    title: str
    summary: str
    episodes: tuple[Member, ...]
    people: tuple[str, ...]
    with_text: bool
    name: ClassVar[str] = "topic"
    prompt_file: ClassVar[Path] = PROMPTS / "topic.md"
    reply_type: ClassVar[type[TopicReply]] = TopicReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "topic": quoted(_titled(self.title, self.summary)),
            "episodes": quoted(_listed(self.episodes)),
            "roles": ", ".join(EPISODE_ROLES),
            "text": "yes" if self.with_text else "",
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply without the topic's text, where none is asked for."""
        return schema if self.with_text else with_fields(schema, ("roles",))

    def extractive(self, vectors: VectorCache) -> TopicReply:
        """Return key phrases, central sentences, and roles by place and nearness, without a language model."""
        return extractive.topic(
            self.title, [(episode.subject, episode.summary) for episode in self.episodes], vectors, people=self.people
        )


def _titled(title: str, text: str) -> str:
    return f"{title}: {text}" if title else text


def _listed(episodes: Sequence[Member]) -> str:
    texts = (f"({episode.time[:10]}) {episode.subject}: {episode.summary}" for episode in episodes)
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(texts))
