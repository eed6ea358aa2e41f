"""Fixtures: one real Neo4j for all test processes of a run; the caller's environment is ignored."""

import hashlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import hypothesis
import pytest
from affected import Affected
from chromium import NoBrowserError, launched
from pydantic import SecretStr
from servers import BRIEFLY, IN_ONE_PROCESS, LONGER, WHOLE_SERVER, any_ports

from hgmem import HGMem, Settings
from hgmem.local import Server, down, up
from hgmem.local.docker import engine
from hgmem.local.java import VERSION
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
MOST_PROCESSES = 4
FOREIGN = ("NEO4J_", "HGMEM_", "OPENAI_", "AZURE_", "ANTHROPIC_")

hypothesis.settings.register_profile("quick", max_examples=10)
hypothesis.settings.register_profile("thorough", max_examples=5_000, deadline=None)

for name in [name for name in os.environ if name.startswith(FOREIGN)]:
    del os.environ[name]
if "PYTEST_XDIST_WORKER" in os.environ:  # a process for each core: threads of PyTorch would wait for each other
    os.environ["OMP_NUM_THREADS"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of golden files and pictures, and the settings of pytest-asyncio if it is not installed."""
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden/ from what is sent")
    parser.addoption("--uids", default="", help="any text: corpora have names, and so nodes uids, that follow from it")
    parser.addoption("--affected", action="store_true", help="leave out what no change since the last such run reaches")
    parser.addoption("--pictures", action="store_true", help="keep pictures of browsers in .hgmem/pictures")
    if find_spec("pytest_asyncio") is None:
        for name in ("asyncio_mode", "asyncio_default_fixture_loop_scope"):
            parser.addini(name, "of a plugin that is not here")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Take `--affected`, before processes are counted."""
    if config.getoption("affected"):
        config.pluginmanager.register(Affected())


def pytest_configure(config: pytest.Config) -> None:
    """Let being told to end, as by `timeout`, end the tests as Ctrl-C does: with their servers."""
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that all test processes shared, and those of processes that were interrupted, as by Ctrl-C."""
    if config.getoption("numprocesses", default=None) and not hasattr(config, "workerinput"):
        base = config._tmp_path_factory.getbasetemp()
        for number in (*base.glob("*/home/run/neo4j.pid"), *base.glob("popen-*/*/home/run/neo4j.pid")):
            down(load(data=number.parents[1]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of a file that is marked `in_order` back into its order, if the tests were shuffled."""
    for file in {item.path for item in items if item.get_closest_marker("in_order")}:
        places = [place for place, item in enumerate(items) if item.path == file]
        ordered = sorted((items[place] for place in places), key=lambda item: item.location[1] or 0)
        for place, item in zip(places, ordered, strict=True):
            items[place] = item


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start a process more than there are cores, for many tests wait: for the server, for a timeout, for a rival."""
    return min((os.cpu_count() or 1) + 1, MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "LoadScopeScheduling | None":
    """Keep the tests of a file in one process, and those of the files of `IN_ONE_PROCESS` in one together."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the whole server" if Path(file).name in IN_ONE_PROCESS else file

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server for all test processes: a corpus has a name of its own, and tests see nothing of the others.

    It is a process as started by `hgmem up`, which starts one however many ask at once; or, if a Docker engine
    answers, a container for each test process.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with _serving(base / "shared" / "home") as started:
            yield started
    else:  # the process that distributes the tests stops it at the end
        with _serving(base.parent / "shared" / "home", stop=False) as started:
            yield started


@pytest.fixture(scope="session")
def another_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that no other process uses."""
    with _serving(tmp_path_factory.mktemp("another") / "home", java=BRIEFLY) as started:
        yield started


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Server:
    """The server of a module's tests."""
    alone = request.path.name in WHOLE_SERVER
    return cast("Server", request.getfixturevalue("another_server" if alone else "shared_server"))


@contextmanager
def _serving(data: Path, *, java: tuple[str, ...] = LONGER, stop: bool = True) -> Iterator[Server]:
    settings = load(data=data)
    if engine():
        with _container(settings.data) as started:
            yield started
        return
    with any_ports(java):
        started = up(settings, heap="1500m", pagecache="256m")
    try:
        yield started
    finally:
        if stop:
            down(settings)


@contextmanager
def _container(data: Path) -> Iterator[Server]:
    from testcontainers.community.neo4j import Neo4jContainer

    password = secrets.token_urlsafe(12)
    image = Neo4jContainer(f"neo4j:{VERSION}", username="neo4j", password=password)
    with image.with_env("NEO4J_db_query_default__language", "CYPHER_25") as container:
        yield Server(
            uri=container.get_connection_url(),
            http="",
            username="neo4j",
            password=SecretStr(password),
            pid=None,
            kind="docker",
            data=data,
            version=VERSION,
        )


@pytest.fixture
def started(server: Server) -> Server:
    """The server, if `up` started it."""
    if server.pid is None:
        pytest.skip("the server of this run is a container that `up` knows nothing of")
    return server


@pytest.fixture(scope="module")
def settings(server: Server) -> Settings:
    """Settings for the server, with the deterministic embedder."""
    return load(
        neo4j_uri=server.uri,
        neo4j_username=server.username,
        neo4j_password=server.password,
        neo4j_database="",
        data=server.data,
        embedding_model=DeterministicEmbedder.name,
    )


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    """The environment of a subprocess that uses the server and the deterministic embedder."""
    return {
        **os.environ,
        "NEO4J_URI": server.uri,
        "NEO4J_USERNAME": server.username,
        "NEO4J_PASSWORD": server.password.get_secret_value(),
        "NEO4J_DATABASE": "",
        "HGMEM_EMBEDDING_MODEL": DeterministicEmbedder.name,
        "HGMEM_DATA": str(server.data),
        "COLUMNS": "200",
    }


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> str:
    """The name of an unused corpus, the same in each run: so are the uids, by which ties are broken."""
    return _named(request)


@pytest.fixture(scope="module")
def module_corpus(request: pytest.FixtureRequest) -> str:
    """The name of an unused corpus for all tests of a file."""
    return _named(request)


def _named(request: pytest.FixtureRequest) -> str:
    told = f"{request.node.nodeid} {request.config.getoption('uids')}"
    return f"t{hashlib.sha256(told.encode()).hexdigest()[:12]}"


@pytest.fixture
def open_client(settings: Settings, corpus: str) -> Iterator[Callable[..., HGMem]]:
    """Opens clients on the test's corpus; closes them and deletes the corpus at the end."""
    opened: list[HGMem] = []

    def opening(**arguments: object) -> HGMem:
        given = {**settings.model_dump(exclude_none=True), **arguments}
        client = HGMem.open(given.pop("corpus", corpus), **given)
        opened.append(client)
        return client

    yield opening
    for client in opened:
        if client.corpus in {row["corpus"] for row in client.corpora()}:
            client.delete()
        client.close()


@pytest.fixture
def client(open_client: Callable[..., HGMem]) -> HGMem:
    """A client with the extractive model and the deterministic embedder."""
    return open_client()


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """The browser of the system or of Playwright; module-scoped because of its event loop."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    try:
        with launched() as browser:
            yield browser
    except NoBrowserError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def affair() -> Path:
    """The folder of the demo corpus."""
    from hgmem.text.resources import resource

    return resource("examples", "affair")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real texts and graphs for longer checks; absent on most machines."""
    if not SHARED.is_dir():
        pytest.skip(f"no measuring data at {SHARED}: the longer checks need it")
    return SHARED
