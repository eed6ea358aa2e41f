"""Reply parsing: the text of a completion, read as the reply type of its task."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Self, SupportsIndex, TypeVar

from pydantic import BaseModel

from hgmem.models.llm.lenient_validation import MismatchError, by_field, is_text, item_of, plain, required, validated
from hgmem.models.reply import Reply, TextReply
from hgmem.text.language import counted
from hgmem.text.segmentation import sound

_BRACKET = re.compile(r"[{\[}\]]")
_DEEPEST = 100  # nesting depth; replies have four levels
_CURLY = str.maketrans("“”„", '"""')
_LOOKS_PER_CHARACTER = 30  # repairable JSON takes 2 to 6; output of a looping model takes thousands
_LOOKS = 20_000
_TAG = re.compile(r"<(?P<closing>/?)(?:think|thinking|reasoning)\s{0,4}>", re.IGNORECASE)
_LONGEST = len("</reasoning    >")
ReplyT = TypeVar("ReplyT", bound=Reply)
_START = re.compile(r"[{\[]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{\[}\]]', re.S)
_DECODER = json.JSONDecoder(strict=False)
_MOST_REPAIRED = 8  # each costs a scan of the rest of the text
_MOST_NOTES = 100
_DEEPEST_WRAPPER = 4
_WRAPPERS = ("properties", "arguments", "parameters")  # other keys may stand beside these
_SCHEMA_WORDS = {"$ref", "allOf", "anyOf", "const", "enum", "items", "oneOf"}
_SCHEMA_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


class _Watched(str):
    """A string that counts what is read of it, because json_repair scans back and forth without a limit.

    `left` is the one number of characters that may still be read of it and of its parts.
    """

    __slots__ = ("left",)
    left: list[int]

    @classmethod
    def of(cls, text: str, left: list[int]) -> Self:
        watched = cls(text)
        watched.left = left
        return watched

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        self.left[0] -= len(found)
        if self.left[0] < 0:
            raise TimeoutError
        return self.of(found, self.left) if isinstance(key, slice) else found

    def __add__(self, other: str) -> str:
        return self.of(super().__add__(other), self.left)


def _repaired(text: str, left: list[int]) -> list[Any]:
    """Return the objects and lists that broken JSON was meant to contain, or none if unclear."""
    import json_repair  # few replies are broken

    if _depth(text) > _DEEPEST:
        return []
    if '"' not in text:
        text = text.translate(_CURLY)
    try:
        # Serialised once, so that no watched string remains in the value.
        value = json.loads(json_repair.repair_json(_Watched.of(text, left), skip_json_loads=True))
    except Exception:  # JSON that crashes the repair can't be repaired
        return []
    values = value if isinstance(value, list) and text.startswith("{") else [value]
    return [each for each in values if isinstance(each, dict | list)]


def _depth(text: str) -> int:
    """Return the maximum number of brackets open at once."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] in "{[" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


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
        if not self._inside and not self._blank:
            return self._passed(tag[0])
        self._assumed = None
        self._inside = not tag["closing"]
        return ""

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


class UnreadableError(ValueError):
    """A text is not a reply of the requested type. The message can be sent back to the model."""


def parse_reply(reply_type: type[ReplyT], text: str) -> ReplyT:
    """Return the reply in a completion's text, with notes on repairs and omissions.

    Unreadable list items are dropped, but no field is. Raises `UnreadableError` with the problem.
    """
    text = sound(text)
    try:
        if issubclass(reply_type, TextReply):
            return reply_type.model_validate({"text": _plain_text(text)})
        return _structured(reply_type, text)
    except RecursionError:
        raise UnreadableError("the reply is nested too deeply") from None


def _plain_text(text: str) -> str:
    """Return a text without thinking, and without a code fence or JSON object around all of it."""
    text = without_thinking(text).strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2 and "\n" in text:
        text = text[text.index("\n") + 1 : -3].strip()
    if text.startswith("{"):
        try:
            data = _DECODER.decode(text)
        except ValueError:
            data = {}
        for key, value in data.items() if len(data) == 1 else ():
            if plain(key) in ("answer", "text") and isinstance(value, str):
                text = sound(value).strip()
    if not text:
        raise UnreadableError("the reply was empty")
    return text


def _structured(reply_type: type[ReplyT], text: str) -> ReplyT:
    found = _FoundJson(reply_type, text)
    objects = found.objects or found.lists
    if not objects:
        raise UnreadableError(_missing(reply_type, found))
    together, left = _united(reply_type, objects)
    try:
        reply, notes = validated(reply_type, together)
    except MismatchError as error:
        reply, notes = _first(reply_type, objects, error)
        left = len(objects) - 1
    if left:
        notes.insert(0, f"{counted(left, 'further JSON object was', 'further JSON objects were')} dropped")
    if found.repaired:
        notes.insert(0, "the JSON was repaired")
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"… and {len(notes) - _MOST_NOTES:,} more notes"]
    return reply.noted(notes) if notes else reply


def _missing(reply_type: type[Reply], found: "_FoundJson") -> str:
    wanted = ", ".join(reply_type.model_fields)
    if found.empty:
        return "the reply was empty"
    if found.schema:
        return f"the reply was the JSON schema itself, not an object that follows it, with {wanted}"
    if found.json:
        return f"the JSON has none of the fields wanted: {wanted}"
    return f"the reply holds no JSON object with {wanted}"


def _united(reply_type: type[Reply], objects: list[dict[str, Any]]) -> tuple[dict[str, Any], int]:
    """Merge the objects that share no field. Return the result and the number of objects left out."""
    together: dict[str, Any] = {}
    left = 0
    for each in objects:
        fields = by_field(reply_type, each)
        if fields.keys().isdisjoint(together):
            together.update(fields)
        else:
            left += 1
    return together, left


def _first(reply_type: type[ReplyT], objects: list[dict[str, Any]], error: MismatchError) -> tuple[ReplyT, list[str]]:
    """Return the first object that is a valid reply alone.

    Raises `UnreadableError` with the error of the merged objects if there is none.
    """
    for each in objects if len(objects) > 1 else ():
        try:
            return validated(reply_type, each)
        except MismatchError:
            continue
    raise UnreadableError(str(error)) from error


class _FoundJson:
    """The JSON in a text that has fields of the reply. `objects` take precedence over `lists`."""

    def __init__(self, reply_type: type[Reply], text: str) -> None:
        self.reply_type = reply_type
        self.objects: list[dict[str, Any]] = []
        self.lists: list[dict[str, Any]] = []
        self.json = self.repaired = self.schema = False
        self.empty = not text.strip()
        try:
            self._keep(_DECODER.decode(text.strip()))
        except (ValueError, RecursionError):
            visible = without_thinking(text)
            self.empty = not visible
            self._search(visible)

    def _search(self, text: str) -> None:
        at = tries = 0
        left = [_LOOKS_PER_CHARACTER * len(text) + _LOOKS]
        while start := _START.search(text, at):
            begin = start.start()
            try:
                value, at = _DECODER.raw_decode(text, begin)
                self._keep(value)
            except (ValueError, RecursionError):
                tries += 1
                if tries > _MOST_REPAIRED:
                    return
                end = _closing(text, begin)
                matched = [self._keep(value) for value in _repaired(text[begin:end], left)]
                self.repaired = self.repaired or any(matched)
                at = end if any(matched) else begin + 1

    def _keep(self, value: Any) -> bool:
        """Keep a value that has data of the reply, and return whether it was kept."""
        self.json = self.json or isinstance(value, dict | list)
        matched = list(self._unwrapped(value))
        if isinstance(value, dict):
            self.objects += matched
        elif not self.lists:
            self.lists += matched
        return bool(matched)

    def _unwrapped(self, value: Any, deep: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the objects with fields of the reply, unwrapped from other objects."""
        if deep > _DEEPEST_WRAPPER:
            return
        if isinstance(value, list):
            own = {plain(name) for name in self.reply_type.model_fields}
            whole = [item for item in value if isinstance(item, dict) and not own.isdisjoint(map(plain, item))]
            matched = [each for item in whole for each in self._unwrapped(item, deep + 1)]
            yield from matched or _listed(self.reply_type, value)
        elif isinstance(value, dict):
            known = bool(by_field(self.reply_type, value))
            if _is_schema(value, known=known):
                self.schema = True
            elif known:
                yield value
            else:
                inner = [value[key] for key in _WRAPPERS if key in value] or list(value.values())
                yield from self._unwrapped(inner[0], deep + 1) if len(inner) == 1 else ()


def _listed(reply_type: type[Reply], items: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a bare list as the first list field of the reply whose items look similar.

    Texts are such items only where the reply has no list of records.
    """
    kinds = {name: item_of(field.annotation) for name, field in reply_type.model_fields.items()}
    records = {n: k for n, k in kinds.items() if isinstance(k, type) and issubclass(k, BaseModel)}
    first = next((item for item in items if isinstance(item, dict)), {})
    matched = {name: by_field(kind, first).keys() for name, kind in records.items()}
    fitting = [name for name, kind in records.items() if matched[name] and matched[name] >= set(required(kind))]
    fitting += [name for name in matched if matched[name]]
    if items and not records and all(map(is_text, items)):
        fitting += [name for name, kind in kinds.items() if kind is str]
    for name in fitting[:1]:
        yield {name: items}


def _is_schema(value: Mapping[str, Any], *, known: bool) -> bool:
    """Whether an object is a JSON schema, echoed instead of data."""
    properties = value.get("properties")
    if isinstance(properties, dict) and properties and all(map(_describes, properties.values())):
        return True
    return not known and ("$schema" in value or "$defs" in value)


def _describes(value: Any) -> bool:
    """Whether the value of a property is a schema of that property."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return bool(_SCHEMA_WORDS & value.keys()) or (isinstance(kind, str) and kind in _SCHEMA_TYPES)


def _closing(text: str, begin: int) -> int:
    """Return where the bracket at `begin` closes, or the end of the text if it never does."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth <= 0:
                return token.end()
    return len(text)
