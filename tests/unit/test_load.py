import json
import os

import pytest
from documents import read_file
from hypothesis import given
from hypothesis import strategies as st

from hgmem.errors import DocumentError, DocumentWarning
from hgmem.sources.files import discover, load
from hgmem.values.inputs import Document, Skipped

LIMIT = 1_000


def put(folder, name, content="Some text."):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def taken(paths, **options):
    """Return the documents, and the reasons by file name."""
    items = list(load(paths, **{"max_bytes": LIMIT, **options}))
    documents = [item for item in items if isinstance(item, Document)]
    skipped = {os.path.basename(item.path): item.reason for item in items if isinstance(item, Skipped)}
    return documents, skipped


def only(path, **options):
    (document,), skipped = taken(path, **options)
    assert not skipped
    return document


def reason(path):
    """Return the reason for skipping a file beside a valid one."""
    good = put(path.parent, "good.txt")
    (document,), skipped = taken([path, good])
    assert document.source == str(good)
    assert list(skipped) == [path.name]
    return skipped[path.name]


def test_a_folder_is_read_to_the_bottom_in_order_without_hidden_things(tmp_path):
    for name in ("b.txt", "a.MD", "x/c.txt", "x/y/d.txt", "w/e.txt", "picture.png", ".hidden.txt", ".git/f.txt"):
        put(tmp_path, name)
    documents, skipped = taken(tmp_path)
    assert [document.title for document in documents] == ["a", "b", "e", "c", "d"]
    assert skipped == {}


