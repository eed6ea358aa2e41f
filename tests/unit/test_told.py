"""Candidates that descriptions tell."""

from hgmem.resolution.candidates import Candidates
from hgmem.resolution.names import Named
from hgmem.resolution.told import add_told

NAMES = ("Dejah Thoris", "The Princess of Helium", "Prince of Helium", "John Carter", "Old Steady", "Jabez Tulley")


def told(name: str, description: str) -> set[frozenset[str]]:
    """Return the pairs of names that the description of one entity gives."""
    entities = [Named(uid=f"u{at}", name=one, type="person", chunks=1) for at, one in enumerate(NAMES)]
    found = Candidates()
    add_told(found, entities, {one.uid: description for one in entities if one.name == name})
    return {frozenset((one.a.name, one.b.name)) for one in found.best()}


def test_a_description_that_tells_another_name_gives_a_candidate() -> None:
    for name, description, other in (
        ("Dejah Thoris", "Dejah Thoris is the Princess of Helium, and beloved.", "The Princess of Helium"),
        ("Prince of Helium", "A title held by John Carter, which tells his rank.", "John Carter"),
        ("Jabez Tulley", "He was found in the snow. In the town he was called “Old Steady”.", "Old Steady"),
    ):
        assert told(name, description) == {frozenset((name, other))}


def test_a_description_that_only_mentions_another_gives_none() -> None:
    for description in (
        "Dejah Thoris is loved by John Carter.",
        "Dejah Thoris is taken away, John Carter follows.",
        "Old Steady saw Dejah Thoris as he went home.",
        "Dejah Thoris is",
    ):
        assert told("Dejah Thoris", description) == set()
