"""Statistics of repeated runs: median, 95th percentile and ratios, and a description of the machine."""

import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil

from hgmem.models.prompts import prompt_of


def told(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the number of the runs, in milliseconds."""
    ordered = sorted(seconds)
    at = min(len(ordered) - 1, -(-95 * len(ordered) // 100) - 1)
    return {
        "median_ms": round(1000 * statistics.median(ordered), 3),
        "p95_ms": round(1000 * ordered[at], 3),
        "runs": len(ordered),
    }


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    began = time.perf_counter()
    work()
    return round(time.perf_counter() - began, 2)


def mean(values: Iterable[float]) -> float:
    """Return the mean, to three places."""
    return round(statistics.fmean(values), 3)


def ratios(medians: dict[str, float], *, to: str) -> dict[str, float]:
    """Return the ratio of each median to that of `to`; nothing if that one is missing."""
    return {name: round(value / medians[to], 3) for name, value in medians.items()} if medians.get(to) else {}


def machine() -> dict[str, Any]:
    """Return a description of the machine that ran the benchmarks."""
    return {
        "cpus": os.cpu_count(),
        "processor": _processor() or platform.processor(),
        "memory": f"{psutil.virtual_memory().total // 1024} kB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def resident(process: int) -> float:
    """Return the resident megabytes of a process, 0 if they can't be read."""
    try:
        return round(psutil.Process(process).memory_info().rss / 2**20, 1)
    except psutil.Error:
        return 0.0


def peak_megabytes() -> int:
    """Return the most megabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def prompt_characters(task: Any) -> int:
    """Return the characters of a task's prompt, as a chat model sends it."""
    return sum(len(message.content) for message in prompt_of(task).filled(task.fields()))


def on_disk(folders: Iterable[Path]) -> int:
    """Return the total bytes of all files below the folders."""
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def _processor() -> str:
    """Return the name of the processor if Linux reports it, else an empty string."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
