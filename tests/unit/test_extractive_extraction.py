import time

import pytest

from hgmem.extraction.replies import Extraction
from hgmem.extraction.tasks import Extract
from hgmem.models.extractive import ExtractiveModel
from hgmem.testing import DeterministicEmbedder

AFFAIR = (
    "The Bank of Harwick lent Dr. Ilse Maron the money on 12 March 1911. However, Captain Reyes of the Harbour Trust "
    "objected. Maron's brother lived in Millshire. When the Bank of Harwick heard of it, Dr. Ilse Maron left for the "
    "River Tay. Nobody knew 4711 reasons."
)


def extract(text: str) -> Extraction:
    return ExtractiveModel(DeterministicEmbedder()).reply(Extract(text=text))


def test_names_are_joined_typed_and_free_of_ordinary_words() -> None:
    kinds = {entity.name: entity.type for entity in extract(AFFAIR).entities}
    assert kinds == {
        "Bank of Harwick": "organization",
        "Dr. Ilse Maron": "person",
        "12 March 1911": "event",
        "Captain Reyes": "person",
        "Harbour Trust": "organization",
        "Millshire": "place",
        "River Tay": "place",
    }


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("Batch C-117", "concept", "The laboratory returned Batch C-117 in May."),
        ("Ashgrove Polymers", "organization", "The resin came from Ashgrove Polymers last week."),
        ("Rowan & Pike", "organization", "He bought the ladder from Rowan & Pike in spring."),
        ("Golden Plover", "concept", "They sailed on the Golden Plover to Peru."),
        ("Quality Manager", "role", "A note to the Quality Manager was lost."),
        ("Warden", "role", "At noon the Warden said that it was late."),
        ("Mr Constable", "person", "They asked Mr Constable again."),
        ("Doris Day", "person", "They asked Doris Day again."),
        ("Director of Research", "role", "He met the Director of Research twice."),
        ("Minutes of the Board", "concept", "He read the Minutes of the Board aloud."),
        ("Tower of Brede", "place", "They kept him in the Tower of Brede for years."),
        ("Pieter Claes", "person", "A letter from Pieter Claes arrived."),
    ],
)
def test_codes_firms_offices_and_what_follows_the_are_no_persons(name: str, kind: str, text: str) -> None:
    assert {entity.name: entity.type for entity in extract(text).entities}.get(name) == kind


def test_an_entity_is_described_by_the_sentences_that_mention_it() -> None:
    described = {entity.name: entity.description for entity in extract(AFFAIR).entities}
    assert described["Captain Reyes"] == "However, Captain Reyes of the Harbour Trust objected."
    assert "brother lived in Millshire" in described["Dr. Ilse Maron"] or "12 March" in described["Dr. Ilse Maron"]


def test_entities_of_one_sentence_are_related_and_each_shared_sentence_weighs_one() -> None:
    relations = {(each.source, each.target): each for each in extract(AFFAIR).relations}
    both = relations["Bank of Harwick", "Dr. Ilse Maron"]
    assert both.weight == 2.0
    assert both.description.startswith("The Bank of Harwick lent Dr. Ilse Maron the money on 12 March 1911.")
    assert relations["Captain Reyes", "Harbour Trust"].weight == 1.0
    assert ("Bank of Harwick", "Captain Reyes") not in relations


def test_every_relation_joins_two_extracted_entities() -> None:
    found = extract(AFFAIR)
    names = {entity.name for entity in found.entities}
    assert found.relations
    assert all({each.source, each.target} <= names and each.source != each.target for each in found.relations)


def test_a_kind_that_is_not_asked_for_is_left_empty() -> None:
    found = ExtractiveModel(DeterministicEmbedder()).reply(Extract(text=AFFAIR, entity_types=("person",)))
    assert {entity.type for entity in found.entities} == {"person", ""}


@pytest.mark.parametrize("text", ["", "-----\n\n* * *", "CHAPTER ONE\n\nTHE GHOST OF IT", "1911 1912 1913", "\0\0"])
def test_a_chunk_that_names_nothing_gives_nothing(text: str) -> None:
    assert extract(text) == Extraction()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("鲁迅在北京大学任教。北京大学的学生都爱鲁迅。", "北京大学"),
        ("وصل أحمد إلى القاهرة. زار أحمد المتحف في القاهرة.", "القاهرة"),
        ("Утром приехала в город Анна Каренина.", "Анна Каренина"),
    ],
)
def test_other_scripts_give_names_or_key_phrases(text: str, name: str) -> None:
    assert name in {entity.name for entity in extract(text).entities}


def test_a_sentence_of_many_names_is_a_chain_and_not_every_pair() -> None:
    names = [f"Orla {letter}ann" for letter in "BCDFGHJKLMNPRSTVWZ"]
    found = extract(f"They met {', '.join(names)} at noon.")
    assert len(found.entities) == len(names)
    assert len(found.relations) <= 3 * len(names)


@pytest.mark.parametrize("text", ["x" * 10**6, "Ab " * 10**5, "A. " * 10**5, "字" * 10**5, "a, " * 10**5])
def test_a_huge_chunk_of_one_token_is_read_in_seconds(text: str) -> None:
    began = time.process_time()
    extract(text)
    assert time.process_time() - began < 5
