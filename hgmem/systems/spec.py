"""The description of a system. Each room exports one as `SPEC`, and nothing outside the room names the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from hgmem.builds.stages import Build
from hgmem.graph.invariants import OwnInvariant
from hgmem.memory.browser.favourites import Caption, Favourite
from hgmem.memory.stored_memories import Stored
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.options import Config, Options
from hgmem.systems.verbs import Verb
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Memory
from hgmem.values.systems import SystemInfo

Costed = TypeVar("Costed", contravariant=True)


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


class Costing(Protocol[Costed]):
    """How a system estimates what one question takes."""

    def __call__(self, config: Costed, *, settings: Settings) -> tuple[int, int]:
        """Return the most model calls of a question, and about how many tokens their prompts have at most."""


class NeedsBuild(Protocol[Costed]):
    """Whether a system answers from its build."""

    def __call__(self, config: Costed) -> bool:
        """Return whether a question with this config needs the build."""


def always(config: object) -> bool:
    """Return that every question needs the build."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSpec(Generic[Config]):
    """A way of remembering and answering.

    - `config`: the frozen dataclass of its options. Its defaults are used where no recipe is named.
    - `recipes`: named configs, such as the paper's.
    - `passages`: ranks the chunks behind an answer. By default, all that the record's steps retrieved.
    - `continues`: its memories take further questions. `answer` then gets the stored memory.
    - `build`: what the system makes of a corpus before it can answer, if anything.
    - `needs_build`: which configs need the build. By default, all do.
    - `memory_tasks`: the tasks that read the corpus for the build or recall it: `HGMEM_MEMORY_MODEL` names their model.
    - `invariants`: what holds of its build at any time. `hgmem doctor --corpus` checks them, as `system:name`.
    - `prompts`: the folder of its tasks' prompts, for a system of another package. Settings that name a task, such as
      `HGMEM_SAMPLING`, then know them.
    - `statements`: the file of its own Cypher statements, for a system of another package. `database.run` knows them.
    - `verbs`: what the system can do besides answering.
    - `favourites`: queries for people, which `hgmem browser` offers in the guide of the system's memories.
    - `passage_option`: the option of `config` that limits how many chunks are retrieved, if there is one.
    - `steps_option`: the option of `config` that `steps=` sets, if it is not `steps`. Without one, there is one step.
    - `learn_option`: the option of `config` that learns from a question once it is answered, if there is one.
    - `cost`: what one question takes at most, for estimates. Without it, that is unknown.
    """

    name: str
    summary: str
    config: type[Config]
    answer: Answering[Config]
    recipes: Mapping[str, Config] = field(default_factory=dict)
    passages: Ranking | None = None
    continues: bool = False
    passage_option: str = ""
    steps_option: str = ""
    learn_option: str = ""
    prompts: Path | None = None
    statements: Path | None = None
    build: Build[Config] | None = None
    needs_build: NeedsBuild[Config] = always
    memory_tasks: Sequence[str] = ()
    cost: Costing[Config] | None = None
    verbs: Sequence[Verb[Any]] = ()
    favourites: Sequence[Favourite] = ()

    @property
    def captions(self) -> tuple[Caption, ...]:
        """How Neo4j Browser draws the rows of its build."""
        kinds = self.build.kinds if self.build else ()
        return tuple(Caption(label=kind.name, property=kind.caption, colour=kind.colour) for kind in kinds)

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
            learns=bool(self.learn_option),
            verbs=tuple(verb.info for verb in self.verbs),
            default=self.config(),
        )
