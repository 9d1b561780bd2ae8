"""Options of writes: the names of Spark's Kafka sink, and the producer's options under `kafka.` or `quorumlog.`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ACKS, ProducerOptions, parse_options
from quorumlog.errors import ApiError
from quorumlog.spark.option_names import OptionNames, one_of
from quorumlog.topic_name import validate_topic_name

DEFAULT_CLIENT_ID = "spark-quorumlog-sink"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
DELIVERIES = (EXACTLY_ONCE, AT_LEAST_ONCE)  # the first one is the default
TRANSPORTS = {"auto": "auto", "grpc": "grpc", "lane": "auto"}  # and the client's: its `auto` sends by Kafka's protocol

_OWN = ("bootstrap.servers", "topic", "delivery", "transport", "includeHeaders")
_OF_EXACTLY_ONCE = ("transactionTimeout", "writeId", "writeVersion", "sinkId", "firstBatch", "replayMismatch")
_OF_READS = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "isolationLevel", "failOnDataLoss",
    "readFrom", "table", "pinId", "prefetch", "columns",
)  # fmt: skip
_NOT_YOURS = {
    "key_serializer": "keys are written as the bytes that they are: convert the column in Spark",
    "value_serializer": "values are written as the bytes that they are: convert the column in Spark",
    "partitioner_class": "it is a Java class: a column partition says where a row goes, else its key",
    "interceptor_classes": "they are Java classes",
    "retries": "a batch is sent again until kafka.delivery.timeout.ms is over",
    "transactional_id": "Spark's tasks would fence each other; delivery names the guarantee",
    "transaction_timeout_ms": "this write has no transactions; delivery names the guarantee",
    "transport": "set transport",
}
NAMES = OptionNames(
    own=_OWN,
    client=tuple(field.name for field in fields(ProducerOptions)),
    not_yours=_NOT_YOURS,
    refused={
        **{name.lower(): "is of reads, and this is a write" for name in _OF_READS},
        **{
            name.lower(): f"is of delivery={EXACTLY_ONCE}, which is not there yet: leave it out"
            for name in _OF_EXACTLY_ONCE
        },
        "path": 'has no meaning: name the topic with .option("topic", "orders"), and call save() without a path',
    },
    ignored=("checkpointlocation", "queryname"),  # Spark hands them to the sink of a stream
)
NOT_THERE = (
    f"delivery={EXACTLY_ONCE}, the default, is not there yet, and this write would guarantee less: a task that is "
    f'repeated writes its rows again. Say .option("delivery", "{AT_LEAST_ONCE}") if that will do'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """client: options of a producer, by their underscored names. topic: of all rows; "": the column says it."""

    client: Mapping[str, Any]
    topic: str = ""
    delivery: str = AT_LEAST_ONCE

    @property
    def weakness(self) -> str:
        """What the user has given up by kafka.acks; "": nothing."""
        acks = ACKS[str(self.client.get("acks", "all"))]
        if acks == ACKS["all"]:
            return ""
        return (
            f"kafka.acks={self.client['acks']}: rows are lost where a leader dies before its followers have them, so "
            f"delivery={AT_LEAST_ONCE} does not hold; leave it out for acks=all"
        )


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """Options of `df.write` and `df.writeStream`, in any case. Raises ConfigError."""
    own, client = NAMES.sort(given)
    if one_of(own, "delivery", DELIVERIES) == EXACTLY_ONCE:
        raise ConfigError(NOT_THERE)
    if "bootstrap_servers" not in client:
        raise ConfigError('set the address of the cluster: .option("bootstrap.servers", "host:9092")')
    client.setdefault("client_id", DEFAULT_CLIENT_ID)
    client["transport"] = TRANSPORTS[one_of(own, "transport", tuple(TRANSPORTS))]
    parse_options(ProducerOptions, client, {})
    if "topic" in own:
        try:
            validate_topic_name(own["topic"])
        except ApiError as error:
            raise ConfigError(f"option topic: {error.message}") from error
    return WriteOptions(client=client, topic=own.get("topic", ""))
