"""Prompts of plans in all their variants: what they say fits what a reply may hold, and nothing else is said."""

import json
import re
from typing import Any

import pytest

from hgmem.models.llm.response_formats import json_schema, schema_of
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.recipes import RECIPES
from hgmem.systems.hgmem.tasks import ADDITIONS, Addition, Describe, Evolve, Merge, Plan, Round, WholeStep, rounds
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk, Entity

JUDGING = [
    {"judging": "concern"},
    {"judging": "step"},
    {"judging": "concern", "strategies": "local"},
    {"judging": "step", "strategies": "global"},
]


def tasks(**how: Any) -> list[Any]:
    shown: dict[str, Any] = {"question": "Why?", "memory": PromptMemory()}
    step = {"subqueries": (), "evidence": Evidence()}
    return [
        Plan(**shown, **how),
        *(WholeStep(**shown, **step, merging=merging, **how) for merging in (True, False)),
    ]


def text_of(task: Any) -> tuple[str, str]:
    system, user = prompt_of(task).filled(task.fields())
    return system.content, user.content


JUDGING += [{"additions": ()}, {"additions": (), "judging": "step"}]
ALL = [task for how in JUDGING for task in tasks(**how)]
ALL += [
    Evolve(question="Why?", subqueries=(), memory=PromptMemory(), evidence=Evidence(), merging=on)
    for on in (True, False)
]


@pytest.mark.parametrize("task", ALL, ids=lambda task: f"{task.name}, {getattr(task, 'judging', '')}")
def test_the_form_and_the_example_of_a_prompt_are_replies_with_all_its_fields(task: Any) -> None:
    system, user = text_of(task)
    found = [json.loads(line) for line in system.splitlines() if line.startswith("{")]

    assert len(found) == 2
    for one in found:
        assert list(one) == list(task.reply_type.model_fields)
        task.reply_type.model_validate(one)
    assert not re.search(r"\{\{|\n\n\n", system + user)
    assert user == user.strip()


@pytest.mark.parametrize("task", [task for task in ALL if not getattr(task, "merging", False)], ids=lambda t: t.name)
def test_nothing_is_said_of_merging_where_nothing_is_merged(task: Any) -> None:
    assert "merg" not in "".join(text_of(task)).casefold()


def concerns_of(task: Any) -> list[Any]:
    example = [line for line in text_of(task)[0].splitlines() if line.startswith("{")][-1]
    return list(task.reply_type.model_validate_json(example).concerns)


def test_examples_show_a_concern_of_each_kind_that_the_recipe_allows() -> None:
    for task in tasks(judging="concern"):
        assert [(one.strategy, one.points) for one in concerns_of(task)] == [("local", (0,)), ("global", ())]
    for task in tasks(judging="step"):
        assert [(one.strategy, one.points) for one in concerns_of(task)] == [(None, (0,))]
    for task in tasks(strategies="global"):
        assert [one.points for one in concerns_of(task)] == [()]
        assert '"local"' not in text_of(task)[0]
    for task in tasks(strategies="local"):
        assert '"global"' not in text_of(task)[0]


def test_a_round_says_how_many_are_left_and_that_the_next_is_the_last() -> None:
    assert rounds(1, 4) == "Round 1 of 4: 3 rounds are left."
    assert rounds(3, 4).startswith("Round 3 of 4: one round is left, the last.")


def test_titles_are_limited_in_number_and_length() -> None:
    read = tuple((f"Document {at:02}", at % 7) for at in range(40))
    round_ = Round(read=read, unread=("x" * 300, "Note </documents>"))
    user = text_of(Plan(question="Why?", memory=PromptMemory(), round=round_))[1]
    lines = user.partition("<documents>\n")[2].partition("\n</documents>")[0].splitlines()

    assert lines[0] == "- read: Document 06 (6)"
    assert lines[20] == "- read: 20 more"
    assert lines[21] == f"- unread: {'x' * 160} …"
    assert user.count("</documents>") == 1


def test_hints_are_names_with_types_unless_they_are_described() -> None:
    hints = (Entity(uid="a", name="Anna", type="person", description="She sold the mill."),)
    for described in (False, True):
        task = Plan(question="Why?", memory=PromptMemory(), hints=hints, round=Round(describe_hints=described))
        assert ("She sold the mill." in text_of(task)[1]) is described
        assert "- Anna (person)" in text_of(task)[1]
    assert "<entities>" not in text_of(Plan(question="Why?", memory=PromptMemory()))[1]


