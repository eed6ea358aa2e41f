"""Owners: whose memories are seen, continued and deleted, at every door."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from dumping import driver
from letters import LETTERS, QUESTION, wanting
from typer.testing import CliRunner

from hgmem import HGMem, UsageError
from hgmem.cli import app

AT_ONCE = timedelta(microseconds=1)
BAD = ("", " \t", "x" * 201, "an\x1bna", "an\nna", "an\u2028na", "\ud83d", 5)


@pytest.fixture
def client(open_client: Callable[..., HGMem]) -> HGMem:
    """A client on the letters."""
    client = open_client(model=wanting())
    client.add_graph(LETTERS)
    return client


def ask(client: HGMem, owner: str | None, **more: object) -> str:
    return client.ask(QUESTION, owner=owner, steps=1, **more).memory  # type: ignore[arg-type]


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        read()
    return str(error.value)


def test_a_memory_is_seen_by_its_owner_and_by_those_who_name_none(client: HGMem) -> None:
    hers, ours = ask(client, " anna "), ask(client, None)
    assert [client.memory(uid).owner for uid in (hers, ours)] == ["anna", ""]
    assert {one.uid: one.owner for one in client.memories(owner="anna")} == {hers: "anna", ours: ""}
    assert [one.uid for one in client.memories(owner="ben")] == [ours]
    assert {one.uid for one in client.memories()} == {hers, ours}
    assert client.memory(ours, owner="ben").uid == ours
    assert client.memory(hers, owner="anna").points


def test_anothers_memory_reads_like_one_that_does_not_exist(client: HGMem) -> None:
    hers = client.ask(QUESTION, owner="anna", steps=1)
    point = hers.points[0].uid
    doors: list[Callable[[str, str], object]] = [
        lambda uid, owner: client.memory(uid, owner=owner),
        lambda uid, owner: client.replay(uid, owner=owner),
        lambda uid, owner: client.passages(uid, owner=owner),
        lambda uid, owner: client.lineage(uid, owner=owner),
        lambda uid, owner: client.fork(uid, owner=owner),
        lambda uid, owner: client.diff(uid, uid, owner=owner),
        lambda uid, owner: client.browse(uid, owner=owner).__enter__(),
        lambda uid, owner: client.delete(memory=uid, owner=owner),
        lambda uid, owner: client.ask("And?", memory=uid, owner=owner),
        lambda uid, owner: list(client.stream(memory=uid, owner=owner, at_step=1)),
    ]
    for door in doors:
        for uid in (hers.memory, hers.uid, point):
            said = refused(lambda door=door, uid=uid: door(uid, "ben"))
            assert said == refused(lambda door=door: door("m-none", "ben")).replace("m-none", uid)
            assert "not found" in said
    assert client.lineage(point, owner="anna").point.uid == point
    assert client.memory(hers.memory) == client.memory(hers.memory, owner="anna")


def test_continuing_keeps_the_owner(client: HGMem) -> None:
    hers, ours = ask(client, "anna"), ask(client, None)
    client.ask("And who burned it?", memory=hers, steps=1)
    client.ask("And who burned it?", memory=ours, owner="anna", steps=1)
    assert [client.memory(uid).owner for uid in (hers, ours)] == ["anna", ""]


def test_only_the_owners_own_memories_are_pruned_and_deleted(client: HGMem) -> None:
    hers, ours, his = (ask(client, owner) for owner in ("anna", None, "ben"))
    said = refused(lambda: client.delete(memory=ours, owner="anna"))
    assert said == f"memory {ours!r} is everybody's, not of owner 'anna': omit owner= (--owner)"
    assert client.prune(older_than=AT_ONCE, owner="anna", dry_run=True).memories == (hers,)
    assert client.prune(older_than=AT_ONCE, owner="anna").memories == (hers,)
    client.delete(memory=his, owner="ben")
    assert [one.uid for one in client.memories()] == [ours]
    assert "owner= needs memory=" in refused(lambda: client.delete(document="letters", owner="anna"))


def test_a_client_may_have_an_owner(client: HGMem, open_client: Callable[..., HGMem]) -> None:
    hers, his = ask(client, "anna"), ask(client, "ben")
    anna = open_client(model=wanting(), owner="anna")
    assert anna.memory(ask(anna, None)).owner == "anna"
    assert his not in {one.uid for one in anna.memories()}
    assert "not found" in refused(lambda: anna.memory(his))
    assert anna.memory(hers).uid == hers
    assert "is not an owner" in refused(lambda: HGMem.open(owner="\n"))


@pytest.mark.parametrize("bad", BAD)
def test_an_invalid_owner_is_refused_in_one_line(client: HGMem, bad: object) -> None:
    for door in (client.memories, client.ask):
        given = {"question": QUESTION} if door == client.ask else {}
        said = refused(lambda door=door, given=given: door(**given, owner=bad))
        assert said.startswith(f"owner={bad!r} is not an owner: use 1 to 200 characters")
        assert "\n" not in said


def test_archives_carry_owners_and_older_memories_are_everybodys(client: HGMem, tmp_path: Path) -> None:
    hers, ours = ask(client, "anna"), ask(client, None)
    archive = tmp_path / "letters.jsonl.gz"
    with driver(client.settings) as opened:  # as an older version left it
        opened.execute_query("MATCH (m:Memory {uid: $uid}) REMOVE m.owner", uid=ours)
    client.export(archive)
    client.delete()
    client.import_archive(archive)
    assert {one.uid: one.owner for one in client.memories(owner="anna")} == {hers: "anna", ours: ""}
    assert [one.uid for one in client.memories(owner="ben")] == [ours]
    assert client.check().findings == ()


def test_the_commands_take_an_owner(client: HGMem, environment: dict[str, str]) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments], env=environment)
        return f"{done.stdout}{done.stderr if done.exit_code else ''}"

    asked = run("ask", QUESTION, "-c", client.corpus, "--owner", "anna", "--steps", "1", "--json")
    hers, ours = json.loads(asked)["memory"], ask(client, None)
    assert "owner" in run("memory", "list", "-c", client.corpus).splitlines()[0]
    listed = run("memory", "list", "-c", client.corpus, "--owner", "ben")
    assert "owner" not in listed.splitlines()[0]
    assert (hers in listed, ours in listed) == (False, True)
    assert "owner anna" in run("memory", "show", hers, "--owner", "anna")
    assert json.loads(run("memory", "show", hers, "--json"))["owner"] == "anna"
    for command in (("memory", "show"), ("memory", "delete", "--yes"), ("ask", "--continue"), ("browser", "--print")):
        assert "not found" in run(*command, hers, "--owner", "ben"), command
    assert "not found" in run("memory", "export", hers, "--html", "m.html", "--owner", "ben")
    assert "not found" in run("memory", "lineage", f"{hers}-1-1", "--owner", "ben")
    assert "is not an owner" in run("memory", "list", "-c", client.corpus, "--owner", "")
    assert "0 memories" in run("memory", "prune", "--older-than", "1m", "-c", client.corpus, "--owner", "ben", "--yes")
    assert "deleted memory" in run("memory", "delete", hers, "--yes", "--owner", "anna")


def test_langchain_asks_and_retrieves_for_an_owner(client: HGMem) -> None:
    langchain = pytest.importorskip("hgmem.langchain", reason="langchain is not installed")
    hers = ask(client, "anna")
    retriever = langchain.HGMemRetriever(client=client, owner="ben", steps=1)
    (memory,) = {one.metadata["memory"] for one in retriever.invoke(QUESTION)}
    assert client.memory(memory).owner == "ben"
    runnable = langchain.HGMemRunnable(client=client, owner="ben", steps=1)
    assert client.memory(runnable.invoke(QUESTION).memory).owner == "ben"
    for owner in ({}, {"owner": None}):
        said = refused(lambda owner=owner: runnable.invoke({"memory": hers, "question": "And?", **owner}))
        assert "not found" in said
    tool = runnable.as_tool()
    with pytest.raises(Exception, match="not found"):
        tool.invoke({"question": "And?", "memory": hers})
