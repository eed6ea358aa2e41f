"""Check what systems have built: uids, layers, the index, and the systems' own invariants."""

from collections.abc import Sequence

from hgmem.corpus.checking.contents import first_axis
from hgmem.corpus.checking.tally import Tally
from hgmem.corpus.own_invariants import OwnInvariant, OwnInvariants
from hgmem.corpus.paging import pages
from hgmem.graph.builds import find_builds
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.database import Row
from hgmem.graph.exporting import built_uids, unit_uids
from hgmem.graph.invariants import indexed_built, stored_built, stored_units
from hgmem.services import Services
from hgmem.text.identity import build_uid, built_uid, layer_key, unit_uid

BATCH = 1_000  # rows checked together
REPORT = "report this to the system's authors"


def check_builds(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally builds, units and rows whose uid is another, and rows that the index does not find."""
    database, corpus = services.database, services.corpus
    builds = [build for build, _, _ in find_builds(database, corpus=corpus)]
    tally.add("built-identity", [one.uid for one in builds if one.uid != build_uid(corpus, one.system)])
    for uids in pages(database, unit_uids, corpus=corpus, size=BATCH):
        units = stored_units(database, corpus=corpus, uids=uids)
        tally.add("built-identity", [uid for uid, unit in units.items() if not _is_unit(corpus, unit)])
    for uids in pages(database, built_uids, corpus=corpus, size=BATCH):
        rows = stored_built(database, corpus=corpus, uids=uids, dimensions=row.dimensions)
        tally.add("built-identity", [uid for uid, each in rows.items() if not _is_row(corpus, each)])
        found = indexed_built(database, corpus=corpus, uids=uids, query=first_axis(row))
        tally.add("built-not-in-index", [uid for uid, each in rows.items() if each["embedded"] and uid not in found])


def check_own(services: Services, own: Sequence[OwnInvariants], tally: Tally) -> None:
    """Tally what violates the systems' own invariants. One that raises is a note, and the others are checked."""
    for each in own:
        for invariant in each.invariants:
            _check_one(services, each.system, invariant, tally)


def _check_one(services: Services, system: str, invariant: OwnInvariant, tally: Tally) -> None:
    name = f"{system}:{invariant.name}"
    remedy = (
        f"delete the build with `hgmem delete --corpus {services.corpus} --system {system}`, and make it again with "
        f"`hgmem build {system} --corpus {services.corpus}`"
    )
    try:
        uids = [str(uid) for uid in invariant.violated(services.database, services.corpus)]
    except Exception as error:  # another package's code
        said = " ".join(f"{type(error).__name__}: {error}".split())
        tally.add_own(name, [], meaning=f"system {system!r} raised {said}", remedy=REPORT, failed=True)
        return
    tally.add_own(name, uids, meaning=invariant.meaning, remedy=remedy)


def _is_unit(corpus: str, unit: Row) -> bool:
    return bool(unit["uid"] == unit_uid(corpus, unit["system"], stage=unit["stage"], key=unit["key"]))


def _is_row(corpus: str, row: Row) -> bool:
    system, kind = row["system"], row["kind"]
    return (
        row["uid"] == built_uid(corpus, system, kind=kind, key=row["key"])
        and row["layer_key"] == layer_key(corpus, system, kind)
        and {"Built", kind} <= set(row["labels"])
    )
