"""Archive files: refusals and their line numbers, before anything is written."""

import gzip
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgmem.corpus.archive.field_types import TYPES, pack, unpack
from hgmem.corpus.archive.files import Bounds, Reader, opened, writing
from hgmem.corpus.archive.lines import BYTES, Chain, LineError
from hgmem.corpus.archive.records import LINES, VERSION, footer
from hgmem.errors import DocumentError, UsageError
from hgmem.graph.corpus import SCHEMA_VERSION
from hgmem.text.identity import uid

CORPUS = "tales"
BOUNDS = Bounds(line=10_000, total=1_000_000)
MEMORY = "m0123456789abcdef"
DOCUMENT, CHUNK = uid(CORPUS, "document", "d"), uid(CORPUS, "chunk", "c")
ADA, BO = uid(CORPUS, "entity", "ada"), uid(CORPUS, "entity", "bo")
VECTOR = pack([0.6, 0.8])
HEADER = {
    "kind": "archive",
    "format": "hgmem-archive",
    "version": VERSION,
    "hgmem": "0.1.0",
    "corpus": CORPUS,
    "embedding_model": "some",
    "dimensions": 2,
    "schema_version": 1,
    "settings": "{}",
    "created_at": "2026-01-02T03:04:05.123456789Z",
    "embeddings": True,
    "memories": True,
}


def entity(uid_: str, key: str, **changed: Any) -> dict[str, Any]:
    said = {"uid": uid_, "key": key, "name": key, "type": "", "description": "", "embedding": VECTOR}
    return {"kind": "Entity", **said, **changed}


OF_TEXT = {"stems": " t ", "date": "", "type": "", "source": "", "sha256": "", "metadata": "{}"}


def records(**changed: Any) -> list[dict[str, Any]]:
    """Return a small complete archive without its last line; `changed` replaces fields of the records of a kind."""
    said = [
        HEADER,
        {"kind": "Document", "uid": DOCUMENT, "id": "d", "title": "T", **OF_TEXT},
        {
            "kind": "Chunk",
            "uid": CHUNK,
            "document": DOCUMENT,
            "position": 0,
            "text": "Ada\0 met Bo.",
            "stems": " ada  met  bo ",
            "tokens": 4,
        },
        entity(ADA, "ada"),
        entity(BO, "bo"),
        {"kind": "FROM_CHUNK", "source": ADA, "target": CHUNK},
        {"kind": "RELATES", "uid": "a" * 32, "memory": "", "source": ADA, "target": BO, "description": "They met."},
        {"kind": "Memory", "uid": MEMORY, "system": "hgmem", "model": "none", "question": "Who?", "settings": "{}"},
        {"kind": "Step", "memory": MEMORY, "number": 1, "strategy": "global", "operations": "[]", "notes": []},
        {"kind": "MemoryPoint", "uid": f"{MEMORY}-1-1", "memory": MEMORY, "description": "They met.", "born": 1},
        {"kind": "INVOLVES", "memory": MEMORY, "source": f"{MEMORY}-1-1", "target": ADA},
    ]
    more = {
        "Document": {"status": "done"},
        "Chunk": {"status": "done", "attempts": 1, "embedding": VECTOR},
        "RELATES": {"keywords": [], "weight": 1.0, "chunks": [CHUNK], "embedding": VECTOR},
        "Memory": {"status": "answered", "created_at": "2026-01-02T03:04:05Z"},
        "Step": {"question": "Who?", "seconds": 0.5, "usage": "{}"},
        "MemoryPoint": {"embedding": VECTOR},
    }
    whole = [{**record, **more.get(str(record["kind"]), {})} for record in said]
    return [
        {name: value for name, value in {**record, **changed.get(str(record["kind"]), {})}.items() if value != ...}
        for record in whole
    ]


def lines(said: Iterable[dict[str, Any]], *, end: bool = True) -> list[bytes]:
    """Return the records as lines with valid digests, and the last line with their counts."""
    said, chain = list(said), Chain()
    counts: dict[str, int] = {}
    for record in said[1:]:
        counts[str(record.get("kind"))] = counts.get(str(record.get("kind")), 0) + 1
    return [chain.line(record) for record in (*said, *([footer(counts)] if end else []))]


def reading(path: Path, data: bytes, bounds: Bounds = BOUNDS) -> list[dict[str, Any]]:
    path.write_bytes(data)
    with opened(path) as raw:
        return [line.record for line in Reader(raw, bounds=bounds, schema_version=1).lines()]


