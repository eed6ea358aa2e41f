"""Load test: many threads ask while others index and delete, without errors and without leaks.

    python tests/long/load.py [--seconds 30] [--askers 16] [--indexers 2] [--seed N] [--stall 120]

Quiet corpora must give the same answers as without other work. The busy corpora change all the time: questions there
must not fail, and at the end their entities, relations and vectors must match the chunks. Then the client closes, and
its threads and connections must be gone. A question, a document or a part of the script that takes longer than
`--stall` seconds ends the run with the stacks of all threads.
"""

import argparse
import logging
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TypeAlias

import psutil
from kills import FailedError

from hgmem import Document, HGMem, Settings
from hgmem.sources.files import load
from hgmem.text.identity import uid
from hgmem.text.resources import resource
from hgmem.values.records import Answer, Citation

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from dumping import check, driver, dump
from servers import alone
from stalls import Watchdog

Said: TypeAlias = tuple[str, tuple[Citation, ...]]

QUIET = ("quiet-1", "quiet-2", "quiet-3")
BUSY = ("busy-1", "busy-2")
QUESTIONS = (
    "Who took the Ravensund Orrery, and where is it hidden?",
    "What links the Tamswell Company to the director of the museum?",
    "What happened to the Corrie Vane?",
    "Who held the Heron Seal?",
)
FIRST = 4  # documents of a busy corpus at the start
SHOWN = 10  # failures
ENOUGH = 30  # number of failures that end the run
SETTLING = 10.0  # seconds until the server has dropped closed connections
DELETED = 0.1  # of an indexer's turns
ASKED_BUSY = 0.25  # of an asker's turns


@dataclass
class Tally:
    """The results of all threads until `deadline`; reports every turn to the watchdog."""

    deadline: float
    watchdog: Watchdog
    questions: int = 0
    documents: int = 0
    deleted: int = 0
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def repeat(self, turn: Callable[["Tally"], None]) -> None:
        """Repeat turns until time is up; record an error as a failure and continue."""
        while time.monotonic() < self.deadline and len(self.failures) < ENOUGH:
            self.watchdog.begin(f"a turn of {type(turn).__name__}")
            try:
                turn(self)
            except Exception:
                self.fail(traceback.format_exc())
            finally:
                self.watchdog.end()

    def add(self, *, questions: int = 0, documents: int = 0, deleted: int = 0) -> None:
        """Count."""
        with self.lock:
            self.questions += questions
            self.documents += documents
            self.deleted += deleted

    def fail(self, why: str) -> None:
        """Record a failure."""
        with self.lock:
            self.failures.append(why)


@dataclass(frozen=True)
class Asker:
    """Asks quiet corpora, whose answers are known, and sometimes a busy one."""

    client: HGMem
    wanted: dict[tuple[str, str], Said]
    draw: random.Random

    def __call__(self, tally: Tally) -> None:
        """Ask one question."""
        question = self.draw.choice(QUESTIONS)
        if self.draw.random() < ASKED_BUSY:
            self.client.ask(question, corpus=self.draw.choice(BUSY))
        else:
            corpus = self.draw.choice(QUIET)
            found, wanted = said(self.client.ask(question, corpus=corpus)), self.wanted[corpus, question]
            if found != wanted:
                tally.fail(f"{corpus}: {question!r} was answered {found}, and {wanted} when nothing else went on")
        tally.add(questions=1)


@dataclass(frozen=True)
class Indexer:
    """Edits, adds and deletes its own documents in corpora that others also write to."""

    client: HGMem
    name: str
    documents: list[Document]
    draw: random.Random

    def __call__(self, tally: Tally) -> None:
        """Add one edited document, or delete one."""
        corpus, original = self.draw.choice(BUSY), self.draw.choice(self.documents)
        identity = f"{self.name}/{Path(original.source).name}/{original.id}"
        if self.draw.random() < DELETED:
            known = {row["uid"] for row in self.client.documents(corpus=corpus)}
            document = uid(corpus, "document", identity)
            if document in known:
                self.client.delete(document=document, corpus=corpus)
                tally.add(deleted=1)
            return
        report = self.client.add(replace(original, id=identity, text=self._edited(original)), corpus=corpus)
        if report.errors or report.skipped or report.documents + report.unchanged != 1:
            tally.fail(f"{corpus}: adding {identity!r} gave {report}")
        tally.add(documents=1)

    def _edited(self, document: Document) -> str:
        """Return the text with a sentence of another document inserted: new chunks, shared entities."""
        paragraphs = document.text.split("\n\n")
        sentence = self.draw.choice(self.draw.choice(self.documents).text.split(". "))
        paragraphs.insert(self.draw.randrange(len(paragraphs) + 1), f"{sentence.strip()}.")
        return "\n\n".join(paragraphs)


