"""Verbs: what a system can do besides answering, from Python and from the command line."""

import asyncio
import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest
from documented import blocks
from forked import run_python
from test_systems import Command, command, install
from toying import TOY

from hgmem import HGMem, UsageError
from hgmem.errors import HGMemError
from hgmem.service.problems import problem_of
from hgmem.systems.verbs import run_verb
from hgmem.values.inputs import Document

__all__ = ["command"]

DOCUMENTS = [Document(id=f"d{at}", text=f"{word} lamps burn on the pier.") for at, word in enumerate(("Red", "Blue"))]

BROKEN = """
from dataclasses import dataclass
from typing import Annotated
from hgmem.systems.single_step import SingleStep
from hgmem.systems.verbs import Verb

@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    best: int = 1

@dataclass(frozen=True)
class Some:
    words: {type} = ""

SPEC = SingleStep(
    name="{name}", summary="Fails.", config=Config, retrieve=None, passage_option="best",
    verbs=[Verb(name="{verb}", summary="Some.", arguments={arguments}, run=lambda services, arguments: {gives})],
)
"""
GOOD = {"name": "broken", "verb": "show", "arguments": "Some", "type": "Annotated[str, 'Words.']", "gives": "'yes'"}


@pytest.mark.usefixtures("toy")
def test_a_verb_is_a_method_of_the_client(client: HGMem) -> None:
    client.add(DOCUMENTS, graph=False)
    with pytest.raises(UsageError, match="has no build 'toy': make it with `hgmem build toy"):
        client.toy.topics()
    client.build("toy")
    assert {word for topic in client.toy.topics() for word in topic.first_words} == {"Red", "Blue"}
    assert ["Blue" in topic.text for topic in client.toy.topics(words="blue LAMPS", most="5")] == [True]
    assert client.toy.count_words(word="Red", also=["Green"]) == {"Red": 1, "Green": 0}
    assert asyncio.run(client.toy.atopics(words="green")) == []
    assert asyncio.run(client.verbs("toy").acount_words(word="Blue")) == {"Blue": 1}
    assert client.toy.hello(corpus=client.corpus) == f"hello {client.corpus}"


@pytest.mark.usefixtures("toy")
def test_a_verb_of_a_stale_build_says_so(client: HGMem, command: Command) -> None:
    client.add(DOCUMENTS, graph=False)
    client.build("toy")
    notes: list[str] = []
    assert client.verbs("toy", note=notes.append).topics()
    assert notes == []
    client.add(Document(id="more", text="Green lamps burn too."), graph=False)
    assert client.verbs("toy", note=notes.append).topics()
    (said,) = notes
    assert said.startswith("the build 'toy' is stale (documents were added): `hgmem build toy --corpus ")
    with pytest.warns(UserWarning, match=r"the build 'toy' is stale \(documents were added\)") as warned:
        client.toy.topics()
    assert warned[0].filename == __file__
    shown = command("toy", "topics", "-c", client.corpus, packages=TOY)
    assert shown.stderr.splitlines() == [said]


@pytest.mark.usefixtures("toy")
def test_a_verb_tells_its_arguments(client: HGMem) -> None:
    assert {"topics", "atopics", "count_words", "acount_words", "hello", "ahello"} <= set(dir(client.toy))
    assert {"toy", "naive", "ask"} <= set(dir(client))
    assert str(inspect.signature(client.toy.count_words)).startswith("(*, word: ")
    assert inspect.getdoc(client.toy.topics) == (
        "List the topics of a build.\n\n- `words`: Only topics with these words.\n- `most`: Maximum topics.\n"
        "- `longest_first`: List the longest topics first."
    )
    (toy,) = [one for one in client.systems() if one.name == "toy"]
    assert [verb.name for verb in toy.verbs] == ["topics", "count-words", "hello"]
    assert toy.verbs[1].arguments[0].required


@pytest.mark.usefixtures("toy")
def test_what_a_verb_does_not_take_is_named(client: HGMem) -> None:
    client.add(DOCUMENTS, graph=False)
    with pytest.raises(UsageError, match="unknown argument 'word' of verb 'topics' of system 'toy': choose from words"):
        client.toy.topics(word="lamps")
    with pytest.raises(UsageError, match=r"invalid argument 'most' of verb 'topics' .* got 'many'"):
        client.toy.topics(most="many")
    with pytest.raises(UsageError, match="missing argument 'word' of verb 'count-words' of system 'toy': pass it"):
        client.toy.count_words()
    with pytest.raises(UsageError, match="unknown argument 'loud' of verb 'hello' of system 'toy': it takes none"):
        client.toy.hello(loud=True)
    with pytest.raises(UsageError, match=r"not found.*: list corpora"):
        client.toy.hello(corpus="nowhere")
    with pytest.raises(UsageError, match=rf"not found \(similar: '{client.corpus}'"):
        client.toy.hello(corpus=client.corpus[:-1])
    for missing in (lambda: client.toy.facts, lambda: client.naive.topics, lambda: client.other):
        with pytest.raises(AttributeError):
            missing()
    assert not hasattr(client, "_other")


