"""A record of another package's system, in the terminal, on the replay page, in Browser's guide and in LangChain."""

import urllib.request
from html import unescape

import pytest

from hgmem import HGMem
from hgmem.cli.live import described
from hgmem.cli.render import remembered, show, stored
from hgmem.memory.replay.page import scene
from hgmem.memory.stored_memories import load_history
from hgmem.values.events import EvidenceFound
from hgmem.values.inputs import Document
from hgmem.values.records import Answer, Step

pytestmark = pytest.mark.usefixtures("toy")

QUESTION = "Who is only3?"


@pytest.fixture
def asked(client: HGMem) -> tuple[HGMem, Answer]:
    """A question that the system of tests/toy/ answered."""
    client.add([Document(id=f"d{at}", text=f"The boat of house {at} is called only{at}.") for at in range(7)])
    client.build("toy")
    return client, client.ask(QUESTION, system="toy")


def rows(step: Step) -> list[tuple[str, str]]:
    found = [(hit.kind, hit.text) for one in step.retrieved for hit in one.built]
    assert {kind for kind, _ in found} == {"ToyTopic", "ToyGist"}
    return found


def test_the_terminal_shows_how_it_searched_what_it_found_and_no_points(
    asked: tuple[HGMem, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    client, answer = asked
    memory = client.memory(answer.memory)
    for told in (stored(memory, system=client.system("toy")), remembered(answer)):
        show(*told)
        text = capsys.readouterr().out
        assert "searched by topics" in text
        assert f"asked {QUESTION}" in text
        assert " of kind ToyGist, 2 of kind ToyTopic" in text
        for kind, said in rows(memory.steps[0]):
            assert f"{kind}: {said[:60]}" in text
        assert "point" not in text
        assert "entities" not in text


def test_its_events_say_what_a_step_found(asked: tuple[HGMem, Answer]) -> None:
    client, answer = asked
    events = list(client.stream(QUESTION, system="toy"))
    (event,) = (one for one in events if isinstance(one, EvidenceFound))
    assert [(hit.kind, hit.text) for hit in event.built] == rows(answer.steps[0])
    (line,) = described(event)
    assert line.plain.startswith("  found by topics: ")
    assert " of kind ToyGist, 2 of kind ToyTopic" in line.plain


def test_the_replay_page_has_the_rows_and_chunks_that_its_sub_queries_found(asked: tuple[HGMem, Answer]) -> None:
    client, answer = asked
    drawn = scene(load_history(client._services(None), answer.memory))
    (step,) = drawn["steps"]
    (subquery,) = step["subqueries"]
    (retrieved,) = answer.steps[0].retrieved
    assert (step["strategy"], subquery["text"], drawn["points"]) == ("topics", QUESTION, [])
    assert [(one["kind"], one["text"]) for one in subquery["built"]] == rows(answer.steps[0])
    assert (subquery["found"]["built"], subquery["chunks"]) == (
        len(retrieved.built),
        [hit.uid for hit in retrieved.chunks],
    )
    assert set(subquery["chunks"]) <= set(drawn["chunks"])
    assert drawn["answers"][0]["text"] == answer.text


def test_browsers_guide_tells_its_steps_without_points(asked: tuple[HGMem, Answer]) -> None:
    client, answer = asked
    with client.browse(answer.memory) as view, urllib.request.urlopen(view.guide, timeout=10) as page:
        text = unescape(page.read().decode())
    assert "Step 1, topics" in text
    assert f"Asked: {QUESTION}" in text
    for kind, said in rows(answer.steps[0]):
        assert f"<li>{kind}: {said}</li>" in text
    assert f"It found {len(answer.steps[0].retrieved[0].chunks)} chunks." in text
    prose = text.replace("support = (c)<-[:SUPPORTED_BY]-(p:MemoryPoint", "")
    assert "point" not in prose.replace("point: ''", "")
    assert "{{" not in text


def test_langchains_runs_and_documents_tell_it_too(asked: tuple[HGMem, Answer]) -> None:
    langchain = pytest.importorskip("hgmem.langchain", reason="langchain is not installed")
    from runs import Collector

    client, answer = asked
    tracer = Collector()
    langchain.HGMemRunnable(client=client, system="toy").invoke(QUESTION, {"callbacks": [tracer]})
    (root,) = tracer.roots
    (step,) = (run for run in root.child_runs if run.name == "step 1")
    assert step.inputs["subqueries"] == [QUESTION]
    assert step.outputs["strategy"] == "topics"
    assert [(one["kind"], one["text"]) for one in step.outputs["built"]] == rows(answer.steps[0])
    found = langchain.HGMemRetriever(client=client, system="toy", k=3).invoke(QUESTION)
    assert [document.metadata["rank"] for document in found] == [1, 2, 3]
    assert {document.id for document in found} <= {hit.uid for hit in answer.steps[0].retrieved[0].chunks}
