"""HyperMem on a real Neo4j: stages of the build, what a change makes anew, the search from the top down, and verbs."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from dumping import dump
from test_builds import built

from hgmem import Conversation, HGMem, Message, UsageError
from hgmem.errors import ModelError
from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.document_filters import choose
from hgmem.systems.hypermem.answer import KINDS, _by_words, _counting, _depths, _searched
from hgmem.systems.hypermem.build import hyperedge, propagated
from hgmem.systems.hypermem.recipes import RECIPES
from hgmem.systems.hypermem.replies import (
    BoundaryReply,
    ComparisonsReply,
    EpisodeMatchedReply,
    EpisodeReply,
    EpisodesMatchedReply,
    FactReply,
    FactsReply,
    MatchesReply,
    RoleReply,
    RolesReply,
    StartsReply,
    TopicReply,
    TopicTextReply,
)
from hgmem.testing import ScriptedModel
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk

START = datetime(2024, 3, 1, 9, 0)
DAYS = (
    (
        "the boat",
        ("I bought a red boat yesterday.", "What is it called?", "It is called Aurora.", "My brother paints it."),
    ),
    (
        "the garden",
        ("I planted 12 apple trees.", "Do they need water?", "They get water from the well.", "I like apples."),
    ),
    ("the boat", ("The Aurora sank on Friday.", "Was anybody hurt?", "My brother broke his arm.", "I sold the wreck.")),
    ("the garden", ("The apple trees were eaten by deer.", "All 12?", "Only two are left.", "I built a fence.")),
)


def messages(days: int = 4) -> list[Message]:
    """Return days of four messages each: Ann tells, Bo asks."""
    return [
        Message("Bo" if at == 1 else "Ann", text, START + timedelta(days=day, minutes=at), id=f"d{day}m{at}")
        for day, (_, texts) in enumerate(DAYS[:days])
        for at, text in enumerate(texts)
    ]


def talk(days: int = 4, name: str = "talk") -> Conversation:
    return Conversation(id=name, title=f"Ann and Bo: {name}", messages=messages(days))


def nodes(client: HGMem, label: str) -> dict[str, dict[str, Any]]:
    held = dump(client.settings, client.corpus)
    return {str(node["uid"]): node for node in held.of(label).values()}


@pytest.fixture
def remembered(client: HGMem) -> HGMem:
    """A client on one conversation of four days, built without a language model."""
    client.add(talk(), graph=False)
    client.build("hypermem")
    return client


def test_days_become_episodes_with_facts_that_rest_on_their_messages(remembered: HGMem) -> None:
    episodes = sorted(nodes(remembered, "Episode").values(), key=lambda one: one["begins"])
    assert [(one["first"], one["last"], one["messages"]) for one in episodes] == [
        (f"d{day}m0", f"d{day}m3", 4) for day in range(4)
    ]
    facts = {one["content"]: one for one in nodes(remembered, "Fact").values()}
    bought = facts["Ann bought a red boat yesterday."]
    assert (bought["event_time"], bought["message_ids"], bought["speakers"]) == (
        "yesterday (2024-02-29)",
        ["d0m0"],
        ["Ann"],
    )
    assert facts["Ann: It is called Aurora."]["questions"] == ["What is it called?"]
    chunks = {chunk.uid: chunk for chunk in remembered.chunks()}
    held = dump(remembered.settings, remembered.corpus)
    behind = {source: target for source, target, _ in held.joined("RESTS_ON") if target in chunks}
    assert all(
        one["message_ids"][0] in {m.id for m in chunks[behind[uid]].messages}
        for uid, one in nodes(remembered, "Fact").items()
    )
    assert remembered.build("hypermem").made == 0
    assert remembered.check().findings == ()


def test_every_episode_has_a_topic_and_every_fact_an_episode(remembered: HGMem) -> None:
    held = dump(remembered.settings, remembered.corpus)
    in_topic = [source for source, _, _ in held.joined("IN_TOPIC")]
    in_episode = [source for source, _, _ in held.joined("IN_EPISODE")]
    assert set(in_topic) == set(nodes(remembered, "Episode"))
    assert sorted(in_episode) == sorted(nodes(remembered, "Fact"))
    for kind in ("IN_TOPIC", "IN_EPISODE"):
        ties = [tie for _, _, tie in held.joined(kind)]
        assert all(0 <= tie["weight"] <= 1 for tie in ties)
        assert len({tie["role"] for tie in ties}) > 1
        assert len({tie["weight"] for tie in ties}) > 1


def test_the_index_holds_propagated_vectors_of_unit_length(remembered: HGMem) -> None:
    facts = nodes(remembered, "Fact")
    members: dict[str, list[tuple[str, float]]] = {}
    for fact, episode, tie in dump(remembered.settings, remembered.corpus).joined("IN_EPISODE"):
        members.setdefault(episode, []).append((fact, tie["weight"]))
    for held in members.values():
        own = np.asarray([facts[uid]["own_embedding"] for uid, _ in held])
        edge = hyperedge(own, np.asarray([weight for _, weight in held]))
        for row, (uid, _) in zip(own, held, strict=True):
            given = np.asarray(facts[uid]["embedding"])
            assert np.isclose(np.linalg.norm(given), 1, atol=1e-5)
            assert np.allclose(given, propagated(row, [edge], strength=0.5), atol=1e-5)


def test_propagation_follows_the_papers_formula() -> None:
    members, weights = np.asarray([[1.0, 0.0], [0.0, 1.0]]), np.asarray([1.0, 0.0])
    share = np.e / (np.e + 1)
    assert np.allclose(hyperedge(members, weights), [share, 1 - share])
    edges = [np.asarray([0.0, 1.0]), np.asarray([0.0, 1.0])]
    total = propagated(np.asarray([1.0, 0.0]), edges, strength=0.5)
    assert np.allclose(total, np.asarray([1, 1]) / np.sqrt(2))


def test_appending_opens_the_last_episode_again_and_no_other(remembered: HGMem) -> None:
    before = nodes(remembered, "Episode")
    later = START + timedelta(days=3, minutes=9)
    remembered.append("talk", [Message("Ann", "The fence cost 300 crowns.", later, id="d3m4")])
    done = remembered.build("hypermem")
    after = nodes(remembered, "Episode")
    assert before.keys() == after.keys()
    changed = [uid for uid in after if before[uid]["text"] != after[uid]["text"]]
    assert [after[uid]["first"] for uid in changed] == ["d3m0"]
    assert after[changed[0]]["messages"] == 5
    assert any("300 crowns" in one["content"] for one in nodes(remembered, "Fact").values())
    assert done.failed == 0
    assert remembered.build("hypermem").made == 0
    assert remembered.check().findings == ()


def test_the_next_question_knows_an_appended_message_before_any_build(remembered: HGMem) -> None:
    later = START + timedelta(days=9)
    remembered.append("talk", [Message("Ann", "The lighthouse keeper is called Ravn.", later)])
    answer = remembered.ask("Who is the lighthouse keeper?", system="hypermem")
    assert "Ravn" in answer.text
    assert any("stale (messages were appended)" in note for note in answer.notes)
    assert "1 chunk with messages of no episode yet shown as they are" in answer.steps[0].notes
    cited = next(one for one in answer.citations if "Ravn" in one.quote)
    assert (cited.speaker, cited.time[:10], cited.message) == ("Ann", "2024-03-10", "17")


def test_a_message_of_no_episode_comes_beside_what_each_recipe_shows(remembered: HGMem) -> None:
    remembered.model = model = scripted()

    def told() -> dict[str, tuple[set[str], set[str]]]:
        """Return for each recipe the rows that the answer may cite, and the words that it may use of facts."""
        for recipe in RECIPES:
            remembered.ask("Who is hurt, and what sank?", system="hypermem", recipe=recipe)
        return {
            recipe: (
                {each.text for each in task.passages if isinstance(each, BuiltPassage)},
                {line.partition(" [")[0] for line in task.memory.statements},
            )
            for recipe, task in zip(RECIPES, model.tasks[-len(RECIPES) :], strict=True)
        }

    before = told()
    remembered.append("talk", [Message("Ann", "The keeper is called Ravn.", START + timedelta(days=9))])
    assert told() == before
    assert [recipe for recipe, (rows, words) in before.items() if not rows and not words] == ["no-fact-context"]
    latest = [task.passages for task in model.tasks[-len(RECIPES) :]]
    assert all(any("Ravn" in each.text for each in passages if isinstance(each, Chunk)) for passages in latest)


def test_a_changed_message_makes_anew_what_rested_on_it_alone(remembered: HGMem) -> None:
    said = messages()
    said[10] = Message("Ann", "My sister broke her leg.", said[10].time, id=said[10].id)
    before = nodes(remembered, "Episode")
    remembered.add(Conversation(id="talk", title="Ann and Bo: talk", messages=said), graph=False)
    remembered.build("hypermem")
    after = nodes(remembered, "Episode")
    changed = [
        after[uid]["first"]
        for uid in after
        if after[uid] != before.get(uid) and after[uid]["text"] != before[uid]["text"]
    ]
    assert changed == ["d2m0"]
    facts = " ".join(one["content"] for one in nodes(remembered, "Fact").values())
    assert "sister broke" in facts
    assert "brother broke" not in facts
    again = built(remembered)
    remembered.delete(system="hypermem")
    remembered.build("hypermem")
    assert built(remembered) == again


def test_topics_without_episodes_go(client: HGMem) -> None:
    client.add([talk(1, "first"), Conversation(id="other", messages=[Message("Cy", "Whales sing at night.", START)])])
    client.build("hypermem")
    client.hypermem.forget(conversation="other")
    client.build("hypermem")
    assert not any("hale" in one["text"] for one in nodes(client, "Topic").values())
    assert client.check().findings == ()


def test_long_topics_go_on_in_topics_of_their_own_though_they_share_the_episode_at_which_they_do(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hgmem.systems.hypermem.topics.TOGETHER", 1)  # in a batch, episodes know of one another

    def told(task: Any) -> EpisodeReply:
        text = task.messages[0].text
        return EpisodeReply(subject=text, summary=text, narrative=text)

    def matching(task: Any, text: str) -> tuple[int, ...]:
        """All but the first two days join both topics."""
        return () if text.startswith("Reef, reef.") else tuple(range(len(task.topics) or 2))

    client = open_client(model=scripted(episode=told, topic_matches=matched(matching)))
    others = [f"Sail, reef, harbour{day}, mast{day}, keel{day}." for day in range(2, 18)]
    said = [
        Message("Ann", text, START + timedelta(days=day), id=f"d{day}m0")
        for day, text in enumerate(["Sail, sail.", "Reef, reef.", *others])
    ]
    client.add(Conversation(id="long", title="Ann", messages=said), graph=False)
    settings = {"shortlist": 2}  # each is nearest to the first two days, which know of no other
    assert client.build("hypermem", settings=settings).failed == 0
    topics = nodes(client, "Topic")
    assert sorted(one["episodes"] for one in topics.values()) == [2, 2, 15, 15]
    members = Counter(target for _, target, _ in dump(client.settings, client.corpus).joined("IN_TOPIC"))
    assert members == {uid: one["episodes"] for uid, one in topics.items()}
    assert client.build("hypermem", settings=settings).made == 0
    client.append("long", [Message("Ann", "Sail, reef, harbour18.", START + timedelta(days=18), id="d18m0")])
    client.build("hypermem", settings=settings)
    grown = nodes(client, "Topic")
    assert topics.keys() == grown.keys()
    assert sorted(one["episodes"] for one in grown.values()) == [3, 3, 15, 15]
    assert client.build("hypermem", settings=settings).made == 0
    assert client.check().findings == ()


def test_the_search_goes_from_topics_to_episodes_to_facts(remembered: HGMem) -> None:
    answer = remembered.ask("What is the boat called?", system="hypermem")
    step = answer.steps[0]
    assert "Ann: It is called Aurora." in [hit.text for hit in step.retrieved[0].built]
    kinds = [hit.kind for hit in step.retrieved[0].built]
    assert kinds == sorted(kinds, key=["Topic", "Episode", "Fact"].index)
    assert set(kinds) == {"Topic", "Episode", "Fact"}
    assert step.strategy == "topics"
    shown = remembered.memory(answer.memory)
    assert shown.steps[0].retrieved[0].built == step.retrieved[0].built
    assert answer.citations[0].speaker == "Ann"


@pytest.mark.parametrize(
    ("recipe", "kinds"),
    [
        ("no-topics", {"Episode", "Fact"}),
        ("no-topics-no-episodes", {"Fact"}),
        ("paper", {"Topic", "Episode", "Fact"}),
    ],
)
def test_recipes_search_their_levels(remembered: HGMem, recipe: str, kinds: set[str]) -> None:
    answer = remembered.ask("What is the boat called?", system="hypermem", recipe=recipe)
    assert {hit.kind for hit in answer.steps[0].retrieved[0].built} == kinds
    assert answer.citations


def test_lower_levels_stay_within_what_the_level_above_kept(remembered: HGMem) -> None:
    settings = {"topics": 1, "episodes": 1, "facts": 100, "chunk_search": False}
    built_hits = remembered.ask("apple trees", system="hypermem", settings=settings).steps[0].retrieved[0].built
    ties = dump(remembered.settings, remembered.corpus)
    topic, episode = built_hits[0].uid, built_hits[1].uid
    assert (episode, topic) in {(source, target) for source, target, _ in ties.joined("IN_TOPIC")}
    facts = {hit.uid for hit in built_hits[2:]}
    assert facts
    assert facts <= {source for source, target, _ in ties.joined("IN_EPISODE") if target == episode}


def test_numbers_and_dates_are_words(remembered: HGMem) -> None:
    found = remembered.hypermem.facts(about="12", limit=2)
    assert "Ann planted 12 apple trees." in [one.fact for one in found]


def test_a_question_may_carry_a_time_and_a_speaker(remembered: HGMem) -> None:
    early = remembered.ask("What happened to the Aurora?", system="hypermem", settings={"as_of": "2024-03-02T23:00"})
    assert not any("sank" in one.quote for one in early.citations)
    assert not any(hit.text.startswith("The Aurora sank") for hit in early.steps[0].retrieved[0].built)
    bo = remembered.ask("What happened to the Aurora?", system="hypermem", settings={"speaker": "Bo"})
    assert all("Ann" not in hit.text for hit in bo.steps[0].retrieved[0].built if hit.kind == "Fact")
    with pytest.raises(UsageError, match="as_of"):
        remembered.ask("What?", system="hypermem", settings={"as_of": "soon"})


def test_what_was_said_in_time_is_found_behind_many_that_were_said_later(client: HGMem) -> None:
    said = [(f"The Aurora is called the Aurora, {at}.", START + timedelta(days=9)) for at in range(520)]
    said.append(("A boat lay there.", START))
    client.add(
        [Conversation(id=f"c{at}", messages=[Message("Cy", text, time)]) for at, (text, time) in enumerate(said)],
        graph=False,
    )
    question = "What is the Aurora called?"
    [query] = client._services(None).embed([question], kind="query")
    config = replace(RECIPES["default"], as_of=(START + timedelta(days=1)).isoformat())
    found = _searched(client._database, (question, query), scope=Scope(corpus=client.corpus), config=config)
    assert [chunk.text for chunk in found] == [next(c.text for c in client.chunks() if "A boat lay there." in c.text)]


@pytest.mark.parametrize(
    ("question", "as_of"),
    [("Which boat sank?", "2024-03-01T23:00"), ("Has the boat a red sail?", "2024-03-01T09:00")],
    ids=["episodes", "facts"],
)
def test_a_limit_counts_what_was_said_in_time_alone(client: HGMem, question: str, as_of: str) -> None:
    said = [
        Message("Ann", "The boat Aurora left the harbour of Nordhavn.", START),
        Message("Ann", "The boat Aurora has a red sail.", START + timedelta(minutes=1)),
        Message("Ann", "The boat Aurora sank in the harbour of Nordhavn.", START + timedelta(days=9)),
    ]
    client.add(Conversation(id="talk", messages=said), graph=False)
    client.build("hypermem")

    def kept(**time: str) -> dict[str, str]:
        settings = {"topics": 1, "episodes": 1, "facts": 1, **time}
        answer = client.ask(question, system="hypermem", settings=settings, answer=False)
        return {hit.kind: hit.text for hit in answer.steps[0].retrieved[0].built}

    assert len(nodes(client, "Topic")) == 1
    nearest, in_time = kept(), kept(as_of=as_of)
    assert tuple(in_time) == KINDS
    assert in_time["Fact"] != nearest["Fact"]


def test_only_chunks_in_which_the_speaker_speaks_are_evidence(remembered: HGMem) -> None:
    remembered.append("talk", [Message("Cy", "The wreck of the Aurora is mine.", START + timedelta(days=9))])
    settings = {"speaker": " Cy "}
    answer = remembered.ask("What happened to the Aurora?", system="hypermem", settings=settings)
    assert {one.speaker for one in answer.citations} == {"Cy"}
    remembered.build("hypermem")
    remembered.append("talk", [Message("Ann", "The Aurora is lost for ever.", START + timedelta(days=19))])
    answer = remembered.ask("What happened to the Aurora?", system="hypermem", settings=settings)
    assert {one.speaker for one in answer.citations} == {"Cy"}
    with pytest.raises(UsageError, match=r"corpus .* has no message of speaker 'Nobody': names are those of the"):
        remembered.ask("What happened to the Aurora?", system="hypermem", settings={"speaker": "Nobody"})


@pytest.mark.parametrize("built_before", [True, False])
def test_a_day_counts_to_its_end_and_what_was_said_later_or_nobody_knows_when_does_not(
    client: HGMem, built_before: bool
) -> None:
    said = [
        Message("Ann", "The lighthouse keeper is called Ravn.", "2024-03-01T23:59:59.5"),
        Message("Ann", "The lighthouse keeper is called Holm.", "2024-03-02T00:00"),
        Message("Ann", "The lighthouse keeper is called Dale."),
        Message("Ann", "The lighthouse keeper was called Moe.", "2024-03-01T23:59"),  # times may run backwards
    ]
    client.add(Conversation(id="keepers", messages=said if built_before else said[:1]), graph=False)
    client.build("hypermem")
    client.append("keepers", said[1:] if not built_before else [])
    question = {"question": "Who is the lighthouse keeper?", "system": "hypermem", "settings": {"as_of": "2024-03-01"}}
    [chunk] = client.chunks()
    quotes = {chunk.text[one.start : one.end]: one.quote for one in client.ask(**question).citations}
    assert quotes
    assert all(stored == quote and quote in (said[0].text, said[3].text) for stored, quote in quotes.items())
    rules, client.model = client.model, (model := scripted())
    client.ask(**question)
    [task] = model.tasks
    [shown] = task.passages
    assert [name for name in ("Ravn", "Holm", "Dale", "Moe") if name in shown.text] == ["Ravn", "Moe"]
    client.model = rules
    client.build("hypermem")
    facts = [one.fact for one in client.hypermem.facts(until="2024-03-01")]
    assert facts == [f"Ann: {one.text}" for one in (said[0], said[3])]


def test_one_of_many_conversations_finds_what_it_finds_alone(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    later = START + timedelta(days=90)
    others = [
        Conversation(
            id=f"other{number}",
            messages=[Message("Cy", f"What the boat {number} is called is {at}.", later) for at in range(4)],
        )
        for number in range(45)
    ]
    beside = open_client()
    alone = open_client(corpus=f"{beside.corpus}-alone")
    alone.add(talk(), graph=False)
    beside.add([talk(), *others], graph=False)
    for client in (alone, beside):
        client.build("hypermem")

    def found(client: HGMem, recipe: str, settings: dict[str, Any], filters: dict[str, Any]) -> list[Any]:
        """Return the rows and the chunks that a question finds, among others that are nearer to it."""
        question, few = "What is the boat called?", {"topics": 30, "episodes": 30, "facts": 30}
        options: Any = {"recipe": recipe, "settings": {**few, **settings}, "filters": filters, "answer": False}
        [retrieved] = client.ask(question, system="hypermem", **options).steps[0].retrieved
        chunks = {chunk.uid: chunk.text for chunk in client.chunks()}
        return [{hit.text for hit in retrieved.built}, {chunks[hit.uid] for hit in retrieved.chunks}]

    one: dict[str, Any] = {"source": "talk"}
    narrowings = [({}, one), ({"speaker": "Ann"}, {}), ({"as_of": "2024-03-31"}, {}), ({"speaker": "Bo"}, one)]
    for settings, filters in narrowings:
        for recipe in ("default", "no-topics", "no-topics-no-episodes"):
            expected = found(alone, recipe, settings, filters)
            assert found(beside, recipe, settings, filters) == expected, (recipe, settings, filters)
    about = {"about": "the boat", "speaker": "Ann"}
    listed = [{one.fact for one in client.hypermem.facts(**about)} for client in (alone, beside)]
    assert listed[0]
    assert listed[0] == listed[1]

    monkeypatch.setattr("hgmem.systems.hypermem.answer._LAYERS", Ranking(k=20, over=20))

    def worded(client: HGMem, filters: dict[str, Any] | None = None, **time: Any) -> dict[str, list[str]]:
        database = client._database
        chosen = choose(database, filters or {}, corpus=client.corpus).documents
        scope = Scope(corpus=client.corpus, documents=chosen)
        counting = _counting(database, scope=scope, depths=_depths(replace(RECIPES["default"], **time)))
        rows = _by_words(database, "the boat called", scope=scope, kinds=KINDS, counting=counting)
        texts = {uid: str(row["text"]) for kind in KINDS for uid, row in nodes(client, kind).items()}
        return {kind: sorted(texts[uid] for uid in found) for kind, found in rows.items()}

    assert worded(alone)["Fact"]
    assert worded(beside, as_of="2024-03-31") == worded(alone)
    monkeypatch.setattr("hgmem.systems.hypermem.answer._EXACT", 0)  # more facts than that are not all ranked
    assert worded(beside, {"source": ("talk",)}) == worded(alone)


def test_facts_are_listed_by_subject_time_and_speaker(remembered: HGMem) -> None:
    newest = remembered.hypermem.facts(limit=2)
    assert [one.said_at[:10] for one in newest] == ["2024-03-04", "2024-03-04"]
    boat = remembered.hypermem.facts(about="boat", until="2024-03-01", speaker="Ann")
    assert boat[0].fact == "Ann bought a red boat yesterday."
    assert {one.said_at[:10] for one in boat} == {"2024-03-01"}
    assert remembered.hypermem.facts(since="2024-03-05") == []
    with pytest.raises(UsageError, match=r"corpus .* has no message of speaker 'ann': names are those of the"):
        remembered.hypermem.facts(speaker="ann")
    with pytest.raises(UsageError, match="invalid since='spring'"):
        remembered.hypermem.facts(since="spring")


def matched(wanted: Callable[[Any, str], tuple[int, ...]]) -> Callable[[Any], EpisodesMatchedReply]:
    """Return a reply that matches each episode with what is wanted for its text."""
    return lambda task: EpisodesMatchedReply(
        episodes=tuple(
            EpisodeMatchedReply(number=number, matches=wanted(task, text))
            for number, text in enumerate(task.episodes, start=len(task.topics))
        )
    )


def scripted(**replies: Any) -> ScriptedModel:
    """A model for all tasks: each day is an episode, told in one fact by its first message."""
    fact = FactReply(content="Ann bought a boat.", messages=(0,), role="core", weight=0.9)
    usual: dict[str, Any] = {
        "divide": lambda task: StartsReply(
            starts=tuple(at for at, said in enumerate(task.messages) if said.id.endswith("m0"))
        ),
        "boundary": lambda task: BoundaryReply(should_end=task.message.id.endswith("m0")),
        "episode": lambda task: EpisodeReply(
            subject=task.messages[0].text,
            summary="What Ann tells.",
            narrative=task.messages[0].text,
            facts=(fact,) if task.with_facts else (),
        ),
        "facts": lambda task: FactsReply(facts=(fact,)),
        "fact_changes": lambda task: ComparisonsReply(),
        "fact_roles": lambda task: RolesReply(roles=(RoleReply(number=0, role="spatial", weight=0.7),)),
        "topic_match": lambda task: MatchesReply(matches=(0,)),
        "topic_matches": matched(lambda task, text: (0,)),
        "topic_text": lambda task: TopicTextReply(title="Ann's things", summary="Ann tells of her things."),
        "topic": lambda task: TopicReply(
            title="Ann's things" if task.with_text else "",
            summary="Ann tells of her things." if task.with_text else "",
            roles=tuple(RoleReply(number=at, role="begining", weight=2) for at in range(len(task.episodes))),
        ),
        "answer": lambda task: AnswerReply(text="A boat [1]."),
    }
    return ScriptedModel({**usual, **replies})


@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_a_language_model_is_called_as_the_recipe_says(open_client: Callable[..., HGMem], recipe: str) -> None:
    model = scripted()
    client = open_client(model=model)
    client.add(talk(), graph=False)
    report = client.build("hypermem", recipe=recipe)
    assert report.failed == 0
    calls: dict[str, int] = {}
    for task in model.tasks:
        calls[task.name] = calls.get(task.name, 0) + 1
    if recipe == "default":
        assert calls == {"divide": 1, "episode": 4, "fact_changes": 3, "topic_matches": 1, "topic": 1}
        assert calls["divide"] <= 0.15 * 16
    else:
        assert calls["boundary"] == 14  # one a message from the third on
        assert calls["episode"] == calls["facts"] == calls["fact_roles"] == 4
        assert calls["topic_text"] == 4
    assert len(nodes(client, "Episode")) == 4
    assert len(nodes(client, "Topic")) == 1


def test_a_role_that_is_none_counts_as_the_usual_one(
    open_client: Callable[..., HGMem],
) -> None:
    client = open_client(model=scripted())
    client.add(talk(), graph=False)
    client.build("hypermem")
    held = dump(client.settings, client.corpus)
    assert {(tie["role"], tie["weight"]) for _, _, tie in held.joined("IN_EPISODE")} == {("core", 0.9)}
    assert {(tie["role"], tie["weight"]) for _, _, tie in held.joined("IN_TOPIC")} == {("developing", 1.0)}


def test_an_episode_that_fails_for_good_costs_its_unit_alone(open_client: Callable[..., HGMem]) -> None:
    def failing(task: Any) -> EpisodeReply:
        if task.messages[0].id == "d1m0":
            raise ModelError("the model refuses")
        return EpisodeReply(subject="A day", summary="What Ann tells.", narrative="It went on.")

    client = open_client(model=scripted(episode=failing))
    client.add(talk(), graph=False)
    report = client.build("hypermem")
    assert report.failed == 1
    assert sorted(one["first"] for one in nodes(client, "Episode").values()) == ["d0m0", "d2m0", "d3m0"]
    client.model = scripted()
    client.build("hypermem", retry_failed=True)
    assert len(nodes(client, "Episode")) == 4


def test_a_conversation_that_was_not_divided_costs_itself_alone(open_client: Callable[..., HGMem]) -> None:
    def failing(task: Any) -> StartsReply:
        if "secret" in task.messages[0].text:
            raise ModelError("the model refuses")
        return StartsReply(starts=())

    client = open_client(model=scripted(divide=failing))
    secrets = [Message("Ann", f"A secret: {word}.", START, id=f"s{word}") for word in ("one", "two", "three")]
    client.add([talk(), Conversation(id="other", title="Secrets", messages=secrets)], graph=False)
    assert client.build("hypermem").failed == 1
    episodes = len(nodes(client, "Episode"))
    assert episodes
    assert client.plan_build("hypermem").stages  # it lists the episodes of all conversations as well
    client.model = scripted()
    client.build("hypermem", retry_failed=True)
    assert len(nodes(client, "Episode")) > episodes


@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_the_estimate_is_an_upper_bound(open_client: Callable[..., HGMem], recipe: str) -> None:
    def first_two_days(task: Any, text: str) -> tuple[int, ...]:
        """Each fifth day joins the topics of the first two days that it is shown, and the others begin their own."""
        told = [one.title + one.summary for one in task.topics]
        known = tuple(at for at, text in enumerate(told) if "day 0 " in text or "day 1 " in text)
        return known if int(text.split()[2]) % 5 == 0 else ()

    def own_title(task: Any) -> TopicTextReply:
        return TopicTextReply(title=task.topic.title if task.topic else task.subject, summary="What Ann bought.")

    model = scripted(
        topic_match=lambda task: MatchesReply(matches=first_two_days(task, task.subject)),
        topic_matches=matched(first_two_days),
        topic_text=own_title,
    )
    client = open_client(model=model)
    long = [
        Message("Ann", f"On day {day} I bought {at}.", START + timedelta(days=day, minutes=at), id=f"d{day}m{at}")
        for day in range(25)
        for at in range(4)
    ]
    client.add(Conversation(id="long", title="Ann", messages=long), graph=False)
    plan = client.plan_build("hypermem", recipe=recipe)
    client.build("hypermem", recipe=recipe)
    asked = Counter(task.name for task in model.tasks)
    assert asked.total() <= plan.calls
    stages = {
        "segments": ("divide", "boundary"),
        "matches": ("topic_matches",),
        "joins": ("topic_match", "topic_text"),
        "topics": ("topic",),
        "judgements": ("fact_changes",),
    }
    planned = {stage.stage: stage.calls for stage in plan.stages}
    for stage, names in stages.items():
        assert sum(asked[name] for name in names) <= planned[stage]


def test_a_corpus_without_conversations_is_told_what_to_do(client: HGMem, tmp_path: Any) -> None:
    (tmp_path / "log.txt").write_text("A boat was sold.", encoding="utf-8")
    client.add(tmp_path / "log.txt", graph=False)
    with pytest.raises(UsageError, match="has no conversations: add one"):
        client.build("hypermem")


def test_entities_are_mentioned_where_there_is_a_graph(client: HGMem) -> None:
    client.add(talk(), graph=True)
    client.build("hypermem")
    mentions = dump(client.settings, client.corpus).joined("MENTIONS")
    facts = nodes(client, "Fact")
    named = {nodes(client, "Entity")[target]["name"] for source, target, _ in mentions if source in facts}
    assert "Aurora" in named


def test_a_build_moves_with_an_archive(remembered: HGMem, tmp_path: Any) -> None:
    before = [nodes(remembered, kind) for kind in ("Chunk", "Topic", "Episode", "Fact")]
    remembered.export(tmp_path / "talk.jsonl.gz")
    remembered.delete()
    remembered.import_archive(tmp_path / "talk.jsonl.gz")
    assert [nodes(remembered, kind) for kind in ("Chunk", "Topic", "Episode", "Fact")] == before
    assert remembered.build("hypermem").made == 0
    with gzip.open(tmp_path / "talk.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert any("messages" in line for line in lines if line.get("kind") == "Chunk")
