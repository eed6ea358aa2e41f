"""The loop on a real server: the data of a question in Neo4j, and what a question must not do."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import neo4j
import pytest
from letters import LETTERS, QUESTION, SENTENCES, TEXT, wanting

from hgmem import HGMem, Settings, UsageError
from hgmem.errors import ConflictError, ModelError
from hgmem.retrieval.answer import AnswerQuestion, AnswerReply
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    Revision,
    SubqueriesReply,
)
from hgmem.systems.hgmem.tasks import WholeStep
from hgmem.testing import ScriptedModel
from hgmem.text.identity import provisional_uid, uid
from hgmem.values.inputs import Given, GivenEntity
from hgmem.values.records import Answer, Memory

Raw = Callable[..., list[dict[str, Any]]]
Open = Callable[..., HGMem]


@pytest.fixture(scope="module")
def raw(settings: Settings) -> Iterator[Raw]:
    """Runs any Cypher, to read the server's data."""
    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    with neo4j.GraphDatabase.driver(settings.neo4j_uri or "", auth=(settings.neo4j_username, password)) as driver:

        def run(query: str, **parameters: Any) -> list[dict[str, Any]]:
            return [record.data() for record in driver.execute_query(query, parameters).records]

        yield run


def scripted(**replies: Any) -> ScriptedModel:
    """A model that by default inserts one point in the first step and then finds memory sufficient.

    Replies to the parts of a step are functions of the task or lists. Sub-queries are what the concerns say.
    """
    usual = {
        "evolve": lambda _: inserting(("Anna", "Mill"), "Anna sold the mill."),
        "merge": lambda _: MergeReply(),
        "plan": lambda _: PlanReply(judgement="sufficient"),
        "subqueries": lambda _: SubqueriesReply(subqueries=("",) * 9),
        "answer": lambda _: AnswerReply(text="Anna sold the mill [1]."),
    }
    return wanting(**{**usual, **{name: one if callable(one) else in_turn(one) for name, one in replies.items()}})


def in_turn(replies: Sequence[Any]) -> Callable[[Any], Any]:
    """Return a function that gives one reply after the other, or raises it."""
    left = iter(replies)

    def reply(_: object) -> Any:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    return reply


def inserting(entities: Sequence[str], description: str, *, chunks: Sequence[int] = ()) -> EvolveReply:
    return EvolveReply(insert=(Insertion(entities=tuple(entities), description=description, chunks=tuple(chunks)),))


def planning(judgement: Any, *texts: str, points: Sequence[int] = ()) -> PlanReply:
    return PlanReply(judgement=judgement, concerns=tuple(Concern(text=text, points=tuple(points)) for text in texts))


def at(task: WholeStep, sentence: int) -> int:
    """Return the number of the chunk with a sentence."""
    return [chunk.text for chunk in task.evidence.numbered].index(SENTENCES[sentence])


def memory_of(raw: Raw, corpus: str) -> str:
    (row,) = raw("MATCH (m:Memory {corpus: $c}) RETURN m.uid AS uid", c=corpus)
    return str(row["uid"])


# One question of three steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Played:
    """A question with three steps, and its corpus."""

    client: HGMem
    answer: Answer
    model: ScriptedModel

    @property
    def key(self) -> dict[str, str]:
        return {"c": self.answer.corpus, "m": self.answer.memory}

    @property
    def memory(self) -> Memory:
        return self.client.memory(self.answer.memory)

    def point(self, description: str) -> Any:
        (found,) = [point for point in self.answer.points if point.description == description]
        return found


def first_evolve(_: WholeStep) -> EvolveReply:
    return EvolveReply(
        insert=(
            Insertion(entities=("Anna", "Bo"), description="Anna sold it."),
            Insertion(entities=("Bo", "Cleo", "Old Tom"), description="Bo bought a boat."),
        )
    )


def second_evolve(task: WholeStep) -> EvolveReply:
    revision = Revision(
        point=0, description="Anna sold the mill to Bo.", replaces=True, entities=("Mill",), chunks=(at(task, 0),)
    )
    burned = Insertion(entities=("Dag", "Mill"), description="Dag burned the mill.", chunks=(at(task, 3),))
    return EvolveReply(update=(revision,), insert=(burned,))


@pytest.fixture(scope="module")
def played(settings: Settings) -> Iterator[Played]:
    """A run with two points: one is revised, a third inserted and merged with it; then nothing, and the answer."""
    evolves = iter([first_evolve, second_evolve, lambda _: EvolveReply()])
    model = scripted(
        evolve=lambda task: next(evolves)(task),
        merge=[
            MergeReply(
                merge=(Joining(points=(0, 2), description="Anna sold the mill, Dag burned it.", replaces=True),)
            ),
            MergeReply(),
        ],
        plan=[
            planning("local", "the mill's fate", points=(0,)),
            planning("global", "the harbour", "the pier"),
            PlanReply(judgement="sufficient"),
        ],
        subqueries=[
            SubqueriesReply(subqueries=("What became of the mill?",)),
            SubqueriesReply(subqueries=("Who left the harbour?", "")),
        ],
        answer=[AnswerReply(text="Dag burned the mill [4]. Anna sold it [1], nobody else [77]. So it was [4].")],
    )
    client = HGMem.open("played", model=model, **settings.model_dump(exclude_none=True, exclude={"model"}))
    client.add_graph(LETTERS)
    yield Played(client=client, answer=client.ask(QUESTION, steps=5), model=model)
    client.delete()
    client.close()


