"""Conversations in a shell: indexed from files, appended from files and standard input, and cited by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hgmem import Citation, HGMem, Message
from hgmem.cli import app

LOG = """[2023-02-04 19:12] Ann: The lamp of Nordhavn is red.
[2023-02-04 19:13] Bob: The ferry Aurora left at nine.
"""
ATTRIBUTION = "Bob, 2023-02-04 19:13 (2)"

Run = Callable[..., Result]


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process."""
    monkeypatch.chdir(tmp_path)

    def running(*arguments: str, input: str | None = None) -> Result:  # noqa: A002
        return CliRunner().invoke(app, list(arguments), env=environment, input=input)

    return running


def test_files_of_conversations_are_indexed_and_cited_by_name(client: HGMem, hgmem: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.log").write_text(LOG)
    (tmp_path / "other.json").write_text(json.dumps([{"from": "Ann", "text": "Yes."}]))
    (tmp_path / "bad.json").write_text(json.dumps([{"from": "Ann"}]))
    named = ("talk.log", "other.json", "bad.json")
    done = hgmem(
        "index", "--conversations", *named, "--field", "speaker=from",
        "--corpus", client.corpus, "--json", "--no-graph",
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    assert "skipped bad.json: 'bad.json', message 1, field 'text': it has no text" in done.stderr
    report = json.loads(done.stdout)
    assert (report["documents"], len(report["skipped"])) == (2, 1)
    asked = hgmem("ask", "When did the ferry Aurora leave?", "--system", "naive", "--corpus", client.corpus)
    assert ATTRIBUTION in " ".join(asked.stdout.split())
    asked = hgmem("ask", "When did the ferry Aurora leave?", "--system", "naive", "--corpus", client.corpus, "--json")
    [cited] = [one for one in json.loads(asked.stdout)["citations"] if one["message"] == "2"]
    assert (cited["speaker"], cited["time"]) == ("Bob", "2023-02-04T19:13:00")
    assert hgmem("index", "--conversations", "talk.log", "--field", "speaker", "-c", client.corpus).exit_code == 2
    assert hgmem("index", "talk.log", "--field", "speaker=from", "-c", client.corpus).exit_code == 2


def test_messages_are_appended_from_a_file_and_from_standard_input(client: HGMem, hgmem: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.log").write_text(LOG)
    where = ("--conversation", "talk", "--corpus", client.corpus)
    done = hgmem("append", "talk.log", *where, "--title", "Talk")
    assert done.stdout.startswith("2 messages appended to new conversation 'talk', 0 known; 1 chunk done, 0 failed (")
    refused = hgmem("append", "talk.log", "--conversation", "tlak", "--existing", "--corpus", client.corpus)
    assert (refused.exit_code, "has no conversation 'tlak'" in refused.stderr) == (1, True)
    lines = json.dumps({"speaker": "Ann", "text": "The Kestrel sank.", "id": "k"})
    done = hgmem("append", "-", *where, "--json", "--graph", input=lines)
    assert json.loads(done.stdout)["messages"] == 1, done.output
    again = hgmem("append", "-", *where, "--json", input=lines)
    assert (json.loads(again.stdout)["messages"], json.loads(again.stdout)["known"]) == (0, 1)
    assert [row["title"] for row in client.documents()] == ["Talk"]
    bad = hgmem("append", "-", *where, input="Hello.")
    assert bad.exit_code == 1
    assert "'standard input', line 1: it does not begin a message" in bad.stderr
    assert hgmem("append", "none.log", *where).exit_code == 1
    assert client.check().ok


def test_a_file_with_the_id_of_a_stored_conversation_replaces_it_with_a_word(
    client: HGMem, hgmem: Run, tmp_path: Path
) -> None:
    for text in (LOG, LOG.replace("red", "blue")):
        (tmp_path / "talk.log").write_text(text)
        done = hgmem("index", "--conversations", "talk.log", "--corpus", client.corpus, "--no-graph")
    assert done.stdout.startswith("1 document added (1 replaced), 0 unchanged")
    assert "replaced conversation 'talk': 1 of its messages is gone; `hgmem append` adds to a" in done.stderr


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (
            [{"conversation": "talk"}, {"conversation": "other"}],
            "line 2, field 'conversation': the message is of conversation 'other', not 'talk': append it to its own",
        ),
        ([{}, {"text": " "}], "line 2, field 'text': it has no text"),
        ([{}, {"text": "\ud800"}], "line 2: it has an unpaired surrogate, such as \\ud83d: remove it"),
        (["[2023-02-04 19:12] Ann: Yes.", "[2023-02-04 19:12] Ann:"], "line 2: the message has no text"),
        (
            ['[{"speaker": "Ann", "text": "Yes."}]'],
            "is one JSON value, and append takes JSON Lines or a log: write a message a line",
        ),
    ],
)
def test_a_bad_line_to_append_is_named(client: HGMem, hgmem: Run, lines: list[Any], error: str) -> None:
    ann = {"speaker": "Ann", "text": "Yes."}
    text = "\n".join(json.dumps(ann | one) if isinstance(one, dict) else one for one in lines)
    client.append("talk", [Message("Bob", "One."), Message("Bob", "Two.")])
    for file in ("-", "talk.txt"):
        Path("talk.txt").write_text(text)
        done = hgmem("append", file, "--conversation", "talk", "--corpus", client.corpus, input=text)
        assert done.exit_code == 1
        name = "'standard input'" if file == "-" else "'talk.txt'"
        assert f"{name}, {error}" in done.stderr or f"{name} {error}" in done.stderr
    assert len(client.messages("talk")) == 2


def test_the_id_of_a_conversation_is_shown_where_it_is_listed(client: HGMem, hgmem: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.log").write_text(LOG)
    where = ("--corpus", client.corpus)
    hgmem("append", "talk.log", "--conversation", "id-of-talk", "--title", "Talk", *where)
    client.build("hypermem")
    assert "id-of-talk" in hgmem("status", *where).stdout
    assert [row["conversation"] for row in client.documents()] == ["id-of-talk"]
    facts = json.loads(hgmem("hypermem", "facts", *where, "--json").stdout)
    assert {fact["conversation"] for fact in facts} == {"id-of-talk"}
    client.ask("What is the lamp of Nordhavn?", system="naive")
    done = hgmem("hypermem", "forget", *where, "--conversation", facts[0]["conversation"])
    assert "note: 1 memory may still quote or repeat the words" in done.stdout
    assert "name a conversation" in hgmem("hypermem", "forget", *where).stderr


def test_a_session_that_is_left_out_is_noted(client: HGMem, hgmem: Run, tmp_path: Path) -> None:
    said = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_2_date_time": "1:57 pm on 8 May, 2023"}
    turn = {"speaker": "Ann", "dia_id": "D2:1", "text": "Yes."}
    (tmp_path / "a.json").write_text(json.dumps([{"conversation": {**said, "session_2": [turn]}}]))
    done = hgmem("index", "--conversations", "a.json", "--corpus", client.corpus, "--no-graph")
    assert (done.exit_code, done.stdout[:16]) == (0, "1 document added")
    assert (
        "warning: 'a.json', sample 1, conversation: sessions without messages are left out (session_1): add"
        in done.stderr
    )


def cited(client: HGMem, memory: str) -> list[Citation]:
    return list(client.memory(memory).answers[-1].citations)


def test_citations_keep_their_names_in_archives_and_pictures(
    client: HGMem, hgmem: Run, tmp_path: Path, open_client: Callable[..., Any]
) -> None:
    (tmp_path / "talk.log").write_text(LOG)
    hgmem("append", "talk.log", "--conversation", "talk", "--corpus", client.corpus)
    memory = client.ask("When did the ferry Aurora leave?", system="naive").memory
    before = cited(client, memory)
    assert ATTRIBUTION in [one.attribution for one in before]
    exported = hgmem("memory", "export", memory, "--html", "page.html")
    assert exported.exit_code == 0, exported.output
    assert ATTRIBUTION in (tmp_path / "page.html").read_text()
    client.export(tmp_path / "a.jsonl.gz")
    client.delete()
    client.import_archive(tmp_path / "a.jsonl.gz")
    assert cited(client, memory) == before
    client.append("talk", [])
    done = hgmem("append", "-", "--conversation", "talk", "-c", client.corpus, input="[2023-02-04 19:14] Ann: Oh.")
    assert done.exit_code == 0, done.output
    assert client.check().ok
