"""Options of commands that are keyword arguments in Python: each is described once, where its type is."""

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from hgmem.values.arguments import Option

Command: TypeAlias = Callable[..., None]


def options(table: type, *, defaults: Mapping[str, object] | None = None) -> Callable[[Command], Command]:
    """Return a decorator that adds an option to a command for each key of `table` that `Option` marks.

    The command gets those that were given as keyword arguments. In its help they stand before its own options that
    are keyword-only; `defaults` says there what is used instead of an option, and changes nothing.
    """
    offered = {added.name: added for added in _parameters(table, defaults or {})}

    def decorate(command: Command) -> Command:
        own = [each for each in signature(command).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        last = [each for each in own if each.kind is Parameter.KEYWORD_ONLY]
        first = [each for each in own if each not in last]

        @wraps(command)
        def called(**given: Any) -> None:
            command(**{name: value for name, value in given.items() if name not in offered or value is not None})

        called.__signature__ = signature(command).replace(parameters=[*first, *offered.values(), *last])  # type: ignore[attr-defined]
        return called

    return decorate


def _parameters(table: type, defaults: Mapping[str, object]) -> Iterator[Parameter]:
    for name, hint in get_type_hints(table, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, Option):
                text = f"{mark.help} Default: {defaults[name]}." if name in defaults else mark.help
                metavar = mark.metavar or None
                option = typer.Option(*mark.flags, metavar=metavar, help=text, min=mark.least, show_default=False)
                kind = mark.kind | None
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])