def test_a_question_goes_on_until_memory_is_sufficient(played: Played) -> None:
    steps = played.answer.steps

    assert [step.number for step in steps] == [1, 2, 3]
    assert [step.strategy for step in steps] == ["global", "local", "global"]
    assert [step.judgement for step in steps] == ["local", "global", "sufficient"]
    assert [task.name for task in played.model.tasks] == ["clues", "step", "step", "step", "answer"]
    assert {step.question for step in steps} == {QUESTION}


def test_sub_queries_are_one_a_concern_in_order(played: Played) -> None:
    asked = [[one.subquery for one in step.retrieved] for step in played.answer.steps]

    assert [[one.text for one in each] for each in asked] == [
        [QUESTION],
        ["What became of the mill?"],
        ["Who left the harbour?", "the pier"],  # the second one is extended by its concern
    ]
    assert [one.concern for one in asked[2]] == ["the harbour", "the pier"]
    assert asked[1][0].targets == (played.point("Anna sold it.").uid,)


def test_the_model_is_told_what_memory_holds_and_what_was_asked(played: Played) -> None:
    steps = [task for task in played.model.tasks if isinstance(task, WholeStep)]

    assert [[point.description for point in task.memory.points] for task in steps] == [
        [],
        ["Anna sold it.", "Bo bought a boat."],
        ["Bo bought a boat.", "Anna sold the mill, Dag burned it."],
    ]
    assert [task.subqueries for task in steps] == [
        (),
        ("What became of the mill?",),
        ("Who left the harbour?", "the pier"),
    ]
    assert [task.previous for task in steps] == [(), ("(the question itself)",), ("What became of the mill?",)]
    assert [task.merging for task in steps] == [False, True, True]
    assert [task.memory.numbers for task in steps] == [(), (0, 1), (1, 2)]  # 0 was merged


def test_steps_are_chained_and_belong_to_the_memory(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (m:Memory {uid: $m, corpus: $c})-[:HAS_STEP]->(s:Step) OPTIONAL MATCH (s)-[:NEXT_STEP]->(after:Step) "
        "RETURN s.number AS number, s.strategy AS strategy, s.judgement AS judgement, collect(after.number) AS after, "
        "s.operations AS operations ORDER BY number",
        **played.key,
    )

    assert [(row["number"], row["strategy"], row["judgement"], row["after"]) for row in rows] == [
        (1, "global", "local", [2]),
        (2, "local", "global", [3]),
        (3, "global", "sufficient", []),
    ]
    assert [[each["kind"] for each in json.loads(row["operations"])] for row in rows] == [
        ["insert", "insert"],
        ["revise", "insert", "merge"],
        [],
    ]


def test_sub_queries_hold_what_they_retrieved_with_rank_and_score(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (:Memory {uid: $m})-[:HAS_STEP]->(s:Step)-[:ASKED]->(q:SubQuery)-[hit:RETRIEVED]->(n) "
        "RETURN s.number AS step, q.text AS text, labels(n)[0] AS label, n.uid AS uid, hit.rank AS rank, "
        "hit.score AS score",
        m=played.answer.memory,
    )
    stored = {(row["step"], row["text"], row["label"], row["uid"], row["rank"], row["score"]) for row in rows}
    expected = {
        (step.number, one.subquery.text, label, hit.uid, hit.rank, hit.score)
        for step in played.answer.steps
        for one in step.retrieved
        for label, hits in (("Entity", one.entities), ("Chunk", one.chunks))
        for hit in hits
    }

    assert stored == expected
    assert len(expected) > 15


def test_a_local_sub_query_points_at_what_it_digs_into(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (q:SubQuery {memory: $m}) OPTIONAL MATCH (q)-[:TARGETS]->(p:MemoryPoint) "
        "RETURN q.text AS text, collect(p.description) AS targets",
        m=played.answer.memory,
    )

    assert {row["text"]: row["targets"] for row in rows} == {
        QUESTION: [],
        "What became of the mill?": ["Anna sold it."],
        "Who left the harbour?": [],
        "the pier": [],
    }


def test_points_are_born_and_die_and_stay_with_their_entities(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (:Memory {uid: $m})-[:HAS_POINT]->(p:MemoryPoint {corpus: $c, memory: $m}) "
        "RETURN p.description AS text, p.born AS born, p.died AS died, p.embedding IS NOT NULL AS embedded, "
        "COLLECT { MATCH (p)-[:INVOLVES]->(e:Entity) RETURN e.name ORDER BY e.name } AS entities, "
        "COLLECT { MATCH (p)-[:SUPPORTED_BY]->(k:Chunk) RETURN k.source_id ORDER BY k.source_id } AS chunks, "
        "COLLECT { MATCH (old)-[:REVISED_AS]->(p) RETURN old.description } AS revises, "
        "COLLECT { MATCH (old)-[:MERGED_INTO]->(p) RETURN old.description ORDER BY old.description } AS merges",
        **played.key,
    )
    stored = {row.pop("text"): row for row in rows}
    assert all(row.pop("embedded") for row in stored.values())

    def kept(born: int, died: int | None, entities: str, chunks: str, *, revises: Any = (), merges: Any = ()) -> Any:
        return {
            "born": born,
            "died": died,
            "entities": entities.split(", "),
            "chunks": chunks.split(),
            "revises": list(revises),
            "merges": list(merges),
        }

    assert stored == {
        "Anna sold it.": kept(1, 2, "Anna, Bo", "c0"),
        "Bo bought a boat.": kept(1, None, "Bo, Cleo, Old Tom", "c1"),
        "Anna sold the mill to Bo.": kept(2, 2, "Anna, Bo, Mill", "c0", revises=["Anna sold it."]),
        "Dag burned the mill.": kept(2, 2, "Dag, Mill", "c3"),
        "Anna sold the mill, Dag burned it.": kept(
            2, None, "Anna, Bo, Dag, Mill", "c0 c3", merges=["Anna sold the mill to Bo.", "Dag burned the mill."]
        ),
    }


