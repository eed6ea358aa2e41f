"""Readers of other people's formats: kinds, evidence as exact words, and what they refuse."""

import copy
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from evaluation_files import HARBOUR, HOTPOTQA, LIGHTRAG, LOCOMO, LOOGLE, MUSIQUE, NOCHA, question, write

from hgmem import DocumentError, UsageError
from hgmem.evaluation.formats import DataSet, read_data
from hgmem.sources.conversations.rendering import document_of, in_order_of_time
from hgmem.values.conversations import Conversation, Message


def words(data: DataSet, at: int = 0) -> list[str]:
    """Return the evidence of a question, after checking that it stands where it says."""
    texts = {one.id: one.text for one in data.documents}
    for one in data.questions[at].evidence:
        assert one.start is None or texts[one.document][one.start : one.end] == one.text
    return [one.text for one in data.questions[at].evidence]


def test_locomo_puts_sessions_in_order_of_time_and_reads_captions(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, {"conv.json": LOCOMO}) / "conv.json", format="locomo")

    assert data.documents[0].text.split("\n") == [
        "[2023-05-08 13:56] Ann: Look! [picture: a photo of a dog]",
        "[2023-05-08 13:56] Bo: Nice dog.",
        "[2023-06-03 00:09] Bo: I moved to Rome.",
    ]
    assert [one.kind for one in data.questions] == ["single", "time", "adversarial"]
    assert [one.answer for one in data.questions] == ["Rome", "2023", "Not mentioned in the conversation."]
    assert words(data) == ["I moved to Rome."]
    assert words(data, 1) == ["Look! [picture: a photo of a dog]", "Nice dog."]  # ids of no message are left out


def test_locomo_reads_a_list_of_samples_and_a_folder_alike(tmp_path: Path) -> None:
    other = {**copy.deepcopy(LOCOMO), "sample_id": "conv-2"}
    many = read_data(write(tmp_path / "a", {"all.json": [LOCOMO, other]}) / "all.json", format="locomo")
    folder = read_data(write(tmp_path / "b", {"1.json": LOCOMO, "2.json": other}), format="locomo")

    assert many.documents == folder.documents
    assert many.questions == folder.questions


def test_hotpotqa_has_a_document_a_passage_and_sentences_as_evidence(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, HOTPOTQA), format="hotpotqa")

    assert [(one.id, one.text) for one in data.documents] == [
        ("Bell", "A bell. It hangs in Nordhavn."),
        ("Aurora", "A ferry with a bell."),
    ]
    assert words(data) == ["It hangs in Nordhavn."]
    assert read_data(tmp_path / "x.json", format="hotpotqa") == data


def test_musique_tells_passages_of_one_title_apart(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, MUSIQUE), format="musique")

    assert [one.id for one in data.documents] == ["Hall", "Hall (2)"]
    assert words(data) == ["Hall led the society."]
    assert (data.questions[0].kind, data.questions[0].evidence[0].document) == ("2hop", "Hall (2)")


def test_nocha_has_pairs_of_claims_on_a_novel(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, NOCHA), format="nocha")

    assert [(one.pair, one.kind, one.answer) for one in data.questions] == [
        ("tale-7", "claim", "True"),
        ("tale-7", "claim", "False"),
    ]
    assert data.documents[0].title == "title: A Tale"
    assert read_data(tmp_path / "tale.txt", format="nocha").questions == data.questions


def test_loogle_reads_its_published_and_its_flat_form(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, LOOGLE) / "long.jsonl", format="loogle")

    assert [one.id for one in data.documents] == ["Bells", "Bells (2)", "None"]
    assert [(one.kind, one.answer) for one in data.questions] == [
        ("computation", "A bell"),
        ("question", "text"),
        ("question", "Old"),
    ]
    assert words(data) == ["A bell rang.", "Unlike it."]
    assert data.questions[0].evidence[1].start is None  # not in the document in these words
    assert words(data, 1) == ["Another"]
    assert len({one.id for one in data.questions}) == 3


def test_a_csv_asks_on_a_folder_of_documents(tmp_path: Path) -> None:
    rows = (
        "id,question,answer,kind,document,quote,held_back,more\n"
        'a,"Who sold\nit?",Rhee,single,log,Rhee sold its bell,yes,x\n,What?,No,,,,,\n'
    )
    data = read_data(write(tmp_path, {**HARBOUR, "questions.csv": rows}), format="csv")

    assert [(one.id, one.kind, one.held_back) for one in data.questions] == [
        ("a", "single", True),
        ("q2", "question", False),
    ]
    assert words(data) == ["Rhee sold its\nbell"]
    assert read_data(tmp_path / "questions.csv").questions == data.questions


def test_a_lightrag_directory_is_its_own_graph(tmp_path: Path) -> None:
    lines = [question(evidence=[{"chunk": "chunk-2"}, {"quote": "Rhee steers"}])]
    data = read_data(write(tmp_path, {**LIGHTRAG, "questions.jsonl": lines}), format="lightrag")

    assert (data.graph, data.documents[0].text) == (tmp_path, "Rhee steers. Rhee sold the bell.")
    assert words(data) == ["Rhee sold the bell.", "Rhee steers"]
    assert data.questions[0].evidence[0].source == "chunk-2"


