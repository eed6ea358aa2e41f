"""What is said of many runs of the same: median, 95th percentile, ratios; and of the machine that ran them."""

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def told(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the number of the runs, in milliseconds."""
    ordered = sorted(seconds)
    at = min(len(ordered) - 1, -(-95 * len(ordered) // 100) - 1)
    return {
        "median_ms": round(1000 * statistics.median(ordered), 3),
        "p95_ms": round(1000 * ordered[at], 3),
        "runs": len(ordered),
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean, to three places."""
    return round(statistics.fmean(values), 3)


def ratios(medians: dict[str, float], *, to: str) -> dict[str, float]:
    """Return how many times what `to` takes each takes; nothing where that one is missing."""
    return {name: round(value / medians[to], 3) for name, value in medians.items()} if medians.get(to) else {}


def machine() -> dict[str, Any]:
    """Return what ran the figures."""
    return {
        "cpus": os.cpu_count(),
        "processor": _first(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "memory": _first(Path("/proc/meminfo"), "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def resident(process: int) -> float:
    """Return the resident megabytes of a process (Linux), 0 where that can't be read."""
    said = _first(Path(f"/proc/{process}/status"), "VmRSS")
    return round(int(said.split()[0]) / 1024, 1) if said else 0.0


def on_disk(folders: Iterable[Path]) -> int:
    """Return the bytes that all files below the folders take."""
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def _first(path: Path, key: str) -> str:
    if not path.exists():
        return ""
    lines = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == key), "")
