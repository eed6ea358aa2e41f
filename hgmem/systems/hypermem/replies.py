"""What models reply to the tasks of HyperMem."""

from typing import Annotated

from hgmem.models.reply import Leniently, Reply, named

EPISODE_ROLES = (
    "initiating",
    "developing",
    "climax",
    "concluding",
    "recurring",
    "background",
    "key_moment",
    "transition",
)
FACT_ROLES = ("core", "context", "detail", "temporal", "causal", "spatial")
"""The official prompt offers `spatial` too, which its enumeration refuses; here it is a role."""

USUAL_WEIGHT = 0.5  # of what a reply leaves out (official code)

_SENTENCES = Leniently(sentences=True)


class StartsReply(Reply):
    """The numbers of the messages at which an episode begins."""

    starts: Annotated[tuple[int, ...], named("starts", "borders", "boundaries", "begins")] = ()


class BoundaryReply(Reply):
    """Whether the episode ends before the new message. An unreadable reply means that it goes on (official code)."""

    should_end: Annotated[bool, named("should_end", "end", "ends", "boundary")] = False


class FactReply(Reply):
    """A fact: what it says, the numbers of the messages that say it, and how it stands in its episode."""

    content: Annotated[str, named("content", "fact", "text", "statement")]
    messages: Annotated[tuple[int, ...], named("messages", "message", "sources", "numbers")] = ()
    confidence: float = 0.8  # official code
    time: Annotated[str, named("time", "temporal", "when")] = ""
    place: Annotated[str, named("place", "spatial", "location", "where")] = ""
    keywords: tuple[str, ...] = ()
    questions: Annotated[tuple[str, ...], named("questions", "query_patterns", "potential"), _SENTENCES] = ()
    role: str = ""
    weight: float = USUAL_WEIGHT


class FactsReply(Reply):
    """The facts of an episode."""

    facts: tuple[FactReply, ...] = ()


class EpisodeReply(Reply):
    """What happens in an episode, and its facts where they were asked for."""

    subject: Annotated[str, named("subject", "title")] = ""
    summary: str = ""
    narrative: Annotated[str, named("narrative", "content", "description", "episode_description")] = ""
    keywords: tuple[str, ...] = ()
    facts: tuple[FactReply, ...] = ()


class ComparedReply(Reply):
    """How a new fact stands to an earlier one, by their numbers. A word that is none of the relations says nothing."""

    number: Annotated[int, named("number", "new", "fact", "index")]
    earlier: Annotated[int, named("earlier", "old", "before", "other")]
    relation: Annotated[str, named("relation", "kind", "verdict", "judgement")] = ""
    ahead: Annotated[bool, named("ahead", "planned", "future")] = False


class ComparisonsReply(Reply):
    """How new facts stand to earlier ones. What is left out is of another matter."""

    pairs: Annotated[tuple[ComparedReply, ...], named("pairs", "facts", "relations", "changes")] = ()


class RoleReply(Reply):
    """The role and weight of one member, by its number."""

    number: Annotated[int, named("number", "index", "id", "fact", "fact_id", "episode", "episode_id")]
    role: str = ""
    weight: float = USUAL_WEIGHT


class RolesReply(Reply):
    """Roles and weights of the facts of an episode."""

    roles: Annotated[tuple[RoleReply, ...], named("roles", "facts", "members")] = ()
    confidence: Annotated[float, named("confidence", "extraction_confidence")] = 0.8


class TopicTextReply(Reply):
    """The text of a topic."""

    title: str = ""
    summary: str = ""
    keywords: tuple[str, ...] = ()


class TopicReply(TopicTextReply):
    """A topic's text, and the roles and weights of its episodes."""

    roles: Annotated[tuple[RoleReply, ...], named("roles", "episodes", "members")] = ()


class MatchesReply(Reply):
    """The numbers of the topics that an episode belongs to."""

    matches: Annotated[tuple[int, ...], named("matches", "topics", "numbers", "results")] = ()


class EpisodeMatchedReply(MatchesReply):
    """The numbers of the topics that one of several episodes belongs to, and of earlier ones that it continues."""

    number: Annotated[int, named("number", "index", "id", "episode", "episode_id")]


class EpisodesMatchedReply(Reply):
    """Which topics each of several episodes belongs to."""

    episodes: Annotated[tuple[EpisodeMatchedReply, ...], named("episodes", "matches", "results")] = ()


def membership(reply: FactReply | RoleReply) -> dict[str, str | float]:
    """Return role and weight of a fact, or else of an episode. A word that is none of the roles counts as the usual."""
    roles, usual = (FACT_ROLES, "detail") if isinstance(reply, FactReply) else (EPISODE_ROLES, "developing")
    role = reply.role.strip().casefold()
    return {"role": role if role in roles else usual, "weight": min(max(float(reply.weight), 0.0), 1.0)}