def test_the_memory_at_each_step_is_what_was_alive_at_its_end(played: Played) -> None:
    shown = [played.client.memory(played.answer.memory, step=number) for number in (1, 2, 3)]
    merged = ["Bo bought a boat.", "Anna sold the mill, Dag burned it."]

    assert [[point.description for point in memory.points] for memory in shown] == [
        ["Anna sold it.", "Bo bought a boat."],
        merged,
        merged,
    ]
    assert [len(memory.steps) for memory in shown] == [1, 2, 3]
    assert [len(memory.answers) for memory in shown] == [0, 0, 1]
    assert played.memory == shown[2]
    for number in (0, 4, -1):
        with pytest.raises(UsageError, match=f"has no step {number}: choose 1 to 3"):
            played.client.memory(played.answer.memory, step=number)


def test_a_merged_points_lineage_leads_back_to_what_was_inserted(played: Played) -> None:
    lineage = played.client.lineage(played.point("Anna sold the mill, Dag burned it.").uid)

    def told(one: Any) -> Any:
        return (one.kind, one.point.description, [told(part) for part in one.parts])

    assert told(lineage) == (
        "merge",
        "Anna sold the mill, Dag burned it.",
        [
            ("revise", "Anna sold the mill to Bo.", [("insert", "Anna sold it.", [])]),
            ("insert", "Dag burned the mill.", []),
        ],
    )
    with pytest.raises(UsageError, match="is not a memory point"):
        played.client.lineage(played.answer.memory)
    with pytest.raises(UsageError, match="memory, point or answer 'nobody' not found"):
        played.client.lineage("nobody")


def test_every_merge_is_a_union_whose_parts_die_when_it_is_born(played: Played) -> None:
    by_uid = {point.uid: point for point in played.answer.points}
    merges = [each for step in played.answer.steps for each in step.operations if each.kind == "merge"]

    assert len(merges) == 1
    for operation in merges:
        whole, parts = by_uid[operation.point], [by_uid[part] for part in operation.parts]
        assert {one.uid for one in whole.entities} == {one.uid for part in parts for one in part.entities}
        assert [part.died for part in parts] == [whole.born] * len(parts)
    assert all(point.died is None or point.died >= point.born for point in by_uid.values())


def test_the_answer_is_kept_with_its_citations_and_unknown_markers_are_gone(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (:Memory {uid: $m})-[:HAS_ANSWER]->(a:Answer {corpus: $c, memory: $m})-[:HAS_CITATION]->(q:Citation)"
        "-[:CITES]->(k:Chunk) RETURN a.text AS text, a.step AS step, q.marker AS marker, q.quote AS quote, "
        "q.start AS start, q.end AS end, k.source_id AS chunk, q.title AS title ORDER BY marker",
        **played.key,
    )

    assert {row["text"] for row in rows} == {"Dag burned the mill [1]. Anna sold it [2], nobody else. So it was [1]."}
    assert [(row["marker"], row["quote"], row["chunk"], row["title"]) for row in rows] == [
        (1, SENTENCES[3], "c3", "Letters"),
        (2, SENTENCES[0], "c0", "Letters"),
    ]
    assert all(TEXT[row["start"] : row["end"]] == row["quote"] for row in rows)
    assert played.answer.notes == ("marker [77] was removed: no evidence has that number",)


def test_a_stored_memory_reads_as_it_was_returned(played: Played) -> None:
    memory = played.memory
    (stored,) = memory.answers

    def unscored(steps: Any) -> Any:  # relations have no relationships, so their uids and ranks are stored
        return [
            replace(
                step,
                retrieved=tuple(
                    replace(one, relations=tuple((hit.uid, hit.rank) for hit in one.relations))
                    for one in step.retrieved
                ),
            )
            for step in steps
        ]

    assert (memory.status, memory.system, memory.model, memory.step) == ("answered", "hgmem", "scripted", 3)
    assert unscored(stored.steps) == unscored(played.answer.steps) == unscored(memory.steps)
    assert [point.uid for point in stored.points] == [point.uid for point in played.answer.points]
    same = ("uid", "question", "text", "status", "memory", "step", "citations", "notes", "usage", "seconds")
    assert [getattr(stored, name) for name in same] == [getattr(played.answer, name) for name in same]


def test_every_node_of_a_memory_names_its_corpus_and_its_memory(played: Played, raw: Raw) -> None:
    rows = raw(
        "MATCH (n {corpus: $c}) WHERE n.memory = $m "
        "RETURN [label IN labels(n) WHERE label <> 'Entity'][0] AS label, count(*) AS count",
        **played.key,
    )
    reached = raw(
        "MATCH (:Memory {uid: $m})-[:HAS_STEP|HAS_POINT|HAS_ANSWER|ASKED|HAS_CITATION*1..2]->(n) "
        "RETURN count(DISTINCT n) AS count, collect(DISTINCT n.memory) AS memories, "
        "collect(DISTINCT n.corpus) AS corpora",
        m=played.answer.memory,
    )[0]

    counts = {row["label"]: row["count"] for row in rows}
    expected = {"Memory": 1, "Step": 3, "SubQuery": 4, "MemoryPoint": 5, "Answer": 1, "Citation": 2, "Provisional": 1}
    assert counts == expected
    assert reached["count"] == sum(expected.values()) - 2  # the memory itself, and the provisional entity
    assert (reached["memories"], reached["corpora"]) == ([played.answer.memory], [played.answer.corpus])


