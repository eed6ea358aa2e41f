"""Options of commands that are keyword arguments in Python: each is described once, where its type is."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from hgmem.values.arguments import Option

Command: TypeAlias = Callable[..., None]
AccessLogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of the access log. Default: one among the logs of the user."),
]
AccessDaysOption: TypeAlias = Annotated[int, typer.Option(metavar="N", min=1, help="Days that the access log is kept.")]


def options(table: type, *, defaults: Mapping[str, object] | None = None) -> Callable[[Command], Command]:
    """Return a decorator that adds an option to a command for each key of `table` that `Option` marks.

    The command gets those that were given as keyword arguments. In its help they stand before its own options that
    are keyword-only; `defaults` says there what is used instead of an option, and changes nothing.
    """
    marks: dict[str, Option] = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        marks.update((name, mark) for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Option))
    added = [_parameter(name, mark, (defaults or {}).get(name)) for name, mark in marks.items()]

    def decorate(command: Command) -> Command:
        own = [each for each in signature(command).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        last = [each for each in own if each.kind is Parameter.KEYWORD_ONLY]
        first = [each for each in own if each not in last]

        @wraps(command)
        def called(**given: Any) -> None:
            typed = {name: given.pop(name) for name in marks}
            command(**given, **{name: marks[name].read(text) for name, text in typed.items() if text is not None})

        called.__signature__ = signature(command).replace(parameters=[*first, *added, *last])  # type: ignore[attr-defined]
        return called

    return decorate


def _parameter(name: str, mark: Option, default: object) -> Parameter:
    text = mark.help if default is None else f"{mark.help} Default: {default}."
    option = typer.Option(*mark.flags, metavar=mark.metavar or None, help=text, min=mark.least, show_default=False)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[mark.kind | None, option])
