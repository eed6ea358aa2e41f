"""Fixtures of several integration tests."""

from collections.abc import Callable
from typing import Any

import pytest
from letters import LETTERS, wanting

from hgmem import HGMem


@pytest.fixture
def letters(open_client: Callable[..., HGMem]) -> Callable[..., HGMem]:
    """Opens a client on the letters; by default its model uses every step."""

    def opening(model: Any = None, **replies: Any) -> HGMem:
        client = open_client(model=model or wanting(**replies))
        client.add_graph(LETTERS)
        return client

    return opening