def test_a_plain_document_is_known_by_its_absolute_path(tmp_path, monkeypatch):
    path = put(tmp_path, "letter.txt", "Dear Ana,\r\nall is well.\n")
    monkeypatch.chdir(tmp_path)
    document = only("letter.txt")
    assert document == Document(id=str(path), source=str(path), title="letter", text="Dear Ana,\r\nall is well.\n")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Intro\n\n## The *Lamp* ##\n# Later\n", "The *Lamp*"),
        ("# C#\r\ntext", "C#"),
        ("```\n# a comment\n```\n# Real\n", "Real"),
        ("#hashtag\n#\n# \n", "file"),
        ("####### seven", "file"),
        ("# " + "x" * 500, "x" * 120),
    ],
)
def test_the_title_is_the_first_heading_else_the_stem(tmp_path, text, title):
    assert only(put(tmp_path, "file.md", text)).title == title


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_with_a_mark_give_the_same_text_without_it(tmp_path, encoding):
    text = "Zoë 漢字 👩‍👧\r\nline\rend\u2028"
    assert only(put(tmp_path, "a.txt", text.encode(encoding))).text == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_every_text_comes_back_as_it_was_written(tmp_path_factory, text):
    path = put(tmp_path_factory.mktemp("texts"), "a.txt", text)
    (item,) = read_file(path)
    if text.removeprefix("\ufeff").strip():
        assert item.text == text.removeprefix("\ufeff")
    else:
        assert item.reason == "empty"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \r\n\t", "empty"),
        ("a.txt", b"\xef\xbb\xbf\n", "empty"),
        ("a.txt", b"text\0more", "binary"),
        ("a.txt", b"\x89PNG\0\xff", "binary"),
        ("a.txt", "caf\u00e9".encode("latin-1"), "not UTF-8 at byte 3"),
        ("a.txt", b"\xff\xfea\0b", "not UTF-16"),
        ("a.txt", b"x" * (LIMIT + 1), "1,001 bytes are above the limit of 1,000"),
        (
            "a.rtf",
            b"{\\rtf1}",
            "suffix '.rtf' is not supported: use .txt .md .json .jsonl .csv .tsv .html .htm .docx .pdf",
        ),
        ("a", b"text", "suffix '' is not supported: use"),
        ("a.json", b'{"text": "half', "not JSON at line 1 column 10"),
        ("a.json", b"[]", "empty"),
        ("a.json", b"3", "neither an object nor a list of objects"),
        ("a.json", b"[" * 900, "not JSON"),
        (
            "a.json",
            b'{"body": "x", "n": 1}',
            "no text in field 'text'; its fields are 'body', 'n': set HGMEM_TEXT_FIELD",
        ),
        ("a.json", b'{"text": ["x"]}', "no text in field 'text'"),
        ("a.json", b'{"text": " \\n"}', "empty"),
        ("a.json", b'{"text": "\\ufeff"}', "empty"),
        ("a.json", b'{"text": "x", "id": [1]}', "id [1] is neither text nor a whole number"),
        ("a.json", b'{"text": "x\\ud83d"}', "surrogate"),
        ("a.json", b'{"text": "x", "who": "\\ud83d"}', "surrogate"),
        ("a.json", b'{"text": "x\\u0000"}', "null character"),
        ("a.json", json.dumps(dict.fromkeys("abcdefghijklmn")).encode(), "'i', 'j' and 4 more"),
        ("a.json", b'{"text": "x", "n": 1' + b"0" * 5000 + b"}", "above the limit"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_rest_goes_on(tmp_path, name, content, why):
    assert why in reason(put(tmp_path, name, content))


def test_json_nested_a_hundred_thousand_deep_is_skipped(tmp_path):
    (item,) = read_file(put(tmp_path, "a.json", '{"a":' * 100_000))
    assert "JSON" in item.reason


def test_an_endless_number_is_skipped(tmp_path):
    (item,) = read_file(put(tmp_path, "a.json", '{"text": "x", "n": 1' + "0" * 5_000 + "}"))
    assert "not JSON" in item.reason


def test_an_object_is_a_document_with_its_other_scalars_as_metadata(tmp_path):
    record = {"id": 7, "title": " The\n Lamp ", "text": "\ufeffLight.", "year": 1901, "sold": True, "who": "Ana"}
    nothing = {"none": None, "list": [1], "map": {}, "nan": float("nan")}
    path = put(tmp_path, "a.json", json.dumps(record | nothing))
    metadata = {"year": 1901, "sold": True, "who": "Ana"}
    assert only(path) == Document(id="7", title="The Lamp", text="Light.", source=str(path), metadata=metadata)


def test_scalars_of_an_object_metadata_are_metadata_and_the_records_own_fields_win(tmp_path):
    within = {"year": 1, "date": "1871-05-03", "tags": ["a"], "title": "no"}
    document = only(put(tmp_path, "a.json", json.dumps({"text": "Light.", "year": 1901, "metadata": within})))
    assert (document.title, document.metadata) == ("a", {"year": 1901, "date": "1871-05-03"})


def test_records_without_an_id_are_numbered_within_their_file(tmp_path):
    path = put(tmp_path, "a.json", json.dumps([{"text": "One"}, {"text": "Two", "id": "two"}, {"text": "# Three"}]))
    documents, _ = taken(path)
    assert [document.id for document in documents] == [f"{path}#1", "two", f"{path}#3"]
    assert [document.title for document in documents] == ["a #1", "a #2", "Three"]
    assert {document.source for document in documents} == {str(path)}


def test_lines_are_numbered_as_an_editor_does_and_bad_ones_are_named(tmp_path):
    lines = ['{"text": "One"}', "", '{"text": "Two', '"text"', '{"text": "Fi\u2028ve"}', ""]
    path = put(tmp_path, "a.jsonl", "\r\n".join(lines))
    documents, skipped = taken(path)
    assert [(document.id, document.text) for document in documents] == [
        (f"{path}#1", "One"),
        (f"{path}#5", "Fi\u2028ve"),
    ]
    assert list(skipped) == ["a.jsonl#3", "a.jsonl#4"]
    assert "not JSON at line 3" in skipped["a.jsonl#3"]
    assert skipped["a.jsonl#4"] == "neither an object nor a list of objects"


def test_another_field_can_hold_the_text(tmp_path):
    path = put(tmp_path, "a.json", '{"text": "short", "body": "The whole."}')
    document = only(path, text_field="body")
    assert (document.text, document.metadata) == ("The whole.", {"text": "short"})


def test_an_id_that_comes_twice_is_used_once(tmp_path):
    first = put(tmp_path, "a.json", '{"text": "One", "id": "x"}')
    second = put(tmp_path, "b.json", '{"text": "Two", "id": "x"}')
    documents, skipped = taken([first, second])
    assert [document.text for document in documents] == ["One"]
    assert skipped == {"b.json": f"duplicate id 'x', which {first} has: make ids unique"}


def test_a_file_named_twice_is_read_once(tmp_path):
    path = put(tmp_path, "a.txt")
    assert discover([path, tmp_path, str(path)], max_bytes=LIMIT) == [path]


@pytest.mark.parametrize("name", ["nowhere", "a.txt/inside", "nu\0ll", ""])
def test_a_path_that_does_not_exist_is_an_error_before_anything_is_read(tmp_path, name):
    put(tmp_path, "a.txt")
    with pytest.raises(DocumentError, match=r"does not exist|is empty"):
        load([tmp_path, f"{tmp_path}/{name}" if name else ""], max_bytes=LIMIT)


def test_the_error_names_the_missing_path(tmp_path):
    with pytest.raises(DocumentError) as caught:
        load(tmp_path / "nowhere.txt", max_bytes=LIMIT)
    assert repr(str(tmp_path / "nowhere.txt")) in str(caught.value)


def test_nothing_usable_is_an_error_that_says_what_would_be(tmp_path):
    with pytest.raises(DocumentError, match=r"nothing to read in .*: supported documents are \.txt \.md \.json"):
        list(load(tmp_path, max_bytes=LIMIT))
    empty = put(tmp_path, "empty.txt", b"")
    with pytest.raises(DocumentError, match=r"nothing to read in .*: empty\.txt: empty$"):
        list(load(empty, max_bytes=LIMIT))
    other = put(tmp_path, "a.odt", b"x")
    with pytest.raises(
        DocumentError, match=r"^nothing to read in .*: a\.odt: suffix '\.odt' is not supported: use [^:]*$"
    ):
        list(load(other, max_bytes=LIMIT))


def test_files_of_other_formats_are_counted(tmp_path):
    for name in ("a.txt", "b.log", "c.LOG", "sub/README"):
        put(tmp_path, name)
    with pytest.warns(DocumentWarning, match=r"^3 files of other formats are left out: \.log \(2\), no suffix \(1\)$"):
        assert len(discover(tmp_path, max_bytes=LIMIT)) == 1


def test_links_that_lead_round_or_nowhere_and_folders_named_like_files_do_no_harm(tmp_path):
    put(tmp_path, "real.txt")
    put(tmp_path, "folder.txt/inner.txt")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "round.txt").symlink_to(tmp_path / "round.txt")
    (tmp_path / "nowhere.txt").symlink_to(tmp_path / "gone")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    documents, skipped = taken(tmp_path)
    assert [os.path.basename(document.source) for document in documents] == ["link.txt", "real.txt", "inner.txt"]
    assert sorted(skipped) == ["nowhere.txt", "round.txt"]


