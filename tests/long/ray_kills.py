"""Kills workers, limiter, driver and Neo4j while a Ray cluster indexes: the graph must end as if nothing had happened.

    python tests/long/ray_kills.py [--number 8] [--seed N]

A scripted model's server counts. A reply that was stored before a kill must never be asked for again, and a kill may
repeat at most the calls that were in flight.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from differing import differences, shown

from hgmem import HGMem
from hgmem.text.resources import resource

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from dumping import Dump, dump
from playing import extraction, fenced
from servers import OwnServer, alone
from wire import Asked, Said, WireServer

CORPUS = "kills"
AFFAIR = resource("examples", "affair")
IN_FLIGHT = 4
SECONDS = 1_200.0  # for a run on a busy machine
VICTIMS = {"worker": "ray::MapWorker", "limiter": "ray::Limiter", "driver": "", "neo4j": ""}


class FailedError(Exception):
    """The test failed."""


def said(asked: Asked) -> Said:
    """Return the reply to a request, after a while."""
    return Said(extraction(fenced(asked, "text")).model_dump_json(), delay=0.5)


@dataclass
class Run:
    """Runs of the command on one folder, until one ends well."""

    own: OwnServer
    model: WireServer
    folder: Path
    killed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))

    def start(self) -> "subprocess.Popen[str]":
        """Start the command."""
        env = {
            **os.environ,
            "HGMEM_DATA": str(self.own.server.data),
            "HGMEM_EMBEDDING_MODEL": self.own.embedder,
            "HGMEM_MODEL": "wire",
            "OPENAI_BASE_URL": self.model.base_url,
            "HGMEM_CACHED_TASKS": "[]",
            "HGMEM_CHUNK_TOKENS": "200",
            "HGMEM_WORKERS": str(IN_FLIGHT),
        }
        command = [sys.executable, "-m", "hgmem", "index", str(AFFAIR), "--corpus", CORPUS, "--yes"]
        command += ["--stages", str(self.folder), "--ray", "local"]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def until_it_ends(self, victims: Sequence[str], draw: random.Random) -> None:
        """Kill each victim some time after the model was asked first, or the run before resumed, and run to the end."""
        process = self.start()
        for victim in victims:
            begun = draw.choice(["worker", "limiter"]) if victim != "limiter" else victim  # which is there with replies
            if self._waited(process, begun, draw.uniform(0, 8)) and self._struck(process, victim):
                self.killed[victim] += 1
                print(f"  killed {victim} after {len(self.model.requests)} requests", flush=True)
                if victim in ("driver", "neo4j"):
                    if process.wait(SECONDS) == 0:
                        break
                    process = self.start()
        output, _ = process.communicate(timeout=SECONDS)
        if process.returncode:
            raise FailedError(f"index ended with exit code {process.returncode}:\n{output[-3000:]}")

    def _waited(self, process: "subprocess.Popen[str]", begun: str, seconds: float) -> bool:
        """Wait until a process of the cluster is there and some seconds more; return whether the command still runs."""
        while process.poll() is None and not _below(process, VICTIMS[begun]):
            time.sleep(0.1)
        until = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        return process.poll() is None

    def _struck(self, process: "subprocess.Popen[str]", victim: str) -> bool:
        if victim == "driver":
            process.kill()
        elif victim == "neo4j":
            self.own.kill()
            self.own.restart()
        elif found := _below(process, VICTIMS[victim]):
            max(found, key=lambda each: each.pid).kill()
        else:
            return False
        return True


def _below(process: "subprocess.Popen[str]", name: str) -> list[psutil.Process]:
    try:
        return [each for each in psutil.Process(process.pid).children(recursive=True) if each.name().startswith(name)]
    except psutil.Error:
        return []


def compare(own: OwnServer, number: int, draw: random.Random, folder: Path) -> None:
    """Raise at the first difference from the graph of one undisturbed process, or reply that is paid too often."""
    settings = own.settings.model_dump(exclude_none=True)
    with WireServer(said) as model:
        given = {"model": "wire", "openai_base_url": model.base_url, "cached_tasks": frozenset(), "chunk_tokens": 200}
        with HGMem.open(CORPUS, **{**settings, **given}) as client:
            client.add(AFFAIR)
        wanted = dump(own.settings, CORPUS)
    struck = Counter[str]()
    while struck.total() < number:
        victims = [draw.choice(list(VICTIMS)) for _ in range(min(4, number - struck.total()))]
        with HGMem.open(CORPUS, **settings) as client:
            client.delete()
        shutil.rmtree(folder, ignore_errors=True)
        with WireServer(said) as model:
            run = Run(own, model, folder)
            run.until_it_ends(victims, draw)
            asked = [fenced(each, "text") for each in model.requests if each.system]
            again, most = len(asked) - len(set(asked)), IN_FLIGHT * sum(run.killed.values())
        must_equal(wanted, own)
        print(f"kills {run.killed}: the same graph; {len(set(asked))} chunks, {again} asked again (at most {most})")
        struck.update(run.killed)
        if again > most:
            raise FailedError(f"{again} calls were made again, and only {most} were in flight at kills")
    print(f"{struck.total()} kills {dict(struck)}: each time the same graph")


def must_equal(wanted: Dump, own: OwnServer) -> None:
    """Raise with the differences, if there are any."""
    if lines := differences(wanted, dump(own.settings, CORPUS)):
        raise FailedError("\n".join(["the graph is another:", *shown(lines)]))


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Kill parts of a run on Ray; the graph must stay the same.")
    parser.add_argument("--number", type=int, default=8, help="of kills")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the victims and moments")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    try:
        with alone() as own:
            compare(own, given.number, random.Random(given.seed), Path("stages").absolute())
    except FailedError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
