"""Records as OpenTelemetry has them, sent to a collector by OTLP over HTTP, with the times of what happened.

Metrics: fleetrun.process.up {role, rank}, fleetrun.job.restarts, fleetrun.training.NAME {rank, attempt} for
what was fetched, fleetrun.training.batch. Traces: one of a job, a span for each attempt, in it one for each
process; a failure is the status of its span, what else happened is an event of the job's."""

import re
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from fleetrun._export.records import Sample, seconds_of

_MOST = 1000  # points in a request
_PATIENCE = 10  # seconds for a request
_UP = {"process_started": 1, "process_exited": 0, "process_not_started": 0}
_SKIPPED = ("schema", "at", "type", "time")


class CollectorError(Exception):
    """The collector takes nothing."""


class _Gathered(SpanProcessor):
    """Ended spans until they are sent."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _facts(event: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in event.items()
        if name not in _SKIPPED and value is not None and value != []
    }


class Otlp:
    def __init__(self, url: str) -> None:
        url = url.rstrip("/")
        self._url = url
        self._metrics = OTLPMetricExporter(endpoint=f"{url}/v1/metrics", timeout=_PATIENCE)
        self._spans: SpanExporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=_PATIENCE)
        self._points: dict[str, list[NumberDataPoint]] = {}
        self._gathered = _Gathered()
        self._job: trace.Span | None = None
        self._attempt: trace.Span | None = None
        self._processes: dict[str, trace.Span] = {}
        self._batches: dict[tuple[int, int], int] = {}  # by rank and attempt: the newest that was told
        self._restarts = self._last = self._began = 0

    def begin(self, job: str, pod: str) -> None:
        self._resource = Resource.create(
            {"service.name": "fleetrun", "service.namespace": job, "service.instance.id": pod}
        )
        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_span_processor(self._gathered)
        self._tracer = provider.get_tracer("fleetrun")

    def add_events(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            self._last = _nanoseconds(seconds_of(event))
            kind = event["type"]
            if kind in _UP:
                self._point("process.up", self._last, _UP[kind], role=event["role"], rank=event["rank"])
            if kind == "restart_decided":
                self._restarts += 1
            if kind in ("job_began", "restart_decided"):
                self._began = self._began or self._last
                self._point("job.restarts", self._last, self._restarts)
            self._trace(kind, event)

    def add_samples(self, samples: list[Sample]) -> None:
        for each in samples:
            name = re.sub(r"[^A-Za-z0-9_./-]", "_", each.name)
            where: dict[str, Any] = {"rank": each.rank, "attempt": each.attempt}
            self._point(f"training.{name}", _nanoseconds(each.time), each.value, **where)
            # Once for all that was fetched in it.
            if self._batches.get((each.rank, each.attempt)) != each.batch:
                self._batches[each.rank, each.attempt] = each.batch
                self._point("training.batch", _nanoseconds(each.time), each.batch, **where)

    def flush(self) -> None:
        points = [(name, point) for name, points in self._points.items() for point in points]
        self._points.clear()
        for first in range(0, len(points), _MOST):
            data = self._data(points[first : first + _MOST])
            if self._metrics.export(data) is not MetricExportResult.SUCCESS:
                raise CollectorError(f"{self._url}/v1/metrics does not take what it is sent")
        spans, self._gathered.spans = self._gathered.spans, []
        for first in range(0, len(spans), _MOST):
            if self._spans.export(spans[first : first + _MOST]) is not SpanExportResult.SUCCESS:
                raise CollectorError(f"{self._url}/v1/traces does not take what it is sent")

    def close(self) -> None:
        """What has not ended ends with what was heard last."""
        for span in (*self._processes.values(), self._attempt, self._job):
            if span is not None and span.is_recording():
                span.end(self._last)
        self.flush()
        self._metrics.shutdown()
        self._spans.shutdown()

    def _point(self, name: str, time: int, value: float, **attributes: Any) -> None:
        start = self._began if name == "job.restarts" else None
        point = NumberDataPoint(attributes, start, time, value)
        self._points.setdefault(f"fleetrun.{name}", []).append(point)

    def _data(self, points: list[tuple[str, NumberDataPoint]]) -> MetricsData:
        by_name: dict[str, list[NumberDataPoint]] = {}
        for name, point in points:
            by_name.setdefault(name, []).append(point)
        metrics = [
            Metric(
                name,
                "",
                "1",
                Sum(several, AggregationTemporality.CUMULATIVE, True)
                if name == "fleetrun.job.restarts"
                else Gauge(several),
            )
            for name, several in by_name.items()
        ]
        scope = ScopeMetrics(InstrumentationScope("fleetrun"), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _trace(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "job_began":
            self._job = self._span(f"job {event['job_id']}", None, event)
        elif kind == "attempt_began":
            self._end(self._attempt)
            self._attempt = self._span(f"attempt {event['attempt']}", self._job, event)
        elif kind == "process_started":
            name, parent = event["process"], self._attempt or self._job
            self._processes[name] = self._span(name, parent, event)
        elif kind == "process_exited":
            span = self._processes.pop(event["process"], None)
            failed = event["status"] != 0 and not event["asked"]
            self._end(span, f"ended with {event['status']}" if failed else "")
        elif kind == "failure_explained":
            self._end(self._attempt, f"{event['process']} {event['cause']}")
        elif kind == "job_ended":
            self._end(self._attempt)
            self._end(self._job, f"exit status {event['exit_status']}" if event["exit_status"] else "")
        elif self._job is not None:
            self._job.add_event(kind, _facts(event), self._last)

    def _span(self, name: str, parent: trace.Span | None, event: dict[str, Any]) -> trace.Span:
        context = trace.set_span_in_context(parent) if parent is not None else None
        return self._tracer.start_span(name, context, attributes=_facts(event), start_time=self._last)

    def _end(self, span: trace.Span | None, failure: str = "") -> None:
        if span is None or not span.is_recording():
            return
        if failure:
            span.set_status(trace.Status(trace.StatusCode.ERROR, failure))
        span.end(self._last)
