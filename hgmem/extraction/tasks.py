"""The tasks of extraction and summarization: Extract, Glean and Condense."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, TypeAlias

from hgmem.extraction.contributions import join
from hgmem.extraction.replies import CondensedText, ExtractedEntity, ExtractedRelation, Extraction
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.extractive.entity_recognition import TITLES, names
from hgmem.models.extractive.key_phrases import STOPWORDS, key_phrases, stem
from hgmem.models.prompts import PromptTask, Quoted, quoted
from hgmem.settings import ENTITY_TYPES
from hgmem.text.segmentation import collapse, sentences, words

_SENTENCES = 400
_CHARACTERS = 2_000
_NEIGHBOURS = 3
_RELATIONS = 60
_DESCRIPTION = 280
_CONCEPTS = 3
_CONCEPTS_ALONE = 6
_FEW_NAMES = 2


@dataclass(slots=True)
class _FoundName:
    name: str
    kinds: Counter[str] = field(default_factory=Counter)
    mentions: list[int] = field(default_factory=list)


def extract(text: str, *, entity_types: tuple[str, ...]) -> Extraction:
    """Return the entities and relations of the chunk, which may be none."""
    texts = [collapse(text[start:end])[:_CHARACTERS] for start, end in sentences(text)[:_SENTENCES]]
    found = _named(texts)
    _add_concepts(found, texts, known="concept" in entity_types)
    return Extraction(
        entities=tuple(_entity(each, texts, types=entity_types) for each in found.values()),
        relations=tuple(_relations(found, texts)),
    )


def _named(texts: list[str]) -> dict[str, _FoundName]:
    rows = names(texts)
    whole = _whole_names({name.text for row in rows for name in row})
    found: dict[str, _FoundName] = {}
    for at, row in enumerate(rows):
        for name in row:
            text = whole.get(name.text, name.text)
            each = found.setdefault(text.casefold(), _FoundName(text))
            each.kinds[name.kind] += 1
            if at not in each.mentions:
                each.mentions.append(at)
    return found


def _whole_names(texts: set[str]) -> dict[str, str]:
    """Map surnames, and names without a title, to the chunk's only full name that contains them."""
    wholes: dict[str, set[str]] = defaultdict(set)
    for text in sorted(texts):
        parts = text.split()
        if len(parts) > 1 and "of" not in parts:
            wholes[parts[-1]].add(text)
            if parts[0].rstrip(".").casefold() in TITLES:
                wholes[" ".join(parts[1:])].add(text)
    return {short: next(iter(longer)) for short, longer in wholes.items() if len(longer) == 1 and short in texts}


def _add_concepts(found: dict[str, _FoundName], texts: list[str], *, known: bool) -> None:
    """Add repeated key phrases, or the best ones if the chunk has hardly any names."""
    few = len(found) < _FEW_NAMES
    taken = {stem(word) for each in found.values() for word in words(each.name)}
    readable = [text for text in texts if any(map(str.isalpha, text)) and not _heading(text)]
    phrases = key_phrases(" . ".join(readable), limit=_CONCEPTS_ALONE + len(taken), repeated=not few)
    fresh = [phrase for phrase in phrases if not taken & {stem(word) for word in words(phrase)}]
    for phrase in fresh[: _CONCEPTS_ALONE if few else _CONCEPTS]:
        each = _FoundName(phrase, mentions=_mentions(phrase, texts))
        each.kinds["concept" if known else ""] += 1
        found.setdefault(phrase.casefold(), each)


def _heading(text: str) -> bool:
    return len(text) < 80 and text.upper() == text and text.lower() != text


def _mentions(phrase: str, texts: list[str]) -> list[int]:
    low = phrase.casefold()
    return [at for at, text in enumerate(texts) if low in text.casefold()]


def _entity(found: _FoundName, texts: list[str], *, types: tuple[str, ...]) -> ExtractedEntity:
    specific = [(kind, count) for kind, count in found.kinds.most_common() if kind != "concept"]
    kind = specific[0][0] if specific else "concept"
    description = " ".join(texts[at] for at in found.mentions[:2])
    return ExtractedEntity(
        name=found.name, type=kind if kind in types else "", description=shortened(description, limit=_DESCRIPTION)
    )