def refusal(path: Path, data: bytes, bounds: Bounds = BOUNDS) -> str:
    with pytest.raises(DocumentError) as raised:
        reading(path, data, bounds)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def packed(parts: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(parts), mtime=0)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl.gz"
    with writing(path, force=False, bounds=BOUNDS) as write:
        for record in (*records(), footer({})):
            write(record)
    assert gzip.decompress(path.read_bytes()).splitlines()[:-1] == [line[:-1] for line in lines(records())[:-1]]
    assert list(tmp_path.iterdir()) == [path]
    assert reading(path, packed(WHOLE))[:-1] == records()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_a_vector_comes_back_bit_for_bit(values: list[float]) -> None:
    assert unpack(pack(values)).tobytes() == np.asarray(values, dtype="<f4").tobytes()


# Damage ---------------------------------------------------------------------------------------------------------

WHOLE = lines(records())


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(b"".join(WHOLE)) - 1), st.integers(1, 255))
def test_a_byte_that_is_another_is_refused(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int) -> None:
    spoilt = bytearray(b"".join(WHOLE))
    spoilt[at] ^= flip
    said = refusal(tmp_path_factory.getbasetemp() / "flipped", packed([bytes(spoilt)]))
    number = b"".join(WHOLE)[:at].count(b"\n") + 1
    assert any(f"line {line}" in said for line in (number, number + 1))  # a corrupt line end fails on the next one


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_packed_byte_that_is_another_is_refused_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    spoilt = bytearray(packed(WHOLE))
    spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "spoilt"
    try:
        assert len(reading(path, bytes(spoilt))) == len(WHOLE)
    except DocumentError:
        return
    assert gzip.decompress(bytes(spoilt)) == b"".join(WHOLE)  # bits that gzip itself ignores


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_lines_dropped_doubled_or_swapped_are_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    one, other = sorted(data.draw(st.lists(st.integers(0, len(WHOLE) - 1), min_size=2, max_size=2, unique=True)))
    swapped = [*WHOLE[:one], WHOLE[other], *WHOLE[one + 1 : other], WHOLE[one], *WHOLE[other + 1 :]]
    for spoilt in (WHOLE[:one] + WHOLE[one + 1 :], [*WHOLE[: one + 1], *WHOLE[one:]], swapped):
        refusal(tmp_path_factory.getbasetemp() / "reordered", packed(spoilt))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_file_that_is_cut_short_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path, whole, plain = tmp_path_factory.getbasetemp() / "cut", packed(WHOLE), b"".join(WHOLE)
    refusal(path, whole[: data.draw(st.integers(0, len(whole) - 1))])
    refusal(path, packed([plain[: data.draw(st.integers(0, len(plain) - 1))]]))


