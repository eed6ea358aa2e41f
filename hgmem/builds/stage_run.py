"""Run one stage of a build: make the units whose inputs have changed, in parallel, and write them in groups."""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from hgmem.builds.reading import Reading, stored_output
from hgmem.builds.stages import Build, Stage
from hgmem.builds.units import Output, Unit
from hgmem.builds.writing import Result, Writer
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.errors import HGMemError, UsageError
from hgmem.graph.builds import StoredUnit, units_of_stage
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.models.metering import measuring
from hgmem.models.prompts import read_prompt
from hgmem.services import Services
from hgmem.text.identity import text_hash, unit_uid
from hgmem.values.reports import BuildReport, Progress


def stage_key(services: Services, stage: Stage[Any], settings: Mapping[str, Any]) -> str:
    """Return what all units of a stage depend on: its version, settings, prompts, models, embedder.

    The rule-based model answers by vectors, so the embedder counts for each stage that it serves.
    """
    prompts = [read_prompt(path) for path in stage.prompts]
    models = [serving(services.model, prompt.name).name for prompt in prompts]
    return _json(
        [
            stage.version,
            {name: settings[name] for name in stage.settings},
            [[prompt.name, prompt.version, model] for prompt, model in zip(prompts, models, strict=True)],
            services.embedder.name if stage.vectors or ExtractiveModel.name in models else "",
        ]
    )


