"""Pools of actors that do a stage's work, and give back a row for each piece of it, failures among them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import ray

from hgmem import errors
from hgmem.distributed.limiter import SharedGates
from hgmem.errors import HGMemError, ModelError
from hgmem.graph.database import Row
from hgmem.models.llm.rate_limits import Limits
from hgmem.services import Services
from hgmem.stages.files import Folder

BLOCKS = 8  # pieces of work for each actor of a pool, at least, so that all end at about the same time
MOST = 64  # names in a piece of work
CPU = 0.5  # of an actor
USABLE = 0.8  # of a cluster's CPUs: a data set whose actors have all of them hangs
COLUMN = "row"

Does: TypeAlias = Callable[["Job", Services, Sequence[Row]], Iterator[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What actors need to work. It goes to other machines, and Ray may log it: no secret is in it.

    `services` makes the services, on the actor's machine and with the keys that are there. `threads` ask models in each
    piece of work, within the limits of all.
    """

    folder: Folder
    corpus: str
    settings: Mapping[str, Any]
    env_file: str
    limits: Limits
    threads: int
    services: Callable[["Job", SharedGates], Services]
    gpu: bool = False  # whether the embedder is to use one


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of so many actors for one stage, each with a part of a CPU and of a GPU."""

    does: Does
    size: int
    cpus: float
    gpus: float = 0.0


class Worker:
    """An actor of a pool. A row is passed on if it failed before."""

    def __init__(self, job: Job, does: Does) -> None:
        self._job = job
        self._does = does
        self._services: Services | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rows that are made of these."""
        rows = [json.loads(row) for row in batch[COLUMN]]
        done = [row for row in rows if "error" in row]
        done += self._done([row for row in rows if "error" not in row])
        return {COLUMN: np.array([json.dumps(row) for row in done], dtype=object)}

    def _done(self, rows: Sequence[Row]) -> list[Row]:
        done: list[Row] = []
        try:
            if rows and self._services is None:
                self._services = self._job.services(self._job, SharedGates(self._job.limits))
            if rows and self._services:
                done += self._does(self._job, self._services, rows)
        except Exception as error:
            kind, retryable = type(error).__name__, isinstance(error, HGMemError) and error.retryable
            told = str(error) if isinstance(error, HGMemError) else f"{kind}: {error}"
            failure = {"error": told, "kind": kind, "retryable": retryable}
            names = {row["name"] for row in done}
            return [*done, *({**row, **failure} for row in rows if row["name"] not in names)]
        return done


def rows_of(job: Job, rows: Sequence[Row], pools: Sequence[Pool]) -> Iterator[Row]:
    """Yield what the pools make of the rows, one after the other, as it arrives.

    Raises the first error at the end, and at once one that would stop all others too.
    """
    if not rows:
        return
    first: HGMemError | None = None
    data: ray.data.Dataset = ray.data.from_items(
        [{COLUMN: json.dumps(row)} for row in rows], override_num_blocks=_blocks(rows, pools)
    )
    for pool in pools:
        data = data.map_batches(
            Worker,
            fn_constructor_kwargs={"job": replace(job, gpu=pool.gpus > 0), "does": pool.does},
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(
                size=pool.size, max_concurrent_calls_per_actor=2, enable_true_multi_threading=True
            ),
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
        )
    for found in data.iter_rows():
        row = json.loads(found[COLUMN])
        if "error" not in row:
            yield row
            continue
        first = first or _error(row)
        if _stops(row):
            raise first
    if first:
        raise first


def _blocks(rows: Sequence[Row], pools: Iterable[Pool]) -> int:
    wanted = max(len(rows) / MOST, BLOCKS * max(pool.size for pool in pools))
    return max(1, min(len(rows), int(wanted)))


def _stops(row: Row) -> bool:
    return row["retryable"] or row["kind"] in ("AccessError", "BudgetError")


def _error(row: Row) -> HGMemError:
    """Return the error that a worker told of."""
    kind = getattr(errors, row["kind"], None)
    message = f"on a worker of the cluster: {row['error']}"
    if isinstance(kind, type) and issubclass(kind, HGMemError) and kind is not errors.BadReplyError:
        return kind(message, retryable=row["retryable"])
    return ModelError(message, retryable=row["retryable"])
