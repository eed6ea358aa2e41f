"""`systems`: list the ways of answering."""

from dataclasses import asdict

import typer

from hgmem.cli.front import JsonOption
from hgmem.cli.lists import hidden_verbs, ways
from hgmem.cli.output import note, print_json
from hgmem.cli.shown import show

app = typer.Typer(rich_markup_mode=None)


@app.command()
def systems(as_json: JsonOption = False) -> None:
    """List the systems that can answer, with their recipes.

    What else a system can do, its verbs, are commands: `hgmem SYSTEM VERB`. Other packages add systems by the entry
    point `hgmem.systems`. No server is needed.
    """
    from hgmem.client.inspection import systems as known

    found = known()
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        show(ways(found))
    for line in hidden_verbs(found):
        note(line)
