"""The access log: a file a day for its owner alone, kept for the days that are set."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hgmem.client.access_log import AccessLog
from hgmem.errors import UsageError


def test_files_older_than_the_days_are_deleted_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    names = [f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}.jsonl" for days in (8, 400, 6)]
    for name in (*names, "notes.jsonl"):
        (folder / name).write_text("{}\n")
    AccessLog(folder, days=7).write(status=200)
    left = {path.name for path in folder.iterdir()}
    assert left & {*names, "notes.jsonl"} == {names[2], "notes.jsonl"}
    (written,) = left - {*names, "notes.jsonl"}
    assert (folder / written).stat().st_mode & 0o777 == 0o600
    assert '"status": 200' in (folder / written).read_text()


def test_a_folder_that_cannot_be_written_is_refused_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write the access log in .*: pass another --access-log"):
        AccessLog(tmp_path / "file" / "log", days=7)
