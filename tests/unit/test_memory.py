from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, Joining, MergeReply, Retirement, Revision
from hgmem.systems.hgmem.step import StepDraft, names_of
from hgmem.text.identity import key
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import MemoryPoint

NAMES = ("Anna", "Bo", "Cleo", "Dag", "Eve")
KNOWN = {key(name): Entity(uid=f"e-{name}", name=name, description=f"{name} of the corpus") for name in NAMES}
STRANGER = Entity(uid="m-stranger", name="Stranger", provisional=True)
ENTITIES = {**KNOWN, "stranger": STRANGER}
CHUNKS = tuple(
    Chunk(uid=f"c{at}", document="d", position=at, text=f"Text {at}.", tokens=2, entities=entities)
    for at, entities in enumerate(((KNOWN["anna"], KNOWN["bo"]), (KNOWN["bo"],), ()))
)


def entity(name):
    return KNOWN[key(name)]


def point(at, *names, chunks=("c0",), born=1):
    return MemoryPoint(
        uid=f"m-{born}-{at}",
        description=f"Point {at}.",
        entities=tuple(entity(name) for name in names or ("Anna", "Bo")),
        chunks=chunks,
        born=born,
    )


def draft(*points, number=2):
    return StepDraft(memory="m", number=number, before=points, config=HGMemConfig())


def replace_config(made, **options):
    made.config = replace(made.config, **options)
    return made


def evolved(made, *, insert=(), update=()):
    reply = EvolveReply(insert=tuple(insert), update=tuple(update))
    made.evolve(reply, known=made.points, chunks=CHUNKS, entities=ENTITIES)
    return made


def merged(made, *groups, description="Together."):
    reply = MergeReply(merge=tuple(Joining(points=group, description=description) for group in groups))
    made.merge(reply, known=made.points)
    return made


def kinds(made):
    return [operation.kind for operation in made.operations]


def reasons(made):
    return [operation.reason for operation in made.operations if operation.kind == "drop"]


def named(found):
    return [one.name for one in found.entities]


# Lost support -------------------------------------------------------------------------------------------------


def test_what_became_of_points_that_lost_chunks_lost_them_too():
    one = replace(point(1, chunks=()), deleted_chunks=("gone-1", "gone-2"))
    other = replace(point(2, "Cleo", chunks=("c1",)), deleted_chunks=("gone-2", "gone-3"))
    [whole] = [birth.point for birth in merged(draft(one, other), (0, 1)).changes().births]
    assert (whole.chunks, whole.deleted_chunks) == (("c1",), ("gone-1", "gone-2", "gone-3"))
    made = evolved(draft(one), update=[Revision(point=0, description="Better.")])
    [better] = [birth.point for birth in made.changes().births]
    assert better.unsupported
    assert better.deleted_chunks == ("gone-1", "gone-2")
    [new] = [
        birth.point
        for birth in evolved(draft(one), insert=[Insertion(entities=("Eve",), description="N.")]).changes().births
    ]
    assert new.deleted_chunks == ()


# Updates ------------------------------------------------------------------------------------------------------


def test_updates_are_applied_before_inserts_and_refer_to_memory_as_it_was_rendered():
    made = evolved(
        draft(point(1), point(2)),
        insert=[Insertion(entities=("Eve",), description="New.")],
        update=[Revision(point=1, description="Better.")],
    )

    assert kinds(made) == ["revise", "insert"]
    assert [one.description for one in made.points] == ["Point 1.", "Point 2. Better.", "New."]
    assert made.changes().died == ("m-1-2",)


def test_an_update_makes_a_new_point_born_now_of_the_old_one_and_the_old_one_dies():
    made = evolved(draft(point(1), number=3), update=[Revision(point=0, description=" Better \n said. ")])
    (birth,) = made.changes().births

    assert birth.point.description == "Point 1. Better said."
    assert (birth.point.born, birth.point.died) == (3, None)
    assert birth.revises == ("m-1-1",)
    assert birth.merges == ()
    assert made.points == (birth.point,)
    assert made.operations[0].parts == ("m-1-1",)
    assert made.operations[0].point == birth.point.uid == "m-3-1"


