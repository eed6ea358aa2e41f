"""The description of a system. Each room exports one as `SPEC`, and nothing outside the room names the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol

from hgmem.builds.stages import Build
from hgmem.corpus.own_invariants import OwnInvariant
from hgmem.memory.stored_memories import Stored
from hgmem.services import Services
from hgmem.systems.options import Config, Options
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory
from hgmem.values.systems import SystemInfo


class Answering(Protocol[Config]):
    """How a system answers."""

    def __call__(
        self, services: Services, question: Question, options: Options[Config], *, stored: Stored | None
    ) -> Answer:
        """Return the answer, its memory written to Neo4j. `stored` is the memory that the question continues."""


class Ranking(Protocol):
    """How a system ranks the chunks behind an answer."""

    def __call__(
        self, services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None
    ) -> Sequence[Chunk]:
        """Return the chunks that an answer from the memory is drawn from, the best first, at most `limit`.

        `settings` are the options that the memory was made with. Without `limit`, there are as many as they say.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec(Generic[Config]):
    """A way of remembering and answering.

    - `config`: the frozen dataclass of its options. Its defaults are used where no recipe is named.
    - `recipes`: named configs, such as the paper's.
    - `passages`: ranks the chunks behind an answer. By default, all that the record's steps retrieved.
    - `continues`: its memories take further questions. `answer` then gets the stored memory.
    - `build`: what the system makes of a corpus before it can answer, if anything.
    - `invariants`: what holds of its build at any time. `hgmem doctor --corpus` checks them, as `system:name`.
    - `prompts`: the folder of its tasks' prompts, for a system of another package. Settings that name a task, such as
      `HGMEM_SAMPLING`, then know them.
    - `passage_option`: the option of `config` that limits how many chunks are retrieved, if there is one.
    """

    name: str
    summary: str
    config: type[Config]
    answer: Answering[Config]
    recipes: Mapping[str, Config] = field(default_factory=dict)
    passages: Ranking | None = None
    continues: bool = False
    passage_option: str = ""
    prompts: Path | None = None
    build: Build[Config] | None = None
    invariants: Sequence[OwnInvariant] = ()

    @property
    def info(self) -> SystemInfo:
        """What callers are told about the system."""
        return SystemInfo(
            name=self.name,
            summary=self.summary,
            recipes=tuple(self.recipes),
            continues=self.continues,
            passage_option=self.passage_option,
            builds=self.build is not None,
        )
