"""Replies to the tasks of ReMindRAG."""

from typing import Annotated

from hgmem.models.reply import Leniently, Reply, TextReply, named

_LINES = Leniently(sentences=True)
_NEXT = named("next", "way", "number", "choice", "go_to")
_ENOUGH = named("enough", "sufficient", "is_sufficient")


class TitleReply(TextReply):
    """The title of a passage."""


class SummaryReply(TextReply):
    """What a passage says that bears on a question."""


class PlainReply(TextReply):
    """An answer without a search."""


class MoveReply(Reply):
    """What was found, whether all that is known is enough, and else the number of the way to go, and why."""

    found: str = ""
    enough: Annotated[bool, _ENOUGH] = False
    why: str = ""
    next: Annotated[int | None, _NEXT] = None


class EnoughReply(Reply):
    """Whether what is known is enough to answer."""

    enough: Annotated[bool, _ENOUGH] = False


class NextReply(Reply):
    """The number of the way to go, and why."""

    why: str = ""
    next: Annotated[int | None, _NEXT] = None


class UsefulReply(Reply):
    """The numbers of the ways that led to something of use."""

    useful: Annotated[tuple[int, ...], named("useful", "edges", "ways", "numbers")] = ()


class SearchReply(Reply):
    """Whether a question needs a search."""

    search: bool = True


class SplitReply(Reply):
    """The sub-questions of a question."""

    questions: Annotated[tuple[str, ...], named("questions", "subquestions", "sub_questions"), _LINES] = ()
