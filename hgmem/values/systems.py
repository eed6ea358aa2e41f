"""What callers are told about a system."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Shape: TypeAlias = Literal["value", "list", "switch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentInfo:
    """An argument of a verb. `shape`: one value, a list of values, or on and off. `default`: unless `required`."""

    name: str
    help: str
    required: bool
    default: object
    shape: Shape = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbInfo:
    """Something that a system can do besides answering: its name, one line of summary, its arguments in order.

    `first` is the argument with a default that may come first on the command line, without its name, if there is one.
    `reads`: it writes nothing and calls no language model.
    """

    name: str
    summary: str
    arguments: tuple[ArgumentInfo, ...] = ()
    first: str = ""
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInfo:
    """A system or a build: its name, one line of summary, its recipes by name, and what it can do.

    `continues`: its memories take further questions. `passage_option` is the option that limits the chunks that it
    retrieves, or empty if it ranks those that it has read. `builds` are the names of the builds that it reads by
    default, which `hgmem build` makes. `answers` is false for a build that only systems read. `only_conversations`: it
    answers from conversations alone. `learns`: it can learn from a question. `verbs`: what else it can do. `default`:
    the config that is used where no recipe is named. A system that is not installed has only its name.
    """

    name: str
    summary: str = ""
    recipes: tuple[str, ...] = ()
    continues: bool = False
    passage_option: str = ""
    builds: tuple[str, ...] = ()
    answers: bool = True
    only_conversations: bool = False
    learns: bool = False
    verbs: tuple[VerbInfo, ...] = ()
    installed: bool = True
    default: object = None
