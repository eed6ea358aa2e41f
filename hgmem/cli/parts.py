"""The command registry, which imports a command's module when the command is looked up."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

from typer.main import get_group

# In the order of `--help`: the module and the first sentence of the command's help.
COMMANDS = {
    "up": ("server", "Start Neo4j on this machine and print its address."),
    "down": ("server", "Stop the Neo4j that `hgmem up` started, keeping its data."),
    "doctor": ("server", "Check the installation and suggest fixes."),
    "index": ("index", "Index documents into a corpus: chunks, entities, relations."),
    "append": ("append", "Append messages to a conversation."),
    "build": ("build", "Make what a system needs of a corpus before it can answer."),
    "import": ("importing", "Import an archive or an existing graph."),
    "ask": ("ask", "Answer a question, with supporting quotes."),
    "systems": ("systems", "List the systems that can answer, with their recipes."),
    "memory": ("memory", "List, inspect, export and delete memories."),
    "browser": ("browser", "Open Neo4j Browser on a memory."),
    "status": ("corpora", "Show a corpus's contents and failures."),
    "corpora": ("corpora", "List the corpora."),
    "delete": ("corpora", "Delete a corpus, or documents or a build of it."),
    "export": ("archive", "Export a corpus, with its memories, to one file."),
    "eval": ("eval", "Measure systems on data sets: run, report, judge."),
    "reembed": ("archive", "Recompute all vectors of a corpus and its memories."),
}


class CommandRegistry(MutableMapping[str, Any]):
    """A Typer group that loads each command when it is looked up: one of ours, else the verbs of a system."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded and name not in COMMANDS:
            self._loaded[name] = import_module("hgmem.cli.verbs").group(name)
        if name not in self._loaded:
            module, _ = COMMANDS[name]
            self._loaded |= get_group(import_module(f"hgmem.cli.{module}").app).commands
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)
