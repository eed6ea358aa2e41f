"""What systems have built is exported, imported, counted and deleted with the corpus, with or without their package."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dumping import Dump, driver, dump
from forked import run_hgmem
from moving import HERE, moved
from test_builds import HELD, Renamed, document
from toying import learn, uninstalled

from hgmem import DocumentError, HGMem, UsageError
from hgmem.cli.server import checkup
from hgmem.corpus.archive.lines import Chain
from hgmem.corpus.archive.records import VERSION, footer
from hgmem.corpus.checking import check
from hgmem.graph.invariants import OwnInvariant

Open = Callable[..., HGMem]
pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture
def toyed(client: HGMem) -> HGMem:
    """A client of a corpus with a build, a learnt row and a memory."""
    client.add([document(number) for number in range(7)])
    client.build("toy")
    learn(client)
    client.ask("Who is only3?", system="toy")
    assert client.ask("Who is only3?", system="toy", settings={"cite_topics": True}).citations[0].built
    return client


def settled(client: HGMem) -> Dump:
    """Return all data of the corpus without what another run of a build changes."""
    ran = {"attempts", "calls", "change", "changed_at", "finished_at", "tokens"}
    return moved(client.settings, client.corpus, without=HERE | ran)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def written(said: list[dict[str, Any]], path: Path) -> Path:
    """Write records as an archive with valid digests and counts."""
    plain = [{name: value for name, value in record.items() if name != "digest"} for record in said[:-1]]
    chain, counts = Chain(), dict[str, int]()
    for record in plain[1:]:
        counts[record["kind"]] = counts.get(record["kind"], 0) + 1
    path.write_bytes(gzip.compress(b"".join(chain.line(record) for record in (*plain, footer(counts)))))
    return path


def test_a_build_comes_back_as_it_was_and_is_not_made_again(toyed: HGMem, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    done = toyed.export(first)
    before, checkup = moved(toyed.settings, toyed.corpus), toyed.check()
    toyed.delete()
    report = toyed.import_archive(first)
    toyed.export(second)

    assert (checkup.findings, checkup.notes, done.notes, report.notes) == ((), (), (), ())
    assert moved(toyed.settings, toyed.corpus) == before
    assert first.read_bytes() == second.read_bytes()
    assert records(first)[0]["version"] == VERSION
    assert (report.counts["Built"], report.counts["Unit"]) == (toyed.status().built, toyed.status().units)
    assert toyed.check() == checkup
    again = toyed.build("toy")
    assert (again.made, again.deleted, again.whole) == (0, 0, True)
    assert toyed.ask("Who is only3?", system="toy").notes == ()


def test_without_its_package_a_build_is_kept_told_checked_reembedded_and_deleted(
    toyed: HGMem, tmp_path: Path, toy: Path, open_client: Open
) -> None:
    path = tmp_path / "some"
    with uninstalled():
        done = toyed.export(path)
        before = moved(toyed.settings, toyed.corpus)
        toyed.delete()
        report = toyed.import_archive(path)
        rows = toyed.status().built

        assert done.notes == ()
        assert report.notes == (f"system 'toy' is not installed: {rows} rows that it has built are imported and kept",)
        assert moved(toyed.settings, toyed.corpus) == before
        assert toyed.import_archive(path).notes == ()
        assert (toyed.check().findings, toyed.check().notes) == ((), ())
        (state,) = toyed.status().builds
        assert (state.system, state.status, sum(state.rows.values())) == ("toy", "ready", rows)
        with pytest.raises(UsageError, match="unknown system 'toy'"):
            toyed.build("toy")
    assert toyed.build("toy").made == 0
    with uninstalled():
        other = open_client(embedder=Renamed(dimensions=32))
        other.reembed()
        assert other.check().ok
        assert not [node for node in dump(toyed.settings, toyed.corpus).of("Built").values() if "vector" in node]
        other.delete(system="toy")
        assert (other.status().built, other.status().units, other.status().builds) == (0, 0, ())
        assert other.check().ok


def test_without_vectors_the_texts_are_embedded_and_the_next_build_gives_the_others(
    toyed: HGMem, tmp_path: Path, open_client: Open
) -> None:
    path = tmp_path / "light"
    toyed.export(path, embeddings=False)
    before, gists = settled(toyed), toyed.status().builds[0].rows["ToyGist"]
    assert b'embedding":"' not in gzip.decompress(path.read_bytes())
    toyed.delete()
    toyed.import_archive(path)
    (state,) = toyed.status().builds
    assert (state.status, state.change) == ("stale", "imported without vectors")
    assert toyed.check().ok
    assert toyed.build("toy").made == gists  # the blended vectors
    assert settled(toyed) == before

    toyed.delete()
    other = open_client(embedder=Renamed(dimensions=32))
    other.import_archive(path)
    assert other.status().builds[0].change == "the corpus has another embedder"
    assert other.check().ok
    assert other.build("toy").made == 2 * gists  # the gists of the rule-based model, and the blended vectors
    kept = [node for node in dump(other.settings, other.corpus).of("ToyGist").values() if "vector" in node]
    assert len(kept) == gists  # made again by the system's own function


def test_a_build_that_is_being_made_is_exported_as_unfinished(toyed: HGMem, tmp_path: Path) -> None:
    with driver(toyed.settings) as opened:
        opened.execute_query(HELD, corpus=toyed.corpus)
    done = toyed.export(tmp_path / "some")
    toyed.delete()
    toyed.import_archive(tmp_path / "some")

    assert done.notes == ("the build 'toy' is being made: it is unfinished in the archive",)
    assert [one.status for one in toyed.status().builds] == ["unfinished"]
    assert [one.name for one in toyed.check().notes] == ["unfinished-build"]
    assert toyed.build("toy").made == 0
    assert [one.status for one in toyed.status().builds] == ["ready"]


def test_what_an_installed_system_does_not_have_is_neither_exported_nor_imported(toyed: HGMem, tmp_path: Path) -> None:
    path = tmp_path / "some"
    toyed.export(path)
    said = records(path)
    changed = [{**each, "type": "TOY_OUT"} if each["kind"] == "RELATIONSHIP" else each for each in said]
    line = 1 + next(number for number, each in enumerate(said) if each["kind"] == "RELATIONSHIP")
    odd = written(changed, tmp_path / "odd")
    with pytest.raises(
        DocumentError, match=rf"odd', line {line}: system 'toy' has no relationship type 'TOY_OUT': install the version"
    ):
        toyed.import_archive(odd)
    toyed.delete()
    with uninstalled():
        toyed.import_archive(odd)
        assert toyed.export(path, force=True).notes == ()
    done = toyed.export(path, force=True)
    assert done.notes == (
        "skipped relationships of type 'TOY_OUT' from rows of system 'toy', which that system does not have",
    )
    assert "RELATIONSHIP" not in done.counts


def test_properties_that_no_build_wrote_are_left_out_and_named(toyed: HGMem, tmp_path: Path) -> None:
    with driver(toyed.settings) as opened:
        opened.execute_query("MATCH (n:ToyGist {corpus: $corpus}) SET n.when = datetime()", corpus=toyed.corpus)
        opened.execute_query("MATCH (u:Unit {corpus: $corpus}) SET u.seen = true", corpus=toyed.corpus)
    done = toyed.export(tmp_path / "some")
    assert done.notes == ("skipped properties that hgmem did not write: ToyGist.when, Unit.seen",)


def test_an_archive_whose_build_was_deleted_since_is_refused(toyed: HGMem, tmp_path: Path) -> None:
    toyed.export(tmp_path / "some")
    toyed.delete()
    toyed.import_archive(tmp_path / "some")
    toyed.delete(system="toy")
    with pytest.raises(UsageError, match=r"lost records since .* of kind 'Build' are left"):
        toyed.import_archive(tmp_path / "some")


def test_deleting_a_corpus_deletes_its_builds_and_no_other_ones(toyed: HGMem, open_client: Open) -> None:
    other = open_client(corpus=f"{toyed.corpus}b")
    other.add([document(number) for number in range(3)])
    other.build("toy")
    before = moved(other.settings, other.corpus)
    assert (other.status().built, other.status().units) == (len(before.of("Built")), len(before.of("Unit")))
    toyed.delete()
    assert dump(toyed.settings, toyed.corpus).nodes == {}
    assert moved(other.settings, other.corpus) == before


# The systems' own invariants ------------------------------------------------------------------------------------


def test_an_invariant_of_an_installed_system_is_checked(toyed: HGMem, environment: dict[str, str], toy: Path) -> None:
    with driver(toyed.settings) as opened:
        query = """MATCH (n:ToyTopic {corpus: $corpus}) WHERE n.text <> '' WITH n LIMIT 1 SET n.first = 'nothing'
            RETURN n.uid AS uid"""
        uid = opened.execute_query(query, corpus=toyed.corpus).records[0]["uid"]
    (found,) = toyed.check().findings
    assert (found.name, found.count, found.uids) == ("toy:topic-text", 1, (uid,))
    assert found.meaning == "a topic does not begin with the text of its first gist"
    assert f"`hgmem build toy --corpus {toyed.corpus}`" in found.remedy
    with uninstalled():
        assert toyed.check().ok
    told = run_hgmem("doctor", "--corpus", toyed.corpus, env={**environment, "PYTHONPATH": str(toy)})
    assert told.returncode == 1
    assert "error   toy:topic-text (1): a topic does not begin with the text of its first gist" in told.stdout


def test_an_invariant_that_raises_is_told_in_one_line_and_the_rest_is_checked(toyed: HGMem) -> None:
    def raising(_: object, corpus: str) -> list[str]:
        raise ValueError(f"no \n {corpus}")

    invariants = (
        OwnInvariant(name="first", meaning="it raises", violated=raising),
        OwnInvariant(name="second", meaning="it is violated", violated=lambda _, corpus: iter([corpus])),
    )
    found = check(toyed._services(None), own={"some": invariants})
    assert [(one.name, one.uids) for one in found.findings] == [("some:second", (toyed.corpus,))]
    *_, line = checkup(found, seconds=0.0)
    said = f"system 'some' raised ValueError: no {toyed.corpus}"
    assert line == f"note    some:first: {said}: report this to the system's authors"
