"""Indexing with a slow, paid model: overlap, budgets, failures, gleaning, plans."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dumping import check, dump
from typer.testing import CliRunner, Result

from hgmem import Document, HGMem, IndexPlan, Settings, UsageError
from hgmem.cli import app
from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.extraction.tasks import Extract, Glean
from hgmem.models.metering import current_meter, measuring
from hgmem.models.prompts import prompt_of
from hgmem.testing import ScriptedModel
from hgmem.text.tokens import count
from hgmem.values.reports import Progress

Open = Callable[..., HGMem]


def one_chunk_each(number: int) -> list[Document]:
    return [Document(id=f"d{n}", text=f"Keeper number {n} feeds the seals of Harbour {n % 3}.") for n in range(number)]


def saying(task: Any) -> Extraction:
    words = task.text.split()
    keeper, harbour = " ".join(words[:3]), " ".join(words[-2:]).rstrip(".")
    return Extraction(
        entities=(
            ExtractedEntity(name=keeper, type="person", description=task.text),
            ExtractedEntity(name=harbour, type="place", description=f"{harbour} has seals."),
        ),
        relations=(ExtractedRelation(source=keeper, target=harbour, description=task.text),),
    )


def paying(reply: Callable[[Any], object] = saying, **others: Callable[[Any], object]) -> ScriptedModel:
    """Return a model whose calls count against the budget, like those of a server."""

    def paid(answer: Callable[[Any], object]) -> Callable[[Any], object]:
        def call(task: Any) -> object:
            current_meter().take()
            return answer(task)

        return call

    return ScriptedModel({name: paid(answer) for name, answer in {"extract": reply, **others}.items()})


def extracted(model: ScriptedModel) -> Counter[str]:
    return Counter(task.text for task in model.tasks if isinstance(task, Extract))


# Concurrency ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_calls_are_under_way_all_the_time(open_client: Open, settings: Settings) -> None:
    seconds, workers, chunks = 0.2, 16, 192
    times: list[tuple[float, float]] = []

    def slow(task: Any) -> Extraction:
        began = time.monotonic()
        time.sleep(seconds)
        times.append((began, time.monotonic()))
        return saying(task)

    client = open_client(model=paying(slow), workers=workers, chunk_tokens=18, chunk_overlap=0)
    text = "\n\n".join(document.text for document in one_chunk_each(chunks))
    heard: list[Progress] = []
    report = client.add(Document(id="d", text=text), report=heard.append)

    assert (report.documents, report.chunks, report.failed) == (1, chunks, 0)
    first, last = min(began for began, _ in times), max(ended for _, ended in times)
    assert last - first < 1.5 * chunks * seconds / workers  # three groups were saved in the meantime
    done = [one.done for one in heard if one.unit == "chunks"]
    assert done == sorted(done)
    assert done[-1] == chunks
    check(dump(settings, client.corpus))


@pytest.mark.slow
def test_documents_are_written_and_folded_while_calls_are_under_way(open_client: Open, settings: Settings) -> None:
    documents = one_chunk_each(150)
    open_client(model=paying()).add(documents)
    wanted = dump(settings, open_client().corpus)
    open_client().delete()
    client = open_client(model=paying(lambda task: (time.sleep(0.01), saying(task))[1]), workers=3)
    client.add(iter(documents))
    assert dump(settings, client.corpus) == wanted


# Ends of a run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [7, *(pytest.param(calls, marks=pytest.mark.slow) for calls in (1, 70, 99))])
def test_a_spent_budget_keeps_what_was_paid_for_and_the_next_run_goes_on(
    open_client: Open, settings: Settings, calls: int
) -> None:
    documents = one_chunk_each(100)
    model = paying()
    client = open_client(model=model, workers=4)
    with pytest.raises(BudgetError, match=f"budget of {calls} calls? is used up"):
        client.add(documents, max_calls=calls)
    kept = dump(settings, client.corpus)
    statuses = Counter(chunk["status"] for chunk in kept.of("Chunk").values())
    assert statuses["done"] == calls
    assert set(statuses) <= {"done", "pending"}
    assert client.status().pending == statuses["pending"]
    assert client.status().failed == 0
    assert Counter(row["status"] for row in client.documents())["done"] == calls
    check(kept)

    assert client.plan(documents).chunks == 100 - calls
    model.tasks.clear()
    report = client.add(documents)
    assert report.chunks == len(model.tasks) == 100 - calls
    whole = dump(settings, client.corpus)
    client.delete()
    open_client(model=paying()).add(documents)
    assert dump(settings, client.corpus) == whole


def test_the_budget_around_an_add_counts_too(open_client: Open) -> None:
    client = open_client(model=paying(), workers=2)
    with measuring(max_calls=3) as budget, pytest.raises(BudgetError):
        client.add(one_chunk_each(10))
    assert budget.taken == 3


@pytest.mark.parametrize("limit", [{"max_calls": 0}, {"max_tokens": -1}, {"max_calls": "many"}])
def test_a_budget_that_allows_nothing_is_refused(open_client: Open, limit: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"max_.* must be an integer of at least 1"):
        open_client(model=paying()).add(one_chunk_each(1), **limit)


def test_a_model_that_is_gone_ends_the_run_and_what_it_gave_is_folded(open_client: Open, settings: Settings) -> None:
    documents, answered, lock = one_chunk_each(60), [0], threading.Lock()

    def leaving(task: Any) -> object:
        with lock:
            answered[0] += 1
            gone = answered[0] > 20
        return ModelError("nobody answers", retryable=True) if gone else saying(task)

    model = paying(leaving)
    client = open_client(model=model, workers=4)
    with pytest.raises(ModelError, match="nobody answers"):
        client.add(documents)
    assert 24 <= len(model.tasks) <= 24 + 3  # the active ones
    status, found = client.status(), dump(settings, client.corpus)
    assert Counter(chunk["status"] for chunk in found.of("Chunk").values())["done"] == 20
    assert 4 <= status.failed <= 7
    check(found)

    again = paying()
    assert open_client(model=again).add(documents).chunks == 40
    assert len(again.tasks) == 40


def test_a_model_that_stumbles_now_and_then_ends_nothing(open_client: Open) -> None:
    turns = iter(range(1_000))

    def stumbling(task: Any) -> object:
        return ModelError("try later", retryable=True) if next(turns) % 3 else saying(task)

    report = open_client(model=paying(stumbling), workers=6).add(one_chunk_each(9))
    assert (report.chunks, report.failed) == (3, 6)


def test_replies_that_cannot_be_used_are_failed_chunks_however_many(open_client: Open) -> None:
    bad = paying(lambda task: BadReplyError("no JSON", task="extract", text="hm"))
    report = open_client(model=bad, workers=2).add(one_chunk_each(9))
    assert (report.chunks, report.failed) == (0, 9)


@pytest.mark.parametrize(
    ("text", "failed"),
    [("The keeper of the lighthouse feeds the seals.", 1), ("12 34 56 78 90 11", 0), ("Page three", 0)],
)
def test_an_extraction_without_entities_is_a_failure_where_the_text_says_something(
    open_client: Open, text: str, failed: int
) -> None:
    client = open_client(model=paying(lambda task: Extraction()))
    report = client.add(Document(id="d", text=text))
    assert report.failed == client.status().failed == failed
    assert [error.endswith("the extraction is empty") for error in report.errors] == [True] * failed


def test_the_extractive_model_may_find_nothing(client: HGMem) -> None:
    assert client.add(Document(id="d", text="it is so and it was so and it will be so")).failed == 0


# Gleaning -------------------------------------------------------------------------------------------------------


def test_gleaning_unites_what_each_round_finds_until_one_finds_nothing(open_client: Open, settings: Settings) -> None:
    def more(task: Glean) -> Extraction:
        known = {entity.name for entity in task.found.entities}
        repeated = ExtractedEntity(name="keeper NUMBER 0", description="again")
        if "Seal" in known:
            return Extraction(entities=(repeated,))
        relation = ExtractedRelation(source="Seal", target="Harbour 0", description="Seals are there.")
        return Extraction(entities=(ExtractedEntity(name="Seal"), repeated), relations=(relation, relation))

    model = paying(glean=more)
    client = open_client(model=model, gleaning=5, entity_types="person, animal")
    client.add(one_chunk_each(1))
    assert [task.name for task in model.tasks] == ["extract", "glean", "glean"]
    assert all(task.entity_types == ("person", "animal") for task in model.tasks)
    found = dump(settings, client.corpus)
    assert sorted(entity["key"] for entity in found.of("Entity").values()) == ["harbour 0", "keeper number 0", "seal"]
    (extraction,) = [json.loads(chunk["extraction"]) for chunk in found.of("Chunk").values()]
    assert [entity["name"] for entity in extraction["entities"]] == ["Keeper number 0", "Harbour 0", "Seal"]
    assert len(found.joined("RELATES")) == 2
    check(found)


@pytest.mark.parametrize("error", [BudgetError("spent"), AccessError("the key is refused")])
def test_gleaning_that_can_go_on_no_more_ends_the_run_and_the_next_one_gleans(
    open_client: Open, error: ModelError
) -> None:
    failing = [error]
    glean = lambda _: failing[0] if failing else Extraction()  # noqa: E731
    client = open_client(model=paying(glean=glean), gleaning=1)
    with pytest.raises(type(error)):
        client.add(one_chunk_each(2))
    failing.clear()
    client.add(one_chunk_each(2))
    assert [task.name for task in client.model.tasks][-4:].count("glean") == 2
    assert client.status().pending == client.status().failed == 0


def test_gleaning_that_fails_leaves_what_was_extracted(open_client: Open) -> None:
    error = BadReplyError("no JSON", task="glean")
    client = open_client(model=paying(glean=lambda task: error), gleaning=2)
    report = client.add(one_chunk_each(2))
    assert (report.chunks, report.failed) == (2, 0)
    assert all("gleaning is incomplete" in line for line in report.errors)
    assert len(report.errors) == 2


# Plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gleaning", [0, 2])
def test_a_plan_says_what_is_then_done(open_client: Open, affair: Path, gleaning: int) -> None:
    sent: list[int] = []

    def counted(task: Any) -> Extraction:
        sent.append(sum(count(message.content) for message in prompt_of(task).filled(task.fields())))
        return saying(task)

    def gleaned(task: Any) -> Extraction:
        counted(task)
        return Extraction(entities=(ExtractedEntity(name=f"More of {task.text} {len(task.found.entities)}"),))

    client = open_client(model=paying(counted, glean=gleaned), gleaning=gleaning, max_tokens=100)
    plan = client.plan(affair)
    assert client.corpus not in {row["corpus"] for row in client.corpora()}
    report = client.add(affair)
    assert (plan.documents, plan.unchanged, plan.chunks) == (report.documents, 0, report.chunks)
    assert plan.calls == len(sent) == report.chunks * (1 + gleaning)
    assert plan.completion_tokens_at_most == plan.calls * 100
    assert abs(plan.prompt_tokens - sum(sent)) < (0.05 if not gleaning else 0.2) * sum(sent)
    assert client.plan(affair) == IndexPlan(unchanged=report.documents)


def test_a_plan_counts_only_what_is_left(open_client: Open) -> None:
    client = open_client(model=paying(), workers=1)
    documents = [*one_chunk_each(3), Document(id="long", text="\n\n".join("Seals sleep. " * 60 for _ in range(4)))]
    whole = client.plan(documents)
    with pytest.raises(BudgetError):
        client.add(documents, max_calls=4)
    left = client.plan(documents)
    assert (left.documents + left.unchanged, left.chunks) == (4, whole.chunks - 4)
    edited = [*documents[:-1], Document(id="long", text=documents[-1].text + "\n\nOne more paragraph about seals.")]
    assert 0 < client.plan(edited).chunks <= left.chunks + 1


def test_a_plan_without_a_language_model_costs_nothing(client: HGMem, affair: Path) -> None:
    plan = client.plan(affair)
    assert plan.documents == 17
    assert plan.chunks == 47
    assert (plan.calls, plan.prompt_tokens, plan.completion_tokens_at_most) == (0, 0, 0)
    assert client.plan([]) == IndexPlan()


def test_a_plan_refuses_what_adding_refuses(client: HGMem) -> None:
    with pytest.raises(UsageError, match="is a duplicate"):
        client.plan([Document(id="a", text="one"), Document(source="a", text="two")])


# The command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def index(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: str, open_client: Open
) -> Iterator[Callable[..., Result]]:
    """Runs `hgmem index` on a folder of twelve chunks with a paid model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hgmem.client.connecting.find_model", lambda *_, **__: paying())
    folder = tmp_path / "documents"
    folder.mkdir()
    for document in one_chunk_each(12):
        (folder / f"{document.id}.txt").write_text(document.text)

    def run(*arguments: str, env: Mapping[str, str] = {}) -> Result:
        given = {**environment, "HGMEM_CONFIRM_CALLS": "10", **env}
        return CliRunner().invoke(app, ["index", str(folder), "-c", corpus, *arguments], env=given)

    yield run
    open_client()  # deletes the corpus