class Retries(logging.Handler):
    """Counts transactions that the driver retries, mostly deadlocks, instead of printing each."""

    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a retry; anything else is printed."""
        if "will be retried" in record.getMessage():
            self.number += 1
        else:
            print(record.getMessage())


def said(answer: Answer) -> Said:
    """Return the parts of an answer that must be the same each time."""
    return answer.text, answer.citations


def documents() -> list[Document]:
    """Return the documents of the demo corpus."""
    found = load(resource("examples", "affair"), max_bytes=10**6)
    return [item for item in found if isinstance(item, Document)]


def prepare(client: HGMem, watchdog: Watchdog) -> dict[tuple[str, str], Said]:
    """Fill the corpora; return the answers of the quiet ones without other work."""
    for corpus in QUIET:
        watchdog.begin("filling a quiet corpus")
        client.add(documents(), corpus=corpus)
    for corpus in BUSY:
        watchdog.begin("filling a busy corpus")
        client.add(documents()[:FIRST], corpus=corpus)  # the others are added during the questions
    wanted = {}
    for corpus, question in product(QUIET, QUESTIONS):
        watchdog.begin("the first question")
        wanted[corpus, question] = said(client.ask(question, corpus=corpus))
    watchdog.end()
    if not all(text and citations for text, citations in wanted.values()):
        raise FailedError("a quiet corpus gave no answer with citations")
    return wanted


def work(client: HGMem, given: argparse.Namespace, watchdog: Watchdog) -> Tally:
    """Run all threads to their end and return their results."""
    wanted = prepare(client, watchdog)
    retries = Retries(logging.WARNING)
    logging.getLogger("neo4j").addHandler(retries)
    began, memory = time.monotonic(), resident()
    tally = Tally(deadline=began + given.seconds, watchdog=watchdog)
    turns: list[Callable[[Tally], None]] = [
        Asker(client, wanted, random.Random(f"{given.seed} asker {number}")) for number in range(given.askers)
    ]
    turns += [
        Indexer(client, f"indexer-{number}", documents(), random.Random(f"{given.seed} indexer {number}"))
        for number in range(given.indexers)
    ]
    threads = [threading.Thread(target=tally.repeat, args=(turn,)) for turn in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    print(f"{given.askers} askers: {tally.questions} questions, {tally.questions / seconds:.1f} a second")
    print(
        f"{given.indexers} indexers: {tally.documents} documents, {tally.documents / seconds:.1f} a second, "
        f"and {tally.deleted} deleted; {retries.number} transactions repeated"
    )
    print(f"resident memory: {memory:.0f} MB at the start, {resident():.0f} MB at the end, {seconds:.0f} s later")
    return tally


def resident() -> float:
    """Return the resident megabytes of this process."""
    return psutil.Process().memory_info().rss / 1e6


def connections(settings: Settings) -> int:
    """Return the number of client connections of the server."""
    with driver(settings) as opened:
        rows = opened.execute_query("CALL dbms.listConnections() YIELD userAgent RETURN userAgent").records
    return sum(row["userAgent"] == "hgmem" for row in rows)


def leaks(settings: Settings, before: set[threading.Thread]) -> list[str]:
    """Return the remaining threads and connections of a closed client."""
    waited = time.monotonic() + SETTLING
    while (left := connections(settings)) and time.monotonic() < waited:
        time.sleep(0.2)
    threads = [thread.name for thread in set(threading.enumerate()) - before]
    return [f"{left} connections are left"] * bool(left) + [f"threads are left: {threads}"] * bool(threads)


def load_test(settings: Settings, given: argparse.Namespace, watchdog: Watchdog) -> list[str]:
    """Run the load test; return its failures."""
    before = set(threading.enumerate())
    with HGMem.open(QUIET[0], **settings.model_dump(exclude_none=True)) as client:
        tally = work(client, given, watchdog)
        watchdog.begin("checking")
        most = 2 * given.askers + given.indexers  # a thread per question renews its lease
        if (used := connections(settings)) > most:
            tally.fail(f"{most} threads left {used} connections open")
        for corpus in (*QUIET, *BUSY):
            tally.failures += [
                f"{corpus}: {one.name}: {one.meaning}, {one.uids}" for one in client.check(corpus=corpus).findings
            ]
        watchdog.begin("closing")
    watchdog.begin("comparing the graph with what its chunks give")
    for corpus in BUSY:
        check(dump(settings, corpus))
    watchdog.begin("looking for what is left")
    left = leaks(settings, before)
    watchdog.end()
    return tally.failures + left


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Ask and index from many threads; nobody may get an error.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--askers", type=int, default=16)
    parser.add_argument("--indexers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is asked and edited")
    parser.add_argument("--stall", type=float, default=120.0, help="seconds that a turn may take")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with alone() as own, Watchdog(given.stall, own=own) as watchdog:
        failures = load_test(own.settings, given, watchdog)
    for failure in failures[:SHOWN]:
        print(f"FAILED: {failure}")
    print(f"{len(failures)} failures" if failures else "no errors, nothing left over")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
