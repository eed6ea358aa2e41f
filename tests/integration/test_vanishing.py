"""A server killed in the middle of a question: one clear error within seconds, and only whole steps."""

import os
import signal
import time
from pathlib import Path

import pytest

from hgmem import GraphError, HGMem
from hgmem.local import down, up
from hgmem.local.docker import engine
from hgmem.models.extractive import ExtractiveModel
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder, Reply
from hgmem.values.task import Task


class Killer(ExtractiveModel):
    """Kills the server when the second step evolves memory."""

    def __init__(self, pid: int) -> None:
        super().__init__(DeterministicEmbedder())
        self.pid = pid
        self.evolved = 0
        self.killed_at = 0.0

    def reply(self, task: Task[Reply], /) -> Reply:
        self.evolved += task.name in ("step", "evolve")
        if self.evolved == 2 and not self.killed_at:
            os.kill(self.pid, signal.SIGKILL)
            self.killed_at = time.monotonic()
        return super().reply(task)


@pytest.mark.slow
@pytest.mark.skipif(engine() is not None, reason="a container's server is not ours to kill")
def test_a_server_killed_mid_question_is_said_in_seconds_and_leaves_whole_steps(tmp_path: Path, affair: Path) -> None:
    settings = load(data=tmp_path / "home", neo4j_uri="")
    server = up(settings, heap="512m", pagecache="128m")
    assert server.pid is not None
    model = Killer(server.pid)
    own = {"data": settings.data, "neo4j_uri": "", "embedder": "deterministic"}
    try:
        with HGMem.open("affair", model=model, **own) as client:
            client.add(affair)
            with pytest.raises(GraphError, match="cannot be reached") as raised:
                client.ask("What links the Tamswell Company of Marian Dace to the director Edmund Sallowby?")
        assert raised.value.retryable
        assert "\n" not in str(raised.value)
        assert time.monotonic() - model.killed_at < 30
        up(settings, heap="512m", pagecache="128m")
        with HGMem.open("affair", **own) as client:
            [kept] = client.memories()
            memory = client.memory(kept.uid)
        assert [step.number for step in memory.steps] == [1]
        assert memory.points
        assert all(point.entities and point.born == 1 for point in memory.points)
    finally:
        down(settings)
