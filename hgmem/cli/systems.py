"""`systems`, and `hgmem SYSTEM VERB`: what a system can do besides answering, with the options that it describes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from typer.main import get_group

from hgmem.cli.front import DEFAULT_CORPUS, CorpusOption, JsonOption, OwnerOption, connected
from hgmem.cli.lists import hidden_verbs, table, ways
from hgmem.cli.output import note, one_line
from hgmem.cli.render import cited, print_result
from hgmem.errors import UsageError
from hgmem.values.as_json import written
from hgmem.values.records import CitedText
from hgmem.values.systems import ArgumentInfo, SystemInfo, VerbInfo

app = typer.Typer(rich_markup_mode=None)


@app.command()
def systems(as_json: JsonOption = False) -> None:
    """List the systems that can answer, with their recipes.

    What else a system can do, its verbs, are commands: `hgmem SYSTEM VERB`. Builds that systems read come
    last. Other packages add systems by the entry point `hgmem.systems`. No server is needed.
    """
    from hgmem.client.inspection import builds
    from hgmem.client.inspection import systems as known

    found, read = known(), builds()
    print_result(found, ways(found), *(f"hgmem build {one.name}: {one.summary}" for one in read), as_json=as_json)
    note(*hidden_verbs((*found, *read)))


def group(name: str) -> Any:
    """Return the command of a system, with its verbs as commands, or None if there is no such system."""
    from hgmem.client.verbs import with_verbs

    system = with_verbs(name)
    if system is None:
        return None
    app = typer.Typer(name=name, help=system.summary, no_args_is_help=True, rich_markup_mode=None)
    for verb in system.verbs:
        app.command(verb.name)(_command(system, verb))
    return get_group(app)


def _command(system: SystemInfo, verb: VerbInfo) -> Callable[..., None]:
    def called(context: typer.Context, corpus: str, owner: str | None, as_json: bool, **given: Any) -> None:
        arguments = {name: value for name, value in given.items() if value is not None}
        with connected(context, corpus, **({"owner": owner} if owner is not None else {})) as client:
            found = getattr(client.verbs(system.name, note=note), verb.name.replace("-", "_"))(**arguments)
        _print(found, what=f"verb {verb.name!r} of system {system.name!r}", as_json=as_json)

    called.__doc__ = verb.summary
    called.__signature__ = Signature(list(_parameters(verb)))  # type: ignore[attr-defined]
    return called


def _parameters(verb: VerbInfo) -> Iterator[Parameter]:
    """Yield the parameters that Typer reads: arguments without a default in order, then options."""
    yield _parameter("context", typer.Context)
    for argument in sorted(verb.arguments, key=lambda one: not one.required):
        if argument.required:
            kind = list[str] if argument.shape == "list" else str
            typed = typer.Argument(metavar=argument.name.upper(), help=argument.help)
            yield _parameter(argument.name, Annotated[kind, typed])
        elif argument.name == verb.first:
            typed = typer.Argument(metavar=f"[{argument.name.upper()}]", help=argument.help, show_default=False)
            yield _parameter(argument.name, Annotated[str | None, typed], default=None)
        else:
            yield _parameter(argument.name, _option(argument), default=None)
    yield _parameter("corpus", CorpusOption, default=DEFAULT_CORPUS)
    yield _parameter("owner", OwnerOption, default=None)
    yield _parameter("as_json", JsonOption, default=False)


def _option(argument: ArgumentInfo) -> Any:
    flag = argument.name.replace("_", "-")
    unset = argument.default in ("", None, (), [])
    text = argument.help if unset else f"{argument.help} Default: {argument.default}."
    if argument.shape == "switch":
        text = f"{argument.help} Default: {'on' if argument.default else 'off'}."
        return Annotated[bool | None, typer.Option(f"--{flag}/--no-{flag}", help=text, show_default=False)]
    kind = list[str] | None if argument.shape == "list" else str | None
    more = " Repeatable." if argument.shape == "list" else ""
    return Annotated[kind, typer.Option(f"--{flag}", metavar="VALUE", help=f"{text}{more}", show_default=False)]


def _parameter(name: str, annotation: Any, *, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _print(found: object, *, what: str, as_json: bool) -> None:
    try:
        value = json.loads(written(found))
    except TypeError as error:
        raise UsageError(f"{what} gave what cannot be shown ({error}): report this to the system's authors") from None
    parts = cited(found) if isinstance(found, CitedText) else _for_people(value)
    print_result(value, *parts, as_json=as_json)


def _for_people(value: Any) -> Iterator[RenderableType]:
    """Yield a value for people: records as a table, one record as a line a field, anything else as text."""
    if isinstance(value, Mapping):
        yield from (f"{name}: {_cell(each)}" for name, each in value.items())
    elif not isinstance(value, Sequence) or isinstance(value, str):
        yield _cell(value)
    elif value and all(isinstance(each, Mapping) and each.keys() == value[0].keys() for each in value):
        yield table(list(value[0]), [[_cell(cell) for cell in each.values()] for each in value])
    else:
        yield from (_cell(each) for each in value) if value else ["none"]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return one_line(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