# Hostile archives with valid digests ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"archive": {"version": 2}},
            f"line 1: format version '2', but this hgmem reads {VERSION}: import it with the version",
        ),
        ({"archive": {"format": "zip"}}, "line 1: not the header"),
        ({"archive": {"schema_version": 9}}, "line 1: schema version 9"),
        ({"archive": {"corpus": "../etc"}}, "line 1: invalid corpus name '../etc'"),
        ({"archive": {"dimensions": 0}}, "line 1: invalid dimensions 0"),
        ({"archive": {"corpus": "other"}}, "line 4: entity '.*' does not belong to corpus 'other'"),
        ({"archive": {"memories": False}}, "line 8: the record belongs to a memory"),
        ({"archive": {"embeddings": False}}, "line 3: the record has a vector"),
        ({"archive": {"embeddings": 1}}, "line 1: field 'embeddings': expected boolean, got 1"),
        ({"Document": {"kind": "Dokument"}}, "line 2: unknown kind 'Dokument'"),
        ({"Document": {"kind": ["Document"]}}, "line 2: unknown kind"),
        ({"Document": {"title": 7}}, "line 2: field 'title': expected text, got 7"),
        ({"Document": {"title": "\ud800"}}, "line 2"),
        ({"Document": {"metadata": "{"}}, "line 2: field 'metadata': expected object"),
        ({"Document": {"metadata": "[" * 100_000}}, "line 2: longer than 10,000 bytes"),
        ({"Document": {"indexed_at": "2026-13-45T00:00Z"}}, "line 2: field 'indexed_at': expected time"),
        ({"Document": {"title": ...}}, "line 2: field 'title' is missing"),
        ({"Document": {"chunking": None}}, "line 2: field 'chunking' is null: omit it"),
        ({"Document": {"corpus": "other"}}, "line 2: unknown field 'corpus'"),
        ({"Document": {"uid": "x' OR true"}}, "line 2: field 'uid': expected uid"),
        ({"Document": {"uid": DOCUMENT + "\0"}}, "line 2: field 'uid': expected uid"),
        ({"Chunk": {"document": "0" * 32}}, "line 3: refers to Document '0+', which no earlier line defines"),
        ({"Chunk": {"position": True}}, "line 3: field 'position': expected integer, got True"),
        ({"Chunk": {"position": 2**63}}, "line 3: field 'position': expected integer"),
        ({"Chunk": {"position": 1.0}}, "line 3: field 'position': expected integer"),
        ({"Chunk": {"extraction": '{"entities": 5}'}}, "line 3: field 'extraction': expected extraction"),
        ({"Chunk": {"embedding": pack([1.0])}}, "line 3: field 'embedding': expected 2 dimensions, got 1"),
        (
            {"Chunk": {"embedding": pack([math.nan, 1.0])}},
            "line 3: field 'embedding': the vector is zero or not finite",
        ),
        ({"Chunk": {"embedding": pack([0.0, 0.0])}}, "line 3: field 'embedding': the vector is zero or not finite"),
        ({"Chunk": {"embedding": "%%%%"}}, "line 3: field 'embedding': expected base64"),
        ({"Chunk": {"embedding": "AAA"}}, "line 3: field 'embedding': expected base64"),
        (
            {"Entity": {"given": '[{"name": "a", "chunks": [], "evil": 1}]'}},
            "line 4: field 'given': expected given entities",
        ),
        ({"Entity": {"given": '[{"name": 5, "chunks": []}]'}}, "line 4: field 'given': expected given entities"),
        ({"Entity": {"given": '[{"name": "a", "chunks": "b"}]'}}, "line 4: field 'given': expected given entities"),
        ({"Entity": {"condensed": "{}"}}, "line 4: field 'condensed': expected condensed"),
        ({"RELATES": {"given": '[{"weight": NaN, "chunks": []}]'}}, "line 7: field 'given': expected given relations"),
        (
            {"RELATES": {"given": '[{"keywords": "ab", "chunks": []}]'}},
            "line 7: field 'given': expected given relations",
        ),
        ({"RELATES": {"weight": "1"}}, "line 7: field 'weight': expected number"),
        ({"RELATES": {"keywords": ["a", 1]}}, "line 7: field 'keywords': expected texts, got list"),
        ({"RELATES": {"target": CHUNK}}, f"line 7: refers to Entity '{CHUNK}'"),
        ({"RELATES": {"memory": MEMORY, "target": f"{MEMORY}-x"}}, "line 7: refers to Entity"),
        (
            {"Step": {"operations": '[{"kind": "insert", "parts": 7}]'}},
            "line 9: field 'operations': expected operations",
        ),
        ({"Step": {"operations": '[{"evil": 1}]'}}, "line 9: field 'operations': expected operations"),
        ({"Step": {"operations": "[5]"}}, "line 9: field 'operations': expected operations"),
        ({"Step": {"operations": '[{"kind": "insert"}]'}}, "line 9: field 'operations': expected operations"),
        ({"Step": {"planned": '[{"text": "Who?"}]'}}, "line 9: field 'planned': expected planned"),
        ({"Step": {"question": None}}, "line 9: field 'question'"),
        ({"Step": {"planned": '[{"text": 5}]'}}, "line 9: field 'planned': expected planned"),
        ({"Step": {"usage": '{"calls": {"model": "many"}}'}}, "line 9: field 'usage': expected usage"),
        ({"Step": {"filters": '{"title": 5}'}}, "line 9: field 'filters': expected filters"),
        ({"Step": {"memory": "m" + "f" * 16}}, "line 9: refers to Memory 'mf+'"),
        ({"MemoryPoint": {"uid": "m" + "f" * 16 + "-1-1"}}, "line 10: field 'uid' belongs to another memory"),
        ({"MemoryPoint": {"memory": ...}}, "line 10: field 'memory' is missing"),
        ({"INVOLVES": {"source": f"{MEMORY}-1-2"}}, "line 11: refers to MemoryPoint"),
    ],
)
def test_what_is_not_as_its_kind_says_is_refused_by_line(
    tmp_path: Path, changed: dict[str, dict[str, Any]], said: str
) -> None:
    surrogate = changed.get("Document", {}).get("title") == "\ud800"
    said_lines = forged(changed) if surrogate else lines(records(**changed))
    assert_matches(said, refusal(tmp_path / "hostile", packed(said_lines)))


def forged(changed: dict[str, dict[str, Any]]) -> list[bytes]:
    """Return lines with characters that only an escape can write."""
    return chained([json.dumps(record).encode() for record in records(**changed)])


def chained(contents: Iterable[bytes]) -> list[bytes]:
    """Return any objects as lines with valid digests."""
    chain, made = Chain(), []
    for content in contents:
        chain._extend(content[:-1])
        made.append(content[:-1] + b',"digest":"%b"}\n' % chain.digest.encode())
    return made