def shortened(text: str, *, limit: int) -> str:
    """Return `text`, truncated after a word to at most `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut[: cut.rfind(" ")] if " " in cut else cut).rstrip(" ,;:-") + "…"


def _relations(found: dict[str, _FoundName], texts: list[str]) -> Iterator[ExtractedRelation]:
    shared: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, names_there in sorted(_by_sentence(found).items()):
        for pair in _pairs(names_there, texts[at]):
            shared[pair].append(at)
    pairs = sorted(shared, key=lambda pair: -len(shared[pair]))[:_RELATIONS]
    for source, target in pairs:
        places = shared[(source, target)]
        text = " ".join(texts[at] for at in places[:2])
        yield ExtractedRelation(
            source=source,
            target=target,
            description=shortened(text, limit=_DESCRIPTION),
            keywords=_keywords(text, apart_from=f"{source} {target}"),
            weight=float(len(places)),
        )


def _by_sentence(found: dict[str, _FoundName]) -> dict[int, list[str]]:
    rows: dict[int, list[str]] = defaultdict(list)
    for each in found.values():
        for at in each.mentions:
            rows[at].append(each.name)
    return rows


def _pairs(names_there: list[str], text: str) -> list[tuple[str, str]]:
    """Pair each name with the few that follow it, so that a long list of names becomes a chain."""
    low = text.casefold()
    ordered = sorted(names_there, key=lambda name: (low.find(name.casefold()), name))
    if len(ordered) <= _NEIGHBOURS + 1:
        return list(combinations(ordered, 2))
    return [(name, other) for at, name in enumerate(ordered) for other in ordered[at + 1 : at + 1 + _NEIGHBOURS]]


def _keywords(text: str, *, apart_from: str) -> tuple[str, ...]:
    named = set(words(apart_from))
    specific = [word for word in words(text) if word not in STOPWORDS and word not in named and len(word) > 3]
    return tuple(word for word, _ in Counter(specific).most_common(3))


Types: TypeAlias = Annotated[tuple[str, ...], lambda types: quoted(", ".join(types))]


def _in_lines(found: Extraction) -> str:
    entities = [f"{entity.name} ({entity.type})" for entity in found.entities]
    relations = [f"{relation.source} – {relation.target}" for relation in found.relations]
    return quoted("\n".join([*entities, *relations]) or "nothing")


@dataclass(frozen=True, kw_only=True)
class Extract(PromptTask):
    """Ask for the entities and relations of one chunk's text. `heading` is what is known of its document."""

    text: Quoted
    heading: Quoted = ""
    entity_types: Types = ENTITY_TYPES
    name = "extract"
    reply_type = Extraction

    def extractive(self, _: CheckedEmbedder) -> Extraction:
        """Extract with rules, without a language model."""
        return extract(self.text, entity_types=self.entity_types)


@dataclass(frozen=True, kw_only=True)
class Glean(PromptTask):
    """Ask for entities and relations of one chunk's text that `found` lacks."""

    text: Quoted
    heading: Quoted = ""
    entity_types: Types = ENTITY_TYPES
    found: Annotated[Extraction, _in_lines] = field(default_factory=Extraction)
    name = "glean"
    reply_type = Extraction

    def extractive(self, _: CheckedEmbedder) -> Extraction:
        """Return nothing, because rules already found all that they can."""
        return Extraction()


@dataclass(frozen=True, kw_only=True)
class Condense(PromptTask):
    """Ask for a summary of the subject's descriptions in at most `limit` characters."""

    subject: Quoted
    descriptions: Annotated[tuple[str, ...], lambda texts: quoted("\n".join(f"- {line}" for line in texts))]
    limit: Annotated[int, str]
    name = "condense"
    reply_type = CondensedText

    def extractive(self, _: CheckedEmbedder) -> CondensedText:
        """Return the descriptions joined and truncated, without a language model."""
        return CondensedText(text=join(self.descriptions, limit=self.limit))
