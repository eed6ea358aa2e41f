"""The command line: Typer commands over the client, nothing else.

Nothing heavy is imported until a command runs, so that `hgmem --help` answers at once.
"""

from hgmem.cli.commands import app, main

__all__ = ["app", "main"]