def unit_digest(common: str, unit: Unit, *, before: Sequence[Output]) -> str:
    """Return the digest of a unit's inputs. `before` are the outputs of the units that it comes after."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (
        common,
        _json([[one.uid, one.title, one.date, one.type, text_hash(one.text)] for one in unit.chunks]),
        _json([[row.uid, row.document, row.text, dict(row.properties)] for row in unit.rows]),
        _json([[output.uid, output.document, output.value] for output in (*unit.outputs, *before)]),
        _json(unit.values),
    ):
        hashed.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def to_make(stored: StoredUnit | None, digest: str, *, retry_failed: bool) -> bool:
    """Return whether a unit is to be made: its inputs are new, or it failed and is to be tried again."""
    if stored is None or stored.digest != digest:
        return True
    return stored.status != "done" and (stored.status != "failed" or retry_failed)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


Report: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """A system's name, its build and the config to make it with."""

    system: str
    build: Build[Any]
    config: Any

    @property
    def settings(self) -> Mapping[str, Any]:
        """The config as plain values."""
        return asdict(self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A unit to make, with the digest of its inputs and the outputs of the units that it comes after."""

    unit: Unit
    digest: str
    before: Sequence[Output]


class StageRun:
    """One stage of one run of a build."""

    def __init__(
        self, writer: Writer, building: Building, stage: Stage[Any], *, done: BuildReport, report: Report
    ) -> None:
        self._writer = writer
        self._services = writer.services
        self._building = building
        self._stage = stage
        self._done = done
        self._report = report
        self._common = stage_key(self._services, stage, building.settings)
        self._stored: Mapping[str, StoredUnit] = {}
        self._outputs: dict[str, Output | None] = {}  # of units that are made, by key
        self._ready: deque[Unit] = deque()
        self._later: dict[str, list[Unit]] = {}  # units by the one that they wait for next
        self._unsaved: list[Ended[_Open, Result]] = []
        self._settled = self._total = 0

    def run(self, reading: Reading, *, retry_failed: bool) -> None:
        """Make the units whose inputs have changed, and delete those that the stage no longer lists."""
        services, system = self._services, self._building.system
        units = self._listed(reading)
        self._stored = units_of_stage(services.database, corpus=services.corpus, system=system, stage=self._stage.name)
        self._total = len(units)
        self._ready.extend(units.values())
        with Calls(self._make, workers=services.settings.workers) as calls:
            try:
                self._work(calls, retry_failed=retry_failed)
            except KeyboardInterrupt:
                self._save(calls.rest())
                raise
            if calls.stop is not None:  # what other units have made is kept
                self._save(calls.rest())
                raise calls.stop
        gone = [stored.uid for key, stored in self._stored.items() if key not in units]
        self._writer.delete(gone)
        self._done.deleted += len(gone)
        self._done.waiting += sum(len(each) for each in self._later.values())

    def _listed(self, reading: Reading) -> dict[str, Unit]:
        """Return the stage's units by key. Raises `UsageError` for two of one key, or an order that is none."""
        units: dict[str, Unit] = {}
        with self._named("listing its units"):
            listed = list(self._stage.units(reading, self._building.config))
        for unit in listed:
            if unit.key in units:
                raise self._wrong(f"lists unit {unit.key!r} twice")
            if unknown := [key for key in unit.after if key not in units]:
                raise self._wrong(f"lists unit {unit.key!r} after {unknown[0]!r}, which it has not listed before")
            units[unit.key] = unit
        return units

    def _work(self, calls: Calls[_Open, Result], *, retry_failed: bool) -> None:
        while calls.stop is None and (self._ready or calls.busy):
            while self._ready and calls.room:
                self._begin(self._ready.popleft(), calls, retry_failed=retry_failed)
            if calls.busy:
                self._save(calls.ended())

    def _begin(self, unit: Unit, calls: Calls[_Open, Result], *, retry_failed: bool) -> None:
        """Skip a unit that is made already, let one wait for those that it comes after, or start making it."""
        missing = next((key for key in unit.after if key not in self._outputs), None)
        if missing is not None:
            self._later.setdefault(missing, []).append(unit)
            return
        before = [output for key in unit.after if (output := self._outputs[key]) is not None]
        digest, stored = unit_digest(self._common, unit, before=before), self._stored.get(unit.key)
        if stored is None or to_make(stored, digest, retry_failed=retry_failed):
            calls.submit(_Open(unit=unit, digest=digest, before=before))
        elif stored.status == "done":
            self._done.unchanged += 1
            self._settle(unit, stored_output(stored))
        else:
            self._done.failed += 1
            self._settled += 1

    def _make(self, one: _Open) -> Result:
        """Return what may be written of a unit, with what it cost. Raises `UsageError` for what may not."""
        with measuring() as meter, self._named(f"unit {one.unit.key!r}"):
            made = self._stage.make(self._services, self._building.config, one.unit, before=one.before)
        usage = meter.usage()
        tokens = sum(counts.get(kind, 0) for counts in usage.tokens.values() for kind in ("prompt", "completion"))
        calls = sum(usage.calls.get("request", {}).values())
        properties = {**self._node(one), "calls": calls, "tokens": tokens}
        return self._writer.result(one.unit, made, properties=properties, before=one.before)

    def _save(self, more: Sequence[Ended[_Open, Result]]) -> None:
        """Write what finished calls made, those that an interrupt left unsaved included, and why others failed."""
        self._unsaved += more
        ended = self._unsaved
        results = [(one.item.unit, one.result) for one in ended if one.result]
        written = self._writer.units([result for _, result in results]) if results else set()
        for unit, result in results:
            if result.unit["uid"] not in written:
                self._done.dropped += 1
                continue
            self._done.made += 1
            self._done.calls += result.unit["calls"]
            self._settle(unit, _output(result, unit.key))
        failed = [one for one in ended if one.error]
        if failed:
            self._writer.failed([{**self._node(one.item), "error": str(one.error)} for one in failed])
            self._done.failed += len(failed)
            self._settled += len(failed)
            self._done.errors += [
                f"stage {self._stage.name!r}, unit {one.item.unit.key!r} failed: {one.error}" for one in failed
            ]
        self._unsaved = []
        if ended:
            self._report(Progress(done=self._settled, total=self._total, document=self._stage.name, unit="units"))

    def _node(self, item: _Open) -> dict[str, Any]:
        key, stage = item.unit.key, self._stage.name
        uid = unit_uid(self._services.corpus, self._building.system, stage=stage, key=key)
        return {"uid": uid, "stage": stage, "key": key, "digest": item.digest}

    def _settle(self, unit: Unit, output: Output | None) -> None:
        """Record a unit as made, and let those go on that waited for it."""
        self._outputs[unit.key] = output
        self._settled += 1
        self._ready.extend(self._later.pop(unit.key, ()))

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """Name system, stage and `what` in errors of a system's own code."""
        try:
            yield
        except HGMemError:
            raise
        except Exception as error:
            raise self._wrong(f"raised {type(error).__name__} at {what}: {error}") from error

    def _wrong(self, what: str) -> UsageError:
        return UsageError(
            f"system {self._building.system!r}, stage {self._stage.name!r} {what}: report this to the system's authors"
        )


def _output(result: Result, key: str) -> Output | None:
    text = result.unit["output"]
    if text is None:
        return None
    return Output(uid=result.unit["uid"], key=key, value=json.loads(text), document=result.unit["document"])