def test_many_calls_are_refused_where_nobody_can_be_asked(index: Callable[..., Result], open_client: Open) -> None:
    done = index()
    assert (done.exit_code, done.stdout) == (1, "")
    plan, error = done.stderr.splitlines()
    assert plan.startswith("12 documents to index, 0 unchanged; 12 chunks, at most 12 model calls; about ")
    assert "--yes" in error
    assert open_client().corpus not in {row["corpus"] for row in open_client().corpora()}

    assert index("--yes").exit_code == 0
    assert "12 documents added" in index("--yes").stdout or open_client().status().documents == 12


@pytest.mark.parametrize(("said", "code"), [(True, 0), (False, 1)])
def test_many_calls_are_asked_about(
    index: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, said: bool, code: int
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("hgmem.cli.planned.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("hgmem.cli.planned.typer.confirm", lambda text, err: asked.append(text) or said)
    done = index()
    assert (done.exit_code, asked) == (code, ["Make up to 12 model calls?"])


def test_few_calls_are_made_without_asking(index: Callable[..., Result]) -> None:
    done = index(env={"HGMEM_CONFIRM_CALLS": "12"})
    assert done.exit_code == 0
    assert "at most 12 model calls" in done.stderr
    assert index("--json").exit_code == 0  # nothing is left to extract


def test_a_dry_run_prints_the_plan_and_writes_nothing(index: Callable[..., Result], client: HGMem) -> None:
    done = index("--dry-run")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("12 documents to index, 0 unchanged; 12 chunks, at most 12 model calls")
    plan = json.loads(index("--dry-run", "--json").stdout)
    assert (plan["documents"], plan["chunks"], plan["calls"]) == (12, 12, 12)
    assert client.corpus not in {row["corpus"] for row in client.corpora()}


def test_a_spent_budget_is_one_line_that_names_what_is_left(index: Callable[..., Result], client: HGMem) -> None:
    done = index("--max-calls", "5", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: the budget of 5 calls is used up")
    assert error.endswith(": finished work is saved, 7 chunks left; rerun to continue")
    assert client.status().pending == 7
    assert index("--max-calls", "9").exit_code == 0
    assert client.status().pending == 0
