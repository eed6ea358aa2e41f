"""Argument checks, whose errors name the argument, its value and the remedy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import category

from hgmem.errors import UsageError

LONGEST_OWNER = 200  # characters of an owner's name
_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of a pair, separators of lines


@dataclass(frozen=True, slots=True)
class Argument:
    """A named argument: `fits` checks its value, `otherwise` ends the error message.

    None means "not given", unless `optional` is False.
    """

    fits: Callable[[object], bool]
    otherwise: str
    optional: bool = True


@dataclass(frozen=True, slots=True)
class Option:
    """Marks a keyword argument that is an option of a command too: its value's name in the help, and the help.

    `flags` are its names there if those are others, `kind` its type, `least` its smallest value. `read` returns the
    argument's value for what was typed.
    """

    metavar: str
    help: str
    flags: tuple[str, ...] = ()
    kind: Any = str
    least: int | None = None
    read: Callable[[Any], object] = lambda typed: typed


def check(given: Mapping[str, object], known: Mapping[str, Argument]) -> None:
    """Check the values of known arguments and ignore other names.

    Raises `UsageError` for the first invalid value.
    """
    for name, value in given.items():
        argument = known.get(name)
        if argument is None or (value is None and argument.optional):
            continue
        if not argument.fits(value):
            raise UsageError(f"{name}={value!r} {argument.otherwise}")


def text(value: object) -> bool:
    """Whether the value is a string."""
    return isinstance(value, str)


def flag(value: object) -> bool:
    """Whether the value is a boolean."""
    return isinstance(value, bool)


def whole(value: object) -> bool:
    """Whether the value is an integer, but not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def count(value: object) -> bool:
    """Whether the value is an integer of at least 1."""
    return isinstance(value, int) and whole(value) and value >= 1


def named(value: object) -> bool:
    """Whether the value is a mapping with string keys."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def owner_name(value: object) -> bool:
    """Whether the value names an owner of memories: at most 200 characters, none of them a control character."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_OWNER:
        return False
    return not any(category(letter) in _UNSHOWN for letter in value)


OWNER = Argument(
    owner_name,
    f"is not an owner: use 1 to {LONGEST_OWNER} characters without control characters, or omit it",
)
UID = Argument(text, "is not a memory uid: pass one, such as answer.memory", optional=False)
STEP = Argument(count, "is not a valid step: use an integer of at least 1")
