"""The client without a database: errors before any request to the server."""

from dataclasses import asdict, replace

import pytest

from hgmem import HGMem, UsageError
from hgmem.client.asking import checked_text
from hgmem.errors import BudgetError
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.metering import measuring
from hgmem.settings import load
from hgmem.systems.hgmem.recipes import CODE, DEFAULT
from hgmem.systems.registry import system, systems
from hgmem.testing import DeterministicEmbedder, ScriptedModel


class NoDatabase:
    """A database that must not be queried."""

    def __init__(self):
        self.closed = 0

    def run(self, name, /, **parameters):
        raise AssertionError(f"statement {name!r} was run")

    write = run

    def close(self):
        self.closed += 1


@pytest.fixture
def database():
    return NoDatabase()


@pytest.fixture
def client(database):
    return HGMem(
        database,
        corpus="tales",
        settings=load(max_question_characters=20),
        model=ScriptedModel({}),
        embedder=CheckedEmbedder(DeterministicEmbedder()),
    )


def test_a_limit_of_passages_below_one_is_refused(client):
    with pytest.raises(UsageError, match="limit=0 must be an integer of at least 1"):
        client.passages("m", limit=0)


@pytest.mark.parametrize("question", ["", " ", "\n\t \u2003"])
def test_an_empty_question_is_refused_before_anything_is_asked(client, question):
    with pytest.raises(UsageError, match="the question is empty"):
        client.ask(question)


def test_a_question_beyond_the_limit_is_refused_with_both_numbers(client):
    with pytest.raises(UsageError, match="21 characters, more than the limit of 20"):
        client.ask("x" * 21)


@pytest.mark.parametrize("steps", [0, -1])
def test_fewer_steps_than_one_are_refused(client, steps):
    with pytest.raises(UsageError, match="must be an integer of at least 1"):
        client.ask("Who?", steps=steps)


def test_an_unknown_system_is_refused_with_those_that_there_are(client):
    with pytest.raises(
        UsageError,
        match="unknown system 'magic': choose one of bm25, hgmem, hybrid, hypermem, memorag, naive, remindrag",
    ):
        client.ask("Who?", system="magic")


@pytest.mark.parametrize("corpus", ["-x", "a b", "a/b", "x" * 65, "ü", "a\n", "'; MATCH (n)", "."])
def test_a_corpus_name_outside_the_rule_is_refused(client, corpus):
    for call in (lambda: client.ask("Who?", corpus=corpus), lambda: client.memories(corpus=corpus)):
        with pytest.raises(UsageError, match=r"invalid corpus name .* it must match"):
            call()


@pytest.mark.parametrize("question", ["\ud800", "Who \udcff?"])
def test_half_a_surrogate_pair_in_a_question_does_not_reach_the_server(question):
    assert checked_text(question, most=20).encode() == question.encode("utf-8", "replace")


def test_space_around_a_question_is_no_part_of_it():
    assert checked_text("  Who?\n", most=20) == "Who?"


def test_a_client_closes_its_database_at_the_end_of_its_block(client, database):
    with client as opened:
        assert opened is client
    assert database.closed == 1


def test_without_a_neo4j_the_three_ways_to_one_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        HGMem.open("tales", data=tmp_path / "none")
    for way in ("hgmem up", "NEO4J_URI", "uri="):
        assert way in str(refused.value)


@pytest.mark.parametrize("uri", ["http://127.0.0.1:7474", "127.0.0.1:7687", "nonsense"])
def test_an_address_that_is_none_is_refused_by_name(uri):
    with pytest.raises(UsageError, match="is not a Neo4j address"):
        HGMem.open("tales", uri=uri)


def test_every_system_can_be_had_and_options_change_its_recipe():
    assert {one.name for one in systems()} == {"bm25", "hgmem", "hybrid", "hypermem", "memorag", "naive", "remindrag"}
    for one in systems():
        assert callable(system(one.name).answer)
    hgmem_spec = system("hgmem")
    assert hgmem_spec.configured(CODE, {"steps": "2"}) == replace(CODE, steps=2)
    assert hgmem_spec.configured(None, {}) == hgmem_spec.info.default == DEFAULT
    assert hgmem_spec.configured(None, {"hints": 1}, before=asdict(CODE)) == replace(CODE, hints=1)


@pytest.mark.parametrize(
    ("asking", "what"),
    [
        ({"step": 1}, "'step' is not a valid argument: choose from corpus"),
        ({"max_call": 1}, "'max_call' is not a valid argument"),
        ({"max_calls": 0}, "max_calls=0 must be an integer"),
        ({"max_tokens": "5"}, "max_tokens='5' must be an integer"),
        ({"max_calls": True}, "max_calls=True must be an integer of at least 1"),
        ({"corpus": 3}, "corpus=3 is not a corpus name: pass a string"),
        ({"system": ["naive"]}, "system=['naive'] is not a system name: pass a string"),
        ({"steps": True}, "steps=True must be an integer of at least 1"),
        ({"settings": {3: 4}}, 'settings={3: 4} must map option names to values, such as {"retr'),
        ({"settings": 3}, "settings=3 must map option names to values"),
        ({"memory": ["m1"]}, "memory=['m1'] is not a memory uid: pass one, such as answer.memory"),
        ({"memory": "m1", "at_step": True}, "at_step=True is not a valid step: use an integer of at least 1"),
        ({"answer": "no"}, "answer='no' must be True or False"),
        ({"answer": None}, "answer=None must be True or False"),
        ({"watcher": print}, "is not a tracing hook: pass an hgmem.values.events.Watcher"),
        ({"recipe": {"steps": 2}}, "a recipe must be a name or an HGMemConfig, not dict"),
    ],
)
def test_what_a_question_is_not_asked_with_is_refused_by_name(client, asking, what):
    with pytest.raises(UsageError) as error:
        client.ask("Who?", **asking)
    assert what in str(error.value)


def test_a_budget_within_a_budget_spends_from_both():
    with measuring(max_calls=3) as outer:
        with measuring(max_calls=2) as inner:
            inner.take()
            inner.take()
            inner.give_back()
            inner.add_tokens("answer", {"prompt": 4, "completion": 3})
        assert (outer.taken, outer.paid) == (1, 7)
        with measuring(max_calls=9) as other:
            other.take()
            other.take()
            with pytest.raises(BudgetError, match="3 calls"):
                other.take()
        assert other.taken == 2
