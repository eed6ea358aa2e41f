"""Our own format of data sets: what is read, and how what does not fit is told."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from evaluation_files import HARBOUR, LIGHTRAG, TALK, question, write

from hgmem import DocumentError, UsageError
from hgmem.evaluation.formats import Evidence, read_data
from hgmem.evaluation.formats.data_set import Sources, read_documents
from hgmem.text.identity import uid


def evidence(folder: Path, **fields: Any) -> tuple[Evidence, ...]:
    """Return the evidence of one question on the harbour."""
    lines = [question(**fields)]
    return read_data(write(folder, {**HARBOUR, "questions.jsonl": lines})).questions[0].evidence


def refusal(folder: Path, files: dict[str, Any], name: str = "hgmem") -> str:
    with pytest.raises((DocumentError, UsageError)) as refused:
        read_data(write(folder, files), format=name)
    return str(refused.value)


def test_text_files_are_documents_with_their_first_line_as_title(tmp_path: Path) -> None:
    data = read_data(write(tmp_path / "harbour", HARBOUR))

    assert data.name == "harbour"
    assert [(one.id, one.title) for one in data.documents] == [
        ("letter", "A letter 🦊 of Moe"),
        ("log", "Log of the Aurora"),
    ]
    assert (data.graph, data.questions[0].held_back, data.questions[0].pair) == (None, False, "")


def test_documents_may_be_lines_with_metadata(tmp_path: Path) -> None:
    lines = [{"id": "log", "title": "Log", "text": "Rhee sold its bell.", "year": 1921, "draft": False}]
    data = read_data(write(tmp_path, {"documents.jsonl": lines, "questions.jsonl": [question()]}))

    assert data.documents[0].metadata == {"year": 1921, "draft": False}


def test_documents_may_have_any_format_of_indexing_and_stand_in_folders(tmp_path: Path) -> None:
    files = {
        "documents/page.html": "<title>A page</title><p>Rhee sold its bell to Moe.</p>",
        "documents/old/lamps.csv": "id,text\nr1,Eve lit the lamp.\n,Bo put it out.\n",
        "documents/old/log.txt": "The log\r\nMoe paid.",
    }
    asked = [
        {"document": "lamps", "quote": "put it out"},
        {"document": "log", "quote": "Moe paid"},
        {"quote": "Eve lit"},
    ]
    data = read_data(write(tmp_path, {**files, "questions.jsonl": [question(evidence=asked)]}))

    names = {"page": "A page", "r1": "Eve lit the lamp.", "old/lamps#3": "Bo put it out.", "old/log": "The log"}
    assert {one.id: one.title for one in data.documents} == names
    assert [one.document for one in data.questions[0].evidence] == ["old/lamps#3", "old/log", "r1"]
    assert str(tmp_path) not in str(data.documents)


def test_a_document_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert "broken.json': not JSON at line 1" in refusal(tmp_path, {**HARBOUR, "documents/broken.json": "{"})


def test_a_file_of_questions_has_documents_beside_it_or_given_ones(tmp_path: Path) -> None:
    file = write(tmp_path, HARBOUR) / "questions.jsonl"
    given = read_documents(tmp_path / "documents" / "log.txt")

    assert [one.id for one in read_data(file).documents] == ["letter", "log"]
    assert list(given) == ["log"]
    assert read_data(file, given=Sources(documents=list(given.values()))).documents == tuple(given.values())
    with pytest.raises(UsageError, match="'locomo' has its own documents: drop documents and corpus"):
        read_data(file, format="locomo", given=Sources(documents=()))


def test_a_quote_is_found_whatever_its_line_breaks_and_kept_as_the_document_has_it(tmp_path: Path) -> None:
    (found,) = evidence(tmp_path)

    assert found == Evidence(document="log", text="Rhee sold its\nbell", start=40, end=58)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"document": "letter", "start": 9, "end": 10}, "🦊"),
        ({"document": "letter", "quote": "🦊 of", "start": 9}, "🦊 of"),
        ({"document": "log", "quote": "bell", "start": 54, "end": 58}, "bell"),
    ],
)
def test_evidence_by_place_counts_code_points(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    assert [one.text for one in evidence(tmp_path, evidence=[given])] == [words]


def test_a_conversation_is_a_document_and_a_message_its_own_words(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, TALK))

    assert [(one.id, one.title) for one in data.documents] == [("c", "Talk"), ("d", "d")]
    assert data.documents[0].text == "[2023-02-04 09:05] Bo: Which colour?\n[2023-02-04 19:12] Ann: It is red."
    (found,) = data.questions[0].evidence
    assert (found.text, found.source, found.document) == ("It is red.", "m2", "c")
    assert data.documents[0].text[found.start : found.end] == "It is red."


def test_a_lightrag_directory_that_a_file_names_is_the_graph(tmp_path: Path) -> None:
    write(tmp_path / "made", LIGHTRAG)
    lines = [question(evidence=[{"chunk": "chunk-1"}, {"quote": "Rhee sold the bell"}])]
    data = read_data(write(tmp_path / "asked", {"graph.txt": "../made\n", "questions.jsonl": lines}))

    assert data.graph is not None
    assert data.graph.resolve() == tmp_path / "made"
    assert [(one.text, one.source) for one in data.questions[0].evidence] == [
        ("Rhee steers.", "chunk-1"),
        ("Rhee sold the bell", ""),
    ]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("chunk", ["u1", "given-1"])
def test_chunks_of_an_archive_are_evidence_by_uid_and_by_the_callers_id(
    tmp_path: Path, chunk: str, packed: bool
) -> None:
    document = uid("harbour", "document", "letter")
    chunks = {
        "kind": "Chunk",
        "uid": "u1",
        "document": document,
        "position": 0,
        "text": "Moe owes",
        "start": 19,
        "end": 27,
    }
    records = [{"kind": "archive", "corpus": "harbour"}, {**chunks, "source_id": "given-1"}]
    text = "".join(json.dumps(one) + "\n" for one in records).encode()
    write(tmp_path, {**HARBOUR, "questions.jsonl": [question(evidence=[{"chunk": chunk}])]})
    (tmp_path / "graph.jsonl.gz").write_bytes(gzip.compress(text) if packed else text)

    data = read_data(tmp_path)

    assert data.graph == tmp_path / "graph.jsonl.gz"
    assert data.questions[0].evidence == (Evidence(document="letter", text="Moe owes", start=19, end=27, source=chunk),)


def archived(folder: Path, *evidence: dict[str, Any]) -> Path:
    """Write an archive of a letter and a conversation alone, with one question."""
    letter, talk = uid("harbour", "document", "/mine/letter.md"), uid("harbour", "document", "talk")
    places = [{"id": "m1", "speaker": "Ann", "time": "", "start": 5, "end": 11}]
    rest = [{"id": "m1", "speaker": "Ann", "time": "", "start": 0, "end": 3}]
    records = [
        {"kind": "archive", "corpus": "harbour"},
        {"kind": "Document", "uid": letter, "title": "To Moe", "source": "/mine/letter.md"},
        {"kind": "Document", "uid": talk, "title": "Talk", "source": "talk"},
        {"kind": "Chunk", "uid": "u2", "document": letter, "position": 1, "text": "owes ten crowns.", "start": 4},
        {"kind": "Chunk", "uid": "u1", "document": letter, "position": 0, "text": "Moe owes", "start": 0},
        {"kind": "Chunk", "uid": "u3", "document": talk, "position": 0, "text": "Ann: It is", "start": 0},
        {"kind": "Chunk", "uid": "u4", "document": talk, "position": 1, "text": "red", "start": 11},
    ]
    records[5]["messages"], records[6]["messages"] = json.dumps(places), json.dumps(rest)
    return write(folder, {"graph.jsonl": records, "questions.jsonl": [question(evidence=evidence)]})


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"document": "letter", "quote": "Moe owes ten"}, "Moe owes ten"),
        ({"document": "/mine/letter.md", "start": 9, "end": 12}, "ten"),
        ({"document": "To Moe", "quote": "ten crowns"}, "ten crowns"),
        ({"conversation": "talk", "message": "m1"}, "It is red"),
        ({"quote": "crowns"}, "crowns"),
        ({"chunk": "u2"}, "owes ten crowns."),
    ],
)
def test_an_archive_alone_has_the_documents_that_questions_are_on(
    tmp_path: Path, wanted: dict[str, Any], words: str
) -> None:
    data = read_data(archived(tmp_path, wanted))

    assert data.graph == tmp_path / "graph.jsonl"
    assert [one.text for one in data.questions[0].evidence] == [words]
    assert [one.text for one in data.documents if one.messages] == ["Ann: It is red"]


def test_evidence_that_an_archive_alone_does_not_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="quote 'a gong' is not in 'letter'"):
        read_data(archived(tmp_path, {"document": "letter", "quote": "a gong"}))


PAIR = [
    question(id="t", kind="claim", answer="True. It rang.", pair="p", evidence=[]),
    question(id="f", kind="claim", answer="false", pair="p", evidence=[]),
]


def test_a_true_and_a_false_claim_are_a_pair(tmp_path: Path) -> None:
    data = read_data(write(tmp_path, {**HARBOUR, "questions.jsonl": PAIR}))

    assert [one.pair for one in data.questions] == ["p", "p"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"evidence": []}, "field 'evidence': a question of kind 'single' needs evidence"),
        ({"evidence": [{"document": "log", "quote": "gong"}]}, "field 'evidence.0': quote 'gong' is not in 'log'"),
        ({"evidence": [{"document": "log", "quote": "bell"}]}, "quote 'bell' is 3 times in 'log': add start"),
        (
            {"evidence": [{"document": "log", "quote": "bell", "start": 3}]},
            "quote 'bell' is at 54 to 58: correct start",
        ),
        ({"evidence": [{"document": "log", "quote": "gong", "start": 3}]}, "quote 'gong' is not in 'log'"),
        ({"evidence": [{"document": "log", "start": 3, "end": 999}]}, "'log' has no words at 3 to 999"),
        ({"evidence": [{"document": "log", "start": 3, "end": 3}]}, "field 'evidence.0': end needs a smaller start"),
        ({"evidence": [{"document": "log", "start": 3}]}, "start needs an end or a quote"),
        ({"evidence": [{"document": "log", "start": -1, "end": 3}]}, "field 'evidence.0.start': input should be"),
        ({"evidence": [{"document": "ship", "quote": "x"}]}, "document 'ship' does not exist"),
        ({"evidence": [{"quote": "gong"}]}, "quote 'gong' is not in the 2 documents"),
        (
            {"evidence": [{"quote": "Moe"}]},
            "quote 'Moe' is 3 times in the 2 documents: name its document",
        ),
        (
            {"evidence": [{"start": 3, "end": 9}]},
            "text at start is 2 times in the 2 documents: name its document",
        ),
        ({"evidence": [{"chunk": "c9"}]}, "chunk 'c9' is not in the graph"),
        ({"evidence": [{"conversation": "c", "message": "m"}]}, "conversation 'c' does not exist"),
        ({"evidence": [{"document": "log"}]}, "give one of quote, start and end, chunk, or message"),
        ({"evidence": [{"chunk": "c", "message": "m"}]}, "give one of quote"),
        ({"evidence": [{"document": "log", "chunk": "m"}]}, "conversation belongs to message"),
        ({"evidence": "log"}, "field 'evidence': input should be a valid array"),
        ({"held_back": "yes"}, "field 'held_back': input should be a valid boolean"),
        ({"answer": " "}, "field 'answer': it is blank"),
        ({"id": 7}, "field 'id': input should be a valid string"),
        ({"question": "a\0"}, "field 'question': it has a null character"),
        ({"hint": "x"}, "field 'hint': extra inputs are not permitted"),
        ({"pair": "p"}, "field 'pair': pair 'p' is not one true and one false claim: another answer"),
    ],
)
def test_a_question_that_does_not_fit_is_refused_with_line_and_field(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    told = refusal(tmp_path, {**HARBOUR, "questions.jsonl": [question(id="q0"), question(**fields)]})

    assert "questions.jsonl': line 2" in told
    assert said in told


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"questions.jsonl": "{"}, "questions.jsonl': line 1: invalid JSON"),
        ({"questions.jsonl": "[]"}, "line 1: input should be an object"),
        ({"questions.jsonl": ""}, "it has no valid question"),
        ({"questions.jsonl": [question(), question()]}, "line 2, field 'id': id 'q1' is a duplicate"),
        ({"questions.jsonl": PAIR[:1]}, "line 1, field 'pair': pair 'p' is not one true and one false claim: true"),
        ({"questions.jsonl": [*PAIR, {**PAIR[0], "id": "x"}]}, "claim: false, true, true"),
        ({"documents.jsonl": []}, "has both documents/ and documents.jsonl"),
        ({"documents/log.md": "x"}, "has two documents 'log': rename one"),
        ({"documents/empty.txt": " \n"}, "empty.txt': empty: remove it"),
        ({"documents/null.txt": "\0"}, "null.txt': binary: it contains null bytes"),
        ({"conversations.jsonl": [{**TALK["conversations.jsonl"][0], "conversation": "log"}]}, "a document and a conv"),
        ({"graph.txt": "nowhere"}, "nowhere' is not a LightRAG working directory"),
        ({"graph.txt": "nowhere", "graph.jsonl": "{}"}, "has several graphs: keep one of"),
        ({"graph.jsonl.gz": "no archive"}, "not an archive of hgmem export"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path, files: dict[str, Any], said: str) -> None:
    assert said in refusal(tmp_path, {**HARBOUR, **files})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "m2"}, ": message 3 of conversation 'c' has the id 'm2' of another"),
        ({"time": "soon"}, ", line 4, field 'time'"),
        ({"speaker": ""}, ", line 4, field 'speaker': it has no speaker"),
    ],
)
def test_a_message_that_does_not_fit_is_refused(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    lines = [*TALK["conversations.jsonl"], {**TALK["conversations.jsonl"][0], "id": "m3", **fields}]

    assert f"conversations.jsonl'{said}" in refusal(tmp_path, {**TALK, "conversations.jsonl": lines})


def test_a_folder_without_documents_or_questions_is_refused(tmp_path: Path) -> None:
    assert "has no documents" in refusal(tmp_path / "a", {"questions.jsonl": [question()]})
    assert "questions.jsonl' does not exist" in refusal(
        tmp_path / "b", {"documents/log.txt": HARBOUR["documents/log.txt"]}
    )


def test_up_to_ten_problems_of_a_file_are_told_at_once_and_the_rest_counted(tmp_path: Path) -> None:
    lines = [question(id=f"q{at}", evidence=[{"document": "log", "quote": "gong " * 30}]) for at in range(13)]

    told = refusal(tmp_path, {**HARBOUR, "questions.jsonl": lines}).split(";\n")

    assert len(told) == 11
    assert all(f"line {at}, field 'evidence.0'" in one for at, one in enumerate(told[:10], start=1))
    assert told[10] == "3 more"


@pytest.mark.parametrize(("path", "name"), [("", "hgmem2"), ("nowhere", "hgmem")])
def test_an_unknown_format_and_a_path_that_is_not_there_are_refused(tmp_path: Path, path: str, name: str) -> None:
    write(tmp_path, {"file.txt": "x"})
    with pytest.raises(UsageError, match=r"choose one of hgmem, locomo|does not exist"):
        read_data(tmp_path / path, format=name)


def test_the_data_sets_of_the_examples_fit() -> None:
    folders = sorted(Path(__file__).parents[2].glob("examples/eval/*/questions.jsonl"))
    if not folders:
        pytest.skip("no data sets in examples/eval")
    assert all(read_data(path.parent).questions for path in folders)
