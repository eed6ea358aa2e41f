"""What tools return where there is nothing, too much, or not yet anything, and what they say of it."""

import asyncio
import re
import threading
from typing import Any

import pytest
from assisting import PATIENCE, Caller, Connecting, Environment, over_stdio, until
from letters import LETTERS, QUESTION
from playing import by_task
from proxy import Proxy
from test_hypermem import talk
from wire import Said

from hgmem import HGMem
from hgmem.values.events import Planned
from hgmem.values.inputs import Document, Given, GivenChunk

BY_RULES = "no language model: answers quote sentences, chosen by rules"


@pytest.fixture
def letters(client: HGMem) -> HGMem:
    """A client on the letters, with the extractive model."""
    client.add_graph(LETTERS)
    return client


def logs(*sizes: int) -> Given:
    """Return a logbook whose passages have so many characters."""
    texts = [f"On day {day} the keeper wrote of the storm. ".ljust(size, "~") for day, size in enumerate(sizes)]
    starts = [sum(sizes[:day]) for day in range(len(sizes))]
    return Given(
        documents=(Document(id="log", title="Log", text="".join(texts)),),
        chunks=tuple(
            GivenChunk(id=f"c{day}", document="log", text=text, start=start)
            for day, (text, start) in enumerate(zip(texts, starts, strict=True))
        ),
    )


async def followed(call: Caller, **arguments: Any) -> list[dict[str, Any]]:
    """Return the results of a search and of what each says to call for more."""
    found = [await call("search", **arguments)]
    while more := re.fullmatch(r"skip=(\d+) shows more", found[-1].get("more", "")):
        found.append(await call("search", **arguments, skip=int(more[1])))
    return found


def left(client: HGMem, **options: Any) -> str:
    """Return a memory whose question was left after its first step."""
    for event in (events := client.stream(QUESTION, steps=2, **options)):
        if isinstance(event, Planned):
            events.close()
    (memory,) = client.memories()
    assert memory.status == "interrupted"
    return memory.uid


# Too much ------------------------------------------------------------------------------------------------------------


async def test_passages_beyond_the_size_of_a_result_are_a_call_away(
    connecting: Connecting, environment: Environment, client: HGMem
) -> None:
    client.add_graph(logs(5_000, 5_000, 5_000, 13_000, 100))
    async with connecting(environment, "-c", client.corpus) as call:
        found = await followed(call, query="storm", limit=5)
    sizes = [[len(one["text"]) for one in result["passages"]] for result in found]
    assert all(sum(result) <= 12_000 or len(result) == 1 for result in sizes)
    assert sorted(size for result in sizes for size in result) == [100, 5_000, 5_000, 5_000, 13_000]
    assert all(result["more"] for result in found[:-1])
    assert "more" not in found[-1]


async def test_what_says_how_to_get_more_is_never_refused(environment: Environment, client: HGMem) -> None:
    client.add_graph(logs(*[50] * 560))
    async with over_stdio(environment, "-c", client.corpus) as call:
        found = await followed(call, query="storm", limit=50)
    assert [len(one["passages"]) for one in found] == [50] * 11
    assert found[-1]["more"] == "there is more: ask for something narrower"


# Nothing -------------------------------------------------------------------------------------------------------------


async def test_no_facts_are_an_empty_list(connecting: Connecting, environment: Environment, client: HGMem) -> None:
    client.add(talk(1), graph=False)
    client.build("hypermem")
    async with connecting(environment, "-c", client.corpus, "--full") as call:
        assert (await call("facts", about="boat"))["result"]
        for wanted in ({"about": "zeppelin"}, {"since": "2099-01-01"}):
            assert await call("facts", **wanted) == {"result": []}


async def test_a_memory_without_steps_tells_its_question_and_goes_on(
    connecting: Connecting, scripted: Any, letters: HGMem
) -> None:
    model, environment = scripted({"clues": [Said('{"spans": []}', delay=4)]})
    async with connecting(environment, "-c", letters.corpus, "--full") as call:
        asking = asyncio.create_task(call("ask", question=QUESTION, steps=1))
        await until(lambda: len(by_task(model.requests, "clues")) == 1)
        (summary,) = letters.memories()
        empty = {"memory": summary.uid, "status": "unfinished", "steps": 0, "question": QUESTION}
        assert await call("memory", memory=summary.uid) == empty
        assert await call("evidence", memory=summary.uid) == {}
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: letters.memories()[0].status == "interrupted")
        assert await call("memory", memory=summary.uid) == empty
        assert (await call("status"))["memories"][0].startswith(f"{summary.uid} unfinished, 0 steps, ")
        answer = await call("continue", memory=summary.uid, steps=1)
    assert (answer["status"], answer["memory"]) == ("answered", summary.uid)
    assert [one.question for one in letters.memory(summary.uid).answers] == [QUESTION]


async def test_who_leaves_before_a_memory_begins_leaves_none(environment: Environment, letters: HGMem) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go_on.wait(PATIENCE)

    with Proxy(environment["NEO4J_URI"]) as line:
        async with over_stdio({**environment, "NEO4J_URI": line.uri}, "-c", letters.corpus) as call:
            await call("status")
            line.at("find_corpus", "asked", fault=hold)
            asking = asyncio.create_task(call("ask", question=QUESTION, steps=1))
            await until(reached.is_set)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.sleep(0.5)
            go_on.set()
            await call("status")
            await asyncio.sleep(1)
    assert letters.memories() == []


# Once, and by whom ---------------------------------------------------------------------------------------------------


async def test_a_repeated_continue_adds_no_answer(connecting: Connecting, scripted: Any, letters: HGMem) -> None:
    memory = left(letters)
    _, environment = scripted({"step": [Said('{"insert": []}', delay=3)]})
    refused = f"memory {memory!r} has no unfinished question: pass one, or show its answer with memory"
    async with connecting(environment, "-c", letters.corpus) as call:
        given = {"memory": memory, "steps": 1}
        both = await asyncio.gather(*(call.client.call_tool("continue", given) for _ in range(2)))
        first, again = sorted(both, key=lambda one: one.is_error)  # either may come first
        assert (again.is_error, again.content[0].text) == (True, refused)
        answer = first.structured_content
        assert answer["status"] == "answered"
        assert await call.refused("continue", memory=memory, question=" ") == refused
        assert (await call("memory", memory=memory))["answer"] == answer["answer"]
    assert len(letters.memory(memory).answers) == 1


async def test_an_answer_by_rules_says_so(connecting: Connecting, environment: Environment, letters: HGMem) -> None:
    async with connecting(environment, "-c", letters.corpus) as call:
        answer = await call("ask", question=QUESTION, steps=1)
        assert answer["notes"].count(BY_RULES) == 1
        further = await call("continue", memory=answer["memory"], question="And who left the harbour?", steps=1)
        assert further["notes"].count(BY_RULES) == 1
        assert (await call("memory", memory=answer["memory"]))["notes"] == further["notes"]


async def test_an_answer_of_a_model_does_not_say_that_it_is_by_rules(scripted: Any, letters: HGMem) -> None:
    _, environment = scripted({})
    async with over_stdio(environment, "-c", letters.corpus) as call:
        answer = await call("ask", question=QUESTION, steps=1)
        assert BY_RULES not in answer.get("notes", ())
        assert (await call("status"))["model"] == "m"
    async with over_stdio(environment | {"HGMEM_MODEL": "extractive"}, "-c", letters.corpus) as call:
        assert (await call("status"))["model"] == BY_RULES
        assert BY_RULES not in (await call("memory", memory=answer["memory"])).get("notes", ())
