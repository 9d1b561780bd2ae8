"""The types of settings, as DescribeConfigs tells them: Kafka's numbers.

A setting's type is how its text is read, and of a number how large it may be. Where Kafka's is another one, tools that
were written for Kafka expect Kafka's: `TOLD` has those. Source: Apache Kafka's `ConfigDef.Type` and the types of its
broker settings (https://kafka.apache.org/documentation/#brokerconfigs).
"""

from __future__ import annotations

from collections.abc import Mapping

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = 1, 2, 3, 4, 5, 6, 7, 8, 9
NAMES = {
    BOOLEAN: "boolean", STRING: "string", INT: "int", SHORT: "short", LONG: "long", DOUBLE: "double", LIST: "list",
    CLASS: "class", PASSWORD: "password",
}  # fmt: skip
MAX_SHORT, MAX_INT = 2**15 - 1, 2**31 - 1

TOLD: Mapping[str, int] = {
    "connections.max.idle.ms": LONG,
    "connections.max.reauth.ms": LONG,
    "group.consumer.assignors": LIST,
    "group.coordinator.rebalance.protocols": LIST,
    "leader.imbalance.check.interval.seconds": LONG,
    "listener.security.protocol.map": STRING,
    "log.cleaner.backoff.ms": LONG,
    "log.initial.task.delay.ms": LONG,
    "log.retention.check.interval.ms": LONG,
    "max.connections.per.ip.overrides": STRING,
    "metadata.log.max.record.bytes.between.snapshots": LONG,
    "metadata.log.max.snapshot.interval.ms": LONG,
    "offsets.retention.check.interval.ms": LONG,
    "offsets.topic.compression.codec": INT,
    "principal.builder.class": CLASS,
    "queued.max.request.bytes": LONG,
    "remote.list.offsets.request.timeout.ms": LONG,
    "replica.high.watermark.checkpoint.interval.ms": LONG,
    "replica.lag.time.max.ms": LONG,
    "transaction.two.phase.commit.enable": BOOLEAN,
    "transactional.id.expiration.ms": INT,
}
"""By the names of broker settings."""


def number_type(maximum: float | None) -> int:
    """Of a whole number that is at most so large. None: nothing says how large it may be."""
    if maximum == MAX_SHORT:
        return SHORT
    return INT if maximum is None or maximum <= MAX_INT else LONG
