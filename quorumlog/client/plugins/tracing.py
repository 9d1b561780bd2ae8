"""OpenTelemetry spans of records, with W3C's headers; off unless an application asks for it. Extra: `quorumlog[otel]`.

    Producer(interceptors=[TracingProducerInterceptor()])
    Consumer(interceptors=[TracingConsumerInterceptor()])

A producer's span is the creation of one record, and its context travels in the header `traceparent`. A consumer's span
is one poll, with a link to each record's context: a poll has many records, and a span only one parent. Names and
attributes are OpenTelemetry's semantic conventions for messaging.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from quorumlog.client.batches.record_parts import header_pairs
from quorumlog.client.errors import ConfigError
from quorumlog.client.plugins.interceptors import ConsumerInterceptor, OutgoingRecord, ProducerInterceptor

MAX_LINKS = 128  # of a span, as OpenTelemetry's default


class TracingProducerInterceptor(ProducerInterceptor):
    """tracer_provider: an OpenTelemetry one; None: the global one. Raises ConfigError without the extra."""

    def __init__(self, tracer_provider: Any = None) -> None:
        self._trace, self._propagate = _opentelemetry()
        self._tracer = self._trace.get_tracer("quorumlog", tracer_provider=tracer_provider)

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        attributes = _attributes(record.topic, "create")
        if record.partition is not None:
            attributes["messaging.destination.partition.id"] = str(record.partition)
        kind = self._trace.SpanKind.PRODUCER
        with self._tracer.start_as_current_span(f"create {record.topic}", kind=kind, attributes=attributes):
            carrier: dict[str, str] = {}
            self._propagate.inject(carrier)
        pairs = header_pairs(record.headers) if record.headers else ()
        kept = tuple(pair for pair in pairs if pair[0] not in carrier)
        return replace(record, headers=(*kept, *carrier.items()))


class TracingConsumerInterceptor(ConsumerInterceptor):
    """tracer_provider: an OpenTelemetry one; None: the global one. Raises ConfigError without the extra."""

    def __init__(self, tracer_provider: Any = None) -> None:
        self._trace, self._propagate = _opentelemetry()
        self._tracer = self._trace.get_tracer("quorumlog", tracer_provider=tracer_provider)

    def on_consume(self, records: list[Any]) -> list[Any]:
        topics = dict.fromkeys(record.topic for record in records)
        for topic in topics:
            of_topic = [record for record in records if record.topic == topic]
            attributes: dict[str, Any] = _attributes(topic, "receive")
            attributes["messaging.batch.message_count"] = len(of_topic)
            links = [self._trace.Link(context) for context in self._contexts(of_topic)]
            kind = self._trace.SpanKind.CONSUMER
            self._tracer.start_span(f"receive {topic}", kind=kind, attributes=attributes, links=links).end()
        return records

    def _contexts(self, records: list[Any]) -> Iterator[Any]:
        for record in records[:MAX_LINKS]:
            context = self._propagate.extract(_text(record.headers))
            found = self._trace.get_current_span(context).get_span_context()
            if found.is_valid:
                yield found


def _attributes(topic: str, operation: str) -> dict[str, Any]:
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _text(headers: Any) -> Mapping[str, str]:
    """The last of each name, where it is text."""
    return {name: value.decode("ascii", "replace") for name, value in headers if value is not None}


def _opentelemetry() -> tuple[Any, Any]:
    try:
        from opentelemetry import propagate, trace
    except ImportError as error:
        raise ConfigError(f"traces need OpenTelemetry ({error}): pip install 'quorumlog[otel]'") from error
    return trace, propagate