@pytest.mark.parametrize("how", JUDGING)
def test_a_server_is_held_to_what_the_prompt_names(how: dict[str, Any]) -> None:
    for task in tasks(**how):
        schema = schema_of(task)
        whole, system = json_schema(task.reply_type), text_of(task)[0]
        concern = schema["properties"]["concerns"]["items"]
        verdicts = schema["properties"]["judgement"]["enum"]
        assert verdicts[0] == "sufficient"
        assert all(f'"{verdict}"' in system for verdict in verdicts)
        assert ("strategy" in concern["properties"]) is ("`strategy`" in system)
        assert concern["required"] == list(concern["properties"])
        assert schema["properties"].keys() == whole["properties"].keys()
        assert schema != whole


SAID: dict[Addition, str] = {
    "rounds": r"Round \d of \d",
    "numbers": r"[Cc]hunks. — |`chunks`|\[0\] Letter|\"chunks\"|in an earlier round|numbers of the chunks|Chunk \[",
    "premises": "takes for granted",
    "brief": "in a sentence or two",
    "statements": "what it says stays|own statements are kept|replaces",
    "one_merge": "one merge",
    "single": "all entities that the statement is about",
}


@pytest.mark.parametrize("rule", ADDITIONS)
def test_a_rule_beside_the_papers_can_be_left_out_of_every_prompt(rule: Addition) -> None:
    shown = Chunk(uid="c0", document="d", position=0, text="It rained.", tokens=3, title="Letter")
    earlier = Chunk(uid="c1", document="e", position=4, text="It cleared.", tokens=3, title="Diary")
    again = (Retrieved(subquery=Subquery(text="Rain"), chunks=(Hit(uid="c1", rank=1),)),)
    found = Evidence(entities=(Entity(uid="e", name="Ida"),), chunks=(shown,), shown=(earlier,), retrieved=again)

    def texts(*additions: Addition) -> list[str]:
        common: dict[str, Any] = {"question": "Why?", "memory": PromptMemory(), "additions": additions}
        step: dict[str, Any] = {**common, "subqueries": (), "evidence": found, "merging": True}
        made = [Evolve(**step), WholeStep(**step), Merge(**common), Plan(**common)]
        return ["\n".join(text_of(task)) for task in made]

    with_it, without = texts(rule), texts(*(one for one in ADDITIONS if one != rule))
    assert any(re.search(SAID[rule], text) for text in with_it)
    assert not [text for text in without if re.search(SAID[rule], text)]
    assert RECIPES["paper"].additions == ()


def test_without_numbers_no_reply_is_asked_for_chunks() -> None:
    step: dict[str, Any] = {"question": "Why?", "memory": PromptMemory(), "subqueries": (), "evidence": Evidence()}
    for task in (Evolve(**step, additions=()), WholeStep(**step, additions=()), Evolve(**step), WholeStep(**step)):
        items = [schema_of(task)["properties"][name]["items"] for name in ("update", "insert")]
        numbered = "numbers" in task.additions
        assert [("chunks" in one["properties"], "chunks" in one["required"]) for one in items] == 2 * [(numbered,) * 2]
    shown = Chunk(uid="c0", document="d", position=0, text="It rained.", tokens=3, title="Letter")
    told = text_of(Describe(names=("Ida",), pairs=(), evidence=Evidence(chunks=(shown,))))
    assert "[0]" not in told[1]


@pytest.mark.parametrize("recipe", ["default", "paper"])
@pytest.mark.parametrize("task", [Evolve, WholeStep])
@pytest.mark.parametrize("merging", [True, False])
def test_a_server_may_reply_with_numbers_of_chunks_where_the_prompt_has_them(
    recipe: str, task: type[Any], merging: bool
) -> None:
    step: dict[str, Any] = {"subqueries": (), "evidence": Evidence(), "merging": merging}
    asked = task(question="Why?", memory=PromptMemory(), additions=RECIPES[recipe].additions, **step)
    whole, held = json_schema(asked.reply_type)["properties"], schema_of(asked)["properties"]
    for name in ("update", "insert"):
        fields = held[name]["items"]
        dropped = (
            set() if recipe == "default" else {"chunks", "replaces", "kind"} & whole[name]["items"]["properties"].keys()
        )
        assert set(whole[name]["items"]["properties"]) - set(fields["properties"]) == dropped
        assert fields["required"] == list(fields["properties"])
    assert held.keys() == whole.keys()
    assert ('"chunks"' in "".join(text_of(asked))) == (recipe == "default")
