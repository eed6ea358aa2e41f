"""Concurrent transactions: rolled-back transactions are retried."""

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from neo4j import exceptions as driver_errors

from hgmem import Document, GraphError, HGMem
from hgmem.graph.corpus import create_corpus, lock_corpus
from hgmem.graph.database import Transaction
from hgmem.graph.documents import document_states, put_documents

DEADLOCK = {"code": "Neo.TransientError.Transaction.DeadlockDetected", "message": "a deadlock"}
SYNTAX = {"code": "Neo.ClientError.Statement.SyntaxError", "message": "not so"}
COPY = """
MATCH (n:Corpus|Document|Memory) WHERE n.name = $corpus OR n.corpus = $corpus
UNWIND range(1, 100) AS number
CREATE (made:$(labels(n)))
SET made = n {.*, copy: $corpus, name: n.name + number, uid: n.uid + number}
"""


class Loud(str):
    """A text that may be sent, but not printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError("the rows were written out")


def test_rows_are_sent_without_being_written_out_for_a_log(client: HGMem, corpus: str) -> None:
    database, uids = client._database, [Loud("one"), Loud("two")]
    create_corpus(database, corpus=corpus, status="ready", embedder=("deterministic", 64), settings={})
    assert document_states(database, corpus=corpus, uids=uids) == {}  # read separately
    put_documents(database, corpus=corpus, documents={uid: {"title": Loud("x"), "sha256": ""} for uid in uids})
    assert database.write(lambda at: at.run("entity_contributions", corpus=corpus, uids=uids)) == []


def test_transactions_that_wait_for_each_other_both_end_well(client: HGMem, corpus: str) -> None:
    database = client._database
    names = [f"{corpus}{end}" for end in "ab"]
    for name in names:
        create_corpus(database, corpus=name, status="ready", embedder=("deterministic", 64), settings={})
    met = threading.Barrier(2)
    attempts: list[str] = []
    failures: list[Exception] = []

    def work(transaction: Transaction, first: str, second: str) -> None:
        attempts.append(first)
        transaction.run("mark_corpus", corpus=first, status="ready")
        if len(attempts) <= 2:
            met.wait(timeout=30)
        transaction.run("mark_corpus", corpus=second, status="ready")

    def run(first: str, second: str) -> None:
        try:
            database.write(work, first, second)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=ends) for ends in (names, names[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for name in names:
        client.delete(corpus=name)
    assert failures == []
    assert len(attempts) > 2


def failing(errors: list[dict[str, str]]) -> Callable[..., int]:
    """Return work that fails with each of these, like a driver whose rollback also fails, and then succeeds."""
    calls: list[int] = []

    def work(transaction: Transaction) -> int:
        calls.append(len(calls))
        if len(calls) <= len(errors):
            cause: Any = driver_errors.Neo4jError._hydrate_neo4j(**errors[len(calls) - 1])
            raise driver_errors.ResultFailedError(None, "the result has failed") from cause
        return len(calls)

    return work


def test_a_deadlock_behind_an_error_of_the_drivers_own_is_repeated_too(client: HGMem) -> None:
    assert client._database.write(failing([DEADLOCK, DEADLOCK])) == 3


def test_what_the_server_said_is_what_is_raised(client: HGMem) -> None:
    with pytest.raises(GraphError, match=r"'work' failed: .*not so"):
        client._database.write(failing([SYNTAX]))
    with pytest.raises(GraphError, match=r"interrupted \(.*a deadlock.*try again") as raised:
        client._database.write(failing([DEADLOCK] * 9))
    assert raised.value.retryable


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python ignores some, and says so
def test_a_statement_after_an_interrupt_gets_its_own_answer(client: HGMem, corpus: str) -> None:
    database, chance = client._database, random.Random(7)
    create_corpus(database, corpus=corpus, status="ready", embedder=("deterministic", 64), settings={})
    interrupted = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.01))
                database.write(lock_corpus, corpus=corpus)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            row = database.write(lock_corpus, corpus=corpus)
            assert row is not None
            assert row.corpus == corpus
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 50


def test_what_is_deleted_while_it_is_listed_is_left_out(client: HGMem, corpus: str) -> None:
    client.add([Document(id="one", text="Anna sold the mill to Bo.")], graph=False)
    client.ask("Who sold the mill?", system="naive")
    run, over = client._database._driver.execute_query, threading.Event()
    rounds: list[int] = []
    failed: list[Exception] = []
    remove = "MATCH (n:Corpus|Document|Memory {copy: $corpus}) DELETE n"

    def come_and_go() -> None:
        try:
            while not over.is_set():
                run(COPY, corpus=corpus)
                run(remove, corpus=corpus)
                rounds.append(1)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=come_and_go, daemon=True)
    thread.start()
    found: list[object] = []
    until = time.monotonic() + 5
    try:
        while time.monotonic() < until:
            found += [one["created_at"] for one in client.corpora()] + [one["id"] for one in client.documents()]
            found += [one.question for one in client.memories()]
    finally:
        over.set()
        thread.join(timeout=30)
        run(remove, corpus=corpus)
    assert None not in found
    if failed:
        raise failed[0]
    assert rounds
    assert not thread.is_alive()
