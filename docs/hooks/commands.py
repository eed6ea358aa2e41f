"""The command line as Markdown, read off the Typer application itself."""

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from typer.main import get_command

from hgmem.cli import EPILOG, app


def reference() -> str:
    """Return a section for the options of every command, then one for each command, in the order of `--help`."""
    front = get_command(app)
    parts = ["## Global options", f"```text\n{usage('hgmem', front)} COMMAND …\n```", *tables(front), EPILOG]
    for name, command in named(front, "hgmem"):
        parts += [f"## {name}", prose(command.help or ""), f"```text\n{usage(name, command)}\n```", *tables(command)]
    return "\n\n".join(parts)


def named(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its whole name."""
    for part in command.list_commands(None):
        inner = command.get_command(None, part)
        if hasattr(inner, "commands"):
            yield from named(inner, f"{name} {part}")
        else:
            yield f"{name} {part}", inner


def usage(name: str, command: Any) -> str:
    """Return the command as it is typed."""
    arguments = [_placeholder(each) for each in _of(command, "argument")]
    return " ".join([name, *(["[OPTIONS]"] if _of(command, "option") else []), *arguments])


def tables(command: Any) -> Iterator[str]:
    """Yield a table of the arguments and one of the options, where there are such."""
    for kind, row in (("argument", _argument), ("option", _option)):
        rows = [row(each) for each in _of(command, kind)]
        if rows:
            yield "\n".join([f"| {kind} | |", "|---|---|", *rows])


def prose(text: str) -> str:
    """Return a docstring's paragraphs, safe from Markdown: what stands in capitals and in brackets stays."""
    return cleandoc(text).replace("<", "&lt;")


def _of(command: Any, kind: str) -> list[Any]:
    return [each for each in command.params if each.param_type_name == kind and not getattr(each, "hidden", False)]


def _placeholder(argument: Any) -> str:
    named_so = argument.metavar or str(argument.name).upper()
    return named_so if argument.required or named_so.startswith("[") else f"[{named_so}]"


def _argument(argument: Any) -> str:
    return f"| `{_placeholder(argument)}` | {_cell(argument.help)} |"


def _option(option: Any) -> str:
    names = " ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = f" `{option.metavar}`" if option.metavar and not option.is_flag else ""
    wanted = " **Required.**" if option.required else ""
    again = " Repeatable." if option.multiple and "Repeatable" not in (option.help or "") else ""
    default = option.default
    shown = f" Default: `{default}`." if isinstance(default, str | int) and default and not option.is_flag else ""
    return f"| {names}{value} | {_cell(option.help)}{again}{shown}{wanted} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")
