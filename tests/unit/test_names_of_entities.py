"""Names of entities: their forms, what rules join and what they leave, and candidates without comparing all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.resolution.candidates import Candidates, add_by_neighbours, add_by_vectors, by_names
from hgmem.resolution.forms import bare, opposed, plain, titled
from hgmem.resolution.names import Named
from hgmem.resolution.rules import joined
from hgmem.resolution.tasks import around, seen

P = "person"


def entities(*named: tuple[str, str]) -> list[Named]:
    return [
        Named(uid=f"{at:03}", name=name, type=kind, chunks=len(named) - at) for at, (name, kind) in enumerate(named)
    ]


def ruled(*named: tuple[str, str]) -> set[frozenset[str]]:
    """Return the names that the rules join."""
    names = {one.uid: one.name for one in entities(*named)}
    return {frozenset(names[uid] for uid in one.ends) for one in joined(entities(*named), decided=())}


def found(*named: tuple[str, str]) -> dict[frozenset[str], str]:
    return {frozenset((one.a.name, one.b.name)): one.why for one in by_names(entities(*named)).best()}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("The Hague", "hague"),
        ("“The Argo”", "argo"),
        ("St. Mary’s", "st mary's"),
        ("U.S.A.", "usa"),
        ("A. B. Smith", "ab smith"),
        ("A.B. Smith", "ab smith"),
        ("No.1", "no 1"),
        ("1.5 tons", "1.5 tons"),
        ("Smith & Co.", "smith and co"),
        ("Stratford-upon-Avon", "stratford upon avon"),
        ("C++", "c++"),
        ("the", "the"),
    ],
)
def test_the_plain_form_of_a_name(name: str, form: str) -> None:
    assert plain(name) == form


@given(st.text())
def test_a_plain_form_is_stable_and_no_name_fails(name: str) -> None:
    titled(name), bare(titled(name)[1])
    assert plain(name) == plain(name.upper()) or name.upper().casefold() != name.casefold()


@pytest.mark.parametrize(
    "named",
    [
        (("The Salt Board", "organization"), ("salt board", "organization")),
        (("St. Mary's", "place"), ("St Mary’s", "place")),
        (("Mr. Dace", P), ("Mr Dace", P)),
        (("The Duke of Omnium", P), ("Duke of Omnium", "PERSON")),
        (("Dr. Owen Vail", P), ("Owen Vail", P)),
        (("Miss Jane Bennet", P), ("Jane Bennet", P)),
        (("Dr. Civet", P), ("Doctor Civet", P)),
        (("St. Giles", "place"), ("Saint Giles", "place")),
        (("the Mary Anne", "vehicle"), ("Mary Anne", "vehicle")),
    ],
    ids=lambda named: named[0][0],
)
def test_rules_join_what_leaves_no_doubt(named: tuple[tuple[str, str], ...]) -> None:
    assert ruled(*named) == {frozenset(name for name, _ in named)}


@pytest.mark.parametrize(
    "named",
    [
        (("The Mary Anne", "vehicle"), ("Mary Anne", P)),
        (("The Mary Anne", P), ("Mary Anne", P)),  # a ship that extraction took for a person
        (("The Mary Anne", ""), ("Mary Anne", "")),
        (("Miss Bennet", P), ("Jane Bennet", P), ("Elizabeth Bennet", P)),
        (("Mr. Bennet", P), ("Mrs. Bennet", P), ("Miss Bennet", P), ("Bennet", P)),
        (("Mrs. John Dashwood", P), ("John Dashwood", P)),
        (("Mr. John Dashwood", P), ("Mrs. John Dashwood", P), ("John Dashwood", P)),
        (("Captain John Roe", P), ("Colonel John Roe", P), ("John Roe", P)),
        (("Old John Roe", P), ("Mr. John Roe", P), ("John Roe", P)),
        (("John Roe", P), ("John Roe, Jr.", P)),
        (("Lord Chief Justice", P), ("Chief Justice", P)),
        (("Mr. and Mrs. Smith", P), ("Mrs. Smith", P)),
        (("Dr. Vail", P), ("Vail", P)),
        (("J. Smith", P), ("Mr. J. Smith", P)),
        (("Smiths", P), ("Smith's", P)),
        (("version 1.5", "concept"), ("version 15", "concept")),
        (("Paris", "place"), ("The Paris", "organization")),
        (("Alec d'Urberville", P), ("Mr. Stoke", P)),
        (("the chamber", "place"), ("Chamber", "place")),  # a common noun of several things
        (("The Board", "organization"), ("board", "organization")),
        (("the captain", P), ("Captain", P)),
    ],
    ids=lambda named: named[0][0],
)
def test_rules_leave_relatives_ships_offices_and_aliases_alone(named: tuple[tuple[str, str], ...]) -> None:
    assert ruled(*named) == set()


def test_rules_tie_a_group_to_its_most_mentioned_and_pass_over_what_is_decided() -> None:
    group = entities(("St. Giles", "place"), ("St Giles", "place"), ("“St. Giles”", "place"))
    assert [one.ends for one in joined(group, decided=())] == [("000", "001"), ("000", "002")]
    assert [one.ends for one in joined(group, decided={("000", "001")})] == [("000", "002")]


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("Mr. Weller", "Weller", "the same words"),
        ("Zoë Kravitz", "Zoe Kravitz", "the same words"),
        ("Łukasz Wałęsa", "Lukasz Walesa", "the same words"),
        ("Лев Толстой", "Lev Tolstoy", "the same words"),
        ("Αριστοτέλης", "Aristoteles", "similar letters"),
        ("The Bennets", "Bennet", "the same words"),
        ("Weller", "Samuel Weller", "some of the words"),
        ("J. Harker", "Jonathan Harker", "initials"),
        ("B. M. C.", "British Medical Council", "an acronym"),
        ("BMC", "British Medical Council", "an acronym"),
        ("Pickwick", "Pickwik", "similar letters"),
        ("Tchaikovsky", "Chaikovsky", "similar letters"),
    ],
)
def test_candidates_by_names(first: str, second: str, why: str) -> None:
    assert found((first, P), (second, P), ("Somebody Else", P)) == {frozenset((first, second)): why}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("Mr. Bennet", P), ("Mrs. Bennet", P)),
        (("Lady Catherine", P), ("Sir Catherine", P)),
        (("Chapter 11", "concept"), ("Chapter 12", "concept")),
        (("Pemberley", "place"), ("Pemberley", P)),
        (("house", "place"), ("Mansion House", "place")),
        (("Alpha Ltd", "organization"), ("Zebra Inc", "organization")),
    ],
)
def test_what_is_no_candidate(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert found(first, second) == {}


def test_a_word_of_many_makes_no_candidates() -> None:
    few = [("Ann Smith", P), ("Walter Smith", P)]
    many = [(f"{first * 3} Smith", P) for first in "abcdefghijklmnopqrstuvwxyzäöüéèñ"]
    assert found(("Smith", P), *few).keys() == {frozenset(("Smith", name)) for name, _ in few}
    assert "some of the words" not in found(("Smith", P), *many).values()


def test_candidates_by_vectors_and_by_neighbours() -> None:
    both = entities(("Hyde", P), ("Jekyll", P), ("Utterson", P))
    near = Candidates()
    add_by_vectors(near, both, np.array([[1, 0], [0.9, 0.43589], [0, 1]], dtype=np.float32))
    assert [(one.ends, one.why) for one in near.best()] == [(("000", "001"), "near names")]
    shared = Candidates()
    ties = {"000": frozenset("abcd"), "001": frozenset("abc"), "002": frozenset("dxyz")}
    add_by_neighbours(shared, both, ties)
    assert [(one.ends, one.why) for one in shared.best()] == [(("000", "001"), "the same neighbours")]


def test_only_titles_of_a_man_and_a_woman_are_opposed() -> None:
    assert opposed(("mister",), ("mrs",))
    assert not opposed(("miss",), ("mrs",))
    assert not opposed(("doctor",), ("mrs",))


def test_passages_are_cut_around_the_name() -> None:
    text = "Long before. " * 100 + "Then came Anna Lind to the mill. " + "Long after. " * 100
    for limit in (500, 1_000):
        cut = around(text, "Anna Lind", limit=limit)
        assert "Anna Lind" in cut
        assert limit - 20 < len(cut) <= limit + 1
    longer = "Dr. Owen Vail fell ill. " + "Long after. " * 60 + "Then a Vail of Bath came."
    assert "Vail of Bath" in around(longer, "Vail")
    assert "Vailing" not in around("Vailing went on. " * 60 + "They met Vail.", "Vail")[-20:]

    row = {"uid": "u", "name": "Anna", "type": P, "description": "d", "chunks": [
        {"uid": f"c{at}", "text": f"Anna {at}"} for at in range(9)
    ]}  # fmt: skip
    assert list(seen(row).passages) == ["c0", "c4", "c8"]
    row["chunks"][6] = {"uid": "c6", "text": "The mate and the Cook of the Heron."}
    assert list(seen(row, beside="the cook").passages) == ["c0", "c4", "c6", "c8"]
    assert seen({**row, "chunks": []}).passages == {}


def test_a_passage_is_cut_where_the_name_is_nearest_to_that_of_the_other() -> None:
    text = "Vail fell ill. " + "Long after. " * 100 + "There Vail met the surgeon of Bath. " + "Long after. " * 100
    assert "surgeon of Bath" in around(text, "Vail", beside="the surgeon of Bath")
    assert "fell ill" in around(text, "Vail", beside="the porter")
    assert "met the surgeon" in around(text, "Anna", beside="the surgeon of Bath")  # a name that stands nowhere
