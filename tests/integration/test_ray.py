"""Indexing on a real Ray cluster: the graph of one process, one limit for all workers, and no reply paid twice."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from dumping import Dump, dump
from playing import extraction, fenced
from wire import Asked, Failing, Said, WireServer

from hgmem import HGMem
from hgmem.errors import AccessError, UsageError
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Document

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'hgmem[ray]'")

Open = Callable[..., HGMem]
AFFAIR = Path(__file__).parents[2] / "examples" / "affair"
KEY = "sk-of-the-workers"
FAST = {"cached_tasks": frozenset(), "chunk_tokens": 200}


def said(asked: Asked, *, delay: float = 0.0) -> Said:
    return Said(extraction(fenced(asked, "text")).model_dump_json(), delay=delay)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(address="local", num_cpus=2, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def ordinary(open_client: Open, settings: Settings) -> Dump:
    """The graph of the affair as one process makes it."""
    with WireServer(said) as server:
        client = open_client(model="wire", openai_base_url=server.base_url, **FAST)
        client.add(AFFAIR)
    found = dump(settings, client.corpus)
    client.delete()
    return found


def on_ray(client: HGMem, folder: Path, items: Any = AFFAIR, address: str = "local") -> Any:
    return client.add(items, stages=str(folder), ray=address)


def texts(server: WireServer) -> list[str]:
    """The chunks that the model was asked about, in order."""
    return [fenced(asked, "text") for asked in server.requests if asked.system]  # a probe of formats has no system


def stored(folder: Path) -> set[str]:
    """The chunks with a stored reply."""
    from hgmem.stages.files import Folder

    opened = Folder(str(folder))
    chunks = [row for part in opened.parts("chunks").values() for row in opened.rows("chunks", part)]
    known = {row["uid"]: row["text"] for row in chunks}
    noted = [uid for journal in opened.journals("replies") for uid in opened.noted(f"replies/journal/{journal}")]
    rows = [row["chunk"] for part in opened.parts("replies").values() for row in opened.rows("replies", part)]
    return {known[uid] for uid in [*noted, *rows]}


def when(server: WireServer, many: int, does: Callable[[], object]) -> threading.Thread:
    """Do something once the model has been asked so often."""

    def wait() -> None:
        while len(server.requests) < many:
            time.sleep(0.02)
        does()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def kill(name: str) -> None:
    """Kill the process of this test's cluster that has worked most."""
    found = [each for each in psutil.Process().children(recursive=True) if each.name().startswith(name)]
    max(found, key=lambda each: sum(each.cpu_times()[:2])).kill()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_the_graph_is_that_of_one_process(
    workers: int, cluster: None, ordinary: Dump, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    with WireServer(said) as server:
        client = open_client(model="wire", openai_base_url=server.base_url, ray_workers=workers, workers=3, **FAST)
        first = on_ray(client, tmp_path)
        assert (first.documents, first.failed, first.skipped) == (17, 0, [])
        assert server.most_at_once <= 3
        asked = len(server.requests)
        again = on_ray(client, tmp_path)
        assert (again.documents, again.unchanged, len(server.requests)) == (0, 17, asked)
        assert client.add(AFFAIR, stages=str(tmp_path)).unchanged == 17
    assert client.check().findings == ()
    found = dump(settings, client.corpus)
    assert found.nodes == ordinary.nodes
    assert found.relationships == ordinary.relationships


@pytest.mark.long
@pytest.mark.parametrize("victim", ["ray::MapWorker", "ray::Limiter"])
def test_a_killed_process_costs_at_most_the_calls_in_flight(
    victim: str, cluster: None, ordinary: Dump, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    had: set[str] = set()
    sent = 0

    def strike() -> None:
        nonlocal sent
        kill(victim)
        sent, found = len(texts(server)), stored(tmp_path)
        had.update(found)

    with WireServer(lambda asked: said(asked, delay=0.5)) as server:
        client = open_client(model="wire", openai_base_url=server.base_url, workers=4, **FAST)
        thread = when(server, 12, strike)
        done = on_ray(client, tmp_path)
        thread.join()
        assert (done.documents, done.failed) == (17, 0)
        assert had
        assert not had.intersection(texts(server)[sent + 4 :])
        assert len(texts(server)) <= len(set(texts(server))) + 4
        assert server.most_at_once <= 4 + (4 if victim == "ray::MapWorker" else 0)  # of the lost worker until they end
    found = dump(settings, client.corpus)
    assert found.nodes == ordinary.nodes
    assert found.relationships == ordinary.relationships


@pytest.mark.long
def test_a_killed_driver_leaves_its_replies_to_the_next_run(
    ordinary: Dump, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    with WireServer(lambda asked: said(asked, delay=0.5)) as server:
        client = open_client(model="wire", openai_base_url=server.base_url, workers=4, **FAST)
        given = {
            "NEO4J_URI": settings.neo4j_uri or "",
            "NEO4J_PASSWORD": settings.neo4j_password.get_secret_value() if settings.neo4j_password else "",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": KEY,
            "HGMEM_MODEL": "wire",
            "HGMEM_EMBEDDING_MODEL": DeterministicEmbedder.name,
            "HGMEM_CACHED_TASKS": "[]",
            "HGMEM_CHUNK_TOKENS": "200",
            "HGMEM_WORKERS": "4",
        }
        command = [sys.executable, "-m", "hgmem", "index", str(AFFAIR), "--corpus", client.corpus, "--yes"]
        command += ["--stages", str(tmp_path / "stages"), "--ray", "local"]
        with subprocess.Popen(command, env={**os.environ, **given}, stderr=subprocess.PIPE) as driver:
            when(server, 12, lambda: driver.send_signal(signal.SIGKILL)).join(timeout=900)
            assert driver.wait(timeout=10) == -signal.SIGKILL
        assert {asked.headers["authorization"] for asked in server.requests} == {f"Bearer {KEY}"}
        time.sleep(2)  # the cluster ends with its driver
        sent, had = len(texts(server)), stored(tmp_path / "stages")
        assert had
        again = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, timeout=900)
        assert again.returncode == 0, again.stderr
        assert "17 documents added" in again.stdout
        assert not had.intersection(texts(server)[sent:])
        assert len(texts(server)) <= len(set(texts(server))) + 4
    found = dump(settings, client.corpus)
    assert found.nodes == ordinary.nodes
    assert found.relationships == ordinary.relationships


@pytest.mark.long
def test_a_full_disk_ends_the_run_and_the_next_one_pays_for_nothing_again(
    cluster: None, ordinary: Dump, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk of a chosen size can be mounted here")
    try:
        with WireServer(said) as server:
            client = open_client(model="wire", openai_base_url=server.base_url, workers=4, **FAST)
            with pytest.raises(UsageError, match="No space left on device"):
                on_ray(client, tmp_path / "stages")
            sent, had = len(texts(server)), stored(tmp_path / "stages")
            subprocess.run(["mount", "-o", "remount,size=64m", str(tmp_path)], check=True)
            done = on_ray(client, tmp_path / "stages")
            assert (done.documents, done.failed) == (17, 0)
            assert had
            assert not had.intersection(texts(server)[sent:])
        found = dump(settings, client.corpus)
        assert found.nodes == ordinary.nodes
        assert found.relationships == ordinary.relationships
    finally:
        subprocess.run(["umount", str(tmp_path)], check=False)


@pytest.mark.long
def test_failures_are_rows_but_a_wrong_key_ends_the_run(
    cluster: None, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    notes = [Document(id=f"n{n}", text=f"Ada Marsh of Ravensund wrote note number {n} to Bo Finch.") for n in range(4)]
    with WireServer(lambda asked: Failing(400, "no") if "number 2" in asked.user else said(asked)) as server:
        client = open_client(model="wire", openai_base_url=server.base_url, **FAST)
        done = on_ray(client, tmp_path / "a", notes)
        assert (done.documents, done.failed, len(done.errors)) == (4, 1, 1)
        server.answer = said
        assert on_ray(client, tmp_path / "a", notes).failed == 0
        client.delete()
        server.answer = lambda _: Failing(401, "who are you?")
        with pytest.raises(AccessError, match=r"on a worker of the cluster: .* rejected the API key"):
            on_ray(client, tmp_path / "b", notes)
        assert len(server.requests) < 4 + 4 + 8


def test_what_cannot_be_on_a_cluster_is_refused(
    open_client: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client(embedder=DeterministicEmbedder())
    with pytest.raises(UsageError, match="--ray needs --stages DIR"):
        client.add(AFFAIR, ray="local")
    with pytest.raises(UsageError, match="count in one process"):
        client.add(AFFAIR, stages=str(tmp_path), ray="local", max_calls=3)
    with pytest.raises(UsageError, match="embedder= is an object"):
        on_ray(client, tmp_path)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    client = open_client(connect_timeout=2.0)
    for address, told in {
        "ray://127.0.0.1:10001": "invalid --ray",
        "127.0.0.1:1": "no Ray cluster answers at",
        "no-such-host.invalid:6379": "no Ray cluster answers at",
    }.items():
        began = time.monotonic()
        with pytest.raises(UsageError, match=told):
            on_ray(client, tmp_path, address=address)
        assert time.monotonic() - began < 10
    with WireServer(said) as server, pytest.raises(UsageError, match=r"no Ray cluster"):
        on_ray(client, tmp_path, address=server.base_url.removeprefix("http://").removesuffix("/v1"))
    assert not list(tmp_path.iterdir())


def test_without_ray_one_line_names_the_extra(
    open_client: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("hgmem.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"^--ray needs ray: pip install 'hgmem\[ray\]'$"):
        on_ray(open_client(), tmp_path)
