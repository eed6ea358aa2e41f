"""Compare and fork memories as methods of the client."""

from collections.abc import Callable

from hgmem.client.streaming import async_variant
from hgmem.errors import UsageError
from hgmem.graph.forking import Fork, write_fork
from hgmem.graph.memory import corpus_of, find_memory
from hgmem.memory.comparing import compare
from hgmem.memory.recording import new_uid
from hgmem.memory.stored_memories import load_memory
from hgmem.services import Services
from hgmem.systems.registry import describe
from hgmem.values.arguments import STEP, check
from hgmem.values.differences import MemoryDiff
from hgmem.values.records import Memory


class Comparing:
    """The methods that compare and fork memories."""

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        raise NotImplementedError

    def diff(
        self,
        uid: str,
        other: str | None = None,
        *,
        step: int | None = None,
        other_step: int | None = None,
        owner: str | None = None,
    ) -> MemoryDiff:
        """Return how memory `other` at the end of `other_step` differs from memory `uid` at the end of `step`.

        Steps default to the last, `other` to the same memory. Points are the same where they say the same of the same
        entities, in whichever memory. Raises `UsageError` for memories of several corpora and for pruned ones,
        `ConflictError` while a run holds one. With an `owner`, another's memory is not found.
        """
        check({"step": step, "other_step": other_step}, {"step": STEP, "other_step": STEP})
        if other is None and step is None and other_step is None:
            raise UsageError(f"nothing to compare memory {uid!r} with: name another memory, or a step")
        return compare(self._services(None, owner), (uid, step), (uid if other is None else other, other_step))

    def fork(self, uid: str, *, step: int | None = None, owner: str | None = None) -> Memory:
        """Return a new memory that begins as memory `uid` was at the end of `step`, by default the last.

        Continue it like any other (`ask(…, memory=…)`). The original does not change, and the fork needs nothing of
        it. It belongs to the original's owner; of a memory that everybody sees, to `owner`. Raises `ConflictError`
        while a run holds the memory, `UsageError` if it was pruned or its system can't continue memories.
        """
        return fork_memory(self._services(None, owner), uid, step=step)

    adiff = async_variant(diff)
    afork = async_variant(fork)


def fork_memory(
    services: Services, uid: str, *, step: int | None, name: str = "", accepted: Callable[[], object] = lambda: None
) -> Memory:
    """Return a fork of a memory of any corpus that the owner sees. Its uid is `name`, if that is given.

    `accepted` is called before it is written, once nothing else keeps it from being made.
    """
    check({"step": step}, {"step": STEP})
    database, owner = services.database, services.owner
    corpus, memory = corpus_of(database, uid=uid, owner=owner)
    system = describe(find_memory(database, corpus=corpus, memory=memory, owner=owner)["system"])
    if not system.installed:
        raise UsageError(f"memory {memory!r} cannot be forked: {system.summary}")
    if not system.continues:
        raise UsageError(
            f"memory {memory!r} was made by system {system.name!r}, which cannot continue a fork: ask a new question"
        )
    fork = Fork(corpus=corpus, memory=memory, uid=name or new_uid(), step=step, owner=owner)
    write_fork(database, fork, timeout=services.settings.claim_timeout, accepted=accepted)
    return load_memory(services, fork.uid)
