"""A stage folder by itself: parts that count once they are listed, journals, errors of the file system."""

import errno
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from hgmem.errors import UsageError

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from hgmem.stages.files import Folder
from hgmem.stages.folding import bucket_of, buckets_for
from hgmem.stages.parallel_writes import rounds

ROWS: list[dict[str, Any]] = [
    {"chunk": name, "model": "m", "prompt": "p", "text_sha256": "", "reply": "{}", "error": None} for name in "abc"
]


@pytest.fixture(params=["path", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(str(tmp_path) if request.param == "path" else f"memory://{tmp_path.name}")


def test_a_part_is_read_as_it_was_written(folder: Folder) -> None:
    folder.put("replies", "one", [ROWS[:1], ROWS[1:]], failed=0)
    again = pickle.loads(pickle.dumps(folder))
    assert again.rows("replies", "one") == ROWS
    part = again.part("replies", "one")
    assert part
    assert (part.rows, part.noted, again.parts("replies")) == (3, {"failed": 0}, {"one": part})
    assert again.group("replies", part, 1) == ROWS[1:]
    assert again.rows("replies", part, ["chunk"]) == [{"chunk": name} for name in "abc"]


def test_a_part_that_is_written_again_replaces_its_file(folder: Folder) -> None:
    before = folder.put("replies", "one", [ROWS])
    folder.put("replies", "one", [ROWS[:2]])
    assert folder.rows("replies", "one") == ROWS[:2]
    assert not folder.fs.exists(f"{folder.root}/{before.file}")
    folder.drop("replies", "one")
    assert folder.parts("replies") == {}
    assert [path for path in folder.fs.find(folder.root) if path.endswith(".parquet")] == []


@pytest.mark.parametrize("harm", ["cut", "gone", "unlisted", "half listed"])
def test_a_part_counts_only_while_it_is_whole_and_listed(folder: Folder, harm: str) -> None:
    part = folder.put("replies", "one", [ROWS])
    file, listing = f"{folder.root}/{part.file}", f"{folder.root}/manifest/replies/one.json"
    if harm == "cut":
        folder.fs.pipe_file(file, folder.fs.cat_file(file)[:-1])
    elif harm == "gone":
        folder.fs.rm_file(file)
    elif harm == "unlisted":
        folder.fs.rm_file(listing)
    else:
        folder.fs.pipe_file(listing, folder.fs.cat_file(listing)[:-9])
    assert folder.part("replies", "one") is None
    assert folder.parts("replies") == {}
    with pytest.raises(UsageError, match="lacks part 'one' of stage 'replies'"):
        folder.rows("replies", "one")


def test_a_damaged_part_is_named_and_no_longer_listed(folder: Folder) -> None:
    part = folder.put("replies", "one", [ROWS])
    file = f"{folder.root}/{part.file}"
    data = bytearray(folder.fs.cat_file(file))
    data[4:30] = bytes(26)
    folder.fs.pipe_file(file, bytes(data))
    with pytest.raises(UsageError, match=r"part 'one' of stage 'replies' in .* is damaged .*: run the same command"):
        folder.rows("replies", "one")
    assert folder.part("replies", "one") is None


def test_a_journal_keeps_whole_results_until_it_is_closed(folder: Folder) -> None:
    for row in ROWS:
        folder.note("replies/journal/one", row["chunk"], row)
    folder.fs.pipe_file(f"{folder.root}/replies/journal/one/b.json", b'{"chunk": "b')
    assert folder.noted("replies/journal/one") == {"a": ROWS[0], "c": ROWS[2]}
    assert folder.journals("replies") == ["one"]
    folder.close_journal("replies/journal/one")
    folder.close_journal("replies/journal/one")
    assert folder.noted("replies/journal/one") == {}


def test_a_file_is_new_only_once(folder: Folder) -> None:
    assert folder.write_json("lock.json", {"run": 1}, new=True)
    assert not folder.write_json("lock.json", {"run": 2}, new=True)
    assert folder.read_json("lock.json") == {"run": 1}


def test_a_full_disk_is_one_line_and_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match=r"No space left on device: correct that, and run the same command again$"):
        folder.put("replies", "one", [ROWS])
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"stage folder '.*': .*: correct that"):
        Folder(str(tmp_path / "file")).put("replies", "one", [ROWS])


def test_a_header_with_other_fields_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stages.json").write_text(json.dumps({"format": 1, "corpus": "x"}))
    with pytest.raises(UsageError, match=r"has a bad stages\.json"):
        Folder(str(tmp_path)).header()


def test_twice_as_many_buckets_split_each() -> None:
    assert [buckets_for(chunks) for chunks in (0, 2_048, 2_049, 5_000, 10**9)] == [1, 1, 2, 4, 4_096]
    assert all(bucket_of(key, 8) % 4 == bucket_of(key, 4) for key in map(str, range(100)))


def test_rows_that_are_written_at_a_time_have_no_node_in_common() -> None:
    for groups in (1, 2, 4, 8, 16):
        found = list(rounds(groups))
        assert all(len(frozenset().union(*pairs)) == sum(map(len, pairs)) for pairs in found)
        every = [pair for pairs in found for pair in pairs]
        assert len(every) == len(set(every)) == groups * (groups + 1) // 2
