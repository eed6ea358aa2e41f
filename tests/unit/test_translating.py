"""What becomes of the driver's errors."""

import pytest
from neo4j.exceptions import Neo4jError

from hgmem.errors import ForbiddenError, GraphError
from hgmem.graph.database import Address, translate

ADDRESS = Address(uri="bolt://db", username="ann")


def refused(code: str) -> Neo4jError:
    """Return what the driver makes of a server's failure."""
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
        "Neo4j at 'bolt://db' does not let user 'ann' run statement 'paint_entities' (No.): grant the right, or use "
        "another user or server"
    )
    assert not error.retryable


@pytest.mark.parametrize("code", ["Neo.ClientError.Schema.ConstraintValidationFailed", "Neo.DatabaseError.General.X"])
def test_what_fails_otherwise_is_no_lack_of_a_right(code: str) -> None:
    assert type(translate(refused(code), statement="paint_entities", address=ADDRESS)) is GraphError
