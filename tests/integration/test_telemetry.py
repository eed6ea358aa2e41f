"""Spans and metrics by OpenTelemetry of what a client does, read in memory, and those that the service serves."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from letters import LETTERS, QUESTION
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serving import serving
from wire import Failing, Said, WireServer

from hgmem import Document, HGMem, UsageError
from hgmem.client.serving import ServiceStore
from hgmem.errors import ModelError
from hgmem.telemetry import Telemetry
from hgmem.values.events import Watcher

TEXT = "On 12 October the carter Josse Arkwell left the crate in the Tallow Stairs Warehouse of Marian Dace."


@dataclass
class Told:
    """What was reported so far."""

    spans: InMemorySpanExporter
    metrics: InMemoryMetricReader

    def points(self, name: str) -> dict[tuple[str, ...], Any]:
        """Return the points of a metric by the values of their attributes, in the order of their names."""
        data = self.metrics.get_metrics_data()
        found = [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return {tuple(str(point.attributes[key]) for key in sorted(point.attributes)): point for point in found}  # type: ignore[index, union-attr, arg-type]

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]


@pytest.fixture
def told() -> Iterator[tuple[Told, Telemetry]]:
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([metrics])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    yield Told(spans, metrics), Telemetry(tracers=tracers, meters=meters)
    tracers.shutdown()
    meters.shutdown()


def below(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> set[str]:
    """Return the names of a span's children."""
    return {one.name for one in spans if one.parent and one.parent.span_id == span.context.span_id}


def test_a_questions_span_has_its_steps_and_these_their_statements_and_calls(
    open_client: Callable[..., HGMem], told: tuple[Told, Telemetry]
) -> None:
    client, (seen, client_watcher) = open_client(), told
    client.add_graph(LETTERS)
    client.watcher = client_watcher
    answer = client.ask(QUESTION, steps=2)
    spans = seen.spans.get_finished_spans()
    (question,) = seen.named("hgmem question")
    assert dict(question.attributes or {}) == {
        "hgmem.corpus": client.corpus,
        "hgmem.memory": answer.memory,
        "hgmem.outcome": answer.status,
    }
    steps = seen.named("hgmem step")
    assert [(step.attributes or {})["hgmem.step"] for step in steps] == list(range(1, len(answer.steps) + 1))
    assert {"hgmem step", "model answer", "neo4j create_memory"} <= below(question, spans)
    assert {"neo4j retrieve", "neo4j write_step", "embedding query"} <= below(steps[0], spans)
    assert all(question.start_time <= step.start_time <= step.end_time <= question.end_time for step in steps)  # type: ignore[operator]
    assert all(span.context.trace_id == question.context.trace_id for span in spans)
    written = " ".join(f"{span.name} {dict(span.attributes or {})}" for span in spans)
    assert not any(text in written for text in (QUESTION, "Vane", *(one.text for one in LETTERS.chunks[:3])))


def test_metrics_count_what_the_usage_of_answers_counts(
    open_client: Callable[..., HGMem], told: tuple[Told, Telemetry]
) -> None:
    client, (seen, client.watcher) = open_client(), told
    client.add_graph(LETTERS)
    answers = [client.ask(QUESTION, steps=1) for _ in range(2)]
    assert seen.points("hgmem.question.duration")[(answers[0].status,)].count == 2
    assert seen.points("hgmem.step.duration")[()].count == sum(len(one.steps) for one in answers)
    calls = {(name, part): point.value for (_, name, part), point in seen.points("hgmem.calls").items()}
    for task in answers[0].usage.calls["model"]:
        assert calls[task, "model"] == sum(one.usage.calls["model"][task] for one in answers)
    assert calls["write_step", "neo4j"] == sum(one.usage.calls["neo4j"]["write_step"] for one in answers)
    spent = sum(point.value for point in seen.points("hgmem.call.time").values())
    assert 0 < spent <= seen.points("hgmem.question.duration")[(answers[0].status,)].sum
    leases = {key: point.value for key, point in seen.points("hgmem.leases").items()}
    assert leases["taken", "memory"] == 2


