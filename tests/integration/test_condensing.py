"""Descriptions that a model summarizes: when they are used, when they are outdated, and the same graph in any order."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from dumping import check, dump

from hgmem import Document, HGMem, Settings
from hgmem.errors import BudgetError, ModelError
from hgmem.extraction.replies import CondensedText, ExtractedEntity, ExtractedRelation, Extraction
from hgmem.extraction.tasks import Condense
from hgmem.models.extractive import ExtractiveModel
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.text.identity import text_hash, uid

Open = Callable[..., HGMem]
LIMIT = 120


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dumping.LIMIT", LIMIT)


def documents(*numbers: int) -> list[Document]:
    return [Document(id=f"d{n}", text=f"{n} Ada feeds the seals of the harbour.") for n in numbers]


def saying(task: Any) -> Extraction:
    number = task.text.split()[0]
    said = f"Ada fed {number} seals in the harbour on day {number}."
    return Extraction(
        entities=(ExtractedEntity(name="Ada", description=said), ExtractedEntity(name="Bo", description="Bo watches.")),
        relations=(
            ExtractedRelation(source="Ada", target="Bo", description=f"Bo saw that {said}", keywords=("seals",)),
        ),
    )


def digest(task: Condense) -> CondensedText:
    return CondensedText(text=f"{task.subject}: {len(task.descriptions)} days {text_hash(str(task.descriptions))[:8]}")


@pytest.fixture
def opened(open_client: Open) -> Callable[..., tuple[HGMem, ScriptedModel]]:
    def opening(condense: Callable[[Any], object] = digest, **more: Any) -> tuple[HGMem, ScriptedModel]:
        model = ScriptedModel({"extract": saying, "condense": condense})
        return open_client(model=model, condense=True, description_characters=LIMIT, **more), model

    return opening


Opened = Callable[..., tuple[HGMem, ScriptedModel]]


def condensed(model: ScriptedModel) -> list[Condense]:
    return [task for task in model.tasks if isinstance(task, Condense)]


def test_descriptions_over_the_limit_are_condensed_and_embedded_anew(opened: Opened, settings: Settings) -> None:
    client, model = opened()
    client.add(documents(1))
    assert condensed(model) == []
    report = client.add(documents(*range(1, 9)))
    found = dump(settings, client.corpus)

    assert report.errors == []
    tasks = condensed(model)
    assert sorted(task.subject for task in tasks) == ["Ada", "ada – bo"]
    assert all((len(task.descriptions), task.limit) == (8, LIMIT) for task in tasks)
    ada = found.of("Entity")[uid(client.corpus, "entity", "ada")]
    assert ada["description"].startswith("Ada: 8 days ")
    assert "cut" not in ada
    ((_, _, relation),) = found.joined("RELATES")
    assert relation["description"].startswith("ada – bo: 8 days ")
    check(found)  # including vectors

    model.tasks.clear()
    before = dump(settings, client.corpus, times=True)
    assert client.add(documents(*range(1, 9))).unchanged == 8
    assert (model.tasks, dump(settings, client.corpus, times=True)) == ([], before)


def test_what_is_condensed_is_not_used_once_a_document_is_gone(opened: Opened, settings: Settings) -> None:
    client, model = opened()
    client.add(documents(*range(1, 9)))
    client.delete(document=uid(client.corpus, "document", "d3"))
    found = dump(settings, client.corpus)
    ada = found.of("Entity")[uid(client.corpus, "entity", "ada")]
    assert ada["description"].startswith("Ada fed ")
    assert len(ada["description"]) <= LIMIT
    assert "condensed" not in ada
    check(found)

    model.tasks.clear()
    client.add(documents(9))
    assert sorted(task.subject for task in condensed(model)) == ["Ada", "ada – bo"]
    assert all(len(task.descriptions) == 8 for task in condensed(model))


def test_the_graph_is_the_same_in_any_order(opened: Opened, settings: Settings) -> None:
    client, _ = opened()
    client.add(documents(1, 2, 3, 4, 5))
    wanted = dump(settings, client.corpus)
    for order in itertools.islice(itertools.permutations((1, 2, 3, 4, 5)), 0, 120, 37):
        client.delete()
        client.add(documents(*order[:2]))
        client.add(documents(6))
        client.add(documents(*order[2:]))
        client.delete(document=uid(client.corpus, "document", "d6"))
        client.add(documents(*order))
        # truncated by the deletion; the next written document triggers a summary
        client.add([Document(id="empty", text=" ")])
        client.delete(document=uid(client.corpus, "document", "empty"))
        assert dump(settings, client.corpus) == wanted


def test_a_condensing_call_that_fails_leaves_it_cut_until_the_next_run(opened: Opened, settings: Settings) -> None:
    client, _ = opened(lambda task: ModelError("too long") if task.subject == "Ada" else digest(task))
    report = client.add(documents(*range(1, 9)))
    assert report.failed == 0
    assert report.errors == ["the description of 'Ada' was truncated instead of summarized: too long"]
    found = dump(settings, client.corpus)
    check(found)
    assert found.of("Entity")[uid(client.corpus, "entity", "ada")]["cut"] is True

    client, model = opened()
    client.add(documents(9))
    assert "Ada" in {task.subject for task in condensed(model)}


def test_a_budget_spent_while_condensing_keeps_what_was_written(opened: Opened, settings: Settings) -> None:
    turns = iter(range(100))
    client, _ = opened(lambda task: BudgetError("spent") if next(turns) else digest(task), workers=1)
    with pytest.raises(BudgetError, match="spent"):
        client.add(documents(*range(1, 9)))
    found = dump(settings, client.corpus)
    assert client.status().pending == 0
    assert len([one for one in found.of("Entity").values() if "condensed" in one]) == 1
    check(found)


@pytest.mark.parametrize(("text", "kept"), [("x" * 500, "x" * LIMIT), ("  short.\n", "short."), (" \n ", None)])
def test_a_reply_is_held_to_the_limit(opened: Opened, settings: Settings, text: str, kept: str | None) -> None:
    client, _ = opened(lambda task: CondensedText(text=text))
    report = client.add(documents(*range(1, 9)))
    ada = dump(settings, client.corpus).of("Entity")[uid(client.corpus, "entity", "ada")]
    assert ada["description"] == kept or (kept is None and ada["description"].startswith("Ada fed"))
    assert len(report.errors) == (2 if kept is None else 0)


def test_a_prompt_holds_so_much_and_no_more(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hgmem.corpus.summarization.CHARACTERS", 200)
    client, model = opened()
    client.add(documents(*range(1, 30)))
    assert all(len("\n".join(task.descriptions)) <= 200 for task in condensed(model))


def test_without_the_setting_nothing_is_condensed(open_client: Open, settings: Settings) -> None:
    model = ScriptedModel({"extract": saying})
    client = open_client(model=model, description_characters=LIMIT)
    client.add(documents(*range(1, 9)))
    found = dump(settings, client.corpus)
    assert not [one for one in found.of("Entity").values() if "cut" in one or "condensed" in one]
    check(found)


def test_the_extractive_model_condenses_by_whole_lines(open_client: Open, settings: Settings) -> None:
    model = ExtractiveModel(DeterministicEmbedder())
    reply = model.reply(Condense(subject="a", descriptions=("first line", "second line", "third"), limit=24))
    assert reply.text == "first line\nsecond line"
