"""What callers are told about a system."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInfo:
    """A way of answering: its name, one line of summary, its recipes by name, and what it can do.

    `continues`: its memories take further questions. `passage_option` is the option that limits the chunks that it
    retrieves, or empty if it ranks those that it has read. `builds`: it answers from what `hgmem build` makes of a
    corpus. A system that is not installed has only its name.
    """

    name: str
    summary: str = ""
    recipes: tuple[str, ...] = ()
    continues: bool = False
    passage_option: str = ""
    builds: bool = False
    installed: bool = True
