"""Traces and metrics by OpenTelemetry, of all that a client does (docs/telemetry.md).

>>> hg.watcher = Telemetry()          # doctest: +SKIP

They hold names and numbers: of statements, tasks, models, corpora and memories. No question, text or token of a key is
among them.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from hgmem import __version__
from hgmem.models.metering import CallKind, Meter, TokenKind, measured_by
from hgmem.values.events import Event, EvidenceFound, Planned, QuestionAccepted, StepStarted, Watcher
from hgmem.values.records import Answer

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("telemetry needs OpenTelemetry, which is not installed: pip install 'hgmem[otel]'") from missing

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)  # limits of the histograms
COUNTED = ("documents", "unchanged", "chunks", "messages", "failed", "joined", "made", "deleted")  # of reports
_LEASE = re.compile(r"(create|lease|renew|release)_(memory|build|corpus)")
_TAKEN = {"create": "taken", "lease": "taken", "renew": "renewed", "release": "released"}
_DONE, _FAILED = "done", "failed"

Done = TypeVar("Done")


class _Counting(Meter):
    """Counts what a piece of work calls as metrics, each call once, and writes a span for it below `span`."""

    def __init__(self, told: "Telemetry", activity: str, span: trace.Span) -> None:
        super().__init__()
        self.told = told
        self.activity = activity
        self.span = span
        self.step: trace.Span | None = None
        self.step_began = 0.0

    def add(self, kind: CallKind, name: str, seconds: float, *, texts: int = 0, inside: float = 0.0) -> None:
        """Count one call that has just ended."""
        super().add(kind, name, seconds, texts=texts, inside=inside)
        self.told.called(self.activity, kind, name, seconds=seconds, texts=texts)
        if self.span.is_recording():
            self.told.written(f"{kind} {name}", self.step or self.span, seconds + inside)

    def add_tokens(self, task: str, counts: Mapping[TokenKind, int]) -> None:
        """Count the tokens of one request."""
        super().add_tokens(task, counts)
        for kind, number in counts.items():
            self.told.tokens.add(number, {"task": task, "kind": kind})


_counting: ContextVar[_Counting | None] = ContextVar("hgmem_counting", default=None)


class Telemetry(Watcher):
    """A client's watcher that reports to OpenTelemetry, by default to the providers of the process."""

    def __init__(
        self, *, tracers: trace.TracerProvider | None = None, meters: metrics.MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer("hgmem", __version__, tracers)
        meter = metrics.get_meter("hgmem", __version__, meters)

        def count(name: str, what: str) -> Any:
            return meter.create_counter(f"hgmem.{name}", description=what)

        def seconds(name: str, what: str) -> Any:
            return meter.create_histogram(
                f"hgmem.{name}.duration", unit="s", description=what, explicit_bucket_boundaries_advisory=SECONDS
            )

        self._questions = seconds("question", "Questions by outcome: the answer's status, or the class of an error")
        self._work = seconds("work", "Searches, indexing runs and builds, by activity and outcome")
        self._steps = seconds("step", "Steps of questions")
        self._jobs = seconds("job", "Runs of jobs of the service, by kind and by the state that they end in")
        self._calls = count("calls", "Calls by activity, part and name")
        self._time = meter.create_counter(
            "hgmem.call.time", unit="s", description="Seconds of calls by activity, part and name, each counted once"
        )
        self._texts = count("texts", "Texts that were embedded or reranked")
        self.tokens = count("tokens", "Tokens of language models by task and kind")
        self._leases = count("leases", "Leases that were taken, renewed or released, by what they hold")
        self._indexed = count("indexed", "What indexing runs and builds did, from their reports")

    def question(self, work: Callable[[], Done], /) -> Done:
        """Run the work of a whole question as a span, with its steps and calls below it."""
        return self._run("question", work)

    def work(self, name: str, work: Callable[[], Done], /) -> Done:
        """Run an indexing run, a build or a search as a span."""
        done = self._run(name, work)
        for what in COUNTED:
            if isinstance(number := getattr(done, what, None), int) and number:
                self._indexed.add(number, {"activity": name, "what": what})
        return done

    def job(self, kind: str, work: Callable[[], str], /) -> str:
        """Run a job of the service as a span around its work."""
        began, state = time.perf_counter(), _FAILED
        self._leases.add(1, {"of": "job", "event": "taken"})
        try:
            with self._spanning(f"hgmem job {kind}") as span:
                state = work()
                span.set_attribute("hgmem.state", state)
        finally:
            self._jobs.record(time.perf_counter() - began, {"kind": kind, "state": state})
            self._leases.add(1, {"of": "job", "event": "released"})
        return state

    def hear(self, event: Event, /) -> None:
        """Begin and end the spans of steps."""
        counting = _counting.get()
        if counting is None:
            return
        match event:
            case QuestionAccepted():
                counting.span.set_attributes({"hgmem.corpus": event.corpus, "hgmem.memory": event.memory})
            case StepStarted():
                self._end_step(counting)
                counting.step = self._tracer.start_span(
                    "hgmem step", trace.set_span_in_context(counting.span), attributes={"hgmem.step": event.step}
                )
                counting.step_began = time.perf_counter()
            case EvidenceFound() if counting.step:
                counting.step.set_attributes(
                    {"hgmem.strategy": event.strategy, "hgmem.entities": event.entities, "hgmem.chunks": event.chunks}
                )
            case Planned() if counting.step:
                self._steps.record(time.perf_counter() - counting.step_began)
                self._end_step(counting)

    def called(self, activity: str, kind: CallKind, name: str, *, seconds: float, texts: int) -> None:
        """Count a call that has just ended."""
        named = {"activity": activity, "part": kind, "name": name}
        self._calls.add(1, named)
        self._time.add(seconds, named)
        if texts:
            self._texts.add(texts, {"activity": activity, "part": kind})
        if kind == "neo4j" and (lease := _LEASE.fullmatch(name)):
            self._leases.add(1, {"of": lease[2], "event": _TAKEN[lease[1]]})

    def written(self, name: str, around: trace.Span, seconds: float) -> None:
        """Write the span of a call that has just ended."""
        ended = time.time_ns()
        began = ended - int(seconds * 1e9)
        self._tracer.start_span(name, trace.set_span_in_context(around), start_time=began).end(ended)

    def _run(self, activity: str, work: Callable[[], Done]) -> Done:
        began, outcome = time.perf_counter(), _DONE
        with self._spanning(f"hgmem {activity}") as span:
            counting = _Counting(self, activity, span)
            token = _counting.set(counting)
            try:
                with measured_by(counting):
                    done = work()
                if isinstance(done, Answer):
                    outcome = done.status
                return done
            except BaseException as error:
                outcome = type(error).__name__
                raise
            finally:
                _counting.reset(token)
                self._end_step(counting)
                span.set_attribute("hgmem.outcome", outcome)
                took, how = time.perf_counter() - began, {"outcome": outcome}
                if activity == "question":
                    self._questions.record(took, how)
                else:
                    self._work.record(took, {"activity": activity, **how})

    @contextmanager
    def _spanning(self, name: str) -> Iterator[trace.Span]:
        """Yield a span. Of an error it gets the class alone, because a message can quote a text."""
        with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise

    def _end_step(self, counting: _Counting) -> None:
        step, counting.step = counting.step, None
        if step:
            step.end()


def for_prometheus() -> tuple[Telemetry, Callable[[], bytes]]:
    """Return telemetry whose metrics are read as text by Prometheus, and the function that returns this text.

    Spans go to the process's provider of tracers.
    """
    try:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from opentelemetry.sdk.metrics import MeterProvider
        from prometheus_client import REGISTRY, generate_latest
    except ImportError as missing:
        raise ImportError(f"{missing.name} is not installed: pip install 'hgmem[otel]'") from missing
    meters = MeterProvider([PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False)])
    return Telemetry(meters=meters), lambda: generate_latest(REGISTRY)
