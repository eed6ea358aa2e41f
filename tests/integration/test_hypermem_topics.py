"""HyperMem's topics: one conversation each, matched by few calls; and builds of which nothing has changed."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from test_hypermem import START, matched, nodes, scripted, talk

from hgmem import Conversation, HGMem, Message
from hgmem.models.prompts import prompt_of
from hgmem.systems.hypermem.replies import EpisodeReply, FactReply, FactsReply, TopicReply, TopicTextReply
from hgmem.testing import ScriptedModel

MARK = re.compile(r"Kelpie(\d+)")  # the boat of each conversation
MANY = 20


def of_boats(number: int, days: int = 3) -> Conversation:
    """Return a conversation like all others but for the name of its boat."""
    said = [
        Message("Ann", f"I painted the boat Kelpie{number} on day {day}.", START + timedelta(days=day), id=f"d{day}m0")
        for day in range(days)
    ]
    return Conversation(id=f"boats{number}", title="Ann", messages=said)


def quoting() -> ScriptedModel:
    """Return a model that repeats what it reads, and takes every episode for one topic."""

    def seen(task: Any) -> str:
        return " ".join(f"Ann painted Kelpie{one}." for one in sorted(set(MARK.findall(rendered_text(task)))))

    return scripted(
        episode=lambda task: EpisodeReply(
            subject=task.messages[0].text,
            summary=seen(task),
            narrative=seen(task),
            facts=(FactReply(content=task.messages[0].text, messages=(0,)),) if task.with_facts else (),
        ),
        facts=lambda task: FactsReply(facts=(FactReply(content=task.messages[0].text, messages=(0,)),)),
        topic_text=lambda task: TopicTextReply(title="A boat", summary=seen(task)),
        topic=lambda task: TopicReply(title="A boat", summary=seen(task)),
        topic_matches=matched(lambda task, _: tuple(range(len(task.topics) or 1))),
    )


def rendered_text(task: Any) -> str:
    """Return a task's prompt as a model reads it."""
    return "\n".join(message.content for message in prompt_of(task).filled(task.fields()))


class Reading:
    """A reranker that keeps what it reads."""

    name = "reading"

    def __init__(self) -> None:
        self.read: list[str] = []

    def rerank(self, query: str, texts: Sequence[str], /) -> list[float]:
        self.read += texts
        return [0.0] * len(texts)


@pytest.mark.parametrize("span", ["conversation", "corpus"])
@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_no_prompt_of_a_conversation_shows_another(open_client: Callable[..., HGMem], recipe: str, span: str) -> None:
    model, reranker = quoting(), Reading()
    client = open_client(model=model, reranker=reranker)
    client.add([of_boats(number) for number in range(MANY)], graph=False)
    options: dict[str, Any] = {} if span == "conversation" else {"span": span}
    assert client.build("hypermem", recipe=recipe, settings=options).failed == 0
    shown = [set(MARK.findall(rendered_text(task))) for task in model.tasks]
    assert any(len(marks) > 1 for marks in shown) == (span == "corpus")
    topics = len(nodes(client, "Topic"))
    assert topics == MANY if span == "conversation" else topics < MANY
    model.tasks.clear()
    for settings in ({}, {"rerank": 50}):
        answer = client.ask(
            "Which boat did Ann paint?",
            system="hypermem",
            recipe=recipe,
            settings=settings,
            filters={"source": "boats7"},
        )
        found = " ".join(hit.text for hit in answer.steps[0].retrieved[0].built)
        assert set(MARK.findall(found)) == {"7"}
    prompts = " ".join(rendered_text(task) for task in model.tasks)
    assert set(MARK.findall(prompts)) == {"7"}
    assert set(MARK.findall(" ".join(reranker.read))) == {"7"}


def test_one_call_matches_several_episodes_with_topics_and_with_one_another(open_client: Callable[..., HGMem]) -> None:
    """Days are about two boats in turn, so that each joins what the day but one before it began or joined."""

    def by_boat(task: Any, text: str) -> tuple[int, ...]:
        told = [*(topic.text for topic in task.topics), *task.episodes]
        boat = text.split(":")[0].split()[-1]
        return tuple(at for at, one in enumerate(told) if f"{boat}:" in one)[:1]

    model = scripted(
        episode=lambda task: EpisodeReply(
            subject=task.messages[0].text, summary="It went on.", narrative="It went on."
        ),
        topic_matches=matched(by_boat),
    )
    client = open_client(model=model)
    boats = ("Aurora", "Kelpie")
    said = [
        Message("Ann", f"Work on {boats[day % 2]}", START + timedelta(days=day), id=f"d{day}m0") for day in range(24)
    ]
    client.add(Conversation(id="boats", title="Ann", messages=said[:20]), graph=False)
    assert client.build("hypermem").failed == 0
    assert [task.name for task in model.tasks].count("topic_matches") == 3  # eight, eight and four episodes
    assert sorted(one["episodes"] for one in nodes(client, "Topic").values()) == [10, 10]
    model.tasks.clear()
    client.append("boats", said[20:])
    assert client.build("hypermem").failed == 0
    names = [task.name for task in model.tasks]
    assert names.count("topic_matches") == 1  # earlier batches stay
    assert sorted(one["episodes"] for one in nodes(client, "Topic").values()) == [12, 12]
    assert client.build("hypermem").made == 0
    assert client.check().findings == ()


def test_a_build_of_which_nothing_has_changed_lists_nothing(client: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    client.add(talk(), graph=False)
    done = client.build("hypermem")

    class Listed(Exception):  # noqa: N818 - no error
        pass

    def listing(*_: Any, **__: Any) -> None:
        raise Listed

    with monkeypatch.context() as patched:
        patched.setattr("hgmem.builds.runner.StageRun", listing)
        again = client.build("hypermem")
        assert (again.made, again.unchanged, again.deleted) == (0, done.made, 0)
        with pytest.raises(Listed):
            client.build("hypermem", settings={"propagation": 0.25})
        with pytest.raises(Listed):  # the last run was cut short
            client.build("hypermem")
    assert client.build("hypermem", settings={"propagation": 0.5}).made == 0
    client.append("talk", [Message("Ann", "The fence cost 300 crowns.", START + timedelta(days=9))])
    assert client.build("hypermem").made > 0
    client.hypermem.forget(conversation="talk", message="d0m0")
    assert client.build("hypermem").made > 0


def test_facts_about_a_name_are_those_with_it_the_nearest_first(client: HGMem) -> None:
    client.add(talk(), graph=False)
    client.build("hypermem")
    told = [one.fact for one in client.hypermem.facts(about="apple tree", limit=100)]
    assert told
    assert all("apple trees" in one for one in told)
    assert client.hypermem.facts(about="zeppelin") == []
    by_name = client.hypermem.facts(about="Ann", limit=100)
    assert {one.fact for one in by_name} == {one.fact for one in client.hypermem.facts(limit=100) if "Ann" in one.fact}
