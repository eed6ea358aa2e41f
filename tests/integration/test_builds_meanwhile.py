"""What happens to a build's rows beside other work: a deletion while it is made, a learnt row, a refused unit."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from dumping import driver, dump
from rivals import overtaken
from test_builds import document, texts
from toying import learn

from hgmem import HGMem, UsageError
from hgmem.builds.reading import Reading
from hgmem.builds.runner import run_build
from hgmem.builds.stage_run import Building
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Row, Unit
from hgmem.services import Services
from hgmem.values.reports import BuildReport

pytestmark = pytest.mark.usefixtures("toy")

LINKED = """
MATCH (n:Built {corpus: $corpus})<-[:CITES]-(:Citation) WITH n LIMIT 1
SET n.key = n.key
CREATE (:Citation {uid: 'late', corpus: $corpus, quote: 'x'})-[:CITES]->(n)
"""


@dataclass(frozen=True)
class Options:
    """No options."""


def build(client: HGMem, *stages: Stage[Any]) -> BuildReport:
    """Make a build of these stages, under the name of the toy system."""
    kinds = [BuiltKind(name="ToyGist"), BuiltKind(name="ToyTopic")]
    made: Build[Any] = Build(kinds=kinds, relationships=["TOY_IN"], stages=stages)
    return run_build(client._services(None), Building(system="toy", build=made, config=Options()))


def whole(*, last: int | None = None) -> Stage[Any]:
    """Return a stage that makes one gist of all chunks, which rests on the first `last` of them alone."""

    def units(reading: Reading, config: object) -> Iterable[Unit]:
        yield Unit(key="all", chunks=tuple(reading.chunks()), values={"last": last})

    def make(services: Services, config: object, unit: Unit, *, before: Sequence[Output]) -> Made:
        some = unit.chunks[:last]
        row = Row(
            kind="ToyGist",
            key="all",
            text=" ".join(chunk.text for chunk in some),
            rests_on=[chunk.uid for chunk in some],
        )
        return Made(rows=[row])

    return Stage(name="gists", units=units, make=make)


def test_a_deletion_while_a_fold_is_made_leaves_no_word_of_it(client: HGMem) -> None:
    client.add([document(number, text=f"only{number} sold the boat.") for number in range(5)])
    keys: list[str] = []
    gone: list[str] = []

    def units(reading: Reading, config: object) -> Iterable[Unit]:
        for number, chunk in enumerate(reading.chunks()):
            yield Unit(key=chunk.document, chunks=(chunk,), after=tuple(keys[number - 1 : number]))
            keys[number:] = [chunk.document]

    def make(services: Services, config: object, unit: Unit, *, before: Sequence[Output]) -> Made:
        if unit.key == keys[3] and not gone:
            gone.append(keys[0])
            client.delete(document=keys[0])
        return Made(output=[*(word for output in before for word in output.value), unit.chunks[0].text])

    done = build(client, Stage(name="fold", units=units, make=make))
    assert done.dropped == 1
    assert "only0" not in texts(client)
    assert build(client, Stage(name="fold", units=units, make=make)).made == 4
    assert "only0" not in texts(client)
    assert "only1" in texts(client)


def test_a_learnt_row_goes_with_a_text_that_its_row_rested_on_before(client: HGMem) -> None:
    client.add([document(number) for number in range(2)])
    build(client, whole())
    learn(client)
    build(client, whole(last=1))
    held = dump(client.settings, client.corpus)
    assert [row["text"].count("only") for row in held.of("ToyGist").values()] == [1]
    assert len(held.of("ToyTopic")) == 1
    client.delete(document="d1")  # of which the learnt row may still tell
    assert dump(client.settings, client.corpus).of("ToyTopic") == {}


def test_a_row_that_another_unit_makes_from_now_on_stays(client: HGMem) -> None:
    client.add(document(1))

    def stage(key: str) -> Stage[Any]:
        def units(reading: Reading, config: object) -> Iterable[Unit]:
            yield Unit(key=key, chunks=tuple(reading.chunks()))

        def make(services: Services, config: object, unit: Unit, *, before: Sequence[Output]) -> Made:
            return Made(rows=[Row(kind="ToyGist", key="same", text=unit.chunks[0].text)])

        return Stage(name="gists", units=units, make=make)

    build(client, stage("one"))
    done = build(client, stage("two"))
    assert (done.made, done.deleted) == (1, 1)
    held = dump(client.settings, client.corpus)
    assert [row["key"] for row in held.of("ToyGist").values()] == ["same"]
    assert len(held.joined("MADE")) == 1
    assert build(client, stage("two")).made == 0


@pytest.mark.parametrize("later", [0.0, 1.0], ids=["in one group", "while others are made"])
def test_a_refused_unit_costs_nothing_that_the_others_have_made(
    client: HGMem, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr("hgmem.corpus.parallel_calls.EVERY", 0.2)
    client.add([document(number) for number in range(6)])
    together = threading.Barrier(6)
    refused = "d2"

    def units(reading: Reading, config: object) -> Iterable[Unit]:
        return [Unit(key=chunk.document, chunks=(chunk,)) for chunk in reading.chunks()]

    def make(services: Services, config: object, unit: Unit, *, before: Sequence[Output]) -> Made:
        if not together.broken:
            together.wait(timeout=30)
        bad = "only2" in unit.chunks[0].text and refused
        if not bad:
            time.sleep(later)
        properties = {"Not A Name" if bad else "name": unit.key}
        return Made(rows=[Row(kind="ToyGist", key=unit.key, text=unit.chunks[0].text, properties=properties)])

    stage: Stage[Any] = Stage(name="gists", units=units, make=make)
    with pytest.raises(UsageError, match="gave a row of kind 'ToyGist' the property 'Not A Name': use lowercase"):
        build(client, stage)
    assert len(dump(client.settings, client.corpus).of("ToyGist")) == 5
    together.abort()
    refused = ""
    done = build(client, stage)
    assert (done.made, done.unchanged) == (1, 5)


def test_a_citation_that_is_written_while_the_build_is_deleted_is_withdrawn(
    client: HGMem, open_client: Callable[..., HGMem]
) -> None:
    client.add([document(number) for number in range(4)])
    client.build("toy")
    client.ask("Who is only3?", system="toy", settings={"cite_topics": True})
    deleting = open_client()
    with driver(client.settings) as opened:
        assert overtaken(opened, lambda: deleting.delete(system="toy"), LINKED, corpus=client.corpus) == []
    citations = dump(client.settings, client.corpus).of("Citation")
    assert citations["late"]["withdrawn"]
    assert not client.status().builds
