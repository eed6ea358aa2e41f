"""Conversion of CSV: one document per row."""

import pytest
from documents import read_file

from hgmem.sources.files import records as tables
from hgmem.values.inputs import Document, Skipped


def put(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def documents(tmp_path, content, name="a.csv", **options):
    return list(read_file(put(tmp_path, content, name), **options))


def test_a_row_is_a_document_with_its_other_columns_as_metadata(tmp_path):
    path = put(tmp_path, "id,title,text,year,who\n7,The Lamp,Light.,1901,Ana\n,,Dark.,,\n")
    assert list(read_file(path)) == [
        Document(id="7", title="The Lamp", text="Light.", source=str(path), metadata={"year": 1901, "who": "Ana"}),
        Document(id=f"{path}#3", title="a #3", text="Dark.", source=str(path)),
    ]


def test_a_row_without_a_column_of_text_is_its_columns(tmp_path):
    (row,) = documents(tmp_path, "id,ship,port\n1,Aurora,\n")
    assert (row.text, row.metadata) == ("id: 1\nship: Aurora", {"ship": "Aurora"})


def test_another_column_can_hold_the_text(tmp_path):
    (row,) = documents(tmp_path, "text,body\nshort,The whole.\n", text_field="body")
    assert (row.text, row.metadata) == ("The whole.", {"text": "short"})


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("0", 0),
        ("2.5", 2.5),
        ("-0.25", -0.25),
        *((text, text) for text in ("007", "-0", "+3", "1.50", "1e5", "1_000", ".5", "nan", "True", "٣", "1" * 19)),
        ("0.1000000000000000055", "0.1000000000000000055"),
    ],
)
def test_a_number_is_one_only_where_writing_it_gives_the_same_text(tmp_path, written, value):
    (row,) = documents(tmp_path, f"text,n\nx,{written}\n")
    assert row.metadata == {"n": value}
    assert type(row.metadata["n"]) is type(value)


@pytest.mark.parametrize(
    ("delimiter", "name"), [(",", "a.csv"), (";", "a.csv"), ("\t", "a.csv"), ("|", "a.csv"), ("\t", "a.tsv")]
)
def test_the_delimiter_is_found(tmp_path, delimiter, name):
    rows = [["text", "n"], ["One, two; three", "1,5"], ["Four", "2"]]
    content = "\r\n".join(delimiter.join(f'"{field}"' for field in row) for row in rows)
    assert [row.metadata for row in documents(tmp_path, content, name)] == [{"n": "1,5"}, {"n": 2}]


def test_a_delimiter_cuts_every_row_alike_however_often_another_one_comes_in_the_first(tmp_path):
    (row, _) = documents(tmp_path, "text (a, b, c, d, e, f, g);n\nx;1\ny;2\n", text_field="text (a, b, c, d, e, f, g)")
    assert (row.text, row.metadata) == ("x", {"n": 1})


def test_quoted_fields_hold_newlines_quotes_and_delimiters_and_no_other_sign_ends_a_row(tmp_path):
    text = 'Dear "Ana",\r\n\r\nall\u2028is\x85well.'
    quoted = text.replace('"', '""')
    (row,) = documents(tmp_path, f'text,n\r\n"{quoted}",1\x0b2\r\n')
    assert (row.text, row.metadata) == (text, {"n": "1\x0b2"})


def test_rows_count_as_in_a_spreadsheet_and_blank_ones_are_passed_over(tmp_path):
    items = documents(tmp_path, "text,n\nOne,1\n\n,\n,5\nTwo,1,2\nThree\n")
    assert [str(item.path if isinstance(item, Skipped) else item.id)[-2:] for item in items] == ["#2", "#5", "#6", "#7"]
    assert [item.reason for item in items if isinstance(item, Skipped)] == [
        "empty",
        "3 fields for 2 columns: check quotes and delimiters",
    ]


def test_columns_without_a_name_and_of_one_name_are_told_apart(tmp_path):
    (row,) = documents(tmp_path, "text,,n,n,n (2)\nx,1,2,3,4\n")
    assert row.metadata == {"column 2": 1, "n": 2, "n (2)": 3, "n (2) (2)": 4}


def test_a_field_may_be_as_long_as_a_book(tmp_path):
    (row,) = documents(tmp_path, f"text\n{'word ' * 100_000}\n")
    assert len(row.text) == 500_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("text,n\n", "no rows below the header"),
        ("\n\n", "empty"),
        ("," * 1_000 + "\nx\n", "1,001 columns are above the limit of 1,000"),
        (b"text\ncaf\xe9\n", "not UTF-8 at byte 8: save it as UTF-8"),
        (b"text\na\0b\n", "null bytes"),
    ],
)
def test_a_table_that_cannot_be_used_is_skipped(tmp_path, content, reason):
    (item,) = documents(tmp_path, content)
    assert reason in item.reason


def test_rows_above_the_limit_are_left_out_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    *rows, last = documents(tmp_path, "text\na\nb\nc\nd\n")
    assert [row.text for row in rows] == ["a", "b"]
    assert last.reason == "rows from 4 on are skipped: split the file"
