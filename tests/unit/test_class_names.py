"""Entities of one class in prompts and in a step: shown, known and involved as one."""

import pytest

from hgmem.retrieval.rendering import PromptMemory, entities, memory, same_names, unknown
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, Revision
from hgmem.systems.hgmem.step import StepDraft
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity, Relation
from hgmem.values.records import MemoryPoint

NAMES = ("Captain Ivar Brandt", "I. Brandt", "Brandt")
CAPTAIN, INITIAL, SURNAME = (
    Entity(uid=f"b{at}", name=name, canonical_uid="b0", names=NAMES) for at, name in enumerate(NAMES)
)
SHIP = Entity(uid="s", name="Kestrel")
POINT = MemoryPoint(uid="m-1-1", description="Brandt drowned.", entities=(SURNAME, SHIP), chunks=(), born=1)


def test_an_entity_of_a_class_is_a_line_with_its_names() -> None:
    assert entities([INITIAL, SHIP]) == "- Captain Ivar Brandt (also: I. Brandt, Brandt)\n- Kestrel"
    assert memory(PromptMemory(points=(POINT,))) == "(0) Brandt drowned. — Captain Ivar Brandt; Kestrel"


def test_what_memory_holds_under_another_name_is_not_new() -> None:
    known = Relation(uid="r", source="b0", target="s", source_name="x", target_name="y", ends=("b0", "s"))
    new = Relation(uid="q", source="b1", target="z", source_name="x", target_name="z", ends=("b0", "z"))
    found = unknown(Evidence(entities=(CAPTAIN, SHIP, Entity(uid="z", name="Z")), relations=(known, new)), [POINT])

    assert [entity.uid for entity in found.entities] == ["z"]
    assert found.relations == (new,)


@pytest.mark.parametrize(
    ("known", "read", "told"),
    [
        ("Where did Brandt sleep?", "The mate woke I. Brandt.", ("Brandt", "I. Brandt")),
        ("Where did CAPTAIN IVAR BRANDT sleep?", "I. Brandt snored.", ("Captain Ivar Brandt", "I. Brandt")),
        ("Where did Captain Ivar Brandt sleep?", "Brandt snored.", None),  # it stands in the name that is known
        ("Where did Brandt sleep?", "Brandtsen snored.", None),
        ("Who slept?", "I. Brandt snored.", None),
    ],
)
def test_who_is_who_is_told_where_a_text_read_has_another_name(known: str, read: str, told: tuple[str, ...]) -> None:
    assert same_names([NAMES, ("Ann", "Anna")], known=[known], read=[read]) == ((told,) if told else ())


def test_a_prompt_tells_who_is_who_after_memory() -> None:
    assert memory(PromptMemory(points=(POINT,), same=(("Brandt", "I. Brandt"),))).endswith(
        "\n- One and the same: Brandt = I. Brandt"
    )


def test_a_point_that_names_two_of_a_class_involves_the_first() -> None:
    draft = StepDraft(memory="m", number=2, before=(POINT,), config=HGMemConfig())
    reply = EvolveReply(
        update=(Revision(point=0, description="He drowned in May.", entities=("Captain Ivar Brandt",)),),
        insert=(Insertion(entities=("I. Brandt", "Kestrel", "Brandt"), description="He sailed."),),
    )
    named = {"captain ivar brandt": CAPTAIN, "i. brandt": INITIAL, "brandt": SURNAME, "kestrel": SHIP}
    draft.evolve(reply, known=(POINT,), chunks=(), entities=named)

    assert [point.entities for point in draft.points] == [(SURNAME, SHIP), (INITIAL, SHIP)]
