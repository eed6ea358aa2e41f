"""The demo's corpus and its questions agree with each other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hgmem.text.resources import resource

EXAMPLES = resource("examples")
SUFFIXES = {".md", ".txt", ".jsonl"}
MOST_BYTES = 4_000


def files(examples: Path) -> list[Path]:
    return sorted(path for path in (examples / "affair").rglob("*") if path.is_file())


def text_of(path: Path) -> str:
    """Return the indexed text: the file's text, or the `text` fields of its records."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".jsonl":
        return text
    return "\n".join(json.loads(line)["text"] for line in text.splitlines())


def questions(examples: Path) -> list[dict]:
    return json.loads((examples / "questions.json").read_text(encoding="utf-8"))


def check_files(examples: Path) -> None:
    found = files(examples)
    assert 8 <= len(found) <= 15, f"{len(found)} documents"
    for path in found:
        assert path.suffix in SUFFIXES, f"{path.name}: not a kind of document"
        raw = path.read_bytes()
        assert 0 < len(raw) < MOST_BYTES, f"{path.name}: {len(raw)} bytes"
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise AssertionError(f"{path.name}: not UTF-8") from error
        assert not raw.startswith(b"\xef\xbb\xbf"), f"{path.name}: byte-order mark"


def check_records(examples: Path) -> None:
    seen: set[str] = set()
    for path in files(examples):
        if path.suffix != ".jsonl":
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            assert set(record) == {"id", "title", "text"}, f"{path.name}: fields {sorted(record)}"
            assert all(value.strip() for value in record.values()), f"{path.name}: an empty field"
            assert record["id"] not in seen, f"{path.name}: {record['id']} twice"
            seen.add(record["id"])
    assert seen, "no records"


def check_shape(examples: Path) -> None:
    asked = questions(examples)
    assert 6 <= len(asked) <= 9, f"{len(asked)} questions"
    for item in asked:
        assert set(item) == {"question", "answer", "documents", "key_phrases"}, f"fields {sorted(item)}"
        assert item["question"].strip().endswith("?"), item["question"]
        assert item["answer"].strip(), f"no answer: {item['question']}"
    assert len({item["question"] for item in asked}) == len(asked), "a question twice"


def check_documents_exist(examples: Path) -> None:
    names = {path.name for path in files(examples)}
    for item in questions(examples):
        missing = set(item["documents"]) - names
        assert not missing, f"{item['question']}: no document {sorted(missing)}"
        assert len(item["documents"]) >= 2, f"{item['question']}: one document is enough"
        assert len(set(item["documents"])) == len(item["documents"]), f"{item['question']}: named twice"


def check_phrases(examples: Path) -> None:
    """Check that each phrase is in one of the question's documents, and each document contains a phrase."""
    for item in questions(examples):
        texts = {name: text_of(examples / "affair" / name) for name in item["documents"]}
        assert item["key_phrases"], f"{item['question']}: no key phrases"
        for phrase in item["key_phrases"]:
            assert any(phrase in text for text in texts.values()), f"not in its documents: {phrase}"
        for name, text in texts.items():
            assert any(phrase in text for phrase in item["key_phrases"]), f"{name}: holds no key phrase"


def check_main_question(examples: Path) -> None:
    main = questions(examples)[0]
    assert len(main["documents"]) >= 4, "the main question needs too few documents"
    for path in files(examples):
        text = text_of(path)
        held = sum(phrase in text for phrase in main["key_phrases"])
        assert held <= len(main["key_phrases"]) // 2, f"{path.name} alone holds {held} key phrases"


def check_links(examples: Path) -> None:
    """Check that the names that connect the documents have the same spelling in several of them."""
    texts = [text_of(path) for path in files(examples)]
    for name in ("Tallow Stairs Warehouse", "Tamswell Company", "Edmund Sallowby", "seven boxes"):
        held = sum(name in text for text in texts)
        assert held >= 4, f"{name}: in {held} documents"


