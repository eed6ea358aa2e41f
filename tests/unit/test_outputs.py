import os
from pathlib import Path

import pytest

from hgmem.errors import DocumentError, UsageError
from hgmem.text.atomic_files import replacing


def write(path: Path, *, force: bool = False) -> None:
    with replacing(path, force=force) as file:
        file.write(b"new")


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(TypeError), replacing(path, force=False) as file:
        file.writelines([b"half", "a mistake"])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
    write(path)
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_what_is_there_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists"):
        write(path)
    assert path.read_bytes() == b"old"
    write(path, force=True)
    assert path.read_bytes() == b"new"


def test_a_folder_or_a_pipe_is_refused_even_by_force(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, said in ((tmp_path, "is a folder"), (pipe, "is not a regular file")):
        with pytest.raises(UsageError, match=said):
            write(path, force=True)
    assert pipe.is_fifo()


def test_a_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    with pytest.raises(UsageError, match="exists"):
        write(link)


def test_a_place_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot write"):
        write(tmp_path / "none" / "out")
