"""The tasks of the model: which entities of a list may be the same, and whether two are."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from hgmem.extraction.tasks import shortened
from hgmem.graph.database import Row
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.prompts import PromptTask, quoted
from hgmem.models.reply import Leniently, Reply, named
from hgmem.text.segmentation import collapse
from hgmem.values.decisions import Seen

PASSAGES = 2_000  # characters of all that are shown of one entity
DESCRIPTION = 600  # characters
BRIEFLY = 160  # characters of a description in a list
SURE = 0.5  # confidence below which a verdict counts as unclear, and that of one without a confidence

_VERDICTS = Leniently(words={"same": ("yes", "identical"), "different": ("no", "distinct"), "unclear": ("unknown",)})


class Identity(Reply):
    """Whether two entities are the same, why, and how sure the model is of that, from 0 to 1."""

    verdict: Annotated[Literal["same", "different", "unclear"], named("verdict", "answer", "decision"), _VERDICTS]
    reason: Annotated[str, named("reason", "explanation", "why")] = ""
    confidence: Annotated[float, Field(ge=0, le=1), named("confidence", "certainty", "score")] = SURE


def seen(row: Row, *, beside: str = "") -> Seen:
    """Return what is shown of an entity, beside another of that name.

    Of its chunks, which are in order, these are the first one that names the other, and the first, the last and one
    between of all. Each shows as much as the others, around the name, and near the other's name if it has that too.
    """
    chunks = row["chunks"]
    naming = [at for at, chunk in enumerate(chunks) if beside and beside.casefold() in chunk["text"].casefold()]
    chosen = sorted({*naming[:1], 0, len(chunks) // 2, len(chunks) - 1}) if chunks else []
    return Seen(
        uid=row["uid"],
        name=row["name"],
        type=row["type"],
        description=shortened(collapse(row["description"]), limit=DESCRIPTION),
        passages={
            chunks[at]["uid"]: around(chunks[at]["text"], row["name"], beside=beside, limit=PASSAGES // len(chosen))
            for at in chosen
        },
    )


def around(text: str, name: str, *, beside: str = "", limit: int = PASSAGES // 4) -> str:
    """Return the part of a chunk around the name, else around its last word, on one line.

    A place nearest to the other's name comes first, else one where the name stands by itself, not in a longer name.
    """
    line = collapse(text)
    found = [place for part in (name, name.split()[-1]) for place in _places(line, part)]
    if others := _places(line, beside) if beside else []:
        found.sort(key=lambda place: min(abs(place - other) for other in others))
    at = max(0, min(next(iter(found or others), 0) - limit // 2, len(line) - limit))
    start = line.rfind(" ", 0, at) + 1
    return ("…" if start else "") + shortened(line[start:], limit=limit)


def _places(line: str, name: str) -> list[int]:
    """Return where a line has a name as whole words, those after a capitalized word last."""
    places = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", line, re.IGNORECASE)]
    return sorted(places, key=lambda at: " ".join(line[:at].split()[-1:])[:1].isupper())


def _headed(one: Seen) -> str:
    return f"{one.name} ({one.type})" if one.type else one.name


def _shown(one: Seen) -> str:
    passages = "\n".join(f"- {text}" for text in one.passages.values())
    return quoted(f"Entry: {_headed(one)}\nDescription: {one.description or 'none'}\nPassages:\n{passages or 'none'}")


Pair: TypeAlias = Annotated[tuple[Seen, Seen], lambda pair: "\n\n".join(map(_shown, pair))]


@dataclass(frozen=True, kw_only=True)
class Identify(PromptTask):
    """Ask whether two entities are the same."""

    entities: Pair
    name = "identify"
    reply_type = Identity

    def extractive(self, _: CheckedEmbedder) -> Identity:
        """Tell nothing: rules without a language model have decided before what they can."""
        return Identity(verdict="unclear")


class Proposed(Reply):
    """The numbers of entities of a list that may be the same together."""

    same: Annotated[tuple[tuple[int, ...], ...], named("same", "groups", "pairs")] = ()


def _line(number: int, one: Seen) -> str:
    return quoted(f"{number}. {_headed(one)}: {shortened(one.description, limit=BRIEFLY) or 'none'}")


Entries: TypeAlias = Annotated[
    tuple[Seen, ...], lambda entries: "\n".join(_line(at, one) for at, one in enumerate(entries)), "entities"
]


@dataclass(frozen=True, kw_only=True)
class ProposeSame(PromptTask):
    """Ask which entities of a list may be the same."""

    entries: Entries
    name = "propose_same"
    reply_type = Proposed

    def extractive(self, _: CheckedEmbedder) -> Proposed:
        """Propose nothing: names are compared without a language model."""
        return Proposed()
