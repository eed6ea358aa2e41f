"""Arguments: what is given by name, held against what it has to be; an error names it, its value and the remedy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from hgmem.errors import UsageError


@dataclass(frozen=True, slots=True)
class Argument:
    """What may be given by a name: `fits` decides, `otherwise` ends the error, such as "is no step: …".

    None stands for what is not given, unless the argument is not `optional`.
    """

    fits: Callable[[object], bool]
    otherwise: str
    optional: bool = True


def check(given: Mapping[str, object], known: Mapping[str, Argument]) -> None:
    """Raise `UsageError` for the first value that does not fit its argument; other names are left alone."""
    for name, value in given.items():
        argument = known.get(name)
        if argument is None or (value is None and argument.optional):
            continue
        if not argument.fits(value):
            raise UsageError(f"{name}={value!r} {argument.otherwise}")


def text(value: object) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def flag(value: object) -> bool:
    """Whether it is True or False."""
    return isinstance(value, bool)


def whole(value: object) -> bool:
    """Whether it is a whole number; True is none, though Python counts with it."""
    return isinstance(value, int) and not isinstance(value, bool)


def count(value: object) -> bool:
    """Whether it is a whole number from 1."""
    return isinstance(value, int) and whole(value) and value >= 1


def number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number; True is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def named(value: object) -> bool:
    """Whether it maps names to values."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


UID = Argument(text, "is no uid: give that of a memory, such as answer.memory", optional=False)
STEP = Argument(count, "is no step: the first one is 1")
