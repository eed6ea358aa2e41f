"""A step with the rows of its system's own, written in one transaction."""

from collections.abc import Mapping, Sequence

from hgmem.errors import UsageError
from hgmem.graph.database import Database, Transaction
from hgmem.graph.memory import Lease, write_step
from hgmem.graph.statements import find_statement
from hgmem.models.embedding import Vectors
from hgmem.values.records import Step, StepChanges
from hgmem.values.writes import Write

_GIVEN = ("corpus", "memory")  # parameters that the recording gives


def check_writes(writes: Sequence[Write], *, system: str) -> None:
    """Raise `UsageError` for the first write that cannot be part of a step of this system."""
    for write in writes:
        if why := _misfit(write):
            raise UsageError(f"system {system!r} cannot write statement {write.statement!r}: {why}")


def write_whole_step(
    database: Database, *, lease: Lease, step: Step, changes: StepChanges, vectors: Mapping[str, Vectors]
) -> list[str]:
    """Write one complete step as `write_step` does, then its `writes` in order: all of it, or nothing."""
    if not changes.writes:
        return write_step(database, lease=lease, step=step, changes=changes, vectors=vectors)
    return database.write_as("write_step", _written, lease=lease, step=step, changes=changes, vectors=vectors)


def _written(
    transaction: Transaction, *, lease: Lease, step: Step, changes: StepChanges, vectors: Mapping[str, Vectors]
) -> list[str]:
    kept = write_step(transaction, lease=lease, step=step, changes=changes, vectors=vectors)
    question = {"corpus": lease.corpus, "memory": lease.memory}
    for write in changes.writes:
        taken = find_statement(write.statement).parameters
        given = {name: value for name, value in question.items() if name in taken}
        transaction.run(write.statement, **write.parameters, **given)
    return kept


def _misfit(write: Write) -> str:
    """Return why a write cannot be part of a step, and the remedy, or `''`."""
    try:
        statement = find_statement(write.statement)
    except KeyError:
        return "it does not exist: name a statement of a Cypher file"
    if statement.mode != "write":
        return f"its mode is {statement.mode!r}: use a statement of mode 'write'"
    if "corpus" not in statement.parameters:
        return "it takes no $corpus: declare corpus, and use it on every node"
    if own := [name for name in _GIVEN if name in write.parameters]:
        return f"its ${own[0]} is that of the question: omit {own[0]!r} from its parameters"
    wanted = [name for name in statement.parameters if name not in _GIVEN]
    if set(wanted) != write.parameters.keys():
        return f"it was given the parameters {sorted(write.parameters)}: give {sorted(wanted)}"
    return ""
