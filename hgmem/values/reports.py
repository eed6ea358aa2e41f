"""Reports of work on a corpus: status, indexing, builds, cost estimates, progress, archives, checks, pruning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hgmem.values.inputs import Skipped

Unit: TypeAlias = Literal[
    "chunks", "entities and relations", "descriptions", "records", "vectors", "units", "questions", "pairs"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStatus:
    """The contents of a corpus. `failed` counts chunks whose extraction failed, `pending` those that wait for it.

    `without_graph` counts chunks that were indexed without a graph. They are complete for systems that need none.
    `units` and `built` count units and rows of all builds, `builds` has those of each system.
    """

    corpus: str
    status: str
    documents: int
    chunks: int
    entities: int
    relations: int
    memories: int
    failed: int
    pending: int
    units: int = 0
    built: int = 0
    embedding_model: str
    dimensions: int
    without_graph: int = 0
    failures: tuple[Mapping[str, str], ...] = ()
    builds: tuple["BuildStatus", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of indexing: `done` of `total` known so far, in chunks, then in entities and relations."""

    done: int
    total: int
    document: str = ""
    unit: Unit = "chunks"


Report: TypeAlias = Callable[[Progress], None]
CountReport: TypeAlias = Callable[[int, int], None]  # receives how many are done, and how many there are


def counting(report: Report, unit: Unit) -> CountReport:
    """Return a callback that reports numbers of this unit."""
    return lambda done, total: report(Progress(done=done, total=total, unit=unit))


@dataclass(slots=True, kw_only=True)
class IndexReport:
    """The result of an indexing run. `failed` counts chunks whose extraction failed.

    `replaced` has those of the documents (ids) whose stored text was another, each with how many messages went. A
    conversation that only grew is none of them. `joined` counts the pairs of entities that rules joined.
    """

    documents: int = 0
    replaced: dict[str, int] = field(default_factory=dict)
    unchanged: int = 0
    chunks: int = 0
    failed: int = 0
    joined: int = 0
    errors: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LoadReport:
    """The result of a bulk load: corpora, rows by label or relationship type, and the seconds of each part of the work.

    `joined` counts the pairs of entities that rules joined.
    """

    corpora: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    joined: int = 0


@dataclass(slots=True, kw_only=True)
class AppendReport:
    """The result of appending to a conversation: messages that were appended, and those that it had before.

    `created` says that the conversation is new. `chunks` were written, or with a graph extracted; `failed` counts those
    whose extraction failed. `joined` is that of `IndexReport`.
    """

    messages: int = 0
    known: int = 0
    created: bool = False
    chunks: int = 0
    failed: int = 0
    joined: int = 0
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What forgetting messages deleted: messages, chunks that lost words or went, and memories (uids).

    `kept` are memories (uids) that were shown chunks with the words: their answers may repeat them. `note` tells the
    remedy.
    """

    messages: int
    chunks: int
    memories: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    note: str = ""


@dataclass(slots=True, kw_only=True)
class BuildReport:
    """The result of a run of a build, in units.

    `waiting` counts those that come after a failed one, `dropped` those whose inputs were deleted while they were made.
    """

    system: str
    made: int = 0
    unchanged: int = 0
    failed: int = 0
    waiting: int = 0
    deleted: int = 0
    dropped: int = 0
    calls: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every unit is made."""
        return not (self.failed or self.waiting or self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """The work that a stage of a build has, in units and model calls.

    `listed`: its units are known. Those of a stage that waits for an earlier one are not: its numbers are upper bounds.
    """

    stage: str
    units: int
    calls: int
    prompt_tokens: int
    listed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """A cost estimate of a build, stage by stage. Calls and tokens are upper bounds, retries come on top."""

    system: str
    stages: tuple[StagePlan, ...] = ()
    completion_tokens_at_most: int = 0

    @property
    def units(self) -> int:
        """How many units are made at most."""
        return sum(stage.units for stage in self.stages)

    @property
    def calls(self) -> int:
        """How many model calls are made at most."""
        return sum(stage.calls for stage in self.stages)

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompts have at most."""
        return sum(stage.prompt_tokens for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStatus:
    """A system's build of a corpus.

    - `status`: building, ready, stale (the corpus has changed since: `change`), incomplete (some units failed) or
      unfinished (a run was cut short).
    - `units` and `rows`: numbers by status and by kind.
    - `settings`: the options that it was made with.
    - `finished_at`: when a run last went through all stages. None if none ever did, so the system cannot answer yet.
    """

    system: str
    status: str
    model: str
    change: str
    settings: Mapping[str, object]
    units: Mapping[str, int]
    rows: Mapping[str, int]
    created_at: str
    finished_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """A cost estimate of indexing. Calls and completion tokens are upper bounds.

    Tokens are estimates. Summarizing descriptions and retries come on top, as they can't be known in advance.
    """

    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens_at_most: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """A cost estimate of one new question of at most 100 tokens: upper bounds, by hgmem's count of tokens.

    Chunks count as having HGMEM_CHUNK_TOKENS: those of a corpus with larger ones may exceed the bounds. A number that
    the system does not tell is None. Requests that are repeated come on top. `options` are those of the recipe with the
    changes, as plain values. `builds` are those that it needs, by name, each with its config.
    """

    system: str
    options: Mapping[str, Any]
    builds: Mapping[str, Any] = field(default_factory=dict)
    calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens_at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptReport:
    """The corpus after an import from neo4j-graphrag.

    `notes` list what was left out, `written` tells whether anything was written.
    """

    corpus: str
    written: bool
    documents: int
    chunks: int
    entities: int
    relations: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """The contents of an archive, in records by kind.

    `notes` list what is missing in it, and systems that are not installed. `written` tells whether anything was
    written.
    """

    corpus: str
    written: bool
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An integrity violation: its count, its meaning, the remedy and some uids."""

    name: str
    count: int
    uids: tuple[str, ...]
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The result of an integrity check: violations, and notes on unfinished work."""

    corpus: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no violations."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The memories (uids) that were deleted or reduced to their answers. A dry run lists them without changes."""

    corpus: str
    memories: tuple[str, ...]
    kept_answers: bool = False
    dry_run: bool = False
