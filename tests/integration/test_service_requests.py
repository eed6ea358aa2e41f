"""Some of the requests of `tests/long/service_requests.py`, which sends thousands."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")
sys.path.append(str(Path(__file__).parents[1] / "long"))
from service_requests import MINE, World, check_successes, described, hostile, world

from hgmem import HGMem, Settings


@pytest.fixture(scope="module")
def service(settings: Settings) -> Iterator[World]:
    with HGMem.open(MINE, **settings.model_dump(exclude_none=True)) as client, world(client) as made:
        yield made
    assert not [line for line in made.service.lines if line["event"] == "unexpected"]


def test_answers_are_as_the_service_describes_them(service: World) -> None:
    check_successes(described(service, 130, seed=1), 2)


def test_hostile_requests_get_nothing_of_others_and_no_traceback(service: World) -> None:
    assert sum(hostile(service, 150, seed=1, slow=0).values()) == 150


@pytest.mark.long
def test_thousands_of_requests_and_slow_senders(service: World) -> None:
    check_successes(described(service, 5_000, seed=2), 20)
    assert hostile(service, 2_000, seed=2)["slow", 408] == 10
