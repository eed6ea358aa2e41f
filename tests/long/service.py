"""Load on the service: clients ask two processes, one of which is killed in the middle, and nothing is lost or doubled.

    python tests/long/service.py [--minutes 10] [--clients 16] [--uploaders 2] [--library 60] [--pause 0]

The model is scripted, in a process of its own, and answers after `--pause` seconds. First as many threads of the
library ask for `--library` seconds, to compare with. Then the clients ask both processes in turn, each question with an
Idempotency-Key, and the uploaders leave documents, each of which is a job. In the middle the first process is killed
with SIGKILL, and another is started in its place. One question in ten is first left by its reader, who keeps it going
and has it stopped by the other process, and is then sent again. A client whose process is gone sends its question to
the other one again, until the lease of its memory is old; that is the only error that may come. At the end each
question has one memory, one answer and each step once; each upload is done, and its chunks are there once.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from dumping import driver
from letters import LETTERS, NAMES, QUESTION
from playing import playing
from servers import alone
from serving import Service, events_of, serving
from wire import Answered, Asked, WireServer

from hgmem import HGMem, Settings
from hgmem.client.serving import ServiceStore

CORPUS, UPLOADS = "load-questions", "load-uploads"
STEPS = 2
STOPPED = 0.1  # of the questions
AGAIN = 0.5  # seconds before a client repeats a question, or looks at its job again
PATIENCE = 120.0  # seconds that a question or a job may take
PARAGRAPHS = 12  # of an upload
LEASES = {"HGMEM_CLAIM_TIMEOUT": "10", "HGMEM_HEARTBEAT": "2"}

MEMORIES = """
MATCH (m:Memory {corpus: $corpus})
RETURN m.uid AS uid, m.status AS status, COUNT { (m)-[:HAS_ANSWER]->() } AS answers,
       COLLECT { MATCH (m)-[:HAS_STEP]->(s) RETURN s.number } AS steps
"""


@dataclass
class Tally:
    """What the clients have seen until `deadline`. `answered` has the seconds of each question, and when it ended."""

    processes: list[Service]
    deadline: float
    answered: list[tuple[float, float]] = field(default_factory=list)
    memories: Counter[str] = field(default_factory=Counter)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    provoked: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def sent(self, turn: int, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request to one of the processes in turn, and after its end, or while a lease is not old, again."""
        headers = dict(request.pop("headers"))
        token, until = headers.pop("token"), time.monotonic() + PATIENCE
        while True:
            service = self.processes[turn % len(self.processes)]
            try:
                with service.http(token) as http:
                    response = http.request(method, path, headers=headers, **request)
                if response.status_code not in (409, 503):
                    return response
                why = str(response.status_code)
            except httpx.TransportError as error:
                why = type(error).__name__
            with self.lock:
                self.provoked[why] += 1
            if time.monotonic() > until:
                raise AssertionError(f"{method} {path} was not answered in {PATIENCE:g} s: {why}")
            turn += 1
            time.sleep(AGAIN)


def ask(tally: Tally, token: str, client: int, draw: random.Random) -> None:
    """Ask until time is up."""
    number = 0
    while time.monotonic() < tally.deadline:
        began, number = time.monotonic(), number + 1
        body = {"question": f"{QUESTION} And {draw.choice(NAMES)} in letter {client}.{number}?", "steps": STEPS}
        headers = {"Idempotency-Key": f"{client}.{number}", "token": token}
        if draw.random() < STOPPED:
            stop(tally, client + number, headers, body)
        response = tally.sent(client + number, "POST", f"/corpora/{CORPUS}/questions", json=body, headers=headers)
        ended = time.monotonic()
        with tally.lock:
            if response.status_code == 200:
                tally.answered.append((ended - began, ended))
                tally.memories[response.json()["memory"]] += 1
            else:
                tally.failures.append(f"question {client}.{number}: {response.status_code} {response.text[:300]}")


def stop(tally: Tally, turn: int, headers: dict[str, str], body: dict[str, Any]) -> None:
    """Ask a question that goes on without its reader, leave it at its first event, and stop it by the other process."""
    one, other = (tally.processes[at % len(tally.processes)] for at in (turn, turn + 1))
    headers = {**headers, "Accept": "text/event-stream"}
    token, path = headers.pop("token"), f"/corpora/{CORPUS}/questions?keep=true"
    why = "stopped"
    try:
        with one.http(token) as http, http.stream("POST", path, json=body, headers=headers) as response:
            response.raise_for_status()
            memory = next(events_of(response))[1]["memory"]
        with other.http(token) as http:
            http.post(f"/memories/{memory}/stop").raise_for_status()
    except httpx.TransportError as error:
        why = type(error).__name__
    with tally.lock:
        tally.provoked[why] += 1


