"""Thinking tags: text that models write between `<think>` tags before or within a reply."""

import re

_TAG = re.compile(r"<(?P<closing>/?)(?:think|thinking|reasoning)\s{0,4}>", re.IGNORECASE)
_LONGEST = len("</reasoning    >")


def without_thinking(text: str) -> str:
    """Return a reply's text without the model's thinking."""
    visible = Visible(inside=starts_inside(text))
    return (visible.feed(text) + visible.end()).rstrip()


def starts_inside(text: str) -> bool:
    """Whether a text begins inside a thinking block: many chat templates write the opening tag themselves."""
    first = _TAG.search(text)
    return first is not None and bool(first["closing"])


class Visible:
    """A filter that removes thinking from streamed text, even if a tag is split over pieces.

    Only a tag at the start of a line opens a block, so answers may mention tags. With `inside`, the text begins as
    thinking. If no tag closes it, `end` returns it as ordinary text.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._inside = inside
        self._assumed: list[str] | None = [] if inside else None
        self._held = ""  # a possible beginning of a tag
        self._begun = False
        self._blank = True  # whether the line is blank so far

    def feed(self, piece: str) -> str:
        """Return the visible text that this piece adds."""
        text = self._held + piece
        parts: list[str] = []
        at = 0
        for tag in _TAG.finditer(text):
            parts += [self._passed(text[at : tag.start()]), self._turned(tag)]
            at = tag.end()
        maybe = text.rfind("<", max(at, len(text) - _LONGEST))
        end = len(text) if maybe < 0 or ">" in text[maybe:] else maybe
        parts.append(self._passed(text[at:end]))
        self._held = text[end:]
        return "".join(parts)

    def end(self) -> str:
        """Return the text that was held back. Call it after the last piece."""
        last, self._held = self._passed(self._held), ""
        if self._inside and self._assumed is not None:
            self._inside = False
            return self._passed("".join(self._assumed))
        return last

    def _turned(self, tag: re.Match[str]) -> str:
        if self._inside:
            self._assumed = None
            self._inside = not tag["closing"]
            return ""
        if self._blank:
            self._inside = not tag["closing"]
            return ""
        return self._passed(tag[0])

    def _passed(self, text: str) -> str:
        if self._inside:
            if self._assumed is not None:
                self._assumed.append(text)
            return ""
        if not self._begun:
            text = text.lstrip()
        if text:
            self._begun = True
            line = text.rpartition("\n")
            self._blank = (self._blank or bool(line[1])) and not line[2].strip()
        return text