def assert_matches(pattern: str, said: str) -> None:
    assert re.search(pattern, said), said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"kind":"Document","kind":"Chunk"}', "line 2: duplicate field 'kind'"),
        (b'{"kind":"Document","uid":NaN}', "line 2: NaN is not a JSON number"),
        (b'{"kind":"Document","uid":-Infinity}', "line 2: -Infinity is not a JSON number"),
        (b'{"kind":"Document","uid":' + b"[" * 4_000 + b"]" * 4_000 + b"}", "line 2: JSON nested too deeply"),
        (b'{"kind":"Document","uid":' + b"9" * 5_000 + b"}", "line 2: not JSON"),
        (b'{"kind":"Document","uid":"\0"}', "line 2: not JSON"),
        (b'{"kind":"Document","uid":"\xff"}', "line 2: not JSON"),
        (b"[1}", "line 2: not JSON"),
    ],
)
def test_a_line_that_is_no_plain_json_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    whole = chained([json.dumps(HEADER).encode(), content])
    assert_matches(said, refusal(tmp_path / "odd", packed(whole)))


def test_what_is_there_twice_is_refused(tmp_path: Path) -> None:
    said = records()
    for at in (1, 2, 3, 6, 7, 8, 9):
        doubled = refusal(tmp_path / "doubled", packed(lines([*said, said[at]])))
        assert f"line {len(said) + 1}" in doubled
        assert "duplicate" in doubled


def test_counts_that_are_others_and_lines_after_the_last_are_refused(tmp_path: Path) -> None:
    chain = Chain()
    made = [chain.line(record) for record in (*records(), footer({"Document": 9}))]
    assert "the footer counts {'Document': 9}" in refusal(tmp_path / "counts", packed(made))
    chain = Chain()
    after = [chain.line(record) for record in (*records(), footer(counted()), records()[3])]
    assert "data after the last record" in refusal(tmp_path / "after", packed(after))
    refusal(tmp_path / "twice", packed(WHOLE) + packed(WHOLE))


def counted() -> dict[str, int]:
    return dict(json.loads(WHOLE[-1])["counts"])


def test_bombs_are_refused_within_the_bounds(tmp_path: Path) -> None:
    bomb = gzip.compress(b"a" * 50_000_000)
    assert "line 1: longer than 10,000 bytes" in refusal(tmp_path / "bomb", bomb)
    many = packed(lines(records()))
    small = Bounds(line=10_000, total=2_000)
    assert "more than 2,000 bytes: raise HGMEM_MAX_ARCHIVE_BYTES" in refusal(tmp_path / "many", many, small)


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip at all", gzip.compress(b""), gzip.compress(b"{}\n")],
    ids=["empty", "no gzip", "nothing packed", "no header"],
)
def test_what_is_no_archive_is_said_so(tmp_path: Path, data: bytes) -> None:
    assert "line 1: " in refusal(tmp_path / "none", data)


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DocumentError, match="is not a file"), opened(path):
            pass


def test_every_type_of_a_field_is_checked() -> None:
    types = {field.type for line in LINES.values() for field in line.archived}
    assert types == TYPES.keys()


# Writing --------------------------------------------------------------------------------------------------------


def test_a_file_that_exists_is_kept_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"), writing(path, force=False, bounds=BOUNDS):
        raise AssertionError("nothing is begun")
    assert path.read_text() == "mine"
    with writing(path, force=True, bounds=BOUNDS) as write:
        write({"kind": "x"})
    assert gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("spoilt")])
def test_a_file_that_is_not_whole_is_not_there(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        interrupted(tmp_path / "some", error)
    assert list(tmp_path.iterdir()) == []


def interrupted(path: Path, error: BaseException) -> None:
    with writing(path, force=False, bounds=BOUNDS) as write:
        write({"kind": "x"})
        raise error


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="HGMEM_MAX_ARCHIVE_LINE_BYTES"),
        writing(tmp_path / "some", force=False, bounds=BOUNDS) as write,
    ):
        write({"kind": "x" * BOUNDS.line})
    with (
        pytest.raises(UsageError, match="HGMEM_MAX_ARCHIVE_BYTES"),
        writing(tmp_path / "some", force=False, bounds=Bounds(line=9_000, total=100)) as write,
    ):
        write({"kind": "x" * 100})


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(DocumentError, match=r"cannot write .*: No such file"),
        writing(tmp_path / "no" / "some", force=False, bounds=BOUNDS),
    ):
        raise AssertionError("nothing is begun")


def test_a_chain_without_its_beginning_does_not_hold() -> None:
    with pytest.raises(LineError, match="digest does not match"):
        Chain().record(WHOLE[1])
    assert len(bytes.fromhex(Chain().digest)) == BYTES


def test_the_archives_among_the_examples_are_whole_and_of_this_version() -> None:
    found = sorted((Path(__file__).parents[2] / "examples").rglob("*.jsonl.gz"))
    assert found
    for path in found:
        with opened(path) as raw:
            reader = Reader(raw, bounds=Bounds(line=1_000_000, total=100_000_000), schema_version=SCHEMA_VERSION)
            assert sum(1 for _ in reader.lines()) > 1
