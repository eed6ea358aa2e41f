"""Results of runs in their folder: what a kill leaves of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from hgmem.errors import UsageError
from hgmem.evaluation import results
from hgmem.evaluation.formats import DataSet, EvalQuestion
from hgmem.evaluation.plan import Entry, PlannedSystem, Subject, read_plan
from hgmem.evaluation.results import EARLIER, RESULTS, Results, load, read_rows
from hgmem.settings import Settings

LABELS = {"stays": "naive", "comes back": "naive"}


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
    with pytest.raises(KeyboardInterrupt), Results.read(tmp_path, LABELS).writing():
        pass

    left = {each["key"] for name in (RESULTS, EARLIER) for each in read_rows(tmp_path / name)}
    assert left == {"moves", "stays", "comes back", "rests"}
    monkeypatch.undo()
    with Results.read(tmp_path, LABELS).writing():
        pass
    assert {each["key"] for each in read_rows(tmp_path / RESULTS)} == {"stays", "comes back"}
    assert {each["key"] for each in read_rows(tmp_path / EARLIER)} == {"moves", "rests"}


def test_rows_are_read_with_the_labels_of_the_plan(tmp_path: Path) -> None:
    write_rows(tmp_path / RESULTS, row("q1"))
    found = Results.read(tmp_path, {"q1": "vectors"})
    assert found.rows["q1"]["label"] == "vectors"
    with found.writing():
        pass
    assert load([tmp_path])[0]["label"] == "vectors"


def test_a_new_label_leaves_the_key_of_an_entry_and_another_option_does_not() -> None:
    question = EvalQuestion(id="q1", kind="single", question="Who?", answer="Bo.")
    data = DataSet(name="tiny", documents=(), questions=(question,))

    def key(name: str, label: str, reranker: str = "", **options: int) -> str:
        subject = Subject(data=data, questions=(question,), settings=Settings(reranker=reranker))
        system = PlannedSystem(name=name, label=label)
        return Entry(subject=subject, system=system, options=options, seed=None, question=question).key

    assert key("naive", "one") == key("naive", "other")
    assert len({key("naive", "one"), key("bm25", "one"), key("naive", "one", chunks=3)}) == 3
    assert key("naive", "one", "small", rerank=0) == key("naive", "one", "big", rerank=0)
    assert key("naive", "one", "small", rerank=5) != key("naive", "one", "big", rerank=5)


def test_one_system_under_two_labels_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    systems = "".join(f'[[systems]]\nname = "naive"\nlabel = "{label}"\n' for label in ("a", "b"))
    plan.write_text(f'output = "out"\n[[data]]\npath = "x"\n{systems}', encoding="utf-8")
    with pytest.raises(UsageError, match="'a' and 'b' are the same system and options: drop one of them"):
        read_plan(plan)


MADE = {"model": '"small"', "documents": "1a2b"}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"made_with": {**MADE, "model": '"large"'}}, "'naive' on 'tiny' differ in model .\"small\" and \"large\""),
        ({"made_with": {**MADE, "documents": "3c4d"}}, "'naive' on 'tiny' differ in documents"),
        ({"settings": {"chunks": 2}}, "'naive' on 'tiny' differ in settings"),
        ({"asked": "Who else?", "label": "bm25"}, "question 'q1' of 'tiny' differ in asked"),
    ],
)
def test_results_of_unlike_runs_are_not_averaged(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    one = {**row("q1"), "made_with": MADE, "settings": {}, "asked": "Who?"}
    write_rows(tmp_path / "a.jsonl", one)
    write_rows(tmp_path / "b.jsonl", {**one, "key": "another", **other})
    with pytest.raises(UsageError, match=message):
        load([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])


def test_results_of_two_seeds_or_two_labels_are_read_together(tmp_path: Path) -> None:
    one = {**row("q1"), "made_with": MADE, "settings": {}, "seed": 1}
    other = {**one, "key": "large", "label": "large", "made_with": {**MADE, "model": '"large"'}}
    write_rows(tmp_path / "a.jsonl", one, {**one, "key": "q1 again", "seed": 2}, other)
    assert len(load([tmp_path / "a.jsonl"])) == 3
