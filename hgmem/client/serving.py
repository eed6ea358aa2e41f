"""What a service of several processes keeps in a client's database: keys, sessions, their use, and jobs."""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Unpack

from hgmem.client import intake, upkeep
from hgmem.client.client import HGMem
from hgmem.client.comparing import fork_memory
from hgmem.client.verbs import SystemVerbs, with_verbs
from hgmem.errors import ConflictError, KeyRefusedError, LimitError, NotFoundError
from hgmem.graph.database import Database, Row
from hgmem.graph.memory import place_of
from hgmem.memory.stored_memories import answered_before, load_memory
from hgmem.models.metering import Meter, measuring
from hgmem.systems.verbs import method_name
from hgmem.text.identity import check_corpus_name
from hgmem.values.access import KEY_ARGUMENTS, Job, Key, KeyOptions, Spent
from hgmem.values.arguments import OWNER, AskOptions, check
from hgmem.values.as_json import written
from hgmem.values.events import Event, Listener, QuestionAccepted
from hgmem.values.inputs import ONCE, Document, Repeatable, Skipped
from hgmem.values.records import Answer, Memory
from hgmem.values.reports import ArchiveReport, Report

TOKEN_BYTES = 32
FRESH = 3.0  # seconds that a key is believed without asking the database: a revoked one fails within five
MOST_KNOWN = 10_000  # keys in memory
SESSION = 8 * 3_600  # seconds that a session lasts
OTHERWISE = "this Idempotency-Key was sent with another request: send each request its own"
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ServiceStore:
    """Keys, their use, and jobs in the database of a client. Its methods are for doors, and have no async variants."""

    client: HGMem

    @property
    def _database(self) -> Database:
        return self.client._database

    # Keys -------------------------------------------------------------------------------------------------------

    def make_key(self, owner: str, **options: Unpack[KeyOptions]) -> tuple[str, Key]:
        """Make a key of the service for this owner, and return its token and the key.

        The token is stored nowhere. `KeyOptions` lists the options.
        """
        check({"owner": owner, **options}, {"owner": OWNER, **KEY_ARGUMENTS})
        uid, token = f"k{secrets.token_hex(6)}", f"hgm_{secrets.token_urlsafe(TOKEN_BYTES)}"
        limits = {name: value for name, value in options.items() if name not in ("scopes", "corpora", "days")}
        properties = {
            "hash": _hash(token),
            "owner": owner.strip(),
            "scopes": list(dict.fromkeys(options.get("scopes", ("read", "ask")))),
            "corpora": [check_corpus_name(name) for name in options.get("corpora", ())],
        }
        days = options.get("days")
        self._database.run(
            "create_key", uid=uid, properties=properties | limits, seconds=None if days is None else days * _DAY
        )
        return token, next(key for key in self.service_keys() if key.uid == uid)

    def service_keys(self) -> list[Key]:
        """Return all keys of the service, the newest first."""
        return [_key(row) for row in self._database.run("list_keys")]

    def key_of(self, token: str) -> Key | None:
        """Return the key of a token, whatever its state, or None if there is none."""
        rows = self._database.run("find_key", digest=_hash(token))
        return _key(rows[0]) if rows else None

    def revoke_key(self, uid: str) -> None:
        """Revoke a key (uid). Running processes of the service refuse it within five seconds."""
        if not self._database.run("revoke_key", uid=uid):
            raise NotFoundError(f"key {uid!r} not found: list keys with `hgmem keys list`")

    def begin_session(self, key: Key) -> str:
        """Begin a session of a key, and return its token, which is stored nowhere."""
        token = f"hgs_{secrets.token_urlsafe(TOKEN_BYTES)}"
        self._database.run("create_session", digest=_hash(token), key=key.uid, seconds=SESSION)
        return token

    def session_key(self, token: str) -> Key | None:
        """Return the key of a session, whatever its state, or None if the session is over or there is none."""
        rows = self._database.run("find_session", digest=_hash(token))
        return _key(rows[0]) if rows else None

    def end_session(self, token: str) -> None:
        """End a session, if there is one."""
        self._database.run("end_session", digest=_hash(token))

    def spend(self, key: str, *, questions: int = 0, tokens: int = 0, size: int = 0) -> Spent:
        """Count what a key (uid) uses, over all processes: questions, tokens, and the bytes of an upload."""
        return Spent(**self._database.run("spend", uid=key, questions=questions, tokens=tokens, bytes=size)[0])

    # Questions and documents ------------------------------------------------------------------------------------

    def spend_within(self, key: Key, *, questions: int = 0, tokens: int = 0, size: int = 0) -> int | None:
        """Count what a key uses, and return how many tokens are left today, or None without a limit.

        Raises `LimitError` if that is over a limit of the key.
        """
        if not key.is_limited:
            return None
        spent = self.spend(key.uid, questions=questions, tokens=tokens, size=size)
        if spent.over:
            unit, _, time = spent.over.replace("_", " ").partition(" per ")
            most = getattr(key, spent.over)
            message = f"this key is limited to {most:,} {unit} a {time}: try again in {spent.wait} seconds"
            raise LimitError(message, wait=spent.wait)
        return spent.left

    async def astream_within(
        self, key: Key, text: str, options: AskOptions, *, questions: int = 1, once: Repeatable = ONCE
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a question that a key asks, within the key's limits. Its memory is of the key's owner.

        It counts as so many `questions`: 0 for another attempt at the same.
        """
        if (memory := options.get("memory")) is not None:
            await asyncio.to_thread(self.memory_of, memory, key)
        options["owner"] = key.owner or None if memory is None else key.sees
        left = await asyncio.to_thread(self.spend_within, key, questions=questions)
        if left is not None:
            options["max_tokens"] = min(left, options.get("max_tokens") or left)
        events, paid = self._measured_events(text, options, once)
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            if paid():
                await asyncio.to_thread(self.spend_within, key, tokens=paid())

    def memory_of(self, uid: str, key: Key) -> tuple[str, str]:
        """Return the corpus and the uid of the memory of `uid` (also of a point or an answer), if the key sees it.

        The memory of another owner, of nobody, or of a corpus out of reach is not found, as one that does not exist.
        """
        corpus, memory, owner = place_of(self._database, uid=uid, owner=key.sees)
        if key.sees not in (None, owner) or not key.reaches(corpus):
            raise NotFoundError(
                f"memory, point or answer {uid!r} not found: list memories with `hgmem memory list --corpus …`"
            )
        return corpus, memory

    def stop(self, key: Key, memory: str) -> str:
        """End the run that answers a memory that the key sees, at its next write, and return the memory's uid."""
        corpus, uid = self.memory_of(memory, key)
        self._database.run("stop_memory", corpus=corpus, memory=uid, owner=key.sees)
        return uid

    def fork_within(self, key: Key, memory: str, *, step: int | None, name: str = "") -> Memory:
        """Return a fork of a memory that the key sees, within the key's limits: it counts as a question.

        With a `name` as its uid, a fork that was made before is returned again, also where its original is gone.
        """
        services = self.client._services(None, key.sees)
        if found := self.named(name, key):
            return found
        uid = self.memory_of(memory, key)[1]
        spend = cache(lambda: self.spend_within(key, questions=1))  # once, however often the fork is tried
        try:
            return fork_memory(services, uid, step=step, name=name, accepted=spend)
        except ConflictError:
            if found := self.named(name, key):  # the same request came twice at once
                return found
            raise

    def named(self, uid: str, key: Key) -> Memory | None:
        """Return the memory of this uid, if it exists and the key sees it."""
        try:
            return load_memory(self.client._services(None, key.sees), uid) if uid else None
        except NotFoundError:
            return None

    def _measured_events(
        self, question: str, options: AskOptions, once: Repeatable
    ) -> tuple[AsyncGenerator[Event, None], Callable[[], int]]:
        """Return the events of `astream`, and what returns the tokens of language models that they have cost so far."""
        meters: list[Meter] = []

        def work(listener: Listener) -> object:
            with measuring() as meter:
                meters.append(meter)
                return self.client._answered(question, options, listener, once)

        return self.client._streams.astreamed(work), lambda: sum(meter.paid for meter in meters)

    def measured(self) -> AbstractContextManager[Meter]:
        """Return a context that counts what is spent inside it: its `paid` are the tokens of language models."""
        return measuring()

    def check_upload(self, corpus: str, name: str) -> None:
        """Raise an error if a file of this name can't be read, or if it or the corpus's is no name."""
        check_corpus_name(corpus)
        intake.check_upload(name)

    def archive(self, corpus: str, file: Path, *, memories: bool, embeddings: bool) -> None:
        """Write the archive of a corpus to a new file."""
        self.client.export(file, corpus=corpus, memories=memories, embeddings=embeddings)

    def import_archive(self, corpus: str, data: bytes, *, report: Report) -> ArchiveReport:
        """Import an uploaded archive of this corpus, and return what it holds."""
        with intake.stored("archive.jsonl.gz", data) as file:
            return upkeep.import_archive(self.client._services(corpus), file, corpus=corpus, report=report)

    def documents_in(self, name: str, data: bytes) -> Sequence[Document | Skipped]:
        """Return the documents of an uploaded file, with its name in place of a path."""
        return intake.uploaded(name, data, self.client.settings)

    def look(self, key: Key, verb: str, given: Mapping[str, object], *, corpus: str) -> tuple[object, list[str]]:
        """Return what a verb that only reads (`system/verb`) gives a key, and notes.

        Raises `NotFoundError` if there is no such verb.
        """
        system, _, name = verb.partition("/")
        known = with_verbs(system)
        if known is None or not any(one.name == name and one.reads for one in known.verbs):
            raise NotFoundError(f"system {system!r} has no verb {name!r} that only reads: GET /systems lists them")
        notes: list[str] = []
        services = self.client._services(corpus, key.sees)
        verbs = SystemVerbs(system, lambda _: services, note=notes.append)
        value = getattr(verbs, method_name(name))(**given)
        if key.sees is not None and isinstance(value, list | tuple):
            value = [one for one in value if not hasattr(one, "memory") or getattr(one, "owner", "") == key.sees]
        return value, notes

    # Jobs -------------------------------------------------------------------------------------------------------

    def make_job(
        self, job: Job, *, digest: str = "", data: bytes | None = None
    ) -> tuple[bool, QuestionAccepted | None]:
        """Leave a job to any process of the service, unless there is one with its uid.

        Returns whether it is fresh, and a question as it was accepted. `digest` stands for what is asked for: raises
        `ConflictError` if the job of this uid is another.
        """
        properties = {
            **{name: getattr(job, name) for name in ("kind", "corpus", "key", "owner", "state")},
            "arguments": json.dumps(dict(job.arguments)),
            "digest": digest,
            "data": data,
        }
        timeout = self.client.settings.claim_timeout
        row = self._database.run("create_job", uid=job.uid, properties=properties, timeout=timeout)[0]
        if row["digest"] != digest:
            raise ConflictError(OTHERWISE)
        asked = row["asked"]
        return row["fresh"], QuestionAccepted(**asked, corpus=job.corpus) if asked["memory"] else None

    def keep_question(self, job: str, asked: QuestionAccepted) -> None:
        """Keep how a question was accepted, without its text, so that its repetition continues it."""
        kept = {name: getattr(asked, name) for name in ("memory", "steps", "answers")}
        self._database.run("set_job_question", uid=job, asked={**kept, "question": _hash(asked.question)})

    def free_question(self, job: str) -> None:
        """Let a question be sent again at once that was not accepted."""
        self._database.run("free_question", uid=job)

    def answered_before(self, key: Key, asked: QuestionAccepted) -> tuple[Memory, Answer | None]:
        """Return the memory of a question of this key, as it was kept, and the answer that it was given there."""
        self.memory_of(asked.memory, key)
        services = self.client._services(None, key.sees)
        return answered_before(services, asked, lambda text: _hash(text) == asked.question)

    def job(self, uid: str) -> Job:
        """Return a job. Raises `NotFoundError` if there is none."""
        found = self.find_job(uid)
        if found is None:
            raise NotFoundError(f"job {uid!r} not found: list the jobs of its corpus")
        return found

    def find_job(self, uid: str) -> Job | None:
        """Return a job, or None if there is none."""
        rows = self._database.run("find_job", uid=uid)
        return _job(rows[0]) if rows else None

    def jobs(self, *, corpus: str) -> list[Job]:
        """Return the jobs of the corpus, the newest first."""
        return [_job(row) for row in self._database.run("list_jobs", name=corpus)]

    def cancel_job(self, uid: str) -> None:
        """Cancel a job, before its next piece of work if it runs."""
        self._database.run("cancel_job", uid=uid)

    def claim_job(self, run: str) -> tuple[Job, bytes] | None:
        """Lease the oldest job that waits, or whose process is gone, to this run, and return it with its upload."""
        rows = self._database.run("claim_job", run=run, timeout=self.client.settings.claim_timeout)
        return (_job(rows[0]), bytes(rows[0]["data"] or b"")) if rows else None

    def renew_job(self, job: str, run: str, *, done: int, total: int) -> bool:
        """Renew the lease of a job with its progress, and return whether to stop: it is cancelled, or lost."""
        rows = self._database.run("renew_job", uid=job, run=run, done=done, total=total)
        return not rows or rows[0]["cancel"]

    def release_job(self, job: str, run: str, *, state: str, result: object = None, error: str = "") -> None:
        """End the run of a job: `done`, `failed`, `cancelled`, or `waiting` for another run."""
        report = "" if result is None else written(result)
        self._database.run("release_job", uid=job, run=run, state=state, result=report, error=error)

    def forget_jobs(self, *, days: int) -> None:
        """Delete the records of jobs that ended so many days ago, and the sessions that are over."""
        self._database.run("forget_jobs", days=days)
        self._database.run("forget_sessions")


@dataclass(slots=True)
class KnownKeys:
    """The keys of one process's callers, each asked for anew after `FRESH` seconds."""

    store: ServiceStore
    _known: dict[tuple[str, bool], tuple[float, Key]] = field(default_factory=dict)

    def find(self, token: str, *, session: bool = False) -> Key:
        """Return the key of a token, or of a session's token. Raises `KeyRefusedError` if it is not to be used."""
        until, known = self._known.get((token, session), (0.0, None))
        if known is not None and time.monotonic() <= until:
            return known
        began = time.monotonic()
        self.forget(token, session=session)
        key = self.store.session_key(token) if session else self.store.key_of(token)
        if key is None:
            unknown = "this key is not known: make one with `hgmem keys make`"
            raise KeyRefusedError("this session is over: log in again" if session else unknown)
        if key.state != "active":
            raise KeyRefusedError(f"this key is {key.state}: make another with `hgmem keys make`")
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[token, session] = (began + FRESH, key)
        return key

    def forget(self, token: str, *, session: bool = False) -> None:
        """Forget a token, so that the database is asked for it."""
        self._known.pop((token, session), None)


def _hash(token: str) -> str:
    """Return what is stored of a token.

    A token is 32 random bytes: nobody can try them all, so a hash that is slow on purpose, or salted, adds nothing.
    """
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _key(row: Row) -> Key:
    found = row["key"]
    return Key(**{**found, "scopes": tuple(found["scopes"]), "corpora": tuple(found["corpora"])})


def _job(row: Row) -> Job:
    found = {name: value for name, value in row["job"].items() if value is not None}
    for name in ("arguments", "result"):
        found[name] = json.loads(found.get(name) or "null")
    return Job(**found)
