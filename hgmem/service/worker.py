"""The worker of a process: it does jobs, one at a time, those of processes that are gone included."""

import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hgmem.client import HGMem
from hgmem.client.serving import ServiceStore
from hgmem.errors import BudgetError, ConflictError, HGMemError, UnreachableError
from hgmem.service.log import say, say_error
from hgmem.values.access import Job
from hgmem.values.reports import Progress

LOOK = 2.0  # seconds between looks for a job, and between renewals of the lease of one that runs
ATTEMPTS = 5  # processes that a job may end before it counts as failed
KEPT_DAYS = 30  # that the record of a job stays


class StoppedError(HGMemError):
    """Raised inside a job that is cancelled, or whose process is to end."""


@dataclass(slots=True)
class Worker:
    """A thread that does jobs until `stop`."""

    client: HGMem
    wake: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _running: "_Run | None" = None

    @property
    def store(self) -> ServiceStore:
        """What the service keeps in the client's database."""
        return ServiceStore(self.client)

    def start(self) -> None:
        """Begin to look for jobs."""
        self._thread = threading.Thread(target=self._work, name="hgmem-jobs", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Begin no other job, and leave one that runs to other processes at its next piece of work."""
        self._ended.set()
        self.wake.set()

    def stop(self, *, seconds: float) -> bool:
        """End, and leave a job that runs to other processes after so many seconds at the latest.

        Returns whether all its calls have returned.
        """
        self.end()
        if self._thread:
            self._thread.join(seconds)
        if running := self._running:
            running.give_up()
        return running is None

    def _work(self) -> None:
        swept = 0.0
        while not self._ended.is_set():
            found = None
            try:
                if time.monotonic() > swept:
                    self.store.forget_jobs(days=KEPT_DAYS)
                    swept = time.monotonic() + 3_600
                run = secrets.token_hex(8)
                found = self.store.claim_job(run)
                if found:
                    self._do(*found, run)
            except HGMemError as error:  # such as a database that is gone: another look will tell
                say(event="jobs", error=str(error))
                found = None
            except Exception as error:
                say_error(error)
                found = None
            if not found:
                self.wake.wait(LOOK)
                self.wake.clear()

    def _do(self, job: Job, data: bytes, run: str) -> None:
        self._running = running = _Run(self.client, job, run, self._ended)
        try:
            self.client.watcher.job(job.kind, lambda: running.do(data))
        finally:
            self._running = None


@dataclass(slots=True)
class _Run:
    """The run of one job."""

    client: HGMem
    job: Job
    run: str
    ended: threading.Event
    done: int = 0
    total: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def store(self) -> ServiceStore:
        """What the service keeps in the client's database."""
        return ServiceStore(self.client)

    def do(self, data: bytes) -> str:
        """Do the job, write how it ended, and return this state.

        Without a database, its lease gets old, and another run takes it over.
        """
        if self.job.attempts > ATTEMPTS:
            return self._release("failed", error=f"the job ended {ATTEMPTS} processes: look into their logs")
        say(event="job", job=self.job.uid, kind=self.job.kind, corpus=self.job.corpus, attempt=self.job.attempts)
        beat = threading.Thread(target=self._beat, name="hgmem-job-lease", daemon=True)
        beat.start()
        try:
            return self._release("done", result=self._done(data))
        except StoppedError:
            return self._release("waiting" if self.ended.is_set() else "cancelled")
        except ConflictError as error:
            self.ended.wait(LOOK)  # a build's lease of the process that is gone is not old yet
            return self._release("waiting", error=str(error))
        except UnreachableError:
            raise
        except HGMemError as error:
            return self._release("failed", error=str(error))
        except Exception as error:
            say_error(error)
            return self._release("failed", error="unexpected: the service's operator finds the reason in the log")
        finally:
            self.over.set()
            beat.join()

    def give_up(self) -> None:
        """Leave the job to another process, although a call of this one has not returned."""
        with suppress(HGMemError):
            self._release("waiting")

    def _done(self, data: bytes) -> object:
        key = self.job.key
        left = self.store.spend(key).left if key else None
        if left is not None and left <= 0:
            raise BudgetError("the key's tokens of this day are used up: begin the job again tomorrow")
        with self.store.measured() as meter:
            try:
                return self._work(data, {} if left is None else {"max_tokens": left})
            finally:
                if meter.paid and key:
                    self.store.spend(key, tokens=meter.paid)

    def _work(self, data: bytes, limits: dict[str, int]) -> object:
        corpus, given = self.job.corpus, dict(self.job.arguments)
        common: Any = {"corpus": corpus, "report": self._report, **limits}
        if self.job.kind == "index":
            found = self.store.documents_in(given["name"], data)
            return self.client.add(found, graph=given.get("graph", True), **common)
        if self.job.kind == "import":
            return self.store.import_archive(corpus, data, report=self._report)
        if self.job.kind == "retry":
            return self.client.retry_failed(**common)
        return self.client.build(given.pop("system"), **given, **common)

    def _report(self, progress: Progress) -> None:
        self.done, self.total = progress.done, progress.total
        if self.stopped.is_set() or self.ended.is_set():
            raise StoppedError("the job is stopped")

    def _beat(self) -> None:
        while not self.over.wait(LOOK):
            try:
                if self.store.renew_job(self.job.uid, self.run, done=self.done, total=self.total):
                    self.stopped.set()
            except HGMemError:
                continue  # the next beat may reach the database again

    def _release(self, state: str, *, result: object = None, error: str = "") -> str:
        self.over.set()
        self.store.release_job(self.job.uid, self.run, state=state, result=result, error=error)
        say(event="job ended", job=self.job.uid, state=state, **({"error": error} if error else {}))
        return state
