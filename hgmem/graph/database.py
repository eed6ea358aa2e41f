"""The one way to the server: runs statements by name, routes, times, retries, and translates errors once."""

import random
import re
import sys
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeAlias, TypeVar
from urllib.parse import urlsplit

import neo4j
from neo4j import exceptions as driver_errors

from hgmem.errors import ConflictError, ForbiddenError, GraphError, HGMemError, UnreachableError, UsageError
from hgmem.graph.statements import Statement, find_statement
from hgmem.models.metering import timed

Row: TypeAlias = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")

OLDEST_SERVER = (2026, 9)
_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_ENTITY_NOT_FOUND = (
    "Neo.ClientError.Statement.EntityNotFound"  # deleted by another between a match and its use: look again
)
_DEADLOCK = "Neo.TransientError.Transaction.DeadlockDetected"
_ALREADY_EXISTS = (
    "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"  # by another, after IF NOT EXISTS had looked
)
UNPAIRED_SURROGATE = "\\ud83d alone"  # no database takes half a character
_ATTEMPTS = 4
_RETRY_SECONDS = 5.0  # a deadlock is over in less; a server that is gone is said so soon
_SLOW = ("TransactionTimedOut", "LockClientStopped")  # the server stopped the query, or its wait for a lock
_FORBIDDEN = (  # for this user, or for everyone on a read-only database
    "Neo.ClientError.Security.Forbidden",
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server's address and credentials, with the password left out of `repr`."""

    uri: str
    username: str = "neo4j"
    password: str = field(default="", repr=False)
    database: str | None = None


def translate(error: Exception, *, statement: str, address: Address) -> HGMemError:
    """Return hgmem's error for one of the driver's."""
    if isinstance(error, driver_errors.AuthError):
        return GraphError(
            f"Neo4j at {address.uri!r} rejected the credentials of user {address.username!r}: check NEO4J_USERNAME "
            "and NEO4J_PASSWORD"
        )
    if isinstance(error, driver_errors.ClientError) and "DatabaseNotFound" in (error.code or ""):
        return UsageError(f"Neo4j at {address.uri!r} has no database {address.database!r}: check NEO4J_DATABASE")
    if isinstance(
        error, driver_errors.ServiceUnavailable | driver_errors.SessionExpired | driver_errors.ConfigurationError
    ):
        if _silent(error):
            return UnreachableError(
                f"Neo4j at {address.uri!r} stopped answering: check that the server runs, that NEO4J_URI names it, "
                "and that the network reaches it, then try again",
                retryable=True,
            )
        return UnreachableError(
            f"Neo4j at {address.uri!r} cannot be reached: start one with `hgmem up`, or set NEO4J_URI to a running "
            "server",
            retryable=True,
        )
    if isinstance(error, driver_errors.Neo4jError) and any(sign in (error.code or "") for sign in _SLOW):
        return GraphError(
            f"statement {statement!r} timed out: try again, or raise HGMEM_STATEMENT_TIMEOUT (seconds)",
            retryable=True,
        )
    if isinstance(error, driver_errors.Neo4jError) and error.code in _FORBIDDEN:
        return ForbiddenError(
            f"user {address.username!r} of Neo4j at {address.uri!r} may not run statement {statement!r} "
            f"({_first_line(error)}): grant the privilege, or use another user or server"
        )
    if isinstance(error, driver_errors.Neo4jError | driver_errors.DriverError) and error.is_retryable():
        return GraphError(f"statement {statement!r} was interrupted ({_first_line(error)}): try again", retryable=True)
    return GraphError(f"statement {statement!r} failed: {_first_line(error)}")


def _silent(error: BaseException | None) -> bool:
    """Whether the driver waited for an answer until its time was up, at an attempt to connect again included."""
    while error is not None:
        if isinstance(error, TimeoutError) or "timed out" in str(error).lower():
            return True
        error = error.__cause__
    return False


def _interrupted(error: BaseException | None, before: BaseException | None) -> bool:
    """Whether an error is an interrupt or came from one, later than `before`, which was being handled already."""
    while error is not None and error is not before:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def server_error(error: Exception) -> Exception:
    """Return the server's own error.

    When a rollback fails, the driver wraps that error in one of its own.
    """
    cause = error.__cause__
    return cause if isinstance(error, driver_errors.ResultFailedError) and isinstance(cause, Exception) else error


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0][:300]


class Rows(list[Any]):
    """A list that says little of itself: the driver writes out every parameter for its log, whether that is on or not.

    For 1,000 rows with vectors this takes five times as long as sending them.
    """

    def __repr__(self) -> str:
        return f"<{len(self)} rows>"


class Transaction:
    """A running transaction, whose statements see each other's writes."""

    def __init__(self, transaction: neo4j.ManagedTransaction | neo4j.Transaction) -> None:
        self._transaction = transaction
        self.last = ""

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""
        statement = _statement(name, parameters)
        self.last = name
        with timed("neo4j", name):
            return _rows(self._transaction.run(_literal(statement), _brief(parameters)))


