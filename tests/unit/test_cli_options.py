"""Command options generated from the keyword arguments of a method."""

from typing import Annotated, Any, TypedDict, get_type_hints

import pytest
import typer
from typer.main import get_group
from typer.testing import CliRunner

from hgmem.cli.options import options
from hgmem.cli.transfer import importing
from hgmem.values.arguments import Option
from hgmem.values.foreign_graph import Adopting, Names, Shape


class Table(TypedDict, total=False):
    """Two options, and one that exists only in Python."""

    first_thing: Annotated[str, Option("THING", "One.")]
    driver: Any
    second: Annotated[str, Option("NAME", "Another.")]


def given(*typed: str) -> dict[str, Any]:
    """Return the arguments of a command with the options of the table."""
    found: dict[str, Any] = {}
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @options(Table, defaults={"second": "two"})
    def command(place: str = "here", *, loud: bool = False, **named: Any) -> None:
        found.update(place=place, loud=loud, **named)

    done = CliRunner().invoke(app, typed)
    return found or {"said": done.output}


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ((), {}),
        (("--second", "b"), {"second": "b"}),
        (("--first-thing", "", "--loud"), {"first_thing": "", "loud": True}),
    ],
)
def test_a_command_gets_the_options_that_were_typed_and_no_others(typed: tuple[str, ...], wanted: Any) -> None:
    assert given(*typed) == {"place": "here", "loud": False} | wanted


def test_help_lists_the_options_of_the_table_between_the_commands_own_with_their_defaults() -> None:
    said = given("--help")["said"]
    assert "--driver" not in said
    assert "Another. Default: two." in said
    listed = ["--place", "--first-thing THING", "--second NAME", "--loud"]
    assert sorted(listed, key=said.index) == listed


def test_the_import_of_neo4j_graphrag_has_an_option_for_every_marked_keyword_argument_and_says_its_default() -> None:
    adopt = get_group(importing).commands["neo4j-graphrag"]
    offered = {each.name: each for each in adopt.params}
    marked = [
        name for name, hint in get_type_hints(Adopting, include_extras=True).items() if hasattr(hint, "__metadata__")
    ]
    assert [*offered][: len(marked) + 2] == ["corpus", *marked, "as_json"]
    for name in get_type_hints(Names):
        assert f"Default: {getattr(Shape(), name)}." in offered[name].help


def test_every_name_in_a_graph_is_a_keyword_argument_and_has_a_default() -> None:
    assert [*get_type_hints(Names)] == [*get_type_hints(Shape)]
