"""The commands by name. The module of one is imported when it is asked for, so that each starts with what it needs."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

from typer.main import get_group

# In the order of `--help`: the module, and the first sentence of the command's own help.
COMMANDS = {
    "up": ("server", "Start a Neo4j on this machine, and say where it is."),
    "down": ("server", "Stop the Neo4j that `hgmem up` started; its data stays."),
    "doctor": ("server", "Say what is here and what is missing, each with its remedy."),
    "index": ("index", "Read documents into a corpus: chunks, entities, relations."),
    "import": ("importing", "Import a ready-made graph."),
    "ask": ("ask", "Answer a question, with quotes that it rests on."),
    "memory": ("memory", "Look at stored memories, and away with them."),
    "browser": ("browser", "Open Neo4j Browser on a memory."),
    "status": ("corpora", "Show what a corpus holds, and what failed."),
    "corpora": ("corpora", "List the corpora."),
    "delete": ("corpora", "Delete a corpus, or documents of it."),
    "export": ("archive", "Write a corpus, with its memories, into one file."),
    "reembed": ("archive", "Make all vectors of a corpus and its memories again."),
    "adopt": ("adopt", "Take over the graph that Neo4j's GraphRAG package wrote."),
}


class Parts(MutableMapping[str, Any]):
    """The commands: Typer's own, each loaded when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
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
