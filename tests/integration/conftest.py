"""Fixtures of several integration tests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, wanting

from hgmem import HGMem
from hgmem.systems.registry import _loaders

TOY = Path(__file__).parents[1] / "toy"


@pytest.fixture
def letters(open_client: Callable[..., HGMem]) -> Callable[..., HGMem]:
    """Opens a client on the letters; by default its model uses every step."""

    def opening(model: Any = None, **replies: Any) -> HGMem:
        client = open_client(model=model or wanting(**replies))
        client.add_graph(LETTERS)
        return client

    return opening


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Installs the system of tests/toy/ in this process, and returns the folder for others' PYTHONPATH."""
    monkeypatch.syspath_prepend(TOY)
    _loaders.cache_clear()
    yield TOY
    monkeypatch.undo()
    _loaders.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "toy_system"]:
        del sys.modules[name]
