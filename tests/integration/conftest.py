"""Fixtures of several integration tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, wanting
from toying import installed

from hgmem import HGMem


@pytest.fixture
def letters(open_client: Callable[..., HGMem]) -> Callable[..., HGMem]:
    """Opens a client on the letters; by default its model uses every step."""

    def opening(model: Any = None, **replies: Any) -> HGMem:
        client = open_client(model=model or wanting(**replies))
        client.add_graph(LETTERS)
        return client

    return opening


@pytest.fixture
def toy() -> Iterator[Path]:
    """Installs the system of tests/toy/ in this process, and returns the folder for others' PYTHONPATH."""
    with installed() as folder:
        yield folder
