"""Writes that wait for a rival's write, as with many writers, at a moment that the test chooses."""

import re
import secrets
import threading
import time
from collections.abc import Callable

import neo4j

_TRANSACTIONS = "SHOW TRANSACTIONS YIELD transactionId, status, metaData RETURN transactionId, status, metaData"
_SECONDS = 30


def overtaken(opened: neo4j.Driver, ours: Callable[[], object], rival: str, **parameters: object) -> list[Exception]:
    """Run our write so that it waits for the rival's uncommitted statement; return our write's exception."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            ours()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    mark = secrets.token_hex(6)
    with opened.session() as session, session.begin_transaction(metadata={"rival": mark}) as transaction:
        transaction.run(rival, parameters).consume()
        thread.start()
        _wait(opened, mark)
        transaction.commit()
    thread.join(timeout=30)
    assert not thread.is_alive(), "ours never ended"
    return raised


def _wait(opened: neo4j.Driver, mark: str) -> None:
    """Wait until a transaction is blocked by the marked one: other test processes block each other too."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        rows = opened.execute_query(_TRANSACTIONS).records
        (ours,) = [row["transactionId"] for row in rows if row["metaData"].get("rival") == mark]
        if any(
            row["status"].startswith("Blocked") and re.search(rf"\b{re.escape(ours)}\b", row["status"]) for row in rows
        ):
            return
        time.sleep(0.02)
    raise AssertionError("ours never waited for the rival")
