"""From what a file gives as evidence to exact words in a document."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hgmem.evaluation.data_set import Evidence, shortened
from hgmem.evaluation.formats.own_lines import EvidenceLine
from hgmem.text.segmentation import Span
from hgmem.values.inputs import Document


class UnknownEvidenceError(ValueError):
    """Evidence that a data set does not hold. The message is what a person has to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where evidence may stand: documents by id, messages by conversation and id, chunks by the caller's id."""

    documents: Mapping[str, Document]
    messages: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    chunks: Mapping[str, Evidence] = field(default_factory=dict)

    def resolve(self, line: EvidenceLine) -> Evidence:
        """Return the evidence that a line gives. Raises `UnknownEvidenceError`."""
        if line.chunk:
            if line.chunk not in self.chunks:
                raise UnknownEvidenceError(f"chunk {shortened(line.chunk)} is not in the graph")
            return self.chunks[line.chunk]
        return self._message(line) if line.message else self._words(line)

    def _message(self, line: EvidenceLine) -> Evidence:
        conversation = line.conversation or self._only({name for name, _ in self.messages}, "conversation")
        span = self.messages.get((conversation, line.message))
        if span is None:
            raise UnknownEvidenceError(f"message {shortened(line.message)} is not in {shortened(conversation)}")
        return at_place(self.documents[conversation], span, source=line.message)

    def _words(self, line: EvidenceLine) -> Evidence:
        name = line.document or self._only(set(self.documents), "document")
        if name not in self.documents:
            raise UnknownEvidenceError(f"document {shortened(name)} does not exist")
        document = self.documents[name]
        return _given_place(document, line) if line.start is not None else _only_place(document, line.quote)

    def _only(self, names: set[str], what: str) -> str:
        if len(names) != 1:
            raise UnknownEvidenceError(f"it names no {what}, and there are {len(names)}")
        return next(iter(names))


def at_place(document: Document, span: Span, *, source: str = "") -> Evidence:
    """Return the words of a document at a place as evidence."""
    return Evidence(
        document=document.id, text=document.text[slice(*span)], start=span.start, end=span.end, source=source
    )


def places_of(quote: str, text: str) -> list[Span]:
    """Return where a quote stands in a text, any run of blanks and line breaks being equal to any other."""
    words = quote.split()
    pattern = r"\s+".join(map(re.escape, words))
    return [Span(*match.span()) for match in re.finditer(pattern, text)] if words else []


def first_place(document: Document, quote: str) -> Evidence | None:
    """Return the evidence where a quote first stands in a document."""
    return next((at_place(document, span) for span in places_of(quote, document.text)), None)


def _only_place(document: Document, quote: str) -> Evidence:
    found = places_of(quote, document.text)
    if not found:
        raise UnknownEvidenceError(f"quote {shortened(quote)} is not in {shortened(document.id)}")
    if len(found) > 1:
        raise UnknownEvidenceError(f"quote {shortened(quote)} is {len(found)} times in the document: add start")
    return at_place(document, found[0])


def _given_place(document: Document, line: EvidenceLine) -> Evidence:
    start, end = line.start or 0, line.end or 0
    if line.quote:
        return _quote_at(document, line, start)
    if end > len(document.text) or not document.text[start:end].strip():
        raise UnknownEvidenceError(f"{shortened(document.id)} has no words at {start} to {end}")
    return at_place(document, Span(start, end))


def _quote_at(document: Document, line: EvidenceLine, start: int) -> Evidence:
    """Return the quote at its place. The offset has to be right: it shows that the text is the one that was read."""
    found = places_of(line.quote, document.text)
    span = next((one for one in found if one.start == start and line.end in (None, one.end)), None)
    if span is None:
        where = f"at {found[0].start} to {found[0].end}: correct start" if found else f"not in {shortened(document.id)}"
        raise UnknownEvidenceError(f"quote {shortened(line.quote)} is {where}")
    return at_place(document, span)
