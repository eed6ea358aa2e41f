"""Vectors that are kept on disk: across processes, and where the file can't be used."""

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hgmem.errors import CacheWarning, ModelError
from hgmem.models.embedding import CheckedEmbedder, KeptVectors, TextKind, Vectors
from hgmem.testing import DeterministicEmbedder


class Counting(DeterministicEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__(8)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.texts += texts
        return super().embed(texts, kind=kind)


def test_a_text_is_embedded_once_across_objects(tmp_path: Path) -> None:
    inner, file = Counting(), tmp_path / "kept" / "vectors.sqlite"
    kept = KeptVectors(inner, file, most=100)
    first = kept.embed(["a", "b", "a", "\ud800"], kind="document")
    assert np.array_equal(first, Counting().embed(["a", "b", "a", "\ud800"], kind="document"))
    kept.close()
    again = KeptVectors(inner, file, most=100)
    assert np.array_equal(again.embed(["b", "c", "a"], kind="document")[[0, 2]], first[[1, 0]])
    assert inner.texts == ["a", "b", "\ud800", "c"]
    again.embed(["a"], kind="query")
    KeptVectors(inner, file, most=100, state="other weights").embed(["a"], kind="document")
    assert inner.texts == ["a", "b", "\ud800", "c", "a", "a"]
    assert (again.name, again.dimensions) == (inner.name, 8)
    assert again.embed([], kind="query").shape == (0, 8)


class Unloaded:
    """Has the deterministic embedder's name, and can't be used."""

    name = DeterministicEmbedder.name

    @property
    def dimensions(self) -> int:
        raise AssertionError("the model was loaded")

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        raise AssertionError(f"{texts} were embedded")


def test_a_model_is_not_loaded_for_texts_that_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite"
    first = KeptVectors(Counting(), file, most=10).embed(["a", "b"], kind="query")
    kept = CheckedEmbedder(KeptVectors(Unloaded(), file, most=10))
    assert np.allclose(kept.embed(["b", "a"], kind="query"), first[[1, 0]])
    with pytest.raises(ModelError, match="were embedded"):
        kept.embed(["c"], kind="query")


def test_the_oldest_vectors_go_and_texts_are_not_kept(tmp_path: Path) -> None:
    inner, file = Counting(), tmp_path / "vectors.sqlite"
    kept = KeptVectors(inner, file, most=10)
    for at in range(30):
        kept.embed([f"secret {at}"], kind="document")
    with sqlite3.connect(file) as opened:
        assert opened.execute("SELECT count(*) FROM vectors").fetchall() == [(10,)]
    kept.embed(["secret 29", "secret 20", "secret 19"], kind="document")
    assert inner.texts[30:] == ["secret 19"]
    assert b"secret" not in b"".join(part.read_bytes() for part in tmp_path.iterdir())


def test_a_file_that_cannot_be_used_costs_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite"
    file.write_text("This is no database, and is long enough to be taken for one that is broken. " * 20)
    kept = CheckedEmbedder(KeptVectors(Counting(), file, most=10))
    with pytest.warns(UserWarning, match="vectors are not cached: cannot use"):
        assert kept.embed(["a"], kind="document").shape == (1, 8)
    assert kept.embed(["a", "b"], kind="document").shape == (2, 8)
    kept.close()


def test_many_processes_share_the_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hgmem.testing import DeterministicEmbedder as D\n"
        "from hgmem.models.embedding import KeptVectors as K\n"
        f"k = K(D(8), Path({str(tmp_path / 'vectors.sqlite')!r}), most=1000)\n"
        "[k.embed([f'{sys.argv[1]} {at}', f'all {at}'], kind='document') for at in range(50)]"
    )
    runs = [subprocess.Popen([sys.executable, "-W", "error", "-c", code, str(at)]) for at in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    with sqlite3.connect(tmp_path / "vectors.sqlite") as opened:
        assert opened.execute("SELECT count(*) FROM vectors").fetchall() == [(250,)]


# A file that can't be used ------------------------------------------------------------------------------------------

TEXTS = [f"Line {at} of the ledger." for at in range(200)]
FULL = """
import resource, sys
from pathlib import Path
from hgmem.models.embedding import CheckedEmbedder, KeptVectors
from hgmem.testing import DeterministicEmbedder
kept = CheckedEmbedder(KeptVectors(DeterministicEmbedder(384), Path(sys.argv[1]), most=1000))
kept.embed(["before"], kind="document")
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
for part in range(3):
    print(kept.embed([f"Line {at} of ledger {part}." for at in range(200)], kind="document").shape)
"""


def test_a_full_disk_costs_one_warning_and_no_vector(tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite"
    run = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True)
    assert run.stdout == "(200, 384)\n" * 3
    assert run.stderr.count("CacheWarning: vectors are not cached: cannot use") == 1
    inner = Counting()
    assert KeptVectors(inner, file, most=1000).embed(["after"], kind="document").shape == (1, 8)
    with sqlite3.connect(file) as opened:  # whole, and of use again where there is room
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_file_of_other_columns_costs_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite"
    with sqlite3.connect(file) as opened:
        opened.execute("CREATE TABLE vectors (hash TEXT, made TEXT)")
    kept = KeptVectors(Counting(), file, most=10)
    with pytest.warns(CacheWarning, match=r"vectors are not cached: .* \(no such column: key\)"):
        assert kept.embed(["a", "b"], kind="document").shape == (2, 8)


@pytest.mark.parametrize("content", ["NULL", "'text'", "x''", "x'0102030405'", "x'0000803f'"])
def test_what_another_version_kept_in_place_of_a_vector_is_embedded_again(content: str, tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite"
    right = KeptVectors(Counting(), file, most=10).embed(["a", "b"], kind="document")
    with sqlite3.connect(file) as opened:
        opened.execute("CREATE TABLE other (key TEXT PRIMARY KEY, vector BLOB)")
        opened.execute("INSERT INTO other SELECT * FROM vectors")
        opened.execute(f"UPDATE other SET vector = {content} WHERE rowid = 1")
        opened.execute("DROP TABLE vectors")
        opened.execute("ALTER TABLE other RENAME TO vectors")
    inner = Counting()
    assert np.array_equal(KeptVectors(inner, file, most=10).embed(["a", "b"], kind="document"), right)
    assert "a" in inner.texts
    again = Counting()
    assert np.array_equal(KeptVectors(again, file, most=10).embed(["a", "b"], kind="document"), right)
    assert again.texts == []


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptVectors(Counting(), tmp_path / "file" / "vectors.sqlite", most=10)
    with pytest.warns(CacheWarning, match="vectors are not cached: cannot use") as warned:
        shapes = [kept.embed([text], kind="document").shape for text in ("a", "b", "a")]
    assert (shapes, len(warned)) == ([(1, 8)] * 3, 1)


def test_a_file_that_is_only_read_costs_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "vectors.sqlite"
    KeptVectors(Counting(), file, most=10).embed(["a"], kind="document")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **more: connect(f"file:{path}?mode=ro", uri=True, **more))
    kept = KeptVectors(Counting(), file, most=10)
    with pytest.warns(CacheWarning, match="vectors are not cached: .*readonly") as warned:
        shapes = [kept.embed([text], kind="document").shape for text in ("a", "b", "a")]
    assert (shapes, len(warned)) == ([(1, 8)] * 3, 1)