def test_an_update_unites_entities_and_chunks_with_those_that_it_names():
    made = evolved(
        draft(point(1)), update=[Revision(point=0, description="More.", entities=("bo", "CLEO"), chunks=(1,))]
    )

    assert named(made.points[0]) == ["Anna", "Bo", "Cleo"]
    assert made.points[0].chunks == ("c0", "c1")


def test_the_first_valid_update_of_a_point_wins_and_a_second_one_is_dropped():
    made = evolved(
        draft(point(1)),
        update=[Revision(point=0, description="First."), Revision(point=0, description="Second.")],
    )

    assert [one.description for one in made.points] == ["Point 1. First."]
    assert reasons(made) == ["update of point 0: the point was already updated"]


@pytest.mark.parametrize("useless", ["  ", "Point 1."])
def test_an_update_that_is_dropped_does_not_use_up_its_point(useless):
    made = evolved(
        draft(point(1)),
        update=[Revision(point=0, description=useless), Revision(point=0, description="Second.")],
    )

    assert kinds(made) == ["drop", "revise"]
    assert [one.description for one in made.points] == ["Point 1. Second."]


@pytest.mark.parametrize("index", [-1, -2, 2, 99])
def test_an_update_of_a_point_that_does_not_exist_is_dropped(index):
    made = evolved(draft(point(1), point(2)), update=[Revision(point=index, description="Better.")])

    assert made.points == (point(1), point(2))
    assert reasons(made) == [f"update of point {index}: the point does not exist"]
    assert made.changes().births == made.changes().died == ()


def test_an_update_with_nothing_changed_is_dropped():
    same = Revision(point=0, description=" Point  1. ", entities=("Anna",), chunks=(0,))
    made = evolved(draft(point(1)), update=[same])

    assert made.points == (point(1),)
    assert reasons(made) == ["update of point 0: nothing changed"]


@pytest.mark.parametrize("added", [{"entities": ("Cleo",)}, {"chunks": (1,)}])
def test_an_update_that_adds_an_entity_or_a_support_to_the_same_text_is_a_revision(added):
    made = evolved(draft(point(1)), update=[Revision(point=0, description="Point 1.", **added)])

    assert kinds(made) == ["revise"]


@pytest.mark.parametrize(
    ("before", "kind", "text", "after"),
    [
        (False, "inference", "Point 1. More. (inferred)", False),
        (True, "fact", "Point 1. (inferred) More.", False),
        (True, "inference", "Point 1. More.", True),
        (True, None, "Point 1. More.", True),
        (False, None, "Point 1. More.", False),
    ],
)
def test_an_update_says_whether_what_it_adds_is_inferred(before, kind, text, after):
    old = replace(point(1), inferred=before)
    made = evolved(draft(old), update=[Revision(point=0, description="More.", kind=kind)])

    assert [(one.description, one.inferred) for one in made.points] == [(text, after)]


def test_an_update_that_repeats_a_part_of_a_point_leaves_its_kind():
    old = replace(point(1), description="Bo burned the mill, as he alone had matches.", inferred=True)
    repeated = Revision(point=0, description="Bo burned the mill", kind="fact")
    assert reasons(evolved(draft(old), update=[repeated])) == ["update of point 0: nothing changed"]


@pytest.mark.parametrize("replaces", [True, False])
def test_an_update_that_repeats_a_point_may_change_its_kind_alone(replaces):
    def updated(kind):
        return evolved(
            draft(point(1)), update=[Revision(point=0, description="Point 1.", replaces=replaces, kind=kind)]
        )

    [made] = updated("inference").points
    assert (made.description, made.inferred, made.born) == ("Point 1.", True, 2)
    assert reasons(updated("fact")) == ["update of point 0: nothing changed"]


@pytest.mark.parametrize(
    ("additions", "replaces", "text"),
    [(("statements",), False, "Point 1. More."), (("statements",), True, "More."), ((), False, "More.")],
)
def test_an_update_adds_to_a_statement_unless_it_replaces_it_or_the_recipe_writes_points_anew(
    additions, replaces, text
):
    made = replace_config(draft(point(1)), additions=additions)
    evolved(made, update=[Revision(point=0, description="More.", replaces=replaces)])

    assert [one.description for one in made.points] == [text]