def test_questions_of_the_official_code_are_read_without_evidence(tmp_path: Path) -> None:
    lines = [{"question": "Why?", "reference_answer": ["Because. ", "since"]}]
    data = read_data(write(tmp_path, {**LIGHTRAG, "questions.jsonl": lines}), format="lightrag")

    assert [(one.id, one.answer, one.evidence) for one in data.questions] == [("q1", "Because.", ())]


def changed(value: Any, change: Callable[[Any], object]) -> Any:
    spoilt = copy.deepcopy(value)
    change(spoilt)
    return spoilt


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("locomo", {"c.json": [{"sample_id": "s"}]}, "sample 1, conversation: it is not an object"),
        (
            "locomo",
            {"c.json": changed(LOCOMO, lambda one: one["conversation"].update(session_2_date_time="May"))},
            "field 'session_2_date_time': 'May' is not a time",
        ),
        ("locomo", {"c.json": changed(LOCOMO, lambda one: one["qa"][0].pop("answer"))}, "question 1, field 'answer'"),
        ("locomo", {"x.txt": ""}, "has no JSON files"),
        (
            "hotpotqa",
            changed(HOTPOTQA, lambda one: one["x.json"][0]["supporting_facts"].append(["Gong", 0])),
            "question 1, field 'supporting_facts': passage 'Gong' is not in the corpus",
        ),
        ("hotpotqa", {"x_corpus.json": {}}, "x.json' does not exist"),
        ("hotpotqa", {"x_corpus.json": {}, "y_corpus.json": {}}, "has 2 files"),
        (
            "musique",
            changed(MUSIQUE, lambda one: one["y_corpus.json"].pop()),
            "evidence 'Hall led the society.' is not in passage 'Hall'",
        ),
        ("nocha", changed(NOCHA, lambda one: one["tale.claims.json"].pop()), "pair 'tale-7' is not one true and one"),
        ("nocha", changed(NOCHA, lambda one: one["tale.claims.json"][0].update(type="T")), "claim 1, field 'type'"),
        ("nocha", {"a.txt": "x"}, "has no files NAME.claims.json"),
        ("csv", {"questions.csv": "question,answer\na,b\n"}, "has no documents: add documents/"),
        ("csv", {**HARBOUR, "questions.csv": "question\na\n"}, "line 1: no column 'answer'"),
        ("csv", {**HARBOUR, "questions.csv": "question,answer\na,\n"}, "line 2, field 'answer': it is blank"),
        (
            "csv",
            {**HARBOUR, "questions.csv": "question,answer,document,quote\na,b,log,gong\n"},
            "line 2, field 'quote': quote 'gong' is not in 'log'",
        ),
        ("csv", {**HARBOUR, "questions.csv": 'question,answer\n"a,b\n'}, "line 1: not CSV"),
        ("lightrag", {"questions.jsonl": []}, "is not a LightRAG working directory"),
        ("lightrag", LIGHTRAG, "questions.jsonl' does not exist"),
    ],
)
def test_what_does_not_fit_a_format_is_refused_with_its_place(
    tmp_path: Path, name: str, files: dict[str, Any], said: str
) -> None:
    with pytest.raises((DocumentError, UsageError)) as refused:
        read_data(write(tmp_path, files), format=name)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: not JSON"),
        ('{"title": "t"}', "line 1, field 'input': it is missing"),
        ('{"input": "t", "qa_pairs": "[1"}', "field 'qa_pairs': it is a list that cannot be read"),
        ('{"input": "t", "qa_pairs": [1]}', "line 1, qa_pairs 1: it is not an object"),
        ('{"input": "t", "question": "q"}', "line 1, field 'A': it is missing"),
    ],
)
def test_a_line_of_loogle_that_does_not_fit_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_data(write(tmp_path, {"a.jsonl": line}) / "a.jsonl", format="loogle")

    assert said in str(refused.value)


def test_a_conversation_is_a_line_a_message_in_order_of_time() -> None:
    later = Message(id="2", time=datetime(2023, 2, 4, 19, 12), speaker="Ann\nLee", text=" It is\r\n\n red. ")
    first = Message(id="1", time=datetime(2023, 2, 4, 9, 5), speaker="Bo", text="🦊?")

    document = document_of(Conversation(id="c", messages=in_order_of_time([later, first])))

    text = document.text
    assert text == "[2023-02-04 09:05] Bo: 🦊?\n[2023-02-04 19:12] Ann Lee: It is red."
    assert [text[place.start : place.end] for place in document.messages] == ["🦊?", "It is red."]


@pytest.mark.parametrize(
    ("name", "folder", "documents", "questions"),
    [
        ("locomo", "locomo", 2, 304),
        ("hotpotqa", "hotpotqa", 994, 100),
        ("nocha", "nocha", 2, 60),
        ("lightrag", "gods_of_mars", 1, 1),
    ],
)
def test_the_published_data_are_read_whole(
    shared: Path, name: str, folder: str, documents: int, questions: int
) -> None:
    data = read_data(shared / folder, format=name)

    assert (len(data.documents), len(data.questions)) == (documents, questions)
    assert all(words(data, at) or name in ("nocha", "lightrag", "locomo") for at in range(questions))
