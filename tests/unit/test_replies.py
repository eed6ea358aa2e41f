"""Real replies of models, and their conversion."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hgmem.extraction.replies import ExtractedEntity as Thing
from hgmem.extraction.replies import ExtractedRelation as Tie
from hgmem.extraction.replies import Extraction as Extracting
from hgmem.models.llm.reply_parsing import UnreadableError, Visible, parse_reply, starts_inside, without_thinking
from hgmem.models.llm.response_formats import json_schema
from hgmem.models.reply import Reply, TextReply
from hgmem.systems.hgmem.replies import Concern, StepReply
from hgmem.systems.hgmem.replies import EvolveReply as Evolving
from hgmem.systems.hgmem.replies import MergeReply as Merging
from hgmem.systems.hgmem.replies import PlanReply as Planning
from hgmem.systems.hgmem.replies import SubqueriesReply as Asking


class Answering(TextReply):
    """The answer."""


ORRERY = {"entities": ["Corrie Vane", "orrery"], "description": "Corrie Vane hid the orrery."}
GOOD = {"insert": [ORRERY]}
TEXT = json.dumps(GOOD)


def inserted(text: str) -> Evolving:
    reply = parse_reply(Evolving, text)
    assert [point.model_dump() for point in reply.insert] == [
        {
            "entities": ("Corrie Vane", "orrery"),
            "description": "Corrie Vane hid the orrery.",
            "kind": "fact",
            "chunks": (),
        }
    ]
    return reply


def extracted(record: dict[str, Any]) -> tuple[Tie, tuple[str, ...]]:
    reply = parse_reply(Extracting, json.dumps({"relations": [{"source": "A", "target": "B", **record}]}))
    return reply.relations[0], reply.notes


# Text around the JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"  \n{TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\nI hope that helps.",
        f"Here you are:\n\n{TEXT}\n\nThat is all {{so far}}.",
        f"As [1] says, {{see above}}: {TEXT}",
        f'<think>Is it {{"insert": []}}?</think>\n{TEXT}',
        f"<thinking>\nhm\n</thinking>{TEXT}",
        f"<REASONING>hm</REASONING>\n\n```json\n{TEXT}\n```",
        f'I might say {{"insert": []}}.\n</think>\n\n{TEXT}',
        json.dumps({"result": GOOD}),
        json.dumps({"output": {"data": GOOD}}),
        json.dumps({"type": "object", "properties": GOOD}),
        json.dumps({"name": "evolve", "arguments": GOOD}),
        json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **GOOD}),
        json.dumps([ORRERY]),
        json.dumps([GOOD]),
        json.dumps({"result": [ORRERY]}),
        json.dumps({"insert": ORRERY}),
        json.dumps({"insert": json.dumps([ORRERY])}),
        json.dumps({"Insert": [{"Entities": ORRERY["entities"], "DESCRIPTION": ORRERY["description"]}]}),
        json.dumps({"new_points": [{"entity-names": "Corrie Vane, orrery", "Statement": ORRERY["description"]}]}),
        json.dumps({"insert": [{**ORRERY, "entities": [{"name": "Corrie Vane"}, {"entity_name": "orrery"}]}]}),
        json.dumps({"insert": [{**ORRERY, "chunks": None}], "update": None}),
        TEXT.replace("Corrie", "Cor\0rie"),
    ],
)
def test_a_reply_is_found_in_what_stands_around_it(text: str) -> None:
    assert inserted(text).notes == ()


@pytest.mark.parametrize(
    "text",
    [
        TEXT[:-2],
        TEXT.replace('"', "'"),
        TEXT.replace("]}", "],}"),
        TEXT.replace('"insert"', "insert"),
        TEXT.replace(", ", " ").replace("[", "[ "),
        f"Well: {TEXT[:-1]}",
        TEXT.replace('"', "“"),
        f"{TEXT[:-1]} // that is all\n}}",
    ],
)
def test_broken_json_is_mended_and_noted(text: str) -> None:
    assert inserted(text).notes == ("the JSON was repaired",)


def test_line_ends_within_texts_are_kept() -> None:
    assert parse_reply(Planning, '{"judgement": "local", "concerns": ["one\ntwo"]}').concerns[0].text == "one\ntwo"


@pytest.mark.parametrize("text", ["", "  \n", "\0", "<think>I wonder", "<think>so</think>\n"])
def test_an_empty_reply_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError, match=r"^the reply was empty$"):
        parse_reply(Evolving, text)
    with pytest.raises(UnreadableError, match=r"^the reply was empty$"):
        parse_reply(Answering, text)


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"foo": 1}', '[{"foo": 1}]', "{[", "no", "3", '{"insert": null}', "[" * 9999]
)
def test_a_reply_without_any_field_is_unreadable_and_no_empty_success(text: str) -> None:
    with pytest.raises(UnreadableError, match="update, insert"):
        parse_reply(Evolving, text)


def test_a_schema_said_back_is_unreadable() -> None:
    schema = json.dumps(Evolving.model_json_schema())
    with pytest.raises(UnreadableError, match="the JSON schema itself"):
        parse_reply(Evolving, schema)
    inserted(f"The schema is {schema}, so: {TEXT}")


# Several objects ----------------------------------------------------------------------------------------------


def test_objects_that_say_different_things_are_united() -> None:
    update = {"update": [{"point": 0, "description": "better"}]}
    reply = parse_reply(Evolving, f"{TEXT}\nand\n{json.dumps(update)}")
    assert (len(reply.insert), len(reply.update), reply.notes) == (1, 1, ())


def test_of_objects_that_say_the_same_the_first_counts() -> None:
    reply = parse_reply(Planning, '{"judgement": "local"} {"judgement": "global"} {"judgement": "sufficient"}')
    assert (reply.judgement, reply.notes) == ("local", ("2 further JSON objects were dropped",))


def test_of_objects_that_say_the_same_the_first_that_can_be_read_counts() -> None:
    reply = parse_reply(Planning, '{"judgement": "hm"}\n{"judgement": "global"}')
    assert (reply.judgement, reply.notes) == ("global", ("1 further JSON object was dropped",))


# Fields and values --------------------------------------------------------------------------------------------


def test_a_synonym_counts_only_where_the_name_itself_is_absent() -> None:
    reply = parse_reply(Extracting, '{"entities": [{"title": "Dr", "name": "Vane", "label": "person", "text": "x"}]}')
    assert reply.entities == (Thing(name="Vane", type="person", description="x"),)
    assert parse_reply(Merging, '{"merges": [{"indices": ["P0", 2], "summary": "both"}]}').merge[0].points == (0, 2)
    tie = parse_reply(Extracting, '{"edges": [{"from": "A", "to": "B", "strength": 3}]}').relations[0]
    assert (tie.source, tie.target, tie.weight) == ("A", "B", 3.0)


def test_a_record_that_lacks_something_is_dropped_and_noted_with_its_place() -> None:
    records = [ORRERY, "no", {"entities": ["A"]}, {"description": "d"}, {**ORRERY, "description": None}, None]
    assert inserted(json.dumps({"insert": records})).notes == (
        "insert 2 was dropped: 'no' is not an object",
        "insert 3 was dropped: description is missing",
        "insert 4 was dropped: entities is missing",
        "insert 5 was dropped: description is missing",
    )


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (3, 3),
        ("3", 3),
        ("[3]", 3),
        ("P3", 3),
        ("point 3", 3),
        ("#3", 3),
        (3.0, 3),
        ("3.0", 3),
        ([3], 3),
        ({"id": 3}, 3),
        ("-1", -1),
    ],
)
def test_numbers_are_read_as_they_are_meant(given: Any, number: int) -> None:
    assert parse_reply(Evolving, json.dumps({"update": [{"point": given, "text": "t"}]})).update[0].point == number


@pytest.mark.parametrize("given", [3.5, "3.5", True, "three", "", "1-3", [1, 2], {}, 10**40, "9" * 5000, float("nan")])
def test_what_is_no_number_is_dropped_and_noted(given: Any) -> None:
    reply = parse_reply(Merging, json.dumps({"merge": [{"points": [0, given, 2], "description": "both"}]}))
    assert reply.merge[0].points == (0, 2)
    assert len(reply.notes) == 1
    assert reply.notes[0].startswith("merge 1, points 2 was dropped: ")
    assert len(reply.notes[0]) < 120


@pytest.mark.parametrize("given", ["0, 2", "[0, 2]", "0 and 2", "P0; P2", [0, None, 2]])
def test_numbers_in_one_text_are_several(given: Any) -> None:
    assert parse_reply(Merging, json.dumps({"merge": [{"points": given, "text": "t"}]})).merge[0].points == (0, 2)


@pytest.mark.parametrize(
    "given", ["a, b", "a; b", "a\nb", "- a\n- b", "1. a\n2. b", ["a", {"keyword": "b"}], ["a", None, "b"]]
)
def test_names_in_one_text_are_several(given: Any) -> None:
    assert extracted({"keywords": given})[0].keywords == ("a", "b")


def test_a_sentence_is_split_at_line_ends_alone() -> None:
    assert parse_reply(Asking, '{"questions": "Who, and why?\\n2. Where; when?"}').subqueries == (
        "Who, and why?",
        "Where; when?",
    )
    assert parse_reply(Asking, '["Who, and why?", {"query": "Where?"}]').subqueries == ("Who, and why?", "Where?")
    assert parse_reply(Asking, '[{"query": "Who?"}, {"query": "Where?"}]').subqueries == ("Who?", "Where?")


def test_sub_queries_keep_their_places_beside_what_cannot_be_read() -> None:
    assert parse_reply(Asking, '{"subqueries": ["Who?", null, "Where?"]}').subqueries == ("Who?", "", "Where?")
    assert parse_reply(Asking, '{"subqueries": ["Who?", [[]], "Where?"]}').subqueries == ("Who?", "", "Where?")


def test_a_sub_query_with_its_concern_beside_it_is_the_sub_query() -> None:
    said = '{"subqueries": [{"concern": "What happened in June.", "subquery": "Holm ferry June"}]}'
    assert parse_reply(Asking, said).subqueries == ("Holm ferry June",)
    assert parse_reply(Planning, '{"decision": "2.1", "concerns": "Who, and why?"}').concerns == (
        Concern(text="Who, and why?"),
    )


@pytest.mark.parametrize(("given", "weight"), [("0.5", 0.5), ("0,5", 0.5), (2, 2.0)])
def test_weights_are_read_as_they_are_meant(given: Any, weight: float) -> None:
    assert extracted({"weight": given}) == (Tie(source="A", target="B", weight=weight), ())


@pytest.mark.parametrize("given", ["high", -1, float("inf"), "nan", True, [], 10**400])
def test_a_weight_that_is_none_makes_place_for_the_default(given: Any) -> None:
    tie, notes = extracted({"weight": given})
    assert tie.weight == 1.0
    assert len(notes) == 1
    assert notes[0].startswith("relations 1, weight: ")


def test_texts_are_made_of_numbers_and_of_texts() -> None:
    things = parse_reply(
        Extracting, '{"entities": ["1984", {"name": 2.5, "description": ["a", "b"]}, {"name": false}]}'
    )
    assert things.entities == (Thing(name="1984"), Thing(name="2.5", description="a b"))
    assert things.notes == ("entities 3 was dropped: name: False is not text",)


def test_half_characters_and_nuls_are_made_sound() -> None:
    things = parse_reply(Extracting, '{"entities": ["a\\ud800b\\u0000c", "\\ud83d\\ude00"]}')
    assert [thing.name for thing in things.entities] == ["a�bc", "😀"]
    assert parse_reply(Answering, "a\ud800").text == "a�"


@pytest.mark.parametrize(
    ("given", "judgement"),
    [
        (1, "sufficient"), ("1", "sufficient"), ("Enough.", "sufficient"), ("YES", "sufficient"), (True, "sufficient"),
        (2.1, "local"), ("2.1", "local"), ("Local", "local"), ("local_investigation", "local"),
        ("insufficient", "open"), ("Not sufficient.", "open"), ("no", "open"), (False, "open"), ("OPEN", "open"),
        ("2.1 Local Investigation", "local"), (2.2, "global"), ("[2.2]", "global"), ("global exploration", "global"),
    ],
)  # fmt: skip
def test_judgements_are_read_as_they_are_meant(given: Any, judgement: str) -> None:
    assert parse_reply(Planning, json.dumps({"judgment": given})).judgement == judgement


@pytest.mark.parametrize("given", ["not yet", "2", 2, "", "1 local", [], {}])
def test_a_judgement_that_nobody_can_tell_makes_the_reply_unreadable(given: Any) -> None:
    with pytest.raises(UnreadableError, match=r"judgement: .* is not one of sufficient, local, global, open"):
        parse_reply(Planning, json.dumps({"judgement": given, "concerns": []}))


def test_a_concern_may_say_where_to_look_and_what_nobody_can_tell_of_it_is_left_out() -> None:
    given = [
        {"text": "a", "strategy": "2.1 local investigation", "points": [0]},
        {"text": "b", "where": "Global"},
        {"text": "c", "strategy": "somewhere"},
        {"text": "d", "strategy": None},
        "e",
    ]
    reply = parse_reply(Planning, json.dumps({"judgement": "open", "concerns": given}))
    assert [one.strategy for one in reply.concerns] == ["local", "global", None, None, None]


def test_an_insertion_of_an_unknown_kind_is_a_fact_and_noted() -> None:
    reply = parse_reply(
        Evolving, json.dumps({"insert": [{**ORRERY, "kind": "stated"}, {**ORRERY, "kind": "Inferred"}]})
    )
    assert [one.kind for one in reply.insert] == ["fact", "inference"]
    assert reply.notes == ("insert 1, kind: 'stated' is not one of fact, inference, so 'fact' is used",)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Evolving, ["update", "insert", "merge", "retire", "premise", "open"]),
        (StepReply, ["update", "insert", "merge", "retire", "premise", "open", "judgement", "concerns"]),
    ],
)
def test_a_schema_has_the_fields_in_the_order_in_which_a_prompt_shows_them(kind: Any, fields: list[str]) -> None:
    assert list(json_schema(kind)["properties"]) == fields


def test_a_reply_that_lacks_its_judgement_is_unreadable() -> None:
    with pytest.raises(UnreadableError, match=r"^judgement is missing$"):
        parse_reply(Planning, '{"concerns": ["who"]}')


def test_of_very_many_notes_the_first_are_kept() -> None:
    notes = parse_reply(Evolving, json.dumps({"insert": [{"entities": ["A"]}] * 1000})).notes
    assert len(notes) == 101
    assert notes[-1] == "… and 900 more notes"


# Texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Vane hid it [1].",
        "<think>hm</think>\n\nVane hid it [1].\n",
        "who?</think>Vane hid it [1].",
        "```\nVane hid it [1].\n```",
        "```markdown\nVane hid it [1].\n```",
        '{"answer": "Vane hid it [1]."}',
        '```json\n{"Text": "Vane hid it [1]."}\n```',
    ],
)
def test_a_text_is_taken_without_what_is_around_it(text: str) -> None:
    reply = parse_reply(Answering, text)
    assert (reply.text, reply.notes) == ("Vane hid it [1].", ())


@pytest.mark.parametrize(
    "text",
    [
        "Say:\n```\nx\n```",
        '{"answer": "a", "why": "b"}',
        '{"answer": 3}',
        "{x}",
        "The tag <think> opens.",
        "```\na\n```\nb\n```\nc\n```",
    ],
)
def test_a_text_is_otherwise_left_alone(text: str) -> None:
    assert parse_reply(Answering, text).text == text


# Reasoning ----------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "a", "\n", " ", "<", "b>"])),
    st.data(),
)
def test_thinking_is_kept_back_however_a_text_is_split(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    visible = Visible(inside=starts_inside(text))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown = "".join(visible.feed(piece) for piece in pieces) + visible.end()
    assert shown.rstrip() == without_thinking(text)


def test_a_text_that_was_taken_for_thinking_comes_at_the_end_if_no_tag_ends_it() -> None:
    visible = Visible(inside=True)
    assert visible.feed("It is in ") == visible.feed("the crypt.") == ""
    assert visible.end() == "It is in the crypt."


# Any input ----------------------------------------------------------------------------------------------------

TYPES = (Evolving, Merging, Planning, Asking, Extracting, Answering)
PIECES = [
    "{",
    "[",
    "}",
    "]",
    '"',
    "'",
    "\\",
    ",",
    ":",
    "\n",
    "//",
    "/*",
    "null",
    "1e999",
    "“",
    "```",
    "<think>",
    "</think>",
]
WORDS = [
    "insert",
    "judgement",
    '"entities":',
    '{"insert":[',
    '"description":"',
    "\ud800",
    "\0",
    "1",
    "a ",
    "$defs",
    "properties",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(WORDS[:2]) | st.text(), inner),
    max_leaves=20,
)
named_values = st.dictionaries(
    st.sampled_from(
        ["insert", "update", "merge", "judgement", "concerns", "subqueries", "entities", "relations", "properties"]
    ),
    values
    | st.lists(
        st.dictionaries(st.sampled_from(["point", "points", "description", "entities", "name", "weight"]), values)
    ),
)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(TYPES),
    st.text() | st.lists(st.sampled_from(PIECES + WORDS), max_size=60).map("".join) | named_values.map(json.dumps),
)
@example(Evolving, "[" * 50_000)
@example(Evolving, '{"a":' * 3000)
@example(Merging, '{"merge": ' + "[" * 400 + "]" * 400 + "}")
@example(Merging, '{"merge": [{"points": ' + "[" * 800 + "1" + "]" * 800 + ', "description": "d"}]}')
def test_any_text_is_a_reply_or_unreadable(reply_type: type[Reply], text: str) -> None:
    try:
        reply = parse_reply(reply_type, text)
    except UnreadableError as error:
        said = str(error)
    else:
        assert type(reply) is reply_type
        said = reply.model_dump_json()
    said.encode()
    assert said.strip()
    assert "\n" not in said


LONG = json.dumps({"insert": [{**ORRERY, "description": f"{n} said “so” " * 8} for n in range(1000)]})


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG[:-9],
        LONG.replace("}, {", "},, {"),
        json.dumps({"insert": [{**ORRERY, "description": "word " * 10_000}]}),
        json.dumps({"insert": [{**ORRERY, "description": "word " * 10_000}]})[:-9],
        TEXT + '{"insert": []}' * 2000,
        '{"insert":[{"description":"' + 'a {"](" ' * 4000,
        '{"' * 20_000,
        '{"insert": "' + '\\"' * 20_000,
        '}, {tru,' * 4000,
        "<think>" * 8000,
        "</think>" * 8000,
        '{"insert": [' + '{"a":' * 20_000,
    ],
)  # fmt: skip
def test_long_and_mad_replies_are_read_in_no_time(text: str) -> None:
    began = time.process_time()
    try:
        parse_reply(Evolving, text)
    except UnreadableError:
        assert text[:40] != LONG[:40]
    assert time.process_time() - began < 5
