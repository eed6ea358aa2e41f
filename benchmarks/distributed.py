"""How the stage of replies scales on a Ray cluster of this machine, beside the threads of one process.

    python benchmarks/distributed.py                                       # 1,000 chunks; minutes
    python benchmarks/distributed.py --chunks 200 --in-flight 64 --workers 4

A scripted model takes two seconds a call, so that the figures tell how well calls are kept in flight, not how fast this
machine is. Seconds count from the model's first request to its last reply; start-up is told apart. CPU seconds are
those of all processes but the model's.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from hgmem.client.connecting import worker_services
from hgmem.distributed.cluster import connected
from hgmem.distributed.limiter import SharedGates
from hgmem.distributed.pools import Job, Pool, rows_of
from hgmem.distributed.running import reply
from hgmem.graph.documents import document_uid
from hgmem.models.llm.rate_limits import Gate, Limits
from hgmem.settings import load, portable
from hgmem.stages.files import Folder
from hgmem.stages.reading import header_of, read_part
from hgmem.stages.replies import ask
from hgmem.values.inputs import Document

CORPUS = "scaling"
PART = 16  # documents of one chunk each
REPLY = {"entities": [{"name": "Ada", "type": "person", "description": "Ada is named."}], "relations": []}


class Model:
    """The scripted server: each reply takes its time, whatever else is in flight."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[str, Any] = {"requests": 0, "at_once": 0, "most": 0, "first": 0.0, "last": 0.0}

    async def serve(self, port: Any) -> None:
        """Serve for ever, and say at which port."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                body = json.dumps(await self._answer(head)).encode()
                kind = "HTTP/1.1 200 OK\r\nContent-Type: application/json"
                writer.write(f"{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, head: str) -> dict[str, Any]:
        seen = self._seen
        if head.startswith("GET"):
            told = dict(seen)
            seen.update(requests=0, most=0, first=0.0, last=0.0)
            return told
        seen["first"] = seen["first"] or time.time()
        seen["requests"] += 1
        seen["at_once"] += 1
        seen["most"] = max(seen["most"], seen["at_once"])
        await asyncio.sleep(self._seconds)
        seen["at_once"] -= 1
        seen["last"] = time.time()
        message = {"role": "assistant", "content": json.dumps(REPLY)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _serve(seconds: float, port: Any) -> None:
    asyncio.run(Model(seconds).serve(port))


@contextmanager
def model(seconds: float) -> Iterator[str]:
    """Yield the address of a scripted server in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(seconds, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.kill()


def seen(address: str) -> dict[str, Any]:
    """Return what the server has seen since it was asked last."""
    with urlopen(address) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found


def folder_of(job: Job, chunks: int) -> list[str]:
    """Write the documents of so many chunks, and return the names of their parts."""
    services = worker_services(job, SharedGates(job.limits))
    header = job.folder.begin(header_of(services, language="en"))
    documents = [Document(id=f"d{n}", text=f"Ada writes note {n} to herself and keeps it well.") for n in range(chunks)]
    groups = [documents[at : at + PART] for at in range(0, chunks, PART)]
    named = [{document_uid(CORPUS, each.id): each for each in group} for group in groups]
    return [read_part(job.folder, header, group, settings=services.settings) for group in named]


def job_for(place: Path, address: str, *, in_flight: int, threads: int) -> Job:
    """Return the work of one measurement, in a new folder."""
    settings = load(
        model="m", openai_base_url=address, embedding_model="deterministic", cached_tasks=(), workers=in_flight
    )
    return Job(
        folder=Folder(str(place)),
        corpus=CORPUS,
        settings=portable(settings),
        env_file="",
        limits=Limits(concurrency=in_flight),
        threads=threads,
        services=worker_services,
    )


def in_threads(job: Job, parts: list[str]) -> None:
    """Ask in the threads of this process."""
    gate = Gate(job.limits)
    gates: Any = type("One", (dict,), {"__missing__": lambda *_: gate})()
    ask(job.folder, worker_services(job, gates), parts)


def on_ray(workers: int) -> Callable[[Job, list[str]], None]:
    """Return what asks in so many actors."""

    def work(job: Job, parts: list[str]) -> None:
        pool = Pool(does=reply, size=workers, cpus=1.6 / workers)
        list(rows_of(job, [{"name": part} for part in parts], [pool]))

    return work


class Processor:
    """The CPU seconds of this process and of Ray's on this machine, watched, since workers come and go."""

    def __init__(self) -> None:
        self._began = self._seconds()
        self._last = dict(self._began)
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> float:
        """Return the seconds since the watch began."""
        self._stopped.set()
        self._last |= self._seconds()
        return sum(seconds - self._began.get(pid, 0.0) for pid, seconds in self._last.items())

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            self._last |= self._seconds()

    def _seconds(self) -> dict[int, float]:
        found = {}
        for process in psutil.process_iter():
            try:
                if process.pid == os.getpid() or process.name().startswith(("ray::", "raylet", "gcs_server")):
                    found[process.pid] = sum(process.cpu_times()[:2])
            except psutil.Error:
                continue
        return found


def measured(name: str, work: Callable[[Job, list[str]], None], job: Job, *, chunks: int, seconds: float) -> None:
    """Print a row of the table: what one way of asking took."""
    address = str(job.settings["openai_base_url"])
    parts = folder_of(job, chunks)
    seen(address)
    processor, began = Processor(), time.time()
    work(job, parts)
    whole, cpu, told = time.time() - began, processor.stop(), seen(address)
    ideal = -(-chunks // job.limits.concurrency) * seconds
    took = told["last"] - told["first"]
    rows = sum(job.folder.parts("replies")[part].rows for part in parts)
    calls = f"{job.limits.concurrency} | {told['most']} | {told['requests']} | {rows}"
    times = f"{took:.1f} | {ideal:.1f} | {ideal / took:.2f} | {whole - took:.1f} | {1000 * cpu / chunks:.0f}"
    print(f"| {name} | {calls} | {times} |", flush=True)


def main() -> None:
    """Measure all that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a call")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--address", default="local", help="of a Ray cluster on this machine")
    given = parser.parse_args()
    print("| way | limit | most in flight | requests | replies | s | ideal | of linear | start-up | CPU ms a chunk |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with model(given.seconds) as server, tempfile.TemporaryDirectory() as folder:
        ways: list[tuple[str, Any, int]] = [("threads", in_threads, 1)]
        ways += [(f"Ray, {workers} workers", on_ray(workers), workers) for workers in given.workers]
        in_threads(warm := job_for(Path(folder) / "warm", server, in_flight=1, threads=1), folder_of(warm, 1))
        with connected(given.address, seconds=30):
            for in_flight in given.in_flight:
                for name, work, workers in ways:
                    threads = in_flight if workers == 1 else min(in_flight, -(-2 * in_flight // workers))
                    place = Path(folder) / f"{name}-{in_flight}"
                    job = job_for(place, server, in_flight=in_flight, threads=threads)
                    measured(name, work, job, chunks=given.chunks, seconds=given.seconds)


if __name__ == "__main__":
    main()
