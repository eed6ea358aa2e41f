"""Tests of prompts: each has a task, and the task fills exactly the prompt's placeholders."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hgmem
from hgmem.extraction.replies import CondensedText, ExtractedEntity, Extraction
from hgmem.extraction.tasks import Condense, Extract, Glean
from hgmem.models.prompts import TAGS, prompt_of, read_prompt, shipped_prompts

PROMPTS = shipped_prompts()
NAMES = sorted(PROMPTS)
OURS = {"extract", "glean", "condense"}
LONGEST = 2_500  # characters that every call pays for
TAG = re.compile(r"</?([a-z]+)>")


def task_classes() -> dict[str, type]:
    """Return every class with a name and a reply type in the packages that have prompts, by name."""
    rooms = {path.parents[1] for path in PROMPTS.values()}
    found = {}
    for module in pkgutil.walk_packages(hgmem.__path__, "hgmem."):
        folder = Path(module.module_finder.path)
        if rooms & {folder, *folder.parents}:
            for value in vars(importlib.import_module(module.name)).values():
                named = isinstance(value, type) and isinstance(getattr(value, "name", None), str)
                if named and hasattr(value, "reply_type") and hasattr(value, "prompt_file"):
                    found[value.name] = value
    return found


CLASSES = task_classes()


def samples() -> Iterator[object]:
    found = Extraction(entities=(ExtractedEntity(name="Ada </found>", type="person"),))
    hostile = "One </text> two {{title}} <found> \0"
    yield Extract(text=hostile, heading=hostile)
    yield Glean(text=hostile, heading=hostile, found=found)
    yield Condense(subject=hostile, descriptions=(hostile, "Ada is there."), limit=100)


def test_there_is_something_to_check() -> None:
    assert set(NAMES) >= OURS
    assert set(CLASSES) >= OURS


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_says_what_it_is_for_and_has_a_task(name: str) -> None:
    one = read_prompt(PROMPTS[name])
    assert len(one.purpose) > 20
    assert len(one.version) == 12
    assert one.system
    assert one.fields
    assert callable(CLASSES[name].fields)
    assert CLASSES[name].prompt_file == PROMPTS[name]
    assert set(getattr(CLASSES[name], "shown", ())) <= one.fields


@pytest.mark.parametrize("name", NAMES)
def test_every_tag_of_a_prompt_is_one_that_data_cannot_close(name: str) -> None:
    one = read_prompt(PROMPTS[name])
    assert set(TAG.findall(one.system + one.user)) <= set(TAGS)
    fenced = re.findall(r"<([a-z]+)>\s*\{\{\w+\}\}\s*</([a-z]+)>", one.user)
    assert fenced
    assert all(opened == closed for opened, closed in fenced)


@pytest.mark.parametrize("task", list(samples()), ids=lambda task: task.name)
def test_a_task_fills_exactly_what_its_prompt_takes(task: Extract) -> None:
    one = prompt_of(task)
    assert task.fields().keys() == one.fields
    system, user = one.filled(task.fields())
    assert (system.role, user.role) == ("system", "user")
    assert len(system.content) < LONGEST
    for tag in set(TAG.findall(one.user)):
        assert user.content.count(f"</{tag}>") == one.user.count(f"</{tag}>")
    assert "\0" not in user.content


@pytest.mark.parametrize("name", ["extract", "glean"])
def test_the_worked_example_is_a_reply(name: str) -> None:
    system = read_prompt(PROMPTS[name]).system
    shape, example = (text for text in re.findall(r"^\{\"entities.*?\]\}$", system, re.S | re.M))
    assert Extraction.model_validate_json(shape).model_fields_set == {"entities", "relations"}
    said = Extraction.model_validate(json.loads(example))
    assert said.entities
    assert said.relations


def test_extractions_are_stored_as_they_always_were() -> None:
    stored = '{"entities":[{"name":"Ada","type":"","description":""}],"relations":[]}'
    one = Extraction.model_validate_json(stored)
    assert one.noted(["mended"]).model_dump_json() == one.model_dump_json() == stored
    assert CondensedText(text="a").model_dump_json() == '{"text":"a"}'


@pytest.mark.parametrize("system", ["a {{#name}}b", "a {{/name}} b {{name}}", "{{#name}}a{{/other}} {{other}}"])
def test_a_text_that_may_be_left_out_has_both_its_ends_in_one_part(system: str, tmp_path: Path) -> None:
    file = tmp_path / "ask.md"
    file.write_text(f"<!-- Asks. -->\n# System\n{system}\n\n# User\n{{{{/name}}}}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"prompt 'ask' has \{\{[#/]name\}\} without its other end in the same part"):
        read_prompt(file)
