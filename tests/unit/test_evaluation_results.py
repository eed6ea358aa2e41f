"""Results of runs in their folder: what a kill leaves of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from hgmem.evaluation import results
from hgmem.evaluation.results import EARLIER, RESULTS, Results, read_rows


def row(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "data": "tiny", "question": key, "label": "naive", "error": None, **fields}


def write_rows(file: Path, *rows: dict[str, Any]) -> None:
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")


@pytest.mark.parametrize("files_written", range(3))
def test_no_row_is_lost_by_a_kill_while_rows_move_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_written: int
) -> None:
    write_rows(tmp_path / RESULTS, row("moves"), row("stays"))
    write_rows(tmp_path / EARLIER, row("comes back"), row("rests"))
    usual, written = results._write, []

    def killed(file: Path, rows: Any) -> None:
        if len(written) == files_written:
            raise KeyboardInterrupt
        written.append(file)
        usual(file, rows)

    monkeypatch.setattr(results, "_write", killed)
    with pytest.raises(KeyboardInterrupt), Results.read(tmp_path, ["stays", "comes back"]).held():
        pass

    left = {each["key"] for name in (RESULTS, EARLIER) for each in read_rows(tmp_path / name)}
    assert left == {"moves", "stays", "comes back", "rests"}
    monkeypatch.undo()
    with Results.read(tmp_path, ["stays", "comes back"]).held():
        pass
    assert {each["key"] for each in read_rows(tmp_path / RESULTS)} == {"stays", "comes back"}
    assert {each["key"] for each in read_rows(tmp_path / EARLIER)} == {"moves", "rests"}