def test_a_step_takes_few_round_trips(played: Played) -> None:
    for step in played.answer.steps:
        assert step.usage.calls["neo4j"]["retrieve"] <= 2
        assert step.usage.calls["neo4j"].get("corpus_language", 0) == (step.number == 1)
        usual = {"corpus_language", "scopes", "retrieve", "find_entities", "neighbours", "documents_beside"}
        usual |= {"chunks_beside"} if any(found.subquery.targets for found in step.retrieved) else set()
        further = (
            {"near_built", "overview", "mentioned_entities"} if step.number == 1 else set()
        )  # its points cite no chunk
        assert step.usage.calls["neo4j"].keys() - usual == further
        assert step.usage.calls["neo4j"].get("documents_beside", 0) <= 1
        assert step.usage.calls["neo4j"].get("find_entities", 0) <= 1
        assert step.usage.calls["neo4j"].get("neighbours", 0) <= 1
        assert step.usage.calls["neo4j"].get("find_entities", 0) <= 1
    calls = played.answer.usage.calls["neo4j"]
    assert (calls["write_step"], calls["create_memory"]) == (3, 1)
    # The answer's write is not in its own counts; a slow question also sends heartbeats.
    assert calls["commit"] == 3 + 1 + calls.get("renew_memory", 0)


def test_usage_counts_each_model_call_where_it_was_made(played: Played) -> None:
    steps = [step.usage.calls["model"] for step in played.answer.steps]

    assert steps == [{"clues": 1, "step": 1}, {"step": 1}, {"step": 1}]
    assert played.answer.usage.calls["model"] == {"clues": 1, "step": 3, "answer": 1}


def test_the_list_of_memories_tells_of_each(played: Played) -> None:
    (summary,) = played.client.memories()

    assert (summary.uid, summary.question, summary.status) == (played.answer.memory, QUESTION, "answered")
    assert (summary.steps, summary.points, summary.system) == (3, 2, "hgmem")


# Limits of the loop -------------------------------------------------------------------------------------------


@pytest.fixture
def ask(open_client: Open, corpus: str) -> Callable[..., tuple[Answer, ScriptedModel]]:
    """Asks a client with a scripted model on the letters."""

    def asking(question: str = QUESTION, *, steps: int | None = None, **replies: Any) -> tuple[Answer, ScriptedModel]:
        model = scripted(**replies)
        client = open_client(model=model)
        client.add_graph(LETTERS)
        return client.ask(question, steps=steps), model

    return asking


def names_of(model: ScriptedModel) -> list[str]:
    return [task.name for task in model.tasks]


def test_a_single_step_plans_nothing(ask: Callable[..., tuple[Answer, ScriptedModel]]) -> None:
    answer, model = ask(steps=1)

    assert names_of(model) == ["clues", "evolve", "answer"]
    assert answer.steps[0].judgement is None


def test_the_last_allowed_step_plans_nothing(ask: Callable[..., tuple[Answer, ScriptedModel]]) -> None:
    texts = iter(("one", "two", "three", "four"))
    answer, model = ask(
        steps=2,
        evolve=lambda _: inserting(("Anna",), f"Point {next(texts)}."),
        plan=lambda _: planning("global", "anything else"),
    )

    assert names_of(model) == ["clues", "step", "evolve", "answer"]
    assert [step.judgement for step in answer.steps] == ["global", None]


def test_nothing_new_to_ask_ends_the_loop(ask: Callable[..., tuple[Answer, ScriptedModel]]) -> None:
    answer, _ = ask(plan=lambda _: planning("global", f" {QUESTION.upper()} "))

    assert len(answer.steps) == 1
    assert "asked before" in answer.steps[0].notes[0]


def test_no_more_concerns_are_followed_than_are_set(ask: Callable[..., tuple[Answer, ScriptedModel]]) -> None:
    answer, model = ask(steps=2, plan=[planning("global", *(f"concern {at}" for at in range(9)))])

    assert [one.subquery.text for one in answer.steps[1].retrieved] == ["concern 0", "concern 1", "concern 2"]
    assert [task.concerns for task in model.tasks if isinstance(task, WholeStep)] == [3]
    assert "6 concerns beyond 3 were dropped" in answer.steps[0].notes


def test_evidence_without_a_point_is_answered_from_and_the_notes_say_so(
    ask: Callable[..., tuple[Answer, ScriptedModel]],
) -> None:
    answer, model = ask(evolve=lambda _: EvolveReply())

    assert answer.status == "answered"
    assert answer.points == ()
    assert answer.notes == ("memory has no points: the answer uses the evidence of the steps",)
    (task,) = [task for task in model.tasks if isinstance(task, AnswerQuestion)]
    assert task.memory.points == ()
    assert {chunk.text for chunk in task.passages} == set(SENTENCES)