# Inserts ------------------------------------------------------------------------------------------------------


def test_an_insert_ties_each_entity_once_however_often_it_is_named():
    made = evolved(draft(), insert=[Insertion(entities=("Anna", "ANNA", " anna "), description="She.")])

    assert named(made.points[0]) == ["Anna"]


def test_two_values_of_one_entity_that_differ_in_description_are_one_vertex():
    undescribed = Entity(uid="e-Anna", name="Anna")
    made = draft(point(1, "Anna"), point(2, "Bo"))
    made.evolve(
        EvolveReply(update=(Revision(point=0, description="More.", entities=("Anna",)),)),
        known=made.points,
        chunks=CHUNKS,
        entities={"anna": undescribed},
    )
    merged(made, (0, 1))

    assert [one.uid for one in made.points[0].entities] == ["e-Anna", "e-Bo"]


def test_a_revised_point_keeps_its_place_an_inserted_or_merged_one_is_the_last():
    made = draft(point(1, "Anna"), point(2, "Bo"), point(3, "Cleo"))
    made.evolve(
        EvolveReply(
            update=(Revision(point=0, description="More."),),
            insert=(Insertion(entities=("anna",), description="New."),),
        ),
        known=made.points,
        chunks=CHUNKS,
        entities={"anna": Entity(uid="e-Anna", name="Anna")},
    )
    assert [one.description for one in made.points] == ["Point 1. More.", "Point 2.", "Point 3.", "New."]

    merged(made, (0, 1))
    assert [one.description for one in made.points] == ["Point 3.", "New.", made.points[-1].description]


@pytest.mark.parametrize(
    ("insertion", "reason"),
    [
        (Insertion(entities=("Anna",), description=" \n"), "insert: the text is empty"),
        (Insertion(entities=(), description="Nobody."), "insert: no entity named"),
        (Insertion(entities=("unresolved",), description="Nobody."), "insert: no entity named"),
        (Insertion(entities=("Bo", "Anna"), description="Point 1."), "insert: an active point has the same text"),
    ],
)
def test_an_insert_without_text_or_entities_or_news_is_dropped(insertion, reason):
    made = evolved(draft(point(1)), insert=[insertion])

    assert made.points == (point(1),)
    assert reasons(made) == [reason]


def test_an_empty_name_is_dropped_and_noted_and_the_others_stay():
    made = evolved(draft(), insert=[Insertion(entities=("", "Anna", " \t"), description="She.")])

    assert named(made.points[0]) == ["Anna"]
    assert reasons(made) == ["entity name dropped: it is empty"] * 2


def test_the_same_insert_twice_in_one_reply_is_one_point():
    twice = Insertion(entities=("Anna",), description="She.")
    made = evolved(draft(), insert=[twice, twice])

    assert kinds(made) == ["insert", "drop"]


def test_an_insert_equal_to_a_point_that_was_just_revised_away_is_a_point_again():
    made = evolved(
        draft(point(1)),
        update=[Revision(point=0, description="Better.")],
        insert=[Insertion(entities=("Anna", "Bo"), description="Point 1.")],
    )

    assert kinds(made) == ["revise", "insert"]


def test_two_points_over_the_same_entities_are_two_points():
    made = evolved(
        draft(),
        insert=[Insertion(entities=("Anna",), description="One."), Insertion(entities=("Anna",), description="Two.")],
    )

    assert len({one.uid for one in made.points}) == 2


def test_support_is_what_an_insert_names_and_indices_that_do_not_exist_are_dropped():
    made = evolved(draft(), insert=[Insertion(entities=("Anna",), description="She.", chunks=(2, -1, 3, 1, 2))])

    assert made.points[0].chunks == ("c2", "c1")
    assert reasons(made) == [
        "evidence chunk -1: the chunk does not exist",
        "evidence chunk 3: the chunk does not exist",
    ]