def upload(tally: Tally, token: str, client: int, draw: random.Random) -> None:
    """Upload documents until time is up, and wait for the job of each."""
    number, headers = 0, {"token": token}
    while time.monotonic() < tally.deadline:
        number += 1
        name = f"upload-{client}-{number}.txt"
        lines = (f"{draw.choice(NAMES)} met {draw.choice(NAMES)} on day {day} of {name}. " for day in range(PARAGRAPHS))
        content = "\n\n".join(line * 20 for line in lines).encode()
        path, keyed = f"/corpora/{UPLOADS}/documents", {**headers, "Idempotency-Key": name}
        response = tally.sent(number, "POST", path, params={"name": name}, content=content, headers=keyed)
        if response.status_code != 202:
            with tally.lock:
                tally.failures.append(f"{name}: {response.status_code} {response.text[:300]}")
            continue
        until, job = time.monotonic() + PATIENCE, response.json()
        while job["state"] in ("waiting", "running") and time.monotonic() < until:
            time.sleep(AGAIN)
            job = tally.sent(number, "GET", f"/jobs/{job['uid']}", headers=headers).json()
        with tally.lock:
            tally.jobs.append(job)


def guarded(tally: Tally, work: Any, *arguments: Any) -> None:
    """Do the work of one client, whose error is a failure."""
    try:
        work(tally, *arguments)
    except Exception as error:
        with tally.lock:
            tally.failures.append(f"{work.__name__} {arguments[1]}: {type(error).__name__}: {error}")


def serve_model(pause: float, port: Any) -> None:
    """Serve the scripted model for ever, and say where."""
    script = playing()

    def slowly(asked: Asked) -> Answered:
        time.sleep(pause)
        return script(asked)

    with WireServer(slowly) as server:
        port.send(server.base_url)
        while True:
            time.sleep(1)
            server.requests.clear()


