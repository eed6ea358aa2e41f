"""Conversations are read from JSON, JSON Lines, LoCoMo's data and logs. Each error names file, message and remedy."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hgmem import Conversation, DocumentError, Message, UsageError, read_conversations
from hgmem.errors import DocumentWarning
from hgmem.sources.conversations.reading import load_conversations, messages_in
from hgmem.sources.conversations.rendering import document_of
from hgmem.values.inputs import Document, Skipped

ANN = {"speaker": "Ann", "text": "It is red.", "time": "2023-02-04T19:12"}
BOB = {"speaker": "Bob", "text": "No."}
LOG = """[2023-02-04 19:12] Ann: It is red.
Quite red: as I said.

[a note] with brackets: goes on
[2023-02-04 19:13:30+01:00] Captain Rhee: No.
"""


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def said(found: Conversation) -> list[tuple[str, str]]:
    return [(one.speaker, one.text) for one in found.messages]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chat.json", [ANN, BOB]),
        ("chat.json", {"messages": [ANN, BOB]}),
        ("chat.json", [{"id": "chat", "messages": [ANN, BOB]}]),
        ("chat.jsonl", json.dumps(ANN) + "\n\n" + json.dumps(BOB) + "\n"),
        ("x.ndjson", json.dumps({**ANN, "conversation": "chat"}) + "\n" + json.dumps({**BOB, "conversation": "chat"})),
    ],
)
def test_each_form_gives_the_messages(tmp_path: Path, name: str, value: Any) -> None:
    [found] = read_conversations(written(tmp_path, name, value))
    assert found.id == "chat"
    assert said(found) == [("Ann", "It is red."), ("Bob", "No.")]
    assert [one.time for one in found.messages] == [datetime(2023, 2, 4, 19, 12), None]


def test_several_conversations_of_a_file_keep_their_titles_and_ids(tmp_path: Path) -> None:
    value = [{"conversation": "a", "title": "First", "messages": [{**ANN, "id": "x"}]}, {"messages": [BOB]}]
    first, second = read_conversations(written(tmp_path, "two.json", value))
    assert (first.id, first.title, first.messages[0].id) == ("a", "First", "x")
    assert (second.id, second.title, second.messages[0].id) == ("two-2", "", None)


def test_fields_may_have_other_names(tmp_path: Path) -> None:
    value = {"chat": [{"from": "Ann", "body": "Yes.", "ts": 1675537920}]}
    fields = {"speaker": "from", "text": "body", "time": "ts", "messages": "chat"}
    [found] = read_conversations(written(tmp_path, "a.json", value), fields=fields)
    assert found.messages == [Message("Ann", "Yes.", datetime(2023, 2, 4, 19, 12, tzinfo=UTC))]
    with pytest.raises(UsageError, match="messages have no field 'from': choose from speaker"):
        read_conversations(tmp_path, fields={"from": "speaker"})


def test_a_log_has_a_line_a_message_and_further_lines(tmp_path: Path) -> None:
    [found] = read_conversations(written(tmp_path, "talk.log", LOG))
    assert found.id == "talk"
    assert [one.speaker for one in found.messages] == ["Ann", "Captain Rhee"]
    text = document_of(found).text
    assert "Ann: It is red. Quite red: as I said. [a note] with brackets: goes on\n" in text
    assert text.endswith("[2023-02-04 19:13] Captain Rhee: No.")
    assert messages_in(LOG, name="x") == list(found.messages)


def locomo(**changes: Any) -> dict[str, Any]:
    def turn(name: str, number: int, **more: str) -> dict[str, str]:
        return {"speaker": name, "dia_id": f"D{number}:1", "text": f"Session {number}.", **more}

    held = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10": [turn("Bob", 10)],
        "session_10_date_time": "1:00 pm on 9 May, 2023",
        "session_2": [turn("Ann", 2, blip_caption="a red lamp")],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_3_date_time": "1:57 pm on 8 May, 2023",
        **changes,
    }
    held = {name: value for name, value in held.items() if value is not None}
    return {"sample_id": "conv-1", "conversation": held, "qa": []}


def test_locomo_sessions_are_in_order_of_time_and_may_be_missing(tmp_path: Path) -> None:
    with pytest.warns(
        DocumentWarning, match="locomo.json', sample 1, conversation: sessions without messages are left out"
    ):
        [found] = read_conversations(written(tmp_path, "locomo.json", [locomo()]))
    assert (found.id, found.title) == ("conv-1", "Conversation of Ann and Bob")
    assert [one.id for one in found.messages] == ["D2:1", "D10:1"]
    assert found.messages[0].text == "Session 2. [picture: a red lamp]"
    early = locomo(session_10_date_time="1:00 pm on 1 May, 2023")
    [found] = read_conversations(written(tmp_path, "locomo.json", [early]))
    assert [one.id for one in found.messages] == ["D10:1", "D2:1"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"session_3": []}, ["session_3"]),
        ({"session_2": None, "session_1_date_time": "1:00 pm on 1 May, 2023"}, ["session_1, session_2, session_3"]),
        ({"session_3_date_time": None, "session_11_date_time": "1:00 pm on 10 May, 2023"}, []),
    ],
)
def test_locomo_sessions_without_messages_are_named(
    tmp_path: Path, changes: dict[str, Any], named: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    read_conversations(written(tmp_path, "locomo.json", [locomo(**changes)]))
    assert [str(one.message).split("(")[1].split(")")[0] for one in recwarn] == named


def test_a_locomo_session_without_its_time_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "locomo.json", [locomo(session_2_date_time=None)])
    with pytest.raises(
        DocumentError,
        match=r"locomo.json', sample 1, conversation, field 'session_2_date_time': it is missing: add when",
    ):
        read_conversations(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a.json", [ANN, {"text": "Hi."}], r"a.json', message 2, field 'speaker': it has no speaker: write who"),
        (
            "a.json",
            [ANN, {"speaker": "Ann"}],
            r"a.json', message 2, field 'text': it has no text: leave the message out, or",
        ),
        (
            "a.json",
            r'[{"speaker": "Ann", "text": "\ud800 lone"}]',
            r"a.json', message 1: it has an unpaired surrogate, such as",
        ),
        ("a.json", [{**ANN, "time": "soon"}], r"message 1, field 'time': the time 'soon' can't be read: write it like"),
        ("a.json", [{**ANN, "time": 1e99}], r"message 1, field 'time': the time 1e\+99 can't be read"),
        ("a.json", [{**ANN, "text": {"a": 1}}], r"message 1, field 'text': it is not a text"),
        (
            "a.json",
            [{**ANN, "id": "x"}, {**BOB, "id": "x"}],
            r"message 2 of conversation 'a' has the id 'x' of another",
        ),
        ("a.json", [], r"a.json' holds no message"),
        ("a.json", {"messages": []}, r"a.json' holds no message"),
        (
            "a.json",
            {"text": "no list"},
            r"it holds no conversation: write a list of messages, or objects with 'messages'",
        ),
        ("a.json", [ANN, {"messages": [BOB]}], r"it holds no conversation"),
        ("a.json", [{"id": "x", "messages": [ANN]}, {"id": "x", "messages": [BOB]}], r"has two conversations 'x'"),
        ("a.json", "{", r"a.json', line 1, column 2: not JSON"),
        ("a.jsonl", json.dumps(ANN) + "\n{x", r"a.jsonl', line 2: not JSON: write one message a line"),
        ("a.jsonl", json.dumps(ANN) + "\n[1]", r"a.jsonl', line 2: it is not an object"),
        ("a.log", "Hello.\n", r"a.log', line 1: it does not begin a message: write it like \[2023-02-04 19:12\] Ann:"),
        ("a.log", "[2023-99-99] Ann: Hi.", r"a.log', line 1: the time '2023-99-99' can't be read"),
        ("a.log", "[2023-02-04 19:12] Ann:\n", r"a.log', line 1: the message has no text: leave"),
        ("a.txt", "\n", r"a.txt' holds no message"),
    ],
)
def test_a_bad_file_is_named_with_the_message_and_the_remedy(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    with pytest.raises(DocumentError, match=message):
        read_conversations(written(tmp_path, name, value))


def test_odd_messages_are_no_errors(tmp_path: Path) -> None:
    odd = [
        {"speaker": "system", "text": "مرحبا 👋🏽", "time": "2023-02-04T19:12"},
        {"speaker": "Ann", "text": "long " * 40_000, "time": "2020-01-01"},
    ]
    [found] = read_conversations(written(tmp_path, "odd.json", odd))
    document = document_of(found)
    assert [one.speaker for one in document.messages] == ["system", "Ann"]
    assert [document.text[one.start : one.end] for one in document.messages] == [odd[0]["text"], odd[1]["text"].strip()]


def test_one_bad_file_is_skipped_and_the_others_are_read(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [ANN])
    written(tmp_path, "b.json", [{"text": "Hi."}])
    written(tmp_path, "c.jsonl", json.dumps({**BOB, "conversation": "a"}))
    written(tmp_path, "d.log", LOG)
    written(tmp_path, "e.md", "# No conversation")
    written(tmp_path, "f.json", [{**ANN, "text": "x" * 3_000}])
    found = list(load_conversations([tmp_path], fields=None, max_bytes=2_000))
    assert [one.id for one in found if isinstance(one, Document)] == ["a", "d"]
    reasons = [one.reason for one in found if isinstance(one, Skipped)]
    assert "message 1, field 'speaker': it has no speaker" in reasons[0]
    assert "conversation 'a' is in" in reasons[1]
    assert "more than the limit of 2,000" in reasons[2]


def test_what_is_not_there_or_empty_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist: correct the path"):
        list(load_conversations([tmp_path / "none"], fields=None, max_bytes=99))
    with pytest.raises(DocumentError, match="no conversation was found"):
        list(load_conversations([tmp_path], fields=None, max_bytes=99))
