"""A question's memory: recorded step by step, read back, replayed, shown in Neo4j Browser, pruned."""

from typing import TYPE_CHECKING

from hgmem.values.moved_modules import earlier_classes

if not TYPE_CHECKING:  # a module of this name held HGMem's tasks of changing memory, and their replies
    __getattr__ = earlier_classes(__name__, "hgmem.systems.hgmem.replies", "hgmem.systems.hgmem.tasks.memory_changes")
