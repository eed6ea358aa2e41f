"""Writes that wait for a rival's write, as with many writers, at a moment that the test chooses."""

import threading
from collections.abc import Callable

import neo4j

_BLOCKED = "SHOW TRANSACTIONS YIELD status WHERE status STARTS WITH 'Blocked' RETURN status"
_LOOKS = 600


def overtaken(opened: neo4j.Driver, ours: Callable[[], object], rival: str, **parameters: object) -> list[Exception]:
    """Run our write so that it waits for the rival's uncommitted statement; return our write's exception."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            ours()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    with opened.session() as session, session.begin_transaction() as transaction:
        transaction.run(rival, parameters).consume()
        thread.start()
        _wait(opened)
        transaction.commit()
    thread.join(timeout=30)
    assert not thread.is_alive(), "ours never ended"
    return raised


def _wait(opened: neo4j.Driver) -> None:
    for _ in range(_LOOKS):
        if opened.execute_query(_BLOCKED).records:
            return
    raise AssertionError("ours never waited for the rival")
