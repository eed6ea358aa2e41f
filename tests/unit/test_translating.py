"""Translation of the driver's errors."""

import pytest
from neo4j.exceptions import Neo4jError, ServiceUnavailable

from hgmem.errors import ForbiddenError, GraphError, UnreachableError
from hgmem.graph.database import Address, translate

ADDRESS = Address(uri="bolt://db", username="ann")


def refused(code: str) -> Neo4jError:
    """Return the driver's error for a server's failure."""
    return Neo4jError._hydrate_neo4j(code=code, message="No.")


@pytest.mark.parametrize(
    "code",
    [
        "Neo.ClientError.Security.Forbidden",
        "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
        "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
    ],
)
def test_what_a_user_may_not_do_is_told_from_all_else(code: str) -> None:
    error = translate(refused(code), statement="paint_entities", address=ADDRESS)
    assert type(error) is ForbiddenError
    assert str(error) == (
        "user 'ann' of Neo4j at 'bolt://db' may not run statement 'paint_entities' (No.): grant the privilege, or use "
        "another user or server"
    )
    assert not error.retryable


@pytest.mark.parametrize("code", ["Neo.ClientError.Schema.ConstraintValidationFailed", "Neo.DatabaseError.General.X"])
def test_what_fails_otherwise_is_no_lack_of_a_right(code: str) -> None:
    assert type(translate(refused(code), statement="paint_entities", address=ADDRESS)) is GraphError


@pytest.mark.parametrize(
    ("said", "cause", "expected"),
    [
        ("Failed to read from defunct connection", TimeoutError("timed out"), "'bolt://db' stopped answering: check"),
        ("Timed out trying to establish connection to db", None, "'bolt://db' stopped answering: check"),
        ("Failed to read from defunct connection", OSError("reset by peer"), "'bolt://db' cannot be reached: start"),
        ("Couldn't connect", None, "'bolt://db' cannot be reached: start"),
    ],
)
def test_a_server_that_stopped_answering_is_told_from_one_that_is_gone(
    said: str, cause: Exception | None, expected: str
) -> None:
    error = ServiceUnavailable(said)
    error.__cause__ = cause
    found = translate(error, statement="retrieve", address=ADDRESS)
    assert type(found) is UnreachableError
    assert expected in str(found)
    assert found.retryable