def test_a_local_step_around_an_entity_without_neighbours_still_finds_it(
    ask: Callable[..., tuple[Answer, ScriptedModel]],
) -> None:
    answer, _ = ask(
        steps=2,
        evolve=[inserting(("Eve",), "Eve counts."), EvolveReply()],
        plan=[planning("local", "Eve's lamps", points=(0,))],
    )

    assert [hit.name for hit in answer.steps[1].retrieved[0].entities] == ["Eve"]
    assert answer.steps[1].strategy == "local"


# Bad replies --------------------------------------------------------------------------------------------------

WRONG = {
    "evolve": EvolveReply(
        update=(
            Revision(point=0, description="There is no point yet."),
            Revision(point=-1, description="Nor this one."),
        ),
        insert=(
            Insertion(entities=("Anna", "anna", " ANNA "), description="Anna was there.", chunks=(0, 0, 99, -1)),
            Insertion(entities=("Anna",), description="Anna was there.", chunks=(0,)),
            Insertion(entities=("", "  "), description="Nobody."),
            Insertion(entities=(), description="Nobody."),
            Insertion(entities=("Bo",), description="\n"),
            Insertion(entities=("Bo'); MATCH (n) DETACH DELETE n //", 'x"`$corpus`\\'), description="Cypher.\x00 ☃"),
            Insertion(entities=("n" * 20_000, "Anna"), description="long " * 10_000),
        ),
    ),
    "merge": MergeReply(
        merge=(
            Joining(points=(0, 0), description="Itself."),
            Joining(points=(0, 9), description="Nobody."),
            Joining(points=(-1, -2), description="Nobody."),
            Joining(points=(0, 1), description=" "),
            Joining(points=(1, 0, 7), description="Both."),
            Joining(points=(1, 2), description="Taken."),
        )
    ),
    "plan": planning("local", "", "x", "the mill", points=(0, 5, -9)),
    "subqueries": SubqueriesReply(subqueries=("", "x", "x", "y", "z")),
    "answer": AnswerReply(text="[0][1][1][12][-1][] [[99]1] said [3]."),
}


def test_whatever_a_model_replies_the_question_is_answered_and_the_notes_say_what_was_dropped(
    ask: Callable[..., tuple[Answer, ScriptedModel]],
) -> None:
    wrong = {name: (lambda _, reply=reply: reply) for name, reply in WRONG.items()}
    answer, _ = ask(steps=4, **wrong)
    drops = [each.reason for each in answer.steps[0].operations if each.kind == "drop"]

    assert answer.status == "answered"
    assert [point.description[:15] for point in answer.points[:3]] == [
        "Anna was there.",
        "Cypher.\x00 ☃",
        "long long long ",
    ]
    assert drops == [
        "update of point 0: the point does not exist",
        "update of point -1: the point does not exist",
        "evidence chunk -1: the chunk does not exist",
        "evidence chunk 99: the chunk does not exist",
        "insert: an active point has the same text",
        "entity name dropped: it is empty",
        "entity name dropped: it is empty",
        "insert: no entity named",
        "insert: no entity named",
        "insert: the text is empty",
        "text truncated: 49,999 characters, the limit is 4,000",
        "entity name dropped: 20,000 characters, the limit is 300",
    ]
    merging = [each for each in answer.steps[1].operations if each.kind == "merge"]
    assert len(merging) == 1
    assert [citation.marker for citation in answer.citations] == [1, 2]


# Provisional entities -----------------------------------------------------------------------------------------


def test_an_absent_name_becomes_one_entity_of_its_memory_that_later_steps_find_again(
    open_client: Open, corpus: str, raw: Raw
) -> None:
    model = scripted(
        evolve=[
            inserting(("Anna", "Old  Tom"), "Old Tom knew Anna."),
            inserting(("OLD TOM",), "Old Tom was a miller."),
            EvolveReply(),
        ],
        plan=[planning("local", "Old Tom's trade", points=(0,)), planning("global", "another matter")],
    )
    client = open_client(model=model)
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=3)
    rows = raw(
        "MATCH (e:Provisional {corpus: $c}) RETURN e {.*, embedding: e.embedding IS NOT NULL} AS e, "
        "labels(e) AS labels, COUNT { (e)<-[:INVOLVES]-() } AS points",
        c=corpus,
    )

    assert len(rows) == 1
    assert set(rows[0]["labels"]) == {"Entity", "Provisional"}
    assert rows[0]["points"] == 2
    assert rows[0]["e"] == {
        "uid": provisional_uid(answer.memory, uid(corpus, "entity", "old tom")),
        "corpus": corpus,
        "memory": answer.memory,
        "name": "Old Tom",
        "type": "",
        "description": "Old Tom knew Anna.",
        "embedding": True,
    }
    found = {hit.name: hit.uid for hit in answer.steps[1].retrieved[0].entities}
    assert found["Old Tom"] == rows[0]["e"]["uid"]
    assert "Old Tom" not in {hit.name for hit in answer.steps[2].retrieved[0].entities}  # it is in V_M
    assert all(entity.provisional == (entity.name == "Old Tom") for point in answer.points for entity in point.entities)


def test_two_memories_never_share_a_provisional_entity(open_client: Open, corpus: str, raw: Raw) -> None:
    model = scripted(evolve=lambda _: inserting(("Old Tom",), "Old Tom sold the mill."))
    client = open_client(model=model)
    client.add_graph(LETTERS)
    before = client.status()
    answers = [client.ask("Who is Old Tom?"), client.ask("Who is Old Tom?")]
    rows = raw("MATCH (e:Provisional {corpus: $c}) RETURN e.memory AS memory ORDER BY memory", c=corpus)

    assert [row["memory"] for row in rows] == sorted(answer.memory for answer in answers)
    assert "Old Tom" not in {hit.name for hit in answers[1].steps[0].retrieved[0].entities}
    assert client.status().entities == before.entities


