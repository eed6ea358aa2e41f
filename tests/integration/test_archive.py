"""Archives: a corpus out of one Neo4j and into another, the same, or not at all."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from dumping import Dump, driver, dump

from hgmem import HGMem
from hgmem.settings import Settings

Open = Callable[..., HGMem]


@pytest.fixture(scope="module")
def module_settings(settings: Settings) -> Settings:
    return settings


def test_smoke(client: HGMem, settings: Settings, affair: Path, tmp_path: Path) -> None:
    client.add(affair)
    a = client.ask("Who took the Ravensund Orrery, and where was it hidden?")
    client.ask("Who owns the Tallow Stairs Warehouse?", memory=a.memory)
    before = dump(settings, client.corpus, times=True)
    print(client.export(tmp_path / "a.jsonl.gz"))
    client.delete()
    print(client.import_archive(tmp_path / "a.jsonl.gz"))
    after = dump(settings, client.corpus, times=True)
    assert after.nodes.keys() == before.nodes.keys()