def test_a_pipe_is_skipped_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert reason(tmp_path / "pipe.txt") == "not a regular file"


def test_a_file_name_that_is_not_utf_8_is_skipped(tmp_path):
    put(tmp_path, "good.txt")
    put(tmp_path, os.fsdecode(b"caf\xe9.txt"))
    _, skipped = taken(tmp_path)
    assert list(skipped.values()) == ["its file name is not UTF-8"]
    "".join(skipped).encode()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions don't bind this user")
def test_what_may_not_be_read_is_skipped(tmp_path):
    put(tmp_path, "good.txt")
    put(tmp_path, "secret.txt").chmod(0)
    put(tmp_path, "closed/a.txt").parent.chmod(0)
    _, skipped = taken(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert skipped == {"secret.txt": "Permission denied", "closed": "Permission denied"}


def test_a_file_that_cannot_be_read_after_all_is_skipped(tmp_path, monkeypatch):
    path = put(tmp_path, "gone.txt")
    files = load([path, put(tmp_path, "good.txt")], max_bytes=LIMIT)
    path.unlink()
    gone, good = files
    assert (gone.path, gone.reason) == (str(path), "No such file or directory")
    assert good.title == "good"


def test_files_are_read_as_one_goes(tmp_path):
    put(tmp_path, "a.txt", "first")
    second = put(tmp_path, "b.txt", "before")
    items = load(tmp_path, max_bytes=LIMIT)
    assert next(items).text == "first"
    second.write_text("after")
    assert next(items).text == "after"


@pytest.mark.parametrize("name", ["talk.json", "talk.jsonl"])
def test_messages_that_are_read_as_documents_are_warned_of_once(tmp_path, name):
    rows = [json.dumps({"speaker": "Ada", "text": text}) for text in ("Hi.", "Hello.")]
    path = put(tmp_path, name, ("\n".join(rows) if name.endswith("l") else f"[{','.join(rows)}]").encode())
    with pytest.warns(DocumentWarning, match=r"field 'speaker' become a document each: .* --conversations") as told:
        assert len(taken(path)[0]) == 2
    assert len(told) == 1