@pytest.mark.parametrize(("names", "supports"), [(("Anna", "Bo"), ("c0",)), (("Bo",), ("c0", "c1")), (("Eve",), ())])
def test_an_insert_that_names_no_chunk_is_supported_by_those_that_mention_most_of_its_entities(names, supports):
    made = evolved(draft(), insert=[Insertion(entities=names, description="Said.")])

    assert made.points[0].chunks == supports


# Provisional entities -----------------------------------------------------------------------------------------


def test_a_provisional_entity_takes_the_text_of_the_point_that_names_it_first():
    made = evolved(
        draft(),
        insert=[
            Insertion(entities=("Anna", "Stranger"), description="A stranger came."),
            Insertion(entities=("STRANGER",), description="He left."),
        ],
    )

    assert made.provisionals["m-stranger"].description == "A stranger came."
    assert made.points[1].entities == (made.provisionals["m-stranger"],)


def test_a_dropped_point_leaves_no_provisional_entity_behind():
    made = evolved(draft(), insert=[Insertion(entities=("Stranger",), description=" ")])

    assert made.provisionals == {}


def test_a_provisional_entity_of_a_dropped_point_is_described_by_the_next_point_that_names_it():
    made = evolved(
        draft(),
        insert=[
            Insertion(entities=("Stranger",), description=" "),
            Insertion(entities=("Stranger",), description="He came."),
        ],
    )

    assert made.provisionals["m-stranger"].description == "He came."


def test_a_provisional_entity_that_is_stored_already_is_not_written_again():
    stored = Entity(uid="m-stranger", name="Stranger", description="Known.", provisional=True)
    made = draft()
    reply = EvolveReply(insert=(Insertion(entities=("Stranger",), description="Again."),))
    made.evolve(reply, known=made.points, chunks=CHUNKS, entities={"stranger": stored})

    assert made.provisionals == {}
    assert made.points[0].entities == (stored,)


def test_the_names_of_a_reply_are_each_listed_once_without_empty_ones():
    reply = EvolveReply(
        update=(Revision(point=0, description="x", entities=("Bo", "")),),
        insert=(Insertion(entities=(" Anna ", "Bo"), description="y"),),
    )

    assert names_of(reply) == ("Bo", "Anna")


# Merges -------------------------------------------------------------------------------------------------------


def test_a_merge_unites_entities_and_supports_and_its_parts_die():
    made = merged(draft(point(1, "Anna", "Bo"), point(2, "Eve"), point(3, "Bo", "Cleo", chunks=("c1", "c0"))), (2, 0))
    (birth,) = made.changes().births

    assert named(birth.point) == ["Bo", "Cleo", "Anna"]
    assert birth.point.chunks == ("c1", "c0")
    assert birth.merges == ("m-1-3", "m-1-1")
    assert birth.revises == ()
    assert made.changes().died == (
        "m-1-3",
        "m-1-1",
    )
    assert [one.uid for one in made.points] == ["m-1-2", birth.point.uid]


@pytest.mark.parametrize("group", [(), (0,), (0, 0), (1, 1, 1), (-1, -2), (0, 7), (0, -1)])
def test_a_merge_left_with_fewer_than_two_points_is_dropped(group):
    made = merged(draft(point(1), point(2)), group)

    assert made.points == (point(1), point(2))
    assert made.changes().births == made.changes().died == ()
    assert any("fewer than two points are left" in reason for reason in reasons(made))


def test_indices_of_a_merge_that_do_not_exist_are_dropped_and_the_rest_is_merged():
    made = merged(draft(point(1), point(2)), (0, -1, 1, 5))

    assert reasons(made) == ["merge: point -1 does not exist", "merge: point 5 does not exist"]
    assert len(made.points) == 1


def test_a_point_in_two_merges_belongs_to_the_first_one():
    made = merged(draft(point(1), point(2), point(3), point(4)), (0, 1), (1, 2, 3), (3, 0))

    assert [birth.merges for birth in made.changes().births] == [("m-1-1", "m-1-2"), ("m-1-3", "m-1-4")]
    assert reasons(made)[0] == "merge: point 1 is already in another merge"
    assert len(made.points) == 2


