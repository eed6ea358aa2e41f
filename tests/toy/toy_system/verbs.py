"""What the system can do besides answering: list its topics, and count their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from hgmem.builds.reading import Reading
from hgmem.services import Services
from hgmem.systems.verbs import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which topics are listed."""

    words: Annotated[str, "Only topics with these words."] = ""
    most: Annotated[int, "Maximum topics."] = 20
    longest_first: Annotated[bool, "List the longest topics first."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic."""

    text: str
    first_words: tuple[str, ...]


def topics(services: Services, arguments: Which) -> Sequence[Topic]:
    """Return the topics that have all the words."""
    rows = Reading(services=services, system="toy").rows("ToyTopic")
    wanted = arguments.words.casefold().split()
    found = [row for row in rows if all(word in row.text.casefold() for word in wanted)]
    if arguments.longest_first:
        found.sort(key=lambda row: -len(row.text))
    return [Topic(text=row.text, first_words=tuple(row.properties["words"])) for row in found[: arguments.most]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is counted."""

    word: Annotated[str, "The word that is counted."]
    also: Annotated[tuple[str, ...], "Further words."] = ()
    least: Annotated[int | None, "Fail below this number."] = None


def count(services: Services, arguments: Counted) -> dict[str, int]:
    """Return how many topics have each word."""
    texts = [row.text.split() for row in Reading(services=services, system="toy").rows("ToyTopic")]
    counts = {word: sum(word in text for text in texts) for word in (arguments.word, *arguments.also)}
    if arguments.least is not None and min(counts.values()) < arguments.least:
        raise ArithmeticError("too few\ntopics")
    return counts


VERBS = (
    Verb(name="topics", summary="List the topics of a build.", arguments=Which, run=topics, built=True),
    Verb(name="count-words", summary="Count the topics that have a word.", arguments=Counted, run=count),
    Verb(name="hello", summary="Say hello.", run=lambda services, arguments: f"hello {services.corpus}"),
)
