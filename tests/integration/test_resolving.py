"""Entity resolution by rules and a model: what is asked, saved, resumed, and left for a person."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dumping import driver

from hgmem import Document, HGMem, Message, UsageError
from hgmem.errors import BudgetError, DocumentError, ModelError
from hgmem.extraction.tasks import Extract
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.metering import current_meter
from hgmem.models.prompts import prompt_of
from hgmem.resolution.tasks import Identify, Identity, Proposed, ProposeSame
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.values.decisions import Seen
from hgmem.values.inputs import Given, GivenChunk, GivenEntity

TEXTS = {
    "one": "Dr. Owen Vail came to the mill. The Salt Board met, and St. Giles burned.",
    "two": "Owen Vail left. The board wrote to Vail of St Giles.",
    "three": "Mrs. Vail and the Mary Anne were lost. Mary Anne was a cook.",
}
NAMED = (
    *(("Dr. Owen Vail", "person", "one"), ("Owen Vail", "person", "two"), ("Vail", "person", "two")),
    *(("The Salt Board", "organization", "one"), ("Salt Board", "organization", "two")),
    *(("St. Giles", "place", "one"), ("St Giles", "place", "two")),
    *(("Mrs. Vail", "person", "three"), ("the Mary Anne", "vehicle", "three"), ("Mary Anne", "person", "three")),
)
GIVEN = Given(
    documents=tuple(Document(id=id_, text=text) for id_, text in TEXTS.items()),
    chunks=tuple(GivenChunk(id=id_, document=id_, text=text) for id_, text in TEXTS.items()),
    entities=tuple(GivenEntity(name=name, type=kind, description=name, chunks=(at,)) for name, kind, at in NAMED),
)
BY_RULES = {("Dr. Owen Vail", "Owen Vail"), ("Salt Board", "The Salt Board"), ("St Giles", "St. Giles")}


def judging(verdict: Any = "unclear", *, proposing: Any = lambda _: Proposed(), **more: float) -> ScriptedModel:
    """Return a model that judges each pair so, or as a function of both names says, and proposes pairs of a list."""

    def judge(task: Any) -> Identity | Exception:
        current_meter().take()
        names = tuple(sorted(one.name for one in task.entities))
        found = verdict(*names) if callable(verdict) else verdict
        said = {"verdict": found, "reason": "so it says", "confidence": 0.8, **more}
        return found if isinstance(found, Exception) else Identity(**said)

    def propose(task: Any) -> Any:
        current_meter().take()
        return proposing(task)

    return ScriptedModel({"identify": judge, "propose_same": propose})


def decided(hg: HGMem, by: str) -> dict[tuple[str, ...], str]:
    found = (one.decision for one in hg.decisions())
    return {tuple(sorted((one.name_a, one.name_b))): one.kind for one in found if one.by == by}


def asked(model: ScriptedModel) -> list[tuple[str, ...]]:
    tasks = [task for task in model.tasks if isinstance(task, Identify)]
    return sorted(tuple(sorted(one.name for one in task.entities)) for task in tasks)


@pytest.fixture
def opened(open_client: Callable[..., HGMem]) -> Callable[..., HGMem]:
    """Opens a client on the texts."""

    def opening(model: Any = None) -> HGMem:
        client = open_client(**({"model": model} if model else {}))
        client.add_graph(GIVEN)
        return client

    return opening


def test_rules_decide_and_leave_the_rest_without_a_language_model(opened: Callable[..., HGMem]) -> None:
    hg = opened()
    planned = hg.resolve(dry_run=True)
    assert hg.decisions() == []
    done = hg.resolve()
    assert (done.entities, done.joined, done.same, done.different) == (len(NAMED), 3, 0, 0)
    assert (planned.joined, planned.left) == (3, done.left)
    assert done.left > 0
    assert decided(hg, "rule") == dict.fromkeys(BY_RULES, "same")
    assert hg.resolve().joined == 0
    assert hg.check().ok


def test_the_model_judges_each_pair_of_classes_once_and_sees_passages(opened: Callable[..., HGMem]) -> None:
    model = judging(lambda *names: "same" if names == ("Owen Vail", "Vail") else "different")
    hg = opened(model)
    planned = hg.resolve(dry_run=True)
    assert (planned.lists, planned.calls) == (1, planned.left + 1)
    done = hg.resolve()
    assert len(asked(model)) == done.same + done.different == planned.left
    assert done.left == 0
    assert len([names for names in asked(model) if "Vail" in names]) == 2  # Owen Vail's class once, and Mrs. Vail
    task = next(task for task in model.tasks if isinstance(task, Identify))
    shown = task.fields()["entities"]
    assert all(text in shown for one in task.entities for text in (one.name, *one.passages.values()))
    status = next(one.decision for one in hg.decisions() if one.decision.by == "model")
    assert (status.reason, status.confidence, len(status.evidence) > 0) == ("so it says", 0.8, True)

    before = asked(model)
    assert hg.resolve().left == 0
    assert asked(model) == before


def test_what_the_model_cannot_tell_is_not_asked_again_and_left_for_a_person(opened: Callable[..., HGMem]) -> None:
    model = judging()
    hg = opened(model)
    done = hg.resolve()
    calls = len(asked(model))
    assert done.unclear == calls > 0
    hg.resolve()
    assert len(asked(model)) == calls

    pairs = hg.open_pairs()
    assert len(pairs) == calls
    assert all(pair.a.passages and pair.b.passages for pair in pairs)
    hg.different(pairs[0].a.uid, pairs[0].b.uid)
    assert len(hg.open_pairs()) == calls - 1
    assert len(hg.open_pairs(most=1)) == 1


@pytest.mark.parametrize("verdict", ["same", "different"])
def test_a_verdict_that_the_model_is_not_sure_of_decides_nothing(opened: Callable[..., HGMem], verdict: str) -> None:
    hg = opened(judging(verdict, confidence=0.49))
    done = hg.resolve()
    assert done.unclear > 0
    assert set(decided(hg, "model").values()) == {"open"}
    assert {one.decision.reason for one in hg.decisions() if one.decision.by == "model"} == {
        f"not sure, {verdict}: so it says"
    }
    assert len(hg.open_pairs()) == done.unclear


def test_a_verdict_without_a_confidence_counts(opened: Callable[..., HGMem]) -> None:
    silent = ScriptedModel({"identify": lambda _: Identity(verdict="same")})
    done = opened(silent).resolve()
    assert (done.same > 0, done.unclear) == (True, 0)


def test_a_limit_of_calls_ends_a_run_and_the_next_one_goes_on(opened: Callable[..., HGMem]) -> None:
    model = judging("different")
    hg = opened(model)
    whole = hg.resolve(dry_run=True).left
    with pytest.raises(BudgetError):
        hg.resolve(max_calls=2)  # a list and a pair
    assert len(decided(hg, "model")) == 1
    assert hg.resolve().different == whole - 1
    assert len(set(asked(model))) == whole  # the refused one was asked twice


def test_the_model_proposes_names_that_share_nothing_and_judges_them(opened: Callable[..., HGMem]) -> None:
    def proposing(task: ProposeSame) -> Proposed:
        at = {one.name: number for number, one in enumerate(task.entries)}
        assert sorted(at) == sorted(name for name, _, _ in NAMED)
        return Proposed(same=((at["Mary Anne"], at["Mrs. Vail"], at["Mary Anne"], 99, -1), (at["St Giles"],), ()))

    model = judging(lambda *names: "same" if names == ("Mary Anne", "Mrs. Vail") else "different", proposing=proposing)
    hg = opened(model)
    planned = hg.resolve(dry_run=True)
    done = hg.resolve()
    assert (done.same, done.different, done.left, done.lists) == (1, planned.left, 0, 1)
    assert decided(hg, "model")["Mary Anne", "Mrs. Vail"] == "same"
    shown = next(task for task in model.tasks if isinstance(task, ProposeSame)).fields()["entities"]
    assert "Mrs. Vail (person): Mrs. Vail" in shown
    assert hg.resolve().same == 0


def test_lists_are_asked_first_and_what_they_propose_is_judged_before_what_they_pass_over(
    opened: Callable[..., HGMem],
) -> None:
    def proposing(task: ProposeSame) -> Proposed:
        at = {one.name: number for number, one in enumerate(task.entries)}
        return Proposed(same=((at["Mary Anne"], at["Mrs. Vail"]), (at["Owen Vail"], at["Vail"])))

    model = judging("different", proposing=proposing)
    hg = opened(model)
    with pytest.raises(BudgetError):
        hg.resolve(max_calls=3)
    assert isinstance(next(task for task in model.tasks if isinstance(task, Identify | ProposeSame)), ProposeSame)
    assert decided(hg, "model").keys() == {("Owen Vail", "Vail"), ("Mary Anne", "Mrs. Vail")}
    with pytest.raises(BudgetError):
        hg.resolve(max_calls=3)  # what the list showed and did not propose: pairs of the same words first
    assert decided(hg, "model").keys() > {("Mary Anne", "the Mary Anne"), ("Mrs. Vail", "Vail")}


def test_a_list_that_fails_is_told_and_a_limit_of_calls_before_it_too(opened: Callable[..., HGMem]) -> None:
    hg = opened(judging("different", proposing=lambda _: ModelError("no list today")))
    done = hg.resolve()
    assert (done.left, done.errors) == (0, (f"a list of {len(NAMED)} entities: no list today",))

    def paid(_: object) -> Proposed:
        current_meter().take()  # for a second request
        return Proposed()

    other = opened(judging("different", proposing=paid))
    with pytest.raises(BudgetError, match="used up: finished work is saved, lists of entities left; rerun to continue"):
        other.resolve(max_calls=1)


def test_a_failed_call_is_told_and_tried_again(opened: Callable[..., HGMem]) -> None:
    fails = [False] * 20 + [True]
    hg = opened(judging(lambda *_: ModelError("no reply") if fails.pop() else "different"))
    done = hg.resolve()
    assert len(done.errors) == done.left == 1
    assert "no reply" in done.errors[0]
    fails[:] = [False] * 20
    assert hg.resolve().left == 0


def test_an_undone_rule_is_not_applied_again(opened: Callable[..., HGMem]) -> None:
    hg = opened()
    hg.resolve()
    assert len(hg.undo(by="rule")) == 3
    assert decided(hg, "rule") == dict.fromkeys(BY_RULES, "open")
    assert hg.resolve().joined == 0
    hg.undo("Salt Board", "the salt board")
    assert hg.resolve().joined == 1


def test_indexing_applies_the_rules_unless_told_otherwise(open_client: Callable[..., HGMem]) -> None:
    texts = [Document(id=str(at), text=text) for at, text in enumerate((
        "Dr. Marian Dace met Captain Rhee in Tamswell.", "Marian Dace wrote to Captain Rhee of Tamswell."
    ))]  # fmt: skip
    off = open_client(resolve=False)
    assert off.add(texts).joined == 0
    off.delete()
    hg = open_client()
    assert hg.add(texts).joined == len(decided(hg, "rule")) == 1
    assert hg.add(texts).joined == 0


def test_indexing_joins_nothing_of_an_added_graph(open_client: Callable[..., HGMem]) -> None:
    hg = open_client()
    names = ("Dr. Anna Holt", "Anna Holt", "Dr. Owen Vail")
    entities = tuple(GivenEntity(name=name, type="person", chunks=("c",)) for name in names)
    text = "Dr. Anna Holt and Anna Holt saw Dr. Owen Vail."
    hg.add_graph(Given(documents=(Document(id="d", text=text),), entities=entities,
                       chunks=(GivenChunk(id="c", document="d", text=text),)))  # fmt: skip
    assert hg.add(Document(id="e", text="Owen Vail met Captain Rhee in Tamswell.")).joined == 0
    assert hg.resolve(rules_only=True).joined == 2


def test_messages_and_failed_chunks_are_joined_too(open_client: Callable[..., HGMem]) -> None:
    failed: list[Extract] = []
    extractive = ExtractiveModel(DeterministicEmbedder())

    def once(task: Extract) -> Any:
        failed.append(task)
        return ModelError("no more tokens") if len(failed) == 1 else extractive.reply(task)

    hg = open_client(model=ScriptedModel({"extract": once}))
    hg.add(Document(id="one", text="Dr. Marian Dace met Captain Rhee in Tamswell."))
    hg.append("talk", [Message(speaker="Captain Rhee", text="Marian Dace wrote to me from Tamswell.")], graph=True)
    assert hg.decisions() == []
    assert hg.retry_failed().joined == len(decided(hg, "rule")) == 1
    hg.add(Document(id="two", text="Dr. Owen Vail met Captain Rhee in Tamswell."))
    more = Message(speaker="Captain Rhee", text="Owen Vail wrote to me from Tamswell.")
    assert hg.append("talk", more, graph=True).joined == 1
    assert hg.append("talk", [], graph=True).joined == 0


def test_decisions_travel_as_files_by_names(opened: Callable[..., HGMem], tmp_path: Path) -> None:
    hg = opened(judging("different"))
    hg.resolve()
    hg.different("Vail", "Mrs. Vail", reason='wife, and\r\nhusband\ror "both"')
    wanted = hg.decisions()
    assert any(one.decision.evidence for one in wanted)
    for name in ("all.json", "all.csv"):
        assert hg.export_decisions(tmp_path / name) == len(wanted)
        hg.undo(*(one.decision.uid for one in hg.decisions()))
        hg.undo(*(one.decision.uid for one in hg.decisions()))
        assert hg.decisions() == []
        assert len(hg.import_decisions(tmp_path / name)) == len(wanted)
        assert hg.decisions() == wanted


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        (
            "x.csv",
            "a,b,kind\nVail,Owen Vail,same\nX,Vail,same\nNoone,Vail,same\n",
            UsageError,
            "'X'.*'Noone'",
        ),
        ("x.csv", "a,b\nVail,Owen Vail\n", DocumentError, "decision 1 'kind'"),
        ("x.csv", "a,b,kind\nVail,Owen Vail,equal\n", DocumentError, "decision 1 'kind'"),
        ("x.csv", "a,b,kind\nVail,vail,same\n", DocumentError, "name one entity"),
        ("x.csv", "a,b,kind,created_at\nVail,Owen Vail,same,May\n", DocumentError, "decision 1 'created_at'"),
        ("x.csv", "a,b,kind\nVail,Owen Vail,same,,,,,\n", DocumentError, "decision 1"),
        ("x.json", "{", DocumentError, "is not JSON"),
        ("x.json", '{"a": 1}', DocumentError, "decision"),
        ("x.txt", "", DocumentError, "neither JSON nor CSV"),
    ],
)
def test_a_file_is_read_whole_or_not_at_all(
    opened: Callable[..., HGMem], tmp_path: Path, name: str, text: str, error: type[Exception], message: str
) -> None:
    hg = opened()
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message) as raised:
        hg.import_decisions(tmp_path / name)
    assert "\n" not in str(raised.value)
    assert hg.decisions() == []


def test_a_wrong_class_is_mended(opened: Callable[..., HGMem], settings: Any, corpus: str) -> None:
    hg = opened()
    hg.same("Vail", "Owen Vail")
    with driver(settings) as bolt:
        bolt.execute_query("MATCH (e:Entity {corpus: $corpus}) SET e.canonical_uid = 'x'", corpus=corpus)
    assert not hg.check().ok
    assert hg.resolve(rules_only=True).mended == len(NAMED)
    assert hg.check().ok


def test_a_prompt_shows_both_entities_and_no_tag_of_theirs() -> None:
    one = Seen(uid="a", name="Ann </entities>", type="", description="", passages={"c": "<entities> of Ann"})
    task = Identify(entities=(one, Seen(uid="b", name="Anna", type="person", description="x")))
    _, user = prompt_of(task).filled(task.fields())
    assert user.content.count("</entities>") == 1
    assert "Ann ‹/entities>" in user.content
    assert "Entry: Anna (person)" in user.content
