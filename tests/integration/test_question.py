"""One question, end to end, on the demo corpus: memory in Neo4j, and an answer with valid citations."""

import json
from pathlib import Path

from hgmem import HGMem
from hgmem.sources.files import load
from hgmem.text.resources import resource

QUESTION = json.loads(resource("examples", "questions.json").read_text(encoding="utf-8"))[0]["question"]


def test_a_question_ends_with_a_memory_and_an_answer_whose_quotes_are_in_the_documents(
    client: HGMem, affair: Path
) -> None:
    report = client.add(affair)
    texts = {document.title: document.text for document in load(affair, max_bytes=10**6)}
    answer = client.ask(QUESTION)

    assert report.failed == 0
    assert answer.status == "answered"
    assert len(answer.steps) >= 2
    assert answer.citations
    for citation in answer.citations:
        assert f"[{citation.marker}]" in answer.text
        assert texts[citation.title][citation.start : citation.end] == citation.quote
    kinds = {operation.kind for step in answer.steps for operation in step.operations}
    assert "insert" in kinds
    assert kinds & {"merge", "revise"}
    assert max(len(point.entities) for point in answer.points) >= 3

    stored = client.memory(answer.memory)
    assert [point.uid for point in stored.points] == sorted(
        (point.uid for point in answer.points if point.alive(answer.step)),
        key=lambda uid: [point.uid for point in stored.points].index(uid),
    )
    assert stored.answers[0].text == answer.text
    assert stored.answers[0].citations == answer.citations
