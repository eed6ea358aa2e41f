"""Lenient validation: data as models give them, read as the type that was asked for, and notes of what was lost."""

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError

from hgmem.models.reply import Leniently
from hgmem.text.segmentation import sound

Model = TypeVar("Model", bound=BaseModel)

_WHOLE = re.compile(r"[\s\[({#\"']*(?:[^\W\d_]+[\s_:#.\[]*)?(-?\d{1,15})(?:\.0+)?[\s\])}\"'.]*")
_LARGEST = 10**15
_NAMES_APART = re.compile(r"[,;\n]+")
_LINES_APART = re.compile(r"\n+")
_NUMBERS_APART = re.compile(r"[,;\n]+|\band\b")
_BULLET = re.compile(r"\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)?")
_CODE = re.compile(r"(\d(?:\.\d)?) (.+)")
_NO_WORD = re.compile(r"(?:[^\w.]|_)+")
# Which field of an object holds it, where a plain text or number is wanted; best first.
_TEXT_FIELDS = (
    *("subquery", "sub_query", "query", "question", "name", "entity", "entity_name", "title", "text", "concern"),
    *("statement", "description", "content", "desc", "keyword", "summary", "relationship", "relation", "predicate"),
)
_NUMBER_FIELDS = ("index", "id", "point", "point_index", "point_id", "number", "chunk")
_PLAINLY = Leniently()
_IGNORED = {ord(character): None for character in "_- "}


class MismatchError(ValueError):
    """A value cannot be read as the expected type."""


