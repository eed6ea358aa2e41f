"""Verbs: what a system can do besides answering, called by name with typed arguments."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from hgmem.builds.reading import check_built
from hgmem.errors import HGMemError, UsageError
from hgmem.services import Services, readable_corpus
from hgmem.values.systems import ArgumentInfo, Shape, VerbInfo

Arguments = TypeVar("Arguments", contravariant=True)

# A frozen dataclass, a sequence of such, or what JSON can hold.
Value: TypeAlias = Any

Note: TypeAlias = Callable[[str], object]  # receives what a caller should know besides the value

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
# Names that the command line and every method of the client use themselves.
TAKEN = frozenset(("corpus", "owner", "json", "help", "uri", "username", "database", "verbose", "debug"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoArguments:
    """The arguments of a verb that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb(Generic[Arguments]):
    """Something that a system can do besides answering: `hg.<system>.<verb>()` and `hgmem <system> <verb>`.

    `arguments` is a frozen dataclass. The type of each field is `Annotated` with a text, which is its help:
    `words: Annotated[str, "Only topics with these words."] = ""`. On the command line, fields without a default stand
    in order, the others are options; `first` names one with a default that may come first, without its name. `built`:
    it needs the system's build, and is refused where that was never made. `reads`: it writes nothing and calls no
    language model, so that whoever may read the corpus may call it by HTTP. Of a list that it gives, what names a
    `memory` and its `owner` is then for that owner alone.
    """

    name: str
    summary: str
    run: Callable[[Services, Arguments], Value]
    arguments: type[Arguments] = NoArguments  # type: ignore[assignment]
    built: bool = False
    first: str = ""
    reads: bool = False

    @property
    def info(self) -> VerbInfo:
        """What callers are told about the verb."""
        kind: Any = self.arguments
        hints = get_type_hints(kind, include_extras=True)
        arguments = tuple(_argument(field, hints[field.name]) for field in fields(kind))
        return VerbInfo(name=self.name, summary=self.summary, arguments=arguments, first=self.first, reads=self.reads)


def warned(text: str) -> None:
    """Warn of a note where nothing else shows it."""
    warnings.warn(text, stacklevel=5)


def run_verb(
    services: Services, verb: Verb[Any], *, system: str, given: Mapping[str, object], note: Note = warned
) -> Value:
    """Return what the verb gives for these arguments. `note` receives that the build is stale.

    Raises `UsageError` for an unknown or invalid one, and if `verb.built` and the corpus has no build of the system.
    What else a verb raises becomes an `HGMemError`.
    """
    arguments = _arguments(system, verb, given)
    readable_corpus(services)
    if verb.built:
        for line in check_built(services, system):
            note(line)
    try:
        return verb.run(services, arguments)
    except HGMemError:
        raise
    except Exception as error:  # another package's code
        raise HGMemError(
            f"verb {verb.name!r} of system {system!r} raised {type(error).__name__}: {error}: report this to the "
            "system's authors"
        ) from error


def check_verbs(verbs: Sequence[Verb[Any]]) -> None:
    """Raise `UsageError` for a verb that cannot be called by its name, or whose arguments are not documented."""
    seen: set[str] = set()
    for verb in verbs:
        if not isinstance(verb, Verb):
            raise UsageError(f"{verb!r} is not a Verb: declare it as one")
        if not NAME.fullmatch(verb.name):
            raise UsageError(f"invalid verb {verb.name!r}: use lowercase letters, digits and hyphens")
        if verb.name in seen:
            raise UsageError(f"it has two verbs {verb.name!r}: rename one")
        seen.add(verb.name)
        _check_arguments(verb)


def method_name(verb: str) -> str:
    """Return the name of a system or verb in Python."""
    return verb.replace("-", "_")


def _check_arguments(verb: Verb[Any]) -> None:
    kind = verb.arguments
    if not (is_dataclass(kind) and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise UsageError(f"the arguments of verb {verb.name!r} are no frozen dataclass: make {kind!r} one")
    described = verb.info.arguments
    for argument in described:
        if argument.name in TAKEN:
            raise UsageError(f"verb {verb.name!r} has an argument {argument.name!r}, which is taken: rename it")
        if not argument.help:
            raise UsageError(
                f"argument {argument.name!r} of verb {verb.name!r} has no help: annotate its type with a text, such "
                f'as Annotated[str, "What it does."]',
            )
    if verb.first and verb.first not in {argument.name for argument in described}:
        raise UsageError(f"verb {verb.name!r} has no argument {verb.first!r} to come first: name one of its own")
    many = [argument.name for argument in described if argument.required and argument.shape == "list"]
    if len(many) > 1:
        raise UsageError(f"verb {verb.name!r} has two lists without default: give {many[1]!r} a default")


def _arguments(system: str, verb: Verb[Any], given: Mapping[str, object]) -> Any:
    known = [argument.name for argument in verb.info.arguments]
    what = f"of verb {verb.name!r} of system {system!r}"
    if unknown := [name for name in given if name not in known]:
        choice = f"choose from {', '.join(known)}" if known else "it takes none"
        raise UsageError(f"unknown argument {unknown[0]!r} {what}: {choice}")
    try:
        return TypeAdapter(verb.arguments).validate_python(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        if first["type"] == "missing":
            raise UsageError(f"missing argument {name!r} {what}: pass it") from None
        raise UsageError(f"invalid argument {name!r} {what}: {first['msg']}, got {first['input']!r}") from None


def _argument(field: "Field[Any]", hint: Any) -> ArgumentInfo:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    required = field.default is MISSING and field.default_factory is MISSING
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return ArgumentInfo(
        name=field.name,
        help=next((mark for mark in marks if isinstance(mark, str)), ""),
        required=required,
        default=None if required else default,
        shape=_shape(get_args(hint)[0] if marks else hint, required=required),
    )


def _shape(kind: Any, *, required: bool) -> Shape:
    """Return how an argument is given as text: as one value, as several, or as a switch that is on or off."""
    if get_origin(kind) is Annotated:
        return _shape(get_args(kind)[0], required=required)
    if get_origin(kind) in (Union, UnionType):
        return _shape(next(one for one in get_args(kind) if one is not NoneType), required=required)
    if kind is bool and not required:
        return "switch"
    return "list" if (get_origin(kind) or kind) in (list, tuple, Sequence, set, frozenset) else "value"