def test_a_name_of_the_corpus_that_is_not_in_the_evidence_is_the_corpus_entity(open_client: Open, raw: Raw) -> None:
    many = tuple(GivenEntity(name=f"Person {at}", description="Somebody.") for at in range(30))
    model = scripted(evolve=lambda _: inserting(("person  29", "Nobody At All"), "They met.", chunks=(0,)))
    client = open_client(model=model)
    client.add_graph(replace(LETTERS, entities=(*LETTERS.entities, *many)))
    answer = client.ask("Who sold the mill?", steps=1)

    assert "Person 29" not in {hit.name for hit in answer.steps[0].retrieved[0].entities}
    assert {(entity.name, entity.provisional) for entity in answer.points[0].entities} == {
        ("Person 29", False),
        ("Nobody At All", True),
    }
    assert answer.steps[0].usage.calls["neo4j"] == {
        **dict.fromkeys(("near_built", "overview", "corpus_language", "retrieve", "find_entities"), 1)
    }


# The corpus stays unchanged -----------------------------------------------------------------------------------


def dump(raw: Raw, corpus: str) -> Any:
    """Return the corpus layer: nodes with labels and properties, and the relationships among them."""
    inside = (
        "any(label IN labels({0}) WHERE label IN ['Document', 'Chunk', 'Entity']) AND coalesce({0}.memory, '') = ''"
    )
    corpora = raw("MATCH (k:Corpus {name: $c}) RETURN k {.*, created_at: toString(k.created_at)} AS k", c=corpus)
    nodes = raw(
        f"MATCH (n {{corpus: $c}}) WHERE {inside.format('n')} RETURN labels(n) AS labels, n {{.*}} AS n ORDER BY n.uid",
        c=corpus,
    )
    relationships = raw(
        f"MATCH (a {{corpus: $c}})-[r]->(b {{corpus: $c}}) WHERE {inside.format('a')} AND {inside.format('b')} "
        "RETURN a.uid AS source, type(r) AS type, b.uid AS target, r {.*} AS r ORDER BY source, type, target",
        c=corpus,
    )
    assert nodes
    assert relationships
    return corpora, nodes, relationships


def test_answering_never_changes_the_corpus(open_client: Open, corpus: str, raw: Raw) -> None:
    extractive = open_client()
    extractive.add_graph(LETTERS)
    strange = scripted(
        evolve=lambda _: inserting(("Anna", "Old Tom"), "Old Tom knew Anna."),
        plan=lambda _: planning("local", f"again {time.monotonic()}", points=(0,)),
    )
    failing = scripted(plan=[TimeoutError("slow")])
    before = dump(raw, corpus)
    extractive.ask(QUESTION)
    extractive.ask(QUESTION, system="naive")
    open_client(model=strange).ask(QUESTION)
    with pytest.raises(TimeoutError):
        open_client(model=failing).ask(QUESTION)

    assert dump(raw, corpus) == before


# Concurrency --------------------------------------------------------------------------------------------------

EIGHT = (
    "Who took the Ravensund Orrery?",
    "How did the orrery leave its crate before the Corrie Vane sailed?",
    "Where is the orrery hidden?",
    "Who owns the Corrie Vane, and where did she sail?",
    "Which firm insured the Ravensund Orrery?",
    "What happened on the night before the ship left?",
    "Who wrote letters about the crate?",
    "When was the orrery seen last, and by whom?",
)


def essence(answer: Answer) -> Any:
    """Return an answer without its random names."""

    def told(text: str) -> str:
        return text.replace(answer.memory, "memory")

    return (
        answer.text,
        answer.status,
        [(citation.marker, citation.chunk, citation.quote) for citation in answer.citations],
        [
            (
                told(point.uid),
                point.description,
                point.born,
                point.died,
                [told(entity.uid) for entity in point.entities],
                list(point.chunks),
            )
            for point in answer.points
        ],
        [
            (
                step.strategy,
                step.judgement,
                step.notes,
                [(each.kind, told(each.point), [told(part) for part in each.parts]) for each in step.operations],
                [
                    (one.subquery.text, [told(hit.uid) for hit in one.entities], [hit.uid for hit in one.chunks])
                    for one in step.retrieved
                ],
            )
            for step in answer.steps
        ],
    )


def test_eight_questions_at_once_are_eight_memories_of_their_own(client: HGMem, affair: Path, raw: Raw) -> None:
    client.add(affair)
    alone = [client.ask(question) for question in EIGHT]
    barrier = threading.Barrier(len(EIGHT))

    def asked(question: str) -> Answer:
        barrier.wait()
        return client.ask(question)

    with ThreadPoolExecutor(len(EIGHT)) as pool:
        together = list(pool.map(asked, EIGHT))

    assert [essence(answer) for answer in together] == [essence(answer) for answer in alone]
    calls = [[answer.usage.calls["model"] for answer in answers] for answers in (together, alone)]
    assert calls[0] == calls[1]  # not of database or embedder: heartbeats of a slow question, cached texts
    assert len({answer.memory for answer in (*alone, *together)}) == 2 * len(EIGHT)
    foreign = raw(
        "MATCH (p:MemoryPoint {corpus: $c})-[:INVOLVES]->(e:Entity) WHERE e.memory <> '' AND e.memory <> p.memory "
        "RETURN count(*) AS count",
        c=client.corpus,
    )
    assert foreign == [{"count": 0}]