def check_readme(examples: Path) -> None:
    lines = (examples / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 25, f"{len(lines)} lines"
    assert "hgmem index examples/affair --corpus affair" in lines
    asked = questions(examples)[0]["question"]
    assert f'hgmem ask "{asked}" --corpus affair' in lines, "the README asks something else"


CHECKS: list[Callable[[Path], None]] = [
    check_files,
    check_records,
    check_shape,
    check_documents_exist,
    check_phrases,
    check_main_question,
    check_links,
    check_readme,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_examples_hold(check: Callable[[Path], None]) -> None:
    check(EXAMPLES)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name}: nothing to spoil"
    path.write_text(text.replace(old, new), encoding="utf-8")


def spoil_all(examples: Path, old: str, new: str) -> None:
    for path in files(examples):
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def edit(examples: Path, change: Callable[[list[dict]], object]) -> None:
    asked = questions(examples)
    change(asked)
    (examples / "questions.json").write_text(json.dumps(asked), encoding="utf-8")


GATE = "affair/07-gate-book.txt"
CARDS = "affair/08-registry-cards.jsonl"
SPOILT: list[tuple[Callable[[Path], None], str, Callable[[Path], object]]] = [
    (check_files, "documents", lambda e: [path.unlink() for path in files(e)[7:]]),
    (check_files, "documents", lambda e: [(e / f"affair/x{i}.md").write_text("x") for i in range(2)]),
    (check_files, "not a kind", lambda e: (e / GATE).rename(e / "affair/07-gate-book.doc")),
    (check_files, "bytes", lambda e: (e / GATE).write_text("x" * MOST_BYTES)),
    (check_files, "bytes", lambda e: (e / GATE).write_text("")),
    (check_files, "not UTF-8", lambda e: (e / GATE).write_bytes(b"caf\xe9")),
    (check_files, "byte-order", lambda e: (e / GATE).write_bytes(b"\xef\xbb\xbfToll")),
    (check_records, "fields", lambda e: replace(e / CARDS, '"title"', '"heading"')),
    (check_records, "twice", lambda e: replace(e / CARDS, "card-0327", "card-0311")),
    (check_records, "an empty field", lambda e: replace(e / CARDS, '"card-0327"', '" "')),
    (check_records, "no records", lambda e: (e / CARDS).unlink()),
    (check_shape, "questions", lambda e: edit(e, lambda q: q.__delitem__(slice(5, None)))),
    (check_shape, "fields", lambda e: edit(e, lambda q: q[1].pop("answer"))),
    (check_shape, "no answer", lambda e: edit(e, lambda q: q[1].update(answer=" "))),
    (check_shape, "a question twice", lambda e: edit(e, lambda q: q[1].update(question=q[0]["question"]))),
    (check_documents_exist, "no document", lambda e: (e / GATE).unlink()),
    (
        check_documents_exist,
        "is enough",
        lambda e: edit(e, lambda q: q[1].update(documents=[Path(GATE).name])),
    ),
    (
        check_documents_exist,
        "named twice",
        lambda e: edit(e, lambda q: q[1]["documents"].append(q[1]["documents"][0])),
    ),
    (
        check_phrases,
        "not in its documents",
        lambda e: replace(e / GATE, "seven boxes marked", "seven chests marked"),
    ),
    (check_phrases, "no key phrases", lambda e: edit(e, lambda q: q[1].update(key_phrases=[]))),
    (
        check_phrases,
        "holds no key phrase",
        lambda e: edit(e, lambda q: q[2]["documents"].append(Path(GATE).name)),
    ),
    (
        check_main_question,
        "too few",
        lambda e: edit(e, lambda q: q[0].update(documents=q[0]["documents"][:3])),
    ),
    (
        check_main_question,
        "alone holds",
        lambda e: (e / GATE).write_text("\n".join(questions(e)[0]["key_phrases"]), encoding="utf-8"),
    ),
    (check_links, "Tamswell Company", lambda e: spoil_all(e, "Tamswell Company", "Tamswell Co")),
    (check_readme, "lines", lambda e: (e / "README.md").write_text("\n" * 26)),
    (check_readme, "something else", lambda e: edit(e, lambda q: q.reverse())),
]


@pytest.mark.parametrize(("check", "complaint", "spoil"), SPOILT)
def test_each_check_can_fail(
    check: Callable[[Path], None],
    complaint: str,
    spoil: Callable[[Path], object],
    tmp_path: Path,
) -> None:
    copy = tmp_path / "examples"
    shutil.copytree(EXAMPLES, copy)
    check(copy)
    spoil(copy)
    with pytest.raises(AssertionError, match=complaint):
        check(copy)
