"""Fixtures of several integration tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from letters import LETTERS, wanting
from playing import Play, playing
from toying import installed
from wire import WireServer

from hgmem import HGMem

if TYPE_CHECKING:
    from assisting import Connecting


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


@pytest.fixture
def scripted(
    environment: dict[str, str], tmp_path: Path
) -> Iterator[Callable[[Play], tuple[WireServer, dict[str, str]]]]:
    """Starts servers of a model that replies from a script, and returns each with the environment for it."""
    started: list[WireServer] = []

    def start(play: Play) -> tuple[WireServer, dict[str, str]]:
        server = WireServer(playing(play))
        server.__enter__()
        started.append(server)
        cache = {"HGMEM_CACHE": str(tmp_path / "cache")}
        return server, {**environment, **cache, "HGMEM_MODEL": "m", "OPENAI_BASE_URL": server.base_url}

    yield start
    for server in started:
        server.__exit__(None, None, None)


@pytest.fixture(params=["stdio", "http"])
def connecting(request: pytest.FixtureRequest) -> "Connecting":
    """How a client of the Model Context Protocol reaches the server."""
    from assisting import over_http, over_stdio  # imported late: other tests need no SDK

    ways: dict[str, Connecting] = {"stdio": over_stdio, "http": over_http}
    return ways[request.param]