@contextmanager
def model(pause: float) -> Iterator[dict[str, str]]:
    """Yield the settings of a scripted model in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve_model, args=(pause, there), daemon=True)
    process.start()
    try:
        yield {"model": "wire", "openai_base_url": here.recv(), "openai_api_key": "any"}
    finally:
        process.kill()


def library(client: HGMem, threads: int, seconds: float) -> float:
    """Return how many questions a second so many threads of one process ask through the library."""
    client.ask(QUESTION, steps=STEPS)
    began = time.monotonic()

    def work(thread: int) -> int:
        done = 0
        while time.monotonic() < began + seconds:
            client.ask(f"{QUESTION} And in letter l{thread}.{done}?", steps=STEPS)
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(work, range(threads)))
    return done / (time.monotonic() - began)


def loaded(client: HGMem, given: argparse.Namespace, environment: dict[str, str], token: str) -> dict[str, Any]:
    """Run the clients on two processes, kill one, and return what they saw, with what is wrong at the end."""
    seconds = 60 * given.minutes
    with ExitStack() as stack:
        first, second = (stack.enter_context(serving(client, **environment)) for _ in range(2))
        began = time.monotonic()
        tally = Tally([first, second], began + seconds)
        threads = [
            threading.Thread(target=guarded, args=(tally, work, token, at, random.Random(f"{work.__name__} {at}")))
            for work, number in ((ask, given.clients), (upload, given.uploaders))
            for at in range(number)
        ]
        for thread in threads:
            thread.start()
        time.sleep(min(10.0, seconds / 4))
        memory = {"start": [resident(one) for one in tally.processes]}
        time.sleep(max(0.0, began + seconds / 2 - time.monotonic()))
        memory["middle"] = [resident(one) for one in tally.processes]
        killed = time.monotonic()
        first.kill()
        tally.processes[0] = stack.enter_context(serving(client, **environment))
        replaced = time.monotonic()
        for thread in threads:
            thread.join()
        memory["end"] = [resident(one) for one in tally.processes]
        said = [line for service in (first, *tally.processes) for line in service.lines]
    tally.failures += [
        f"the service says: {line}" for line in said if line["event"] in ("unexpected", "failed", "jobs")
    ]
    return {
        **summary(tally, began, killed, replaced),
        "megabytes": memory,
        "failures": tally.failures + wrong(client, tally),
    }


def summary(tally: Tally, began: float, killed: float, replaced: float) -> dict[str, Any]:
    """Return the figures of the clients."""
    took = sorted(seconds for seconds, _ in tally.answered)
    ends = [ended for _, ended in tally.answered]
    return {
        "questions": len(took),
        "questions a second before the kill": round(sum(one < killed for one in ends) / (killed - began), 2),
        "questions a second after": round(sum(one > killed for one in ends) / (max(ends) - killed), 2),
        "seconds until the killed process was replaced": round(replaced - killed, 1),
        "seconds of a question (median, 95 of 100, most)": [
            round(took[at], 2) for at in (len(took) // 2, 95 * len(took) // 100, -1)
        ],
        "jobs": len(tally.jobs),
        "jobs of two processes": sum(job["attempts"] > 1 for job in tally.jobs),
        "requests sent again, by reason": dict(tally.provoked),
    }


def wrong(client: HGMem, tally: Tally) -> list[str]:
    """Return what was lost or doubled."""
    found = []
    with driver(client.settings) as opened:
        rows = [row.data() for row in opened.execute_query(MEMORIES, corpus=CORPUS).records]
    stored = {row["uid"] for row in rows}
    if stored != tally.memories.keys() or len(tally.answered) != len(stored):
        found.append(
            f"{len(tally.answered)} questions were answered from {len(tally.memories)} memories of {len(stored)}"
        )
    found += [
        f"memory {row['uid']}: {row}"
        for row in rows
        if (row["status"], row["answers"], sorted(row["steps"])) != ("answered", 1, list(range(1, STEPS + 1)))
    ]
    found += [f"job {job}" for job in tally.jobs if job["state"] != "done" or job["result"]["failed"]]
    titles = [chunk.title for chunk in client.chunks(corpus=UPLOADS)]
    if len(set(titles)) != len(tally.jobs):
        found.append(f"{len(tally.jobs)} uploads are {len(set(titles))} documents")
    ends = {job["result"]["documents"] + job["result"]["unchanged"] for job in tally.jobs if job["result"]}
    if ends != {1}:
        found.append(f"uploads were {ends} documents")
    for corpus in (CORPUS, UPLOADS):
        found += [f"{corpus}: {one.name}: {one.uids[:3]}" for one in client.check(corpus=corpus).findings]
    return found


def resident(service: Service) -> int:
    """Return the resident megabytes of a process of the service."""
    return round(psutil.Process(service.process.pid).memory_info().rss / 1e6)


def prove(settings: Settings, given: argparse.Namespace) -> dict[str, Any]:
    """Measure the library, then the service, and return the figures and the failures."""
    with model(given.pause) as modelled, tempfile.TemporaryDirectory() as cache:
        values = {
            **settings.model_dump(exclude_none=True),
            **modelled,
            "cached_tasks": frozenset(),
            "cache": Path(cache),
        }
        environment = {"HGMEM_CACHED_TASKS": "[]", "HGMEM_CACHE": cache, **LEASES}
        environment |= {"HGMEM_MODEL": modelled["model"]}
        environment |= {f"OPENAI_{name}": modelled[f"openai_{name.lower()}"] for name in ("BASE_URL", "API_KEY")}
        with HGMem.open(CORPUS, **values) as client:
            for corpus in ("load-library", CORPUS):
                client.add_graph(LETTERS, corpus=corpus)
            client.add_graph(LETTERS, corpus=UPLOADS)
            client.delete(document="letters", corpus=UPLOADS)
            with HGMem.open("load-library", **values) as alone_client:
                alone_rate = library(alone_client, given.clients, given.library)
            token, _ = ServiceStore(client).make_key("load", scopes=["read", "ask", "write"], corpora=[CORPUS, UPLOADS])
            found = loaded(client, given, environment, token)
    return {"questions a second of the library, one process": round(alone_rate, 2), **found}


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--uploaders", type=int, default=2)
    parser.add_argument("--library", type=float, default=60.0, help="seconds that the library is measured")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a reply of the model takes")
    given = parser.parse_args()
    with alone() as own:
        found = {"load of the machine": os.getloadavg()[0], **prove(own.settings, given)}
    failures = found.pop("failures")
    print(json.dumps(found, indent=1))
    for failure in failures[:20]:
        print(f"FAILED: {failure}")
    print(f"{len(failures)} failures" if failures else "nothing was lost or doubled, no error but those of the kill")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