class Once:
    """Runs each statement in a transaction of its own, and never again: for a caller that repeats it by itself."""

    def __init__(self, database: "Database") -> None:
        self._database = database

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement."""
        database = self._database
        with (
            timed("neo4j", "commit"),
            database._translated([name]),
            database._session(neo4j.WRITE_ACCESS) as session,
            session.begin_transaction(metadata={"statement": name}, timeout=database._timeout) as transaction,
        ):
            rows = Transaction(transaction).run(name, **parameters)
            transaction.commit()
        return rows


class Database:
    """A connected driver, a database name, and the statements."""

    def __init__(self, driver: neo4j.Driver, *, address: Address, timeout: float, owned: bool = True) -> None:
        self.address = address
        self.version = ""
        self.edition = ""
        self._driver = driver
        self._timeout = timeout
        self._owned = owned
        self._closed = False

    def close(self) -> None:
        """Close the driver, unless the caller brought it."""
        self._closed = True
        if self._owned:
            self._driver.close()

    def beside(self, name: str) -> "Database":
        """Return another database of the same server. Closing it leaves the connections open."""
        address = replace(self.address, database=name)
        other = Database(self._driver, address=address, timeout=self._timeout, owned=False)
        _probe(other, self._driver)
        return other

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement, in a transaction of its own: retried where that is safe."""
        statement = _statement(name, parameters)
        if statement.mode == "write":
            return self.write_as(name, _one, name, parameters)
        with timed("neo4j", name), self._translated([name]):
            return self._auto(statement, parameters)

    def explain(self, name: str) -> list[str]:
        """Return the operators of a statement's plan, without running it. Raises `GraphError` if it has no plan."""
        statement = find_statement(name)
        with self._translated([name]), self._session(neo4j.READ_ACCESS) as session:
            plan = session.run("EXPLAIN " + _literal(statement), {"in": {}}).consume().plan  # as a run has it planned
        return list(_operators(plan or {}))

    def write(self, work: Callable[Concatenate[Transaction, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what `work(transaction, …)` returns, in one transaction. `work` may run more than once."""
        return self.write_as(work.__name__.strip("_"), work, *arguments, **named)

    def write_as(
        self, name: str, work: Callable[Concatenate[Transaction, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Return what `write` returns, with `name` as the transaction's name in the server's log."""
        last = [name]  # the statement that an error is about

        @neo4j.unit_of_work(metadata={"statement": name}, timeout=self._timeout)
        def managed(transaction: neo4j.ManagedTransaction) -> T:
            running = Transaction(transaction)
            try:
                return work(running, *arguments, **named)
            finally:
                last[0] = running.last or name

        with timed("neo4j", "commit"), self._translated(last):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    with self._session(neo4j.WRITE_ACCESS) as session:
                        return session.execute_write(managed)
                except (driver_errors.Neo4jError, driver_errors.ResultFailedError) as error:
                    if attempt == _ATTEMPTS or _code(error) not in (
                        _ENTITY_NOT_FOUND,
                        _DEADLOCK,
                    ):  # the driver gave up on these
                        raise
                    _pause(attempt)
        raise AssertionError("the last attempt returns or raises")

    def _auto(self, statement: Statement, parameters: Row) -> list[Row]:
        query = neo4j.Query(_literal(statement), metadata={"statement": statement.name}, timeout=self._limit(statement))
        access = neo4j.READ_ACCESS if statement.mode == "read" else neo4j.WRITE_ACCESS
        last = float("inf")  # no attempt begins later: a line that fell silent would cost each of them seconds
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self._session(access) as session:
                    return _rows(session.run(query, _brief(parameters)))
            except (driver_errors.Neo4jError, driver_errors.DriverError) as error:
                last = min(last, time.monotonic() + _RETRY_SECONDS)
                overtaken = isinstance(error, driver_errors.ClientError) and error.code in (
                    _ENTITY_NOT_FOUND,
                    _ALREADY_EXISTS,
                )
                # The server's own failure: a read beside many writers met one, and went well when it was repeated.
                broken = isinstance(error, driver_errors.DatabaseError) and statement.mode == "read" and attempt == 1
                worthwhile = overtaken or broken or error.is_retryable()
                if attempt == _ATTEMPTS or time.monotonic() > last or not worthwhile:
                    raise
                _pause(attempt)
        raise AssertionError("the last attempt returns or raises")

    def _limit(self, statement: Statement) -> float | None:
        return self._timeout if statement.mode == "read" else None  # indexes and bulk deletes take what they take

    @contextmanager
    def _session(self, access: str) -> Iterator[neo4j.Session]:
        """Yield a session, whose connection is cut off if an interrupt ends the block.

        The driver would clean up and keep the connection, although an interrupt can come between any two lines: it then
        takes the answer to one statement for that to the next, or waits for ever. That a task was cancelled is the one
        reason for which it cuts a connection off.
        """
        if self._closed:
            raise UsageError("this client is closed: open another one")
        before = sys.exc_info()[1]
        try:
            with self._driver.session(
                database=self.address.database,
                default_access_mode=access,
                bookmark_manager=self._driver.execute_query_bookmark_manager,
            ) as session:
                try:
                    yield session
                except BaseException as error:
                    if _interrupted(error, before):
                        raise CancelledError from error
                    raise
        except CancelledError as error:
            raise KeyboardInterrupt from error

    @contextmanager
    def _translated(self, statement: list[str]) -> Iterator[None]:
        try:
            yield
        except (driver_errors.Neo4jError, driver_errors.DriverError) as error:
            raise translate(server_error(error), statement=statement[0], address=self.address) from error
        except UnicodeEncodeError as error:
            raise UsageError(
                f"statement {statement[0]!r}: a text has an unpaired surrogate, such as {UNPAIRED_SURROGATE}: remove it"
            ) from error


def connect(address: Address, *, connect_timeout: float, statement_timeout: float) -> Database:
    """Return a database that answered. A wrong address fails within seconds."""
    if not _is_address(address.uri):
        raise UsageError(f"{address.uri!r} is not a Neo4j address: use bolt://host:7687, neo4j://host, or +s for TLS")
    try:
        driver = neo4j.GraphDatabase.driver(
            address.uri,
            auth=(address.username, address.password),
            connection_timeout=connect_timeout,
            connection_acquisition_timeout=2 * connect_timeout,  # a server that accepts and then stays silent
            max_transaction_retry_time=_RETRY_SECONDS,
            notifications_disabled_classifications=["UNRECOGNIZED"],  # labels that an empty database lacks
            user_agent="hgmem",
            telemetry_disabled=True,
        )
    except (driver_errors.DriverError, ValueError) as error:
        raise UsageError(
            f"{address.uri!r} is not a Neo4j address ({error}): use bolt://host:7687 or neo4j://host"
        ) from error
    database = Database(driver, address=address, timeout=statement_timeout)
    try:
        _probe(database, driver)
    except BaseException:
        driver.close()
        raise
    return database


def _is_address(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return parts.scheme in _SCHEMES and (parts.port is None or parts.port > 0)
    except ValueError:  # the port is not a number, or a bracket is open
        return False


def wrap_driver(driver: neo4j.Driver, *, database: str | None, statement_timeout: float) -> Database:
    """Return a database on a driver that the caller owns and closes."""
    wrapped = Database(
        driver, address=Address(uri="the given driver", database=database), timeout=statement_timeout, owned=False
    )
    _probe(wrapped, driver)
    return wrapped


def _probe(database: Database, driver: neo4j.Driver) -> None:
    with database._translated(["server_version"]):
        driver.verify_connectivity()
    row = database.run("server_version")[0]
    database.version, database.edition = row["version"], row["edition"]
    numbers = tuple(int(part) for part in re.findall(r"\d+", database.version)[:2])
    if numbers < OLDEST_SERVER:
        year, month = OLDEST_SERVER
        raise GraphError(
            f"Neo4j at {database.address.uri!r} is {database.version}, hgmem needs {year}.{month:02} or newer: "
            "upgrade it, or start one with `hgmem up`"
        )


def _one(transaction: Transaction, name: str, parameters: Row) -> list[Row]:
    return transaction.run(name, **parameters)


def _rows(result: neo4j.Result) -> list[Row]:
    """Return the records unchanged: statements return maps, never nodes, so nothing needs conversion."""
    keys = result.keys()
    return [dict(zip(keys, record.values(), strict=True)) for record in result]


def _brief(parameters: Row) -> Row:
    every = {name: Rows(value) if isinstance(value, list | tuple) else value for name, value in parameters.items()}
    return {"in": every}


def _statement(name: str, parameters: Row) -> Statement:
    statement = find_statement(name)
    if parameters.keys() != set(statement.parameters):
        raise TypeError(f"statement {name!r} takes {statement.parameters}, got {tuple(parameters)}")
    return statement


def _operators(plan: Row) -> Iterator[str]:
    yield str(plan.get("operatorType", "")).partition("@")[0]
    for child in plan.get("children", ()):
        yield from _operators(child)


def _code(error: Exception) -> str | None:
    """Return the server's code of what went wrong."""
    cause = server_error(error)
    return cause.code if isinstance(cause, driver_errors.Neo4jError) else None


def _pause(attempt: int) -> None:
    time.sleep(0.1 * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311


def _literal(statement: Statement) -> LiteralString:
    return statement.query  # from our files, never from data


def leased(rows: list[Row], *, what: str) -> Row:
    """Return the one row of a write that checks its lease. No row means that the lease is lost."""
    if not rows:
        raise ConflictError(f"{what} is no longer held by this run: another run took it over, or it was deleted")
    return rows[0]


def remaining(rows: list[Row], *needed: str) -> list[Row]:
    """Return the rows that have these properties: a read gets nulls for a node that is deleted while it runs."""
    return [row for row in rows if all(row[name] is not None for name in needed)]