def test_indexing_is_counted_by_its_parts_and_tokens_by_task(
    open_client: Callable[..., HGMem], told: tuple[Told, Telemetry]
) -> None:
    found = '{"entities": [{"name": "Josse Arkwell", "type": "person", "description": "A carter."}], "relations": []}'
    with WireServer(lambda _: Said(found)) as model:
        client = open_client(model="wire", openai_base_url=model.base_url, openai_api_key="any", cached_tasks=[])
        seen, client.watcher = told
        client.add([Document(id="log", text=TEXT)])
        client.add([Document(id="log", text=TEXT)])
        tokens = {key: point.value for key, point in seen.points("hgmem.tokens").items()}
        assert tokens["prompt", "extract"] + tokens["prompt", "probe"] == model.prompt_tokens
        assert tokens["completion", "extract"] + tokens["completion", "probe"] == model.completion_tokens
    indexed = {what: point.value for (_, what), point in seen.points("hgmem.indexed").items()}
    assert (indexed["documents"], indexed["chunks"], indexed["unchanged"]) == (1, 1, 1)
    calls = {key: point.value for key, point in seen.points("hgmem.calls").items()}
    assert calls["index", "extract", "model"] == calls["index", "extract", "request"] == 1
    assert calls["index", "save_extractions", "neo4j"] == 1
    assert seen.points("hgmem.work.duration")["index", "done"].count == 2
    (first, _) = seen.named("hgmem index")
    spans = seen.spans.get_finished_spans()
    assert {"model extract", "request extract", "neo4j save_extractions"} <= below(first, spans)


def test_what_fails_is_counted_by_the_class_of_its_error_without_its_message(
    open_client: Callable[..., HGMem], told: tuple[Told, Telemetry]
) -> None:
    with WireServer(lambda _: Failing(400)) as model:
        client = open_client(model="wire", openai_base_url=model.base_url, openai_api_key="any")
        client.add_graph(LETTERS)
        seen, client.watcher = told
        with pytest.raises(ModelError):
            client.ask(QUESTION)
    with pytest.raises(UsageError):
        client.ask(QUESTION, corpus="none-such")
    outcomes = {outcome for (outcome,) in seen.points("hgmem.question.duration")}
    assert "NotFoundError" in outcomes
    assert len(outcomes) == 2
    for span in seen.named("hgmem question"):
        assert not span.status.is_ok
        assert span.status.description in outcomes
        assert not span.events


def test_a_questions_own_watcher_is_told_too(open_client: Callable[..., HGMem], told: tuple[Told, Telemetry]) -> None:
    class Own(Watcher):
        heard = 0

        def hear(self, event: object, /) -> None:
            self.heard += 1

        def call(self, task: Any, work: Callable[[], Any], /) -> Any:
            assert task.name
            self.heard += 100
            return work()

    client, own = open_client(), Own()
    client.add_graph(LETTERS)
    seen, client.watcher = told
    client.ask(QUESTION, steps=1, watcher=own)
    assert own.heard > 200
    assert seen.named("hgmem step")


def test_the_service_serves_the_same_metrics_to_admins(open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    client.add_graph(LETTERS)
    made = {scope: ServiceStore(client).make_key("ops", scopes=[scope]) for scope in ("ask", "admin")}  # type: ignore[list-item]
    with serving(client) as service:

        def get(token: str, path: str = "/metrics") -> httpx.Response:
            with service.http(token) as http:
                return http.get(path)

        assert [get(token).status_code for token in ("", made["ask"][0])] == [401, 403]
        with service.http(made["ask"][0]) as http:
            asked = http.post(f"/corpora/{client.corpus}/questions", json={"question": QUESTION, "steps": 1})
            assert asked.status_code == 200, asked.text
        text = get(made["admin"][0])
    assert text.headers["content-type"].startswith("text/plain")
    values = _values(text.text)
    assert values['hgmem_question_duration_seconds_count{outcome="answered"}'] == 1
    assert values["hgmem_step_duration_seconds_count"] == 1
    assert values['hgmem_calls_total{activity="question",name="write_step",part="neo4j"}'] == 1
    assert values['hgmem_leases_total{event="taken",of="memory"}'] == 1
    assert values["process_resident_memory_bytes"] > 0
    for _, key in made.values():
        ServiceStore(client).revoke_key(key.uid)


def _values(text: str) -> Mapping[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
