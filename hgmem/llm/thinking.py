"""Thinking aloud: what a model writes between `<think>` tags before, or between, what it says."""

import re

_TAG = re.compile(r"<(?P<closing>/?)(?:think|thinking|reasoning)\s{0,4}>", re.IGNORECASE)
_LONGEST = len("</reasoning    >")


def without_thinking(text: str) -> str:
    """Return what a reply says, without what its model thought aloud."""
    visible = Visible(inside=starts_inside(text))
    return (visible.feed(text) + visible.end()).rstrip()


def starts_inside(text: str) -> bool:
    """Whether a text begins with thinking that was opened before it: many chat templates write the first tag."""
    first = _TAG.search(text)
    return first is not None and bool(first["closing"])


class Visible:
    """What is to be seen of a text that comes in pieces; tags may be split over pieces.

    A tag opens at the beginning of a line alone, so that an answer may speak of tags. With `inside` the text is
    taken to begin with thinking; should no tag end it, it was none, and comes at the end.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._inside = inside
        self._assumed: list[str] | None = [] if inside else None
        self._held = ""  # what may be the beginning of a tag
        self._begun = False
        self._blank = True  # whether the line so far is

    def feed(self, piece: str) -> str:
        """Return what can be seen of the text with this piece and couldn't before."""
        text = self._held + piece
        shown: list[str] = []
        at = 0
        for tag in _TAG.finditer(text):
            shown += [self._passed(text[at : tag.start()]), self._turned(tag)]
            at = tag.end()
        maybe = text.rfind("<", max(at, len(text) - _LONGEST))
        end = len(text) if maybe < 0 or ">" in text[maybe:] else maybe
        shown.append(self._passed(text[at:end]))
        self._held = text[end:]
        return "".join(shown)

    def end(self) -> str:
        """Return what was held back, now that nothing else comes."""
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
