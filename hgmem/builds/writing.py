"""Write what units made, each unit whole or not at all, and delete units that have no inputs any more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.builds.stages import Build
from hgmem.builds.unit_rows import Result
from hgmem.corpus.aggregation import batches
from hgmem.corpus.dependents import drop_dependents
from hgmem.corpus.guarded_writes import check_embedder
from hgmem.graph import built as graph
from hgmem.graph.builds import BuildLease, renew_build
from hgmem.graph.database import Transaction
from hgmem.models.embedding import Vectors
from hgmem.services import Services

UNITS = 500  # units deleted in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes the units of one run, under its lease."""

    services: Services
    build: Build[Any]
    lease: BuildLease

    def units(self, results: Sequence[Result]) -> set[str]:
        """Write what units made in one transaction, and return the uids of those that were written.

        A unit whose inputs have been deleted meanwhile is left out. Raises `ConflictError` if the lease is lost.
        """
        texts = {one["uid"]: one["properties"]["text"] for each in results for one in each.rows}
        stored = graph.made_by(
            self.services.database, corpus=self.services.corpus, uids=[each.unit["uid"] for each in results]
        )
        kept = {row["uid"] for row in stored if row["text"] is not None and row["text"] == texts.get(row["uid"])}
        fresh = {uid: text for uid, text in texts.items() if text and uid not in kept}
        made = self.services.embed(list(fresh.values()), kind="document") if fresh else ()
        vectors = dict(zip(fresh, made, strict=True))
        return self.services.database.write(_write_units, self, results, vectors)

    def failed(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Record why units were not made."""
        self.services.database.write(_fail_units, self, [dict(row) for row in rows])

    def finish(self) -> None:
        """Remove support that was inherited, as all units are made from their present inputs."""
        self.services.database.write(_finish, self)

    def delete(self, uids: Iterable[str]) -> None:
        """Delete units with their rows, and what rests on them."""
        for some in batches(uids, size=UNITS):
            self.services.database.write(_delete_units, self, some)


def _write_units(
    transaction: Transaction, writer: Writer, results: Sequence[Result], vectors: Mapping[str, Vectors]
) -> set[str]:
    corpus = _locked(transaction, writer)
    needed = [{*each.needed, *(tie["target"] for tie in each.ties)} for each in results]
    found = graph.standing(transaction, corpus=corpus, uids=set().union(*needed))
    found |= {row["uid"] for each in results for row in each.rows}
    whole = [each for each, uids in zip(results, needed, strict=True) if found >= uids]
    if whole:
        _replace(transaction, writer.lease, whole)
        graph.put_units(
            transaction, corpus=corpus, system=writer.lease.system, rows=[dict(each.unit) for each in whole]
        )
        _put_rows(transaction, corpus, whole, vectors)
        _put_extensions(transaction, corpus, whole)
    return {each.unit["uid"] for each in whole}


def _locked(transaction: Transaction, writer: Writer) -> str:
    """Lock the corpus, check the lease, and return the corpus's name."""
    corpus = writer.services.corpus
    check_embedder(transaction, writer.services)
    renew_build(transaction, writer.lease)
    return corpus


def _replace(transaction: Transaction, lease: BuildLease, results: Sequence[Result]) -> None:
    """Delete rows that the units do not make again, and release what the others no longer rest on."""
    corpus, system = lease.corpus, lease.system
    units = [each.unit["uid"] for each in results]
    rests_on = {uid: list(uids) for each in results for uid, uids in each.rests_on.items()}
    stored = [row["uid"] for row in graph.made_by(transaction, corpus=corpus, uids=units)]
    if gone := [uid for uid in stored if uid not in rests_on]:
        drop_dependents(transaction, corpus=corpus, uids=gone)
        graph.delete_built(transaction, corpus=corpus, uids=gone)
    graph.release_extensions(transaction, corpus=corpus, units=units)
    released = [
        {"uid": uid, "rests_on": rests_on.get(uid, [])} for uid in (*units, *set(stored).intersection(rests_on))
    ]
    graph.release_support(transaction, corpus=corpus, system=system, rows=released)


def _put_rows(transaction: Transaction, corpus: str, results: Sequence[Result], vectors: Mapping[str, Vectors]) -> None:
    rows = [row for each in results for row in each.rows]
    if rows:
        graph.withdraw_quotes(transaction, corpus=corpus, texts={row["uid"]: row["properties"]["text"] for row in rows})
        graph.put_built(transaction, corpus=corpus, rows=[dict(row) for row in rows])
    if embedded := [row for row in rows if row["uid"] in vectors]:
        graph.put_built_vectors(
            transaction,
            corpus=corpus,
            rows=[{"uid": row["uid"], "own": row["own"], "vector": vectors[row["uid"]]} for row in embedded],
        )
    if bare := [row["uid"] for row in rows if not row["properties"]["text"]]:
        graph.clear_text_vectors(transaction, corpus=corpus, uids=bare)
    plain = {uid: value for each in results for uid, value in each.plain.items()}
    if given := [{"uid": uid, "vector": value} for uid, value in plain.items() if value is not None]:
        graph.put_plain_vectors(transaction, corpus=corpus, rows=given)
    if none := [uid for uid, value in plain.items() if value is None]:
        graph.clear_plain_vectors(transaction, corpus=corpus, uids=none)
    support = [{"uid": uid, "rests_on": list(on)} for each in results for uid, on in each.rests_on.items()]
    if support:
        graph.put_support(transaction, corpus=corpus, rows=support)


def _put_extensions(transaction: Transaction, corpus: str, results: Sequence[Result]) -> None:
    """Write ties and vectors that units give to rows, of other units too."""
    extended = []
    for each in results:
        tied = {tie["source"] for tie in each.ties} - set(_uids(each))
        extended += [
            {"unit": each.unit["uid"], "uid": uid, "vector": each.vectors.get(uid)}
            for uid in sorted({*tied, *each.vectors})
        ]
    if extended:
        graph.put_extensions(transaction, corpus=corpus, rows=extended)
    if ties := [dict(tie) for each in results for tie in each.ties]:
        graph.put_ties(transaction, corpus=corpus, rows=ties)


def _uids(result: Result) -> list[str]:
    return [row["uid"] for row in result.rows]


def _fail_units(transaction: Transaction, writer: Writer, rows: Sequence[dict[str, Any]]) -> None:
    corpus = _locked(transaction, writer)
    graph.fail_units(transaction, corpus=corpus, system=writer.lease.system, rows=rows)


def _finish(transaction: Transaction, writer: Writer) -> None:
    corpus = _locked(transaction, writer)
    graph.drop_inherited(transaction, corpus=corpus, system=writer.lease.system)


def _delete_units(transaction: Transaction, writer: Writer, uids: Sequence[str]) -> None:
    corpus = _locked(transaction, writer)
    rows = [row["uid"] for row in graph.made_by(transaction, corpus=corpus, uids=uids)]
    drop_dependents(transaction, corpus=corpus, uids=[*uids, *rows])
    graph.release_extensions(transaction, corpus=corpus, units=uids)
    graph.delete_built(transaction, corpus=corpus, uids=rows)
    graph.delete_units(transaction, corpus=corpus, uids=uids)