@pytest.mark.usefixtures("toy")
def test_what_a_verb_raises_is_no_fault_of_the_caller_and_hidden_by_the_service(client: HGMem) -> None:
    client.add(DOCUMENTS, graph=False)
    client.build("toy")
    with pytest.raises(
        HGMemError, match="verb 'count-words' of system 'toy' raised ArithmeticError: too few"
    ) as raised:
        client.toy.count_words(word="Red", least=5)
    assert not isinstance(raised.value, UsageError)
    found = problem_of(raised.value)
    assert (found.status_code, b"too few" in found.body) == (500, False)
    assert b"too few" in problem_of(raised.value, admin=True).body


def test_a_verb_is_a_command(client: HGMem, command: Command, toy: Path) -> None:
    client.add(DOCUMENTS, graph=False)
    client.build("toy")
    at = ("-c", client.corpus)
    assert "topics       List the topics of a build." in command("toy", "--help", packages=toy).stdout
    told = command("toy", "topics", "--longest-first", *at, packages=toy).stdout.splitlines()
    assert told[0].split() == ["text", "first_words"]
    assert "lamps burn on the pier." in told[1]
    said = json.loads(command("toy", "topics", "--words", "blue", *at, "--json", packages=toy).stdout)
    assert ["Blue" in one["text"] for one in said] == [True]
    counts = command("toy", "count-words", "Red", "--also", "Blue", "--also", "Green", *at, packages=toy)
    assert counts.stdout.splitlines() == ["Red: 1", "Blue: 1", "Green: 0"]
    assert command("toy", "hello", *at, packages=toy).stdout == f"hello {client.corpus}\n"
    assert command("toy", "topics", "--words", "green", *at, packages=toy).stdout == "none\n"

    failing = ("toy", "count-words", "Red", "--least", "5", *at)
    refused = command(*failing, packages=toy)
    assert (refused.returncode, refused.stderr.splitlines()) == (
        1,
        [
            "error: verb 'count-words' of system 'toy' raised ArithmeticError: too few topics: report this to the "
            "system's authors"
        ],
    )
    assert "Traceback" in command(*failing, "--debug", packages=toy).stderr
    assert "invalid argument 'most'" in command("toy", "topics", "--most", "x", *at, packages=toy).stderr
    assert "Missing argument 'WORD'" in command("toy", "count-words", *at, packages=toy).stderr
    listed = command("systems", packages=toy).stdout
    assert "topics, count-words, hello" in listed


def test_without_the_package_there_is_no_such_command(command: Command) -> None:
    for named in ("toy", "naive"):
        refused = command(named, "facts")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"No such command '{named}'" in refused.stderr
    assert "toy" not in command("systems").stdout


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"verb": "Show it"}, "invalid verb 'Show it': use lowercase letters, digits and hyphens"),
        ({"type": "str"}, "argument 'words' of verb 'show' has no help: annotate its type with a text"),
        ({"arguments": "dict"}, "the arguments of verb 'show' are no frozen dataclass"),
    ],
    ids=["name", "help", "arguments"],
)
def test_a_verb_that_nobody_could_call_is_refused_when_the_system_is_loaded(
    spoilt: dict[str, str], why: str, command: Command, tmp_path: Path
) -> None:
    install(tmp_path / "packages", "broken_system", BROKEN.format(**GOOD | spoilt), name="broken")
    (line,) = command("broken", "show", packages=tmp_path / "packages").stderr.splitlines()
    assert line.startswith(f"error: system 'broken' cannot be loaded: {why}")
    assert command("systems", packages=tmp_path / "packages").returncode == 0


def test_a_value_that_cannot_be_shown_is_named(client: HGMem, command: Command, tmp_path: Path) -> None:
    client.add(DOCUMENTS, graph=False)
    install(tmp_path / "packages", "broken_system", BROKEN.format(**GOOD | {"gives": "object()"}), name="broken")
    (line,) = command("broken", "show", "-c", client.corpus, packages=tmp_path / "packages").stderr.splitlines()
    assert line.startswith("error: verb 'show' of system 'broken' gave what cannot be shown ('object' cannot be")


def test_verbs_of_a_system_with_the_name_of_a_command_are_reached_from_python(
    client: HGMem, command: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    client.add(DOCUMENTS, graph=False)
    install(tmp_path, "status_system", BROKEN.format(**GOOD | {"name": "status"}), name="status")
    assert "documents" in command("status", "-c", client.corpus, packages=tmp_path).stdout
    told = command("systems", packages=tmp_path).stderr.splitlines()
    assert told == ["system 'status' has the name of a command: use its verbs in Python, as hg.verbs('status').show()"]
    code = f"from hgmem import HGMem; print(HGMem.open({client.corpus!r}).verbs('status').show(words='x'))"
    paths = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    done = run_python("-c", code, env={**environment, "PYTHONPATH": paths})
    assert done.stdout == "yes\n", done.stderr


def test_the_documented_verb_does_what_it_says(client: HGMem) -> None:
    client.add(DOCUMENTS, graph=False)
    made: dict[str, Any] = {}
    (code,) = [block.text for block in blocks("docs/systems.md") if "LONGEST = Verb(" in block.text]
    exec(compile(code, "docs/systems.md", "exec"), made)
    found = run_verb(client._services(None), made["LONGEST"], system="nearest", given={"most": 1})
    assert [one["chunks"] for one in found] == [1]
