"""Shared objects: resources of one process that copying does not duplicate."""

from typing import Any, ClassVar, NoReturn, Self

from hgmem.errors import UsageError


class Shared:
    """An object whose copies, deep ones too, are itself, and that can't be pickled. `instead` is the remedy.

    Objects that hold it can be copied and then share it.
    """

    instead: ClassVar[str] = "create it there, or create there what holds it"

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """Return the object itself."""
        return self

    def __reduce_ex__(self, _: object) -> NoReturn:
        """Raise `UsageError`, because the object can't be pickled."""
        name = type(self).__name__
        raise UsageError(f"{name!r} cannot be pickled because it holds open connections: {self.instead}")
