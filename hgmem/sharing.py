"""Sharing: what holds connections or locks is one thing, in one process, however often it is copied."""

from typing import Any, ClassVar, NoReturn, Self

from hgmem.errors import UsageError


class Shared:
    """Something whose copies, deep ones too, are itself, and that can't be pickled: `instead` says what to do then.

    So whatever holds it can be copied, and shares it.
    """

    instead: ClassVar[str] = "make it anew there, or what holds it"

    def __copy__(self) -> Self:
        """Return this very thing."""
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """Return this very thing."""
        return self

    def __reduce_ex__(self, _: object) -> NoReturn:
        """Raise `UsageError` for whoever pickles it, or what holds it."""
        name = type(self).__name__
        raise UsageError(f"{name!r} can't be pickled, it holds what is open in this process: {self.instead}")
