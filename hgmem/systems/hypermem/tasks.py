"""The tasks of HyperMem: divide messages, write episodes and facts, and sort episodes into topics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from hgmem.builds.units import StoredRow
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.prompts import PromptTask, Quoted, flag, quoted
from hgmem.models.reply import with_fields
from hgmem.systems.hypermem import extractive, states
from hgmem.systems.hypermem.dialogues import DialogueMessage, gap_between, lines
from hgmem.systems.hypermem.replies import (
    EPISODE_ROLES,
    FACT_ROLES,
    BoundaryReply,
    ComparedReply,
    ComparisonsReply,
    EpisodeReply,
    EpisodesMatchedReply,
    FactReply,
    FactsReply,
    MatchesReply,
    RolesReply,
    StartsReply,
    TopicReply,
    TopicTextReply,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A topic that an episode may join. `nearness` is the episode's mean cosine to those that lead to it."""

    key: str
    title: str
    summary: str
    nearness: float = 0.0

    @property
    def text(self) -> str:
        """The topic as prompts tell it."""
        return _titled(self.title, self.summary)


def _listed(texts: Iterable[str], *, start: int = 0) -> str:
    return quoted("\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=start)))


def _titled(title: str, text: str) -> str:
    return f"{title}: {text}" if title else text


def _episodes(rows: Sequence[StoredRow]) -> str:
    values = [row.properties for row in rows]
    return _listed(f"({str(one['ends'])[:10]}) {one['subject']}: {one['summary']}" for one in values)


Told: TypeAlias = Annotated[tuple[DialogueMessage, ...], lambda messages: quoted(lines(messages))]
Numbered: TypeAlias = Annotated[tuple[DialogueMessage, ...], lambda messages: quoted(lines(messages, start=0))]


@dataclass(frozen=True, kw_only=True)
class DivideMessages(PromptTask):
    """Ask at which of several messages an episode begins. `earlier` are those of the episode that is still open.

    Here and in the other tasks, `heading` tells of the conversation: its title, date and type.
    """

    heading: Quoted
    earlier: Told
    messages: Numbered
    longest: Annotated[int, str]
    name = "divide"
    reply_type = StartsReply

    def extractive(self, vectors: CheckedEmbedder) -> StartsReply:
        """Return where neighbouring messages are least alike, and where somebody paused, without a language model."""
        return StartsReply(starts=extractive.borders(self.earlier, self.messages, vectors))


@dataclass(frozen=True, kw_only=True)
class DetectBoundary(PromptTask):
    """Ask whether an episode ends before a message (paper, Episode Detection, by a call a message as in its code)."""

    heading: Quoted
    history: Told
    message: DialogueMessage
    name = "boundary"
    reply_type = BoundaryReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            **super().fields(),
            "message": quoted(lines([self.message])),
            "gap": gap_between(self.history[-1], self.message),
        }

    def extractive(self, vectors: CheckedEmbedder) -> BoundaryReply:
        """Return whether the message is unlike those before it, or follows a pause, without a language model."""
        return BoundaryReply(should_end=bool(extractive.borders(self.history, [self.message], vectors)))


