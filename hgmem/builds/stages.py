"""What a system says of its build: kinds of rows, stages with their functions, and the names that it may use."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, StoredRow, Unit
from hgmem.errors import UsageError
from hgmem.graph.schema import OURS
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.values.built import BuiltKind

__all__ = ["Build", "BuiltKind", "Stage", "check_names"]

Config = TypeVar("Config")
Read = TypeVar("Read", contravariant=True)
_LABEL = re.compile(r"[A-Z][A-Za-z]{0,39}")
_TYPE = re.compile(r"[A-Z][A-Z_]{0,39}")


class Making(Protocol[Read]):
    """How a stage makes a unit."""

    def __call__(self, services: Services, config: Read, unit: Unit, *, before: Sequence[Output]) -> Made:
        """Return what the unit makes of its inputs. `before` are the outputs of the units that it comes after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Generic[Config]):
    """One pass of a build.

    - `units(reading, config)`: the units in order, from the corpus and from what earlier stages left, without a model.
    - `settings`: the options of the config that `make` depends on. A change of one makes all its units anew.
    - `prompts`: the prompt files of the tasks that `make` asks a model. Another version or model makes units anew.
    - `vectors`: `make` reads or gives vectors, so another embedder makes units anew. It also does so where the
      rule-based model serves a prompt of the stage, since that model answers by vectors.
    - `version`: to be raised when the code of `make` changes what it makes.
    - `calls`: how many model calls a unit takes at most: a number, or a function of the config and the number of units.
    - `prompt_tokens`: how many tokens the prompt of such a call has at most: a number, or a function of the config.
      Estimates use it for units that are not known yet.
    - `most_units`: how many units there can be, from the numbers of units of the earlier stages by name and the config.
      It is used by estimates before those are made. By default, as many as the stage before has.
    """

    name: str
    units: Callable[[Reading, Config], Iterable[Unit]]
    make: Making[Config]
    settings: Sequence[str] = ()
    prompts: Sequence[Path] = ()
    vectors: bool = False
    version: int = 1
    calls: int | Callable[[Config, int], int] = 0
    prompt_tokens: int | Callable[[Config], int] = 0
    most_units: Callable[[Mapping[str, int], Config], int] | None = None


Reembedding: TypeAlias = Callable[[Services, Sequence[StoredRow]], Mapping[str, Vectors]]
"""Returns vectors of any length by uid, of rows whose texts have their new vectors. May be called again for a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(Generic[Config]):
    """What a system makes of a corpus.

    - `relationships`: the system's own types. Each relationship begins at a built row.
    - `reembed`: makes the vectors that no index holds again, when the corpus gets another embedder. Without it, such
      rows lose them until the next build.
    - `finish`: deletes files (`build_files`) of units that are gone, once all stages have run.
    - `of_corpus_alone`: units follow from the corpus, the config and what stages depend on, and are no files. A whole
      build is not even listed again while none of these changes. A stage's `version` is to be raised for `units` too.
    """

    kinds: Sequence[BuiltKind]
    stages: Sequence[Stage[Config]]
    relationships: Sequence[str] = ()
    reembed: Reembedding | None = None
    finish: Callable[[Services], None] | None = None
    of_corpus_alone: bool = False

    def stage(self, name: str) -> Stage[Config]:
        """Return the stage of this name."""
        return next(stage for stage in self.stages if stage.name == name)

    def kind(self, name: str) -> BuiltKind:
        """Return the kind of this name."""
        for kind in self.kinds:
            if kind.name == name:
                return kind
        raise UsageError(f"unknown kind {name!r} of built rows: choose one of {', '.join(k.name for k in self.kinds)}")


def check_names(build: Build[Any]) -> None:
    """Raise `UsageError` for a kind, a relationship type or a stage whose name cannot be used, or is used twice."""
    kinds, stages = [kind.name for kind in build.kinds], [stage.name for stage in build.stages]
    for kind in kinds:
        if not _LABEL.fullmatch(kind):
            raise UsageError(f"its kind {kind!r} is no label: use at most 40 letters, a capital first")
        if kind in OURS:
            raise UsageError(f"hgmem uses the label {kind!r} itself: rename that kind")
    for name in build.relationships:
        if not _TYPE.fullmatch(name):
            raise UsageError(f"its relationship type {name!r} needs at most 40 capital letters and underscores")
        if name in OURS:
            raise UsageError(f"hgmem uses the relationship type {name!r} itself: rename it")
    for names, what in ((kinds, "kinds"), (stages, "stages"), (build.relationships, "relationship types")):
        if twice := [name for name in names if list(names).count(name) > 1]:
            raise UsageError(f"it has two {what} {twice[0]!r}: rename one")