def test_a_point_may_be_in_two_merges_where_merges_add_as_in_the_paper():
    made = replace_config(draft(point(0), point(1, "Cleo"), point(2, "Dag")), merge="add", additions=())
    reply = MergeReply(merge=(Joining(points=(0, 1), description="One."), Joining(points=(1, 2), description="Two.")))
    made.merge(reply, known=made.points)

    assert [point.description for point in made.points][-2:] == ["One.", "Two."]
    assert reasons(made) == []


def test_a_point_with_one_entity_is_dropped_where_points_tie_two_at_least():
    one = Insertion(entities=("Anna",), description="Anna came.")
    again = Insertion(entities=("Anna", "anna "), description="Anna came twice.")
    two = Insertion(entities=("Anna", "Bo"), description="Anna and Bo came.")
    made = evolved(replace_config(draft(), additions=()), insert=(one, again, two))

    assert [point.description for point in made.points] == ["Anna and Bo came."]
    assert reasons(made) == 2 * ["insert: a point ties two entities together at least"]
    assert len(evolved(draft(), insert=(one, two)).points) == 2


def test_a_point_is_not_merged_with_itself_by_way_of_a_merge_before():
    made = merged(replace_config(draft(point(1), point(2)), additions=()), (0, 1), (0, 1))

    assert kinds(made)[0] == "merge"
    assert len(made.points) == 1
    assert "merge: point 1 is merged with another of these already" in reasons(made)


def test_a_merge_keeps_the_statements_of_its_parts_behind_how_they_belong_together():
    assert merged(draft(point(1), point(2)), (0, 1)).points[0].description == "Together. Point 1. Point 2."
    assert merged(draft(point(1), point(2)), (0, 1), description="").points[0].description == "Point 1. Point 2."


def test_a_merge_of_facts_and_inferences_says_which_of_its_statements_are_inferred():
    fact, inference = point(1), replace(point(2), inferred=True)
    [both] = merged(draft(fact, inference), (0, 1)).points
    assert (both.description, both.inferred) == ("Together. Point 1. Point 2. (inferred)", False)
    [alike] = merged(draft(replace(fact, inferred=True), inference), (0, 1)).points
    assert (alike.description, alike.inferred) == ("Together. Point 1. Point 2.", True)


def test_a_retired_point_leaves_memory_with_its_reason_and_its_number_is_not_given_again():
    made = draft(point(1), point(2), point(3))
    shown = made.number_points(PromptMemory(points=made.points))
    made.retire((Retirement(point=1, reason=" of no  use "), Retirement(point=1, reason="again")), known=shown.numbered)
    made.retire((Retirement(point=0), Retirement(point=9, reason="what for")), known=shown.numbered)

    assert [one.description for one in made.points] == ["Point 1.", "Point 3."]
    assert kinds(made) == ["retire", "drop", "drop", "drop"]
    assert (made.operations[0].parts, made.operations[0].reason) == (("m-1-2",), "of no use")
    assert reasons(made) == [
        "retirement of point 1: the point does not exist",
        "retirement of point 0: it says no reason",
        "retirement of point 9: the point does not exist",
    ]
    assert made.changes().died == ("m-1-2",)
    evolved(made, insert=[Insertion(entities=("Eve",), description="New.")])
    assert made.number_points(PromptMemory(points=made.points)).numbers == (0, 2, 3)


def test_what_was_merged_just_now_is_not_retired_by_the_number_of_a_part():
    made = merged(draft(point(1), point(2)), (0, 1))
    made.retire((Retirement(point=1, reason="said elsewhere"),), known=made.before)

    assert kinds(made) == ["merge", "drop"]
    assert reasons(made) == ["retirement of point 1: the point was merged"]
    assert len(made.points) == 1


def test_where_prompts_number_no_chunks_a_number_in_a_reply_is_not_taken():
    two = Insertion(entities=("Anna", "Bo"), description="Anna and Bo came.", chunks=(1, 9))
    made = evolved(replace_config(draft(), additions=()), insert=(two,))

    assert reasons(made) == []
    assert made.points[0].chunks == ("c0",)  # it mentions them


