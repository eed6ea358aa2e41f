"""Errors of the driver as errors of ours, which say what to do."""

from dataclasses import dataclass, field

from neo4j import exceptions as driver_errors

from hgmem.errors import ForbiddenError, GraphError, HGMemError, UnreachableError, UsageError

_SLOW = ("TransactionTimedOut", "LockClientStopped")  # ended by the server, while working or while waiting for a lock
_FORBIDDEN = (  # to this user; to everybody, on a database that is read-only
    "Neo.ClientError.Security.Forbidden",
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server is and who asks; the password stays out of `repr`."""

    uri: str
    username: str = "neo4j"
    password: str = field(default="", repr=False)
    database: str | None = None


def translate(error: Exception, *, statement: str, address: Address) -> HGMemError:
    """Return the error of ours that says what to do about one of the driver's."""
    if isinstance(error, driver_errors.AuthError):
        return GraphError(
            f"Neo4j at {address.uri!r} refuses user {address.username!r}: check NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    if isinstance(error, driver_errors.ClientError) and "DatabaseNotFound" in (error.code or ""):
        return UsageError(f"Neo4j at {address.uri!r} has no database {address.database!r}: check NEO4J_DATABASE")
    if isinstance(
        error, driver_errors.ServiceUnavailable | driver_errors.SessionExpired | driver_errors.ConfigurationError
    ):
        return UnreachableError(
            f"Neo4j at {address.uri!r} can't be reached: start one with `hgmem up`, or set NEO4J_URI to one that runs",
            retryable=True,
        )
    if isinstance(error, driver_errors.Neo4jError) and any(sign in (error.code or "") for sign in _SLOW):
        return GraphError(
            f"statement {statement!r} took longer than it may: try again, or raise HGMEM_STATEMENT_TIMEOUT (seconds)",
            retryable=True,
        )
    if isinstance(error, driver_errors.Neo4jError) and error.code in _FORBIDDEN:
        return ForbiddenError(
            f"Neo4j at {address.uri!r} does not let user {address.username!r} run statement {statement!r} "
            f"({_first_line(error)}): grant the right, or use another user or server"
        )
    if isinstance(error, driver_errors.Neo4jError | driver_errors.DriverError) and error.is_retryable():
        return GraphError(f"statement {statement!r} was interrupted ({_first_line(error)}): try again", retryable=True)
    return GraphError(f"statement {statement!r} failed: {_first_line(error)}")


def told(error: Exception) -> Exception:
    """Return what the server said went wrong: rolling back, the driver may put an error of its own before it."""
    cause = error.__cause__
    return cause if isinstance(error, driver_errors.ResultFailedError) and isinstance(cause, Exception) else error


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0][:300]