@dataclass(frozen=True, kw_only=True)
class WriteEpisode(PromptTask):
    """Ask for an episode's subject, summary, narrative and keywords, `with_facts` also for its facts.

    `earlier` are the last messages before it.
    """

    heading: Quoted
    earlier: Told
    messages: Numbered
    with_facts: Annotated[bool, flag, "facts"]
    roles: Annotated[tuple[str, ...], ", ".join] = FACT_ROLES
    name = "episode"
    reply_type = EpisodeReply

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply without facts, where none are asked for."""
        return schema if self.with_facts else with_fields(schema, schema["properties"].keys() - {"facts"})

    def extractive(self, vectors: CheckedEmbedder) -> EpisodeReply:
        """Return central sentences, key phrases and the sentences that stand for themselves, verbatim."""
        return extractive.episode(self.messages, vectors, with_facts=self.with_facts)


@dataclass(frozen=True, kw_only=True)
class WriteFacts(PromptTask):
    """Ask for the facts of an episode (paper, Fact Extraction: from each episode)."""

    heading: Quoted
    narrative: Quoted
    messages: Numbered
    name = "facts"
    reply_type = FactsReply

    def extractive(self, vectors: CheckedEmbedder) -> FactsReply:
        """Return the sentences that stand for themselves, without a language model."""
        return FactsReply(facts=extractive.facts(self.messages))


@dataclass(frozen=True, kw_only=True)
class RateFacts(PromptTask):
    """Ask for the role and weight of each fact of an episode."""

    narrative: Quoted
    facts: Annotated[tuple[FactReply, ...], lambda facts: _listed(fact.content for fact in facts)]
    roles: Annotated[tuple[str, ...], ", ".join] = FACT_ROLES
    name = "fact_roles"
    reply_type = RolesReply

    def extractive(self, vectors: CheckedEmbedder) -> RolesReply:
        """Return roles by what a fact tells, and weights by how central it is, without a language model."""
        return RolesReply(roles=extractive.fact_roles(self.facts, vectors))


def _facts(rows: Sequence[StoredRow]) -> str:
    values = [row.properties for row in rows]
    return _listed(f"({str(one['said_at'])[:10]}) {one['content']} {one['event_time']}".rstrip() for one in values)


@dataclass(frozen=True, kw_only=True)
class CompareFacts(PromptTask):
    """Ask how the `new` of several facts in order of time, by their numbers, stand to those before them."""

    facts: Annotated[Sequence[StoredRow], _facts]
    new: Annotated[tuple[int, ...], lambda new: ", ".join(map(str, new))]
    name = "fact_changes"
    reply_type = ComparisonsReply

    def extractive(self, vectors: CheckedEmbedder) -> ComparisonsReply:
        """Return what facts of one subject and role, or of the same words, are to each other, without a model."""
        texts = [str(row.properties["content"]) for row in self.facts]
        return ComparisonsReply(
            pairs=tuple(
                ComparedReply(number=at, earlier=earlier, relation=relation, ahead=states.is_planned(texts[at]))
                for at in self.new
                for earlier in range(at)
                if (relation := states.relation(texts[earlier], texts[at]))
            )
        )


@dataclass(frozen=True, kw_only=True)
class MatchTopics(PromptTask):
    """Ask which topics an episode belongs to: of a shortlist (paper), or of all, ten at a time (official code)."""

    subject: Quoted
    summary: Quoted
    topics: Annotated[tuple[Candidate, ...], lambda topics: _listed(topic.text for topic in topics)]
    name = "topic_match"
    reply_type = MatchesReply

    def extractive(self, vectors: CheckedEmbedder) -> MatchesReply:
        """Return the nearest topic if it is near enough, without a language model."""
        return MatchesReply(matches=extractive.matching([topic.nearness for topic in self.topics]))


@dataclass(frozen=True, kw_only=True)
class MatchEpisodes(PromptTask):
    """Ask which topics each of several neighbouring episodes belongs to, or which earlier one of them it continues.

    Topics and episodes are numbered together. `near` has for each episode what it may be matched with, by number, with
    the cosine of each episode that leads there.
    """

    topics: Annotated[tuple[Candidate, ...], lambda topics: _listed(topic.text for topic in topics)]
    episodes: tuple[str, ...]
    near: Sequence[Sequence[tuple[int, float]]]
    name = "topic_matches"
    reply_type = EpisodesMatchedReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {**super().fields(), "episodes": _listed(self.episodes, start=len(self.topics))}

    def extractive(self, vectors: CheckedEmbedder) -> EpisodesMatchedReply:
        """Return for each episode the nearest topic if it is near enough, without a language model."""
        return EpisodesMatchedReply(episodes=extractive.matching_each(self.near, first=len(self.topics)))


@dataclass(frozen=True, kw_only=True)
class WriteTopic(PromptTask):
    """Ask for the text of a topic: of an episode, or of a topic that one has joined (paper, Topic Aggregation)."""

    subject: Quoted
    summary: Quoted
    topic: Annotated[Candidate | None, lambda topic: quoted(topic.text) if topic else ""]
    name = "topic_text"
    reply_type = TopicTextReply

    def extractive(self, vectors: CheckedEmbedder) -> TopicTextReply:
        """Return the topic's text as it is, or that of the episode, without a language model."""
        if self.topic:
            return TopicTextReply(title=self.topic.title, summary=self.topic.summary)
        return TopicTextReply(title=self.subject, summary=self.summary)


@dataclass(frozen=True, kw_only=True)
class RateEpisodes(PromptTask):
    """Ask for the roles and weights of a topic's episodes, `with_text` also for the topic's text.

    `people` are those who speak in them.
    """

    title: str
    summary: str
    episodes: Annotated[Sequence[StoredRow], _episodes]
    people: Sequence[str]
    with_text: Annotated[bool, flag, "text"]
    roles: Annotated[tuple[str, ...], ", ".join] = EPISODE_ROLES
    name = "topic"
    reply_type = TopicReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {**super().fields(), "topic": quoted(_titled(self.title, self.summary))}

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply without the topic's text, where none is asked for."""
        return schema if self.with_text else with_fields(schema, ("roles",))

    def extractive(self, vectors: CheckedEmbedder) -> TopicReply:
        """Return key phrases, central sentences, and roles by place and nearness, without a language model."""
        told = [(str(row.properties["subject"]), str(row.properties["summary"])) for row in self.episodes]
        return extractive.topic(self.title, told, vectors, people=self.people)