# Early ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [ModelError("the model is gone"), ValueError("odd"), KeyboardInterrupt()])
def test_a_question_that_ends_early_keeps_whole_steps_and_gives_its_claim_back(
    open_client: Open, corpus: str, raw: Raw, failure: BaseException
) -> None:
    def merge(_: object) -> MergeReply:
        raise failure

    texts = iter(("One.", "Two."))
    model = scripted(
        evolve=lambda _: inserting(("Anna", "Old Tom"), next(texts)),
        plan=lambda _: planning("global", "the pier"),
        merge=merge,
    )
    client = open_client(model=model)
    client.add_graph(LETTERS)
    with pytest.raises(type(failure)) as raised:
        client.ask(QUESTION)

    assert raised.value is failure
    memory = client.memory(memory_of(raw, corpus))
    assert memory.status == "interrupted"
    assert [summary.status for summary in client.memories()] == ["interrupted"]
    assert [step.number for step in memory.steps] == [1]
    assert [point.description for point in memory.points] == ["One."]
    assert memory.answers == ()
    (row,) = raw("MATCH (m:Memory {corpus: $c}) RETURN m.run AS run, m.heartbeat AS heartbeat", c=corpus)
    assert row == {"run": None, "heartbeat": None}


def overtake(raw: Raw, corpus: str, reply: object) -> Callable[[object], object]:
    """Return a reply of the model, during which another run takes the memory over."""

    def replying(_: object) -> object:
        raw("MATCH (m:Memory {corpus: $c}) SET m.run = 'another'", c=corpus)
        return reply

    return replying


def test_a_claim_that_is_lost_before_a_step_is_a_conflict_and_nothing_of_the_step_is_written(
    open_client: Open, corpus: str, raw: Raw
) -> None:
    lost = overtake(raw, corpus, inserting(("Anna", "Old Tom"), "Never written."))
    client = open_client(model=scripted(evolve=lost))
    client.add_graph(LETTERS)
    with pytest.raises(ConflictError, match="is no longer held by this run"):
        client.ask(QUESTION)

    (row,) = raw("MATCH (m:Memory {corpus: $c}) RETURN m.run AS run, m.status AS status", c=corpus)
    assert row == {"run": "another", "status": "running"}
    left = "MATCH (n {corpus: $c, memory: $m}) WHERE NOT n:Memory RETURN count(n) AS count"
    assert raw(left, c=corpus, m=memory_of(raw, corpus)) == [{"count": 0}]


def test_a_claim_that_is_lost_before_the_answer_is_a_conflict_and_the_steps_stay(
    open_client: Open, corpus: str, raw: Raw
) -> None:
    client = open_client(model=scripted(answer=overtake(raw, corpus, AnswerReply(text="Never written [1]."))))
    client.add_graph(LETTERS)
    with pytest.raises(ConflictError):
        client.ask(QUESTION)

    memory = client.memory(memory_of(raw, corpus))
    assert (memory.status, len(memory.steps), memory.answers) == ("running", 1, ())
    assert raw("MATCH (n:Citation {corpus: $c}) RETURN count(n) AS count", c=corpus) == [{"count": 0}]


def test_a_running_question_says_that_it_is_alive_and_a_silent_one_reads_as_interrupted(
    open_client: Open, corpus: str, raw: Raw
) -> None:
    beats: list[Any] = []
    statuses: list[str] = []

    def slowly(_: object) -> AnswerReply:
        (row,) = raw("MATCH (m:Memory {corpus: $c}) RETURN m.uid AS uid, m.heartbeat AS beat", c=corpus)
        beats.append(row["beat"])
        until = time.monotonic() + 20
        while len(beats) < 2 and time.monotonic() < until:
            time.sleep(0.05)
            now = raw("MATCH (m:Memory {corpus: $c}) RETURN m.heartbeat AS beat", c=corpus)[0]["beat"]
            beats.extend([now] if now > beats[0] else [])
        statuses.append(client.memory(row["uid"]).status)
        statuses.append(client.memories()[0].status)
        return AnswerReply(text="Slow.")

    client = open_client(model=scripted(answer=slowly), heartbeat=0.2)
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION)
    assert len(beats) == 2
    assert statuses == ["running", "running"]
    assert answer.usage.calls["neo4j"]["renew_memory"] >= 1

    raw(
        "MATCH (m:Memory {corpus: $c}) SET m.run = 'dead', m.status = 'running', "
        "m.heartbeat = datetime() - duration('PT2M')",
        c=corpus,
    )
    assert client.memory(answer.memory).status == "interrupted"
    assert client.memories()[0].status == "interrupted"


@pytest.mark.parametrize("task", ["evolve", "plan", "answer"])
def test_a_corpus_that_is_deleted_meanwhile_is_a_conflict_and_nothing_of_it_comes_back(
    open_client: Open, corpus: str, raw: Raw, task: str
) -> None:
    usual = {
        "evolve": inserting(("Anna", "Old Tom"), "Old Tom knew."),
        "plan": planning("global", "the pier"),
        "answer": AnswerReply(text="Anna [1]."),
    }

    def deleting(_: object) -> object:
        client.delete()
        return usual[task]

    client = open_client(model=scripted(**{task: deleting}))
    client.add_graph(LETTERS)
    with pytest.raises(ConflictError):
        client.ask(QUESTION)

    assert raw("MATCH (n {corpus: $c}) RETURN count(n) AS count", c=corpus) == [{"count": 0}]
    with pytest.raises(UsageError, match=f"corpus '{corpus}' not found"):
        client.ask(QUESTION)


