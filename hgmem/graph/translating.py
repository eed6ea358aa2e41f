"""Translate the driver's errors into hgmem's, which say what to do."""

from dataclasses import dataclass, field

from neo4j import exceptions as driver_errors

from hgmem.errors import ForbiddenError, GraphError, HGMemError, UnreachableError, UsageError

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


def told(error: Exception) -> Exception:
    """Return the server's own error.

    When a rollback fails, the driver wraps that error in one of its own.
    """
    cause = error.__cause__
    return cause if isinstance(error, driver_errors.ResultFailedError) and isinstance(cause, Exception) else error


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0][:300]