def by_field(model: type[BaseModel], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by the names of the model's fields, without nulls and unknown fields."""
    given: dict[str, Any] = {}
    for key, value in data.items():
        if value is not None:
            given.setdefault(plain(str(key)), value)
    names = _names(model)
    found = {name: given.pop(own) for name, own, _ in names if own in given}
    for name, _, others in names if given else ():
        said = next((word for word in others if word in given), None)
        if said is not None and name not in found:
            found[name] = given.pop(said)
    return found


@cache
def _names(model: type[BaseModel]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return each field's name, then its own name and the other names that models use, as names are compared."""
    aliases = {name: field.validation_alias for name, field in model.model_fields.items()}
    others = {name: alias.choices[1:] if isinstance(alias, AliasChoices) else () for name, alias in aliases.items()}
    return tuple((name, plain(name), tuple(plain(str(other)) for other in others[name])) for name in aliases)


def required(model: type[BaseModel]) -> list[str]:
    """Return the names of the fields without a default."""
    return [name for name, field in model.model_fields.items() if field.is_required()]


def plain(name: str) -> str:
    """Return a name as names are compared: `Sub-Queries` and `sub_queries` are one."""
    return name.casefold().translate(_IGNORED)


def item_of(kind: Any) -> Any:
    """Return the type of a list's items, or None if the type is not a list."""
    arguments = get_args(kind)
    if get_origin(kind) is list or (get_origin(kind) is tuple and arguments[1:] == (Ellipsis,)):
        return arguments[0]
    return None


def validated(model: type[Model], data: Mapping[str, Any]) -> tuple[Model, list[str]]:
    """Return the data as the model with notes on what was left out, or raise `MismatchError`."""
    reading = _Reading()
    return reading.record(model, data, ""), reading.notes


def is_text(value: Any) -> bool:
    """Whether a value can stand where a text is wanted."""
    try:
        return bool(_text(value).strip())
    except MismatchError:
        return False


class _Reading:
    """One reply while it is read. `at` is where in it something stands, for the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def record(self, model: type[Model], data: Any, at: str) -> Model:
        given = by_field(model, _mapping(model, data))
        if not given:
            raise MismatchError(f"it has none of the fields {', '.join(model.model_fields)}")
        values: dict[str, Any] = {}
        for name, field in model.model_fields.items():
            if name not in given:
                if field.is_required():
                    raise MismatchError(f"{name} is missing")
                continue
            place = f"{at}, {name}" if at else name
            try:
                how = next((mark for mark in field.metadata if isinstance(mark, Leniently)), _PLAINLY)
                values[name] = self.value(field.annotation, given[name], place, how=how)
            except MismatchError as error:
                # A choice is what a reply is about: guessing it would be answering in the model's place.
                if field.is_required() or (get_origin(field.annotation) is Literal and not how.minor):
                    raise MismatchError(f"{name}: {error}") from error
                self.notes.append(f"{place}: {error}, so {field.get_default(call_default_factory=True)!r} is used")
        return self._built(model, values, at)

    def value(self, kind: Any, value: Any, at: str, *, how: Leniently = _PLAINLY) -> Any:
        kind = _bare(kind)
        item = item_of(kind)
        if item is not None:
            items = self._items(item, value, at, how=how)
            return items if get_origin(kind) is list else tuple(items)
        if get_origin(kind) is Literal:
            return _choice(get_args(kind), value, how.words)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.record(kind, value, at)
        read = _SCALARS.get(kind)
        if read is not None:
            return read(value)
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            raise MismatchError(error.errors()[0]["msg"]) from error

    def _items(self, kind: Any, value: Any, at: str, *, how: Leniently) -> list[Any]:
        kept: list[Any] = []
        for number, element in enumerate(_elements(_bare(kind), value, sentences=how.sentences), 1):
            if element is None and not how.aligned:
                continue
            try:
                kept.append(self.value(kind, "" if element is None else element, f"{at} {number}"))
            except MismatchError as error:
                self.notes.append(f"{at} {number} was dropped: {error}")
                kept += [""] if how.aligned else []
        return kept

    def _built(self, model: type[Model], values: dict[str, Any], at: str) -> Model:
        """Return the record, with defaults for values that violate the constraints of their field."""
        while True:
            try:
                return model.model_validate(values)
            except ValidationError as error:
                first = error.errors()[0]
                name = str(first["loc"][0]) if first["loc"] else ""
                if name not in values or model.model_fields[name].is_required():
                    raise MismatchError(f"{name}: {first['msg']}".removeprefix(": ")) from error
                place = f"{at}, {name}" if at else name
                self.notes.append(f"{place}: {_brief(values.pop(name))} was dropped: {first['msg']}")


def _bare(kind: Any) -> Any:
    """Return a type without its annotations, and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        kinds = [each for each in get_args(kind) if each is not NoneType]
        return _bare(kinds[0]) if len(kinds) == 1 else kind
    return kind


def _mapping(model: type[BaseModel], data: Any) -> Mapping[str, Any]:
    """Return what a record was given as: an object, one within a text, or the one text that it needs."""
    data = _decoded(data)
    if isinstance(data, Mapping):
        return data
    needed = required(model)
    if isinstance(data, str) and data.strip() and len(needed) == 1 and model.model_fields[needed[0]].annotation is str:
        return {needed[0]: data}
    raise MismatchError(f"{_brief(data)} is not an object")


def _decoded(value: Any) -> Any:
    """Return the object or list that a text holds as JSON, any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return value
    return value


def _elements(kind: Any, value: Any, *, sentences: bool) -> list[Any]:
    """Return what a list was given as: a list, one of its items, or a text that names several."""
    value = _decoded(value)
    if isinstance(value, list):
        return value
    if isinstance(value, bool):
        raise MismatchError(f"{_brief(value)} is not a list")
    if not isinstance(value, str) or (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return [value]
    if kind is int:
        return [part for part in _NUMBERS_APART.split(value.strip("[](){} ")) if part.strip()]
    parts = (_LINES_APART if sentences or "\n" in value else _NAMES_APART).split(value)
    return [_BULLET.sub("", part, count=1).strip() for part in parts if part.strip()]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, Mapping):
        return _text(_within(value, _TEXT_FIELDS, "text"))
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return sound(" ".join(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise MismatchError(f"{_brief(value)} is not text")


def _whole(value: Any) -> int:
    if isinstance(value, Mapping):
        return _whole(_within(value, _NUMBER_FIELDS, "number"))
    if isinstance(value, list) and len(value) == 1:
        return _whole(value[0])
    if isinstance(value, str):
        digits = _WHOLE.fullmatch(value)
        value = int(digits[1]) if digits else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return value
    raise MismatchError(f"{_brief(value)} is not an integer")


def _number(value: Any) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value.replace(",", ".") if isinstance(value, str) else value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise MismatchError(f"{_brief(value)} is not a number")


def _flag(value: Any) -> bool:
    said = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(str(value).casefold())
    if said is None:
        raise MismatchError(f"{_brief(value)} is neither true nor false")
    return said


_SCALARS: dict[Any, Any] = {str: _text, int: _whole, float: _number, bool: _flag}


def _within(data: Mapping[str, Any], keys: tuple[str, ...], wanted: str) -> Any:
    """Return the plain value of an object that stands where a plain value is wanted."""
    given = {plain(str(key)): value for key, value in data.items() if isinstance(value, str | int | float)}
    for word in map(plain, keys):
        if word in given:
            return given[word]
    if len(data) == 1 and given:
        return next(iter(given.values()))
    raise MismatchError(f"{_brief(data)} is not a valid {wanted}")


def _choice(options: tuple[Any, ...], value: Any, words: Mapping[str, tuple[str, ...]]) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    said = _NO_WORD.sub(" ", str(value).casefold()).strip(" ._")
    chosen = {phrase: option for option in options for phrase in (*words.get(str(option), ()), str(option).casefold())}
    if said in chosen:
        return chosen[said]
    code = _CODE.fullmatch(said)  # "2.1 local investigation": number and words have to agree
    if code and code[2] in chosen and chosen.get(code[1]) == chosen[code[2]]:
        return chosen[code[2]]
    raise MismatchError(f"{_brief(value)} is not one of {', '.join(map(str, options))}")


def _brief(value: Any, most: int = 60) -> str:
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}…"