# No evidence, and unusual questions ---------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["hgmem", "naive"])
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who sold the mill?", "The corpus holds nothing about this question."),
        ("Wer hat die Mühle verkauft, und warum?", "Der Korpus enthält nichts zu dieser Frage."),
        ("谁卖掉了磨坊？", "语料库中没有与此问题相关的内容。"),
    ],
)
def test_an_empty_corpus_has_a_fixed_answer_in_the_questions_language_without_a_model_call(
    open_client: Open, system: str, question: str, text: str
) -> None:
    model = ScriptedModel({})
    client = open_client(model=model)
    client.add_graph(Given())
    answer = client.ask(question, system=system)

    assert (answer.status, answer.text, answer.citations, answer.points) == ("no_evidence", text, (), ())
    assert model.tasks == []
    memory = client.memory(answer.memory)
    assert (memory.status, len(memory.steps), memory.answers[0].text) == ("no_evidence", 1, text)
    assert "model" not in answer.usage.calls


@pytest.mark.parametrize(
    "question",
    [
        '+-&&||!(){}[]^"~*?:\\/',
        "AND OR NOT layer_key:* text:[a TO z]",
        "'}) DETACH DELETE n; MATCH (m:Memory) RETURN m //",
        "`$corpus` \\u0027 {corpus: 'x'}",
        "谁卖掉了磨坊？",
        "من باع الطاحونة؟",
        "ใครขายโรงสี",
        "👩‍👩‍👧 \u202emill\u202c \u200b",
        "mill\x00mill",
        "Who \ud83d sold the mill?",
        "x" * 8_000,
        "mill " * 1_600,
        "?",
    ],
)
@pytest.mark.parametrize("system", ["hgmem", "naive"])
def test_an_odd_question_is_answered_like_any_other(letters: HGMem, question: str, system: str) -> None:
    answer = letters.ask(question, system=system, steps=2)

    assert answer.status == "answered"
    assert letters.memory(answer.memory).answers[0].question == answer.question
    assert all(TEXT[citation.start : citation.end] == citation.quote for citation in answer.citations)


@pytest.fixture(scope="module")
def letters(settings: Settings) -> Iterator[HGMem]:
    """The letters, with the extractive model."""
    with HGMem.open("letters", **settings.model_dump(exclude_none=True)) as client:
        client.add_graph(LETTERS)
        yield client
        client.delete()


# The second system --------------------------------------------------------------------------------------------


def test_naive_retrieval_is_one_vector_query_and_one_answer(open_client: Open, corpus: str, raw: Raw) -> None:
    model = scripted()
    client = open_client(model=model)
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, system="naive", steps=7)

    assert names_of(model) == ["answer"]
    assert answer.points == ()
    assert [step.number for step in answer.steps] == [1]
    assert answer.steps[0].usage.calls["neo4j"] == {"near_chunks": 1}
    hits = answer.steps[0].retrieved[0].chunks
    assert {hit.source_id for hit in hits} == {f"c{at}" for at in range(5)}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert answer.citations[0].chunk == hits[0].uid
    stored = client.memory(answer.memory)
    assert (stored.system, stored.step, stored.points) == ("naive", 1, ())
    assert raw("MATCH (n {corpus: $c}) WHERE n:MemoryPoint OR n:Provisional RETURN count(n) AS count", c=corpus) == [
        {"count": 0}
    ]


# Errors -------------------------------------------------------------------------------------------------------


def test_a_corpus_that_is_being_written_is_refused_and_no_memory_is_made(letters: HGMem, raw: Raw) -> None:
    count = len(letters.memories())
    raw("MATCH (k:Corpus {name: 'letters'}) SET k.status = 'importing'")
    try:
        with pytest.raises(UsageError, match=r"corpus 'letters' is not ready \(status importing\)"):
            letters.ask(QUESTION)
        assert len(letters.memories()) == count
    finally:
        raw("MATCH (k:Corpus {name: 'letters'}) SET k.status = 'ready'")


def test_unknown_corpora_and_memories_are_named(letters: HGMem) -> None:
    for call in (lambda: letters.ask(QUESTION, corpus="nowhere"), lambda: letters.memories(corpus="nowhere")):
        with pytest.raises(UsageError, match="corpus 'nowhere' not found"):
            call()
    with pytest.raises(UsageError, match="memory, point or answer 'nothing' not found"):
        letters.memory("nothing")


def test_ten_and_more_points_of_one_step_are_read_back_in_order_of_birth(open_client: Open) -> None:
    many = tuple(Insertion(entities=("Anna",), description=f"Point {at}.") for at in range(23))
    every = MergeReply(merge=(Joining(points=tuple(range(23)), description="All."),))
    model = scripted(
        evolve=[EvolveReply(insert=many), EvolveReply()],
        plan=[planning("global", "the pier"), PlanReply(judgement="sufficient")],
        merge=[every],
    )
    client = open_client(model=model)
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=3)
    whole = answer.points[-1]

    first = client.memory(answer.memory, step=1)
    assert [point.description for point in first.points] == [f"Point {at}." for at in range(23)]
    parts = client.lineage(whole.uid).parts
    assert [part.point.description for part in parts] == [f"Point {at}." for at in range(23)]