def test_a_merge_that_is_dropped_does_not_use_up_its_points():
    made = replace_config(draft(point(1), point(2)), additions=())
    made.merge(
        MergeReply(merge=(Joining(points=(0, 1), description=" "), Joining(points=(1, 0), description="Both."))),
        known=made.points,
    )

    assert [one.description for one in made.points] == ["Both."]
    assert reasons(made) == ["merge of points [0, 1]: the text is empty"]


def test_a_point_inserted_and_merged_within_a_step_is_in_the_lineage_but_never_alive_at_its_end():
    made = evolved(draft(point(1)), insert=[Insertion(entities=("Eve",), description="New.")])
    new = made.points[1].uid
    merged(made, (0, 1))

    assert made.changes().births[1].merges == ("m-1-1", new)
    assert made.changes().died == (
        "m-1-1",
        new,
    )
    assert [operation.point for operation in made.operations] == ["m-2-1", "m-2-2"]


@pytest.mark.parametrize(
    ("born", "died", "alive"),
    [(1, None, (1, 2, 3)), (2, None, (2, 3)), (1, 3, (1, 2)), (2, 2, ()), (1, 2, (1,))],
)
def test_a_point_is_alive_at_the_end_of_a_step_from_its_birth_until_before_its_death(born, died, alive):
    found = MemoryPoint(uid="p", description="", entities=(), born=born, died=died)

    assert tuple(step for step in (1, 2, 3) if found.alive(step)) == alive


indices = st.integers(-3, 6)
texts = st.sampled_from(["", " ", "Point 1.", "One.", "Two.", "Three."])
names = st.lists(st.sampled_from([*NAMES, "Stranger", "", "nobody"]), max_size=4).map(tuple)
chunk_indices = st.lists(st.integers(-2, 4), max_size=3).map(tuple)
replies = st.builds(
    EvolveReply,
    update=st.lists(
        st.builds(Revision, point=indices, description=texts, entities=names, chunks=chunk_indices), max_size=4
    ).map(tuple),
    insert=st.lists(st.builds(Insertion, entities=names, description=texts, chunks=chunk_indices), max_size=4).map(
        tuple
    ),
)
merges = st.lists(
    st.builds(Joining, points=st.lists(indices, max_size=4).map(tuple), description=texts), max_size=4
).map(lambda found: MergeReply(merge=tuple(found)))


@given(replies, merges)
def test_whatever_a_reply_says_memory_stays_whole(reply, merge):
    before = (point(1), point(2, "Bo", "Cleo"), point(3, "Eve"))
    made = draft(*before)
    made.evolve(reply, known=made.points, chunks=CHUNKS, entities=ENTITIES)
    made.merge(merge, known=made.points)
    every = {one.uid: one for one in (*before, *(birth.point for birth in made.changes().births))}

    assert len(set(made.changes().died)) == len(made.changes().died)
    assert {one.uid for one in made.points} == every.keys() - set(made.changes().died)
    assert len({birth.point.uid for birth in made.changes().births}) == len(made.changes().births)
    for one in every.values():
        assert one.entities
        assert one.description.strip()
        assert len({tied.uid for tied in one.entities}) == len(one.entities)
    parts = [part for birth in made.changes().births for part in (*birth.revises, *birth.merges)]
    assert sorted(parts) == sorted(made.changes().died)
    for birth in made.changes().births:
        union = {tied.uid for part in (*birth.revises, *birth.merges) for tied in every[part].entities}
        tied = {tied.uid for tied in birth.point.entities}
        assert union == tied if birth.merges else union <= tied
    involved = {tied.uid for one in every.values() for tied in one.entities}
    assert made.provisionals.keys() <= involved
    assert all(operation.reason for operation in made.operations if operation.kind == "drop")


def test_where_merges_add_the_same_merge_again_is_dropped():
    made = StepDraft(memory="m", number=2, before=(point(1), point(2)), config=HGMemConfig(merge="add"))
    reply = MergeReply(merge=(Joining(points=(0, 1), description="Together."),))
    made.merge(reply, known=made.points)
    made.merge(reply, known=made.points[:2])

    assert kinds(made) == ["merge", "drop"]
    assert len(made.points) == 3
    assert made.changes().died == ()
