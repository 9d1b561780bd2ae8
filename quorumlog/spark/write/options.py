"""Options of writes: the names of Spark's Kafka sink, and the producer's options under `kafka.` or `quorumlog.`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from quorumlog.client.carried import CarriedOptions, carried
from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ACKS, ProducerOptions, parse_options
from quorumlog.errors import ApiError
from quorumlog.spark.read.options import OptionNames, one_of, parse_duration_ms
from quorumlog.spark.session.protection import NOT_OPTIONS
from quorumlog.topic_name import validate_topic_name

DEFAULT_CLIENT_ID = "spark-quorumlog-sink"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
DELIVERIES = (EXACTLY_ONCE, AT_LEAST_ONCE)  # the first one is the default
DEFAULT_TRANSACTION_TIMEOUT_MS = 60 * 60 * 1_000  # a batch of Spark may take long
CHECKPOINT = "checkpointlocation"
OF_THE_SINK = ("spark/", "write/")  # names of groups that no option gives
MAX_NUMBER = 2**63 - 1
MAX_TIMEOUT_MS = 2**31 - 1  # of the call's field; joint.max.timeout.ms of a cluster is 1 day unless set
NOT_IDEMPOTENT = (
    f"delivery={EXACTLY_ONCE} needs kafka.acks=all, kafka.enable.idempotence=true and at most 5 "
    "kafka.max.in.flight.requests.per.connection, which are the defaults: leave them out"
)
TRANSPORTS = {"auto": "auto", "grpc": "grpc", "lane": "auto"}  # and the client's: its `auto` sends by Kafka's protocol

_OWN = (
    "bootstrap.servers", "topic", "delivery", "transport", "includeHeaders", "transactionTimeout", "replayMismatch",
    "writeId", "writeVersion", "skipOlder", "sinkId", "firstBatch", "checkpointMoved", "acceptLost",
)  # fmt: skip
_OF_BATCHES = ("writeId", "writeVersion", "skipOlder")
_OF_STREAMS = ("sinkId", "firstBatch", "checkpointMoved")
_OF_EXACTLY_ONCE = ("transactionTimeout", "replayMismatch", "acceptLost", *_OF_BATCHES, *_OF_STREAMS)
_OF_READS = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "isolationLevel", "failOnDataLoss",
    "readFrom", "table", "pinId", "prefetch", "columns",
)  # fmt: skip
_NOT_YOURS = {
    "key_serializer": "keys are written as the bytes that they are: convert the column in Spark",
    "value_serializer": "values are written as the bytes that they are: convert the column in Spark",
    "partitioner_class": "it is a Java class: a column partition says where a row goes, else its key",
    "interceptor_classes": "they are Java classes",
    "partitioner": "it is a function: a column partition says where a row goes, else its key",
    "interceptors": "they are objects of an application, and this writes columns",
    "on_delivery": "it is a function: a query that ends has written all its rows",
    "retries": "a batch is sent again until kafka.delivery.timeout.ms is over",
    "transactional_id": "Spark's tasks would fence each other; delivery names the guarantee",
    "transaction_timeout_ms": "set transactionTimeout",
    "transport": "set transport",
    **NOT_OPTIONS,
}
NAMES = OptionNames(
    own=_OWN,
    client=tuple(field.name for field in fields(ProducerOptions)),
    not_yours=_NOT_YOURS,
    refused={
        **{name.lower(): "is of reads, and this is a write" for name in _OF_READS},
        "path": 'has no meaning: name the topic with .option("topic", "orders"), and call save() without a path',
    },
    ignored=(CHECKPOINT, "queryname"),  # Spark hands them to the sink of a stream
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceOptions:
    """Of delivery=exactly-once. location: of a stream's checkpoint, as the query names it; "": it does not.

    write_id, write_version: of a batch that can be written again; "" and -1: it cannot. first_batch, replay_mismatch,
    checkpoint_moved: what they excuse (decision 112); -1 and "": nothing. accept_lost: of an Apache Kafka only
    (decision 115). sink_id: a stream's group; "": its query's.
    """

    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    location: str = ""
    sink_id: str = ""
    write_id: str = ""
    write_version: int = -1
    skip_older: bool = False
    first_batch: int = -1
    replay_mismatch: int = -1
    checkpoint_moved: str = ""
    accept_lost: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """client: options of a producer, by their underscored names. topic: of all rows; "": the column says it. once: of
    delivery=exactly-once; None: at-least-once."""

    client: Mapping[str, Any]
    topic: str = ""
    once: OnceOptions | None = None

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


def parse_write_options(given: Mapping[str, str], *, is_stream: bool = False) -> WriteOptions:
    """Options of `df.write` and `df.writeStream`, in any case. Raises ConfigError."""
    own, client = NAMES.sort(given)
    delivery = one_of(own, "delivery", DELIVERIES)
    if is_stream:
        _refuse(own, _OF_BATCHES, "is of a batch, and this is a stream, whose query and batches have names already")
    else:
        _refuse(own, _OF_STREAMS, "is of a stream, and this is a batch; writeId and writeVersion name a batch")
    if delivery == AT_LEAST_ONCE:
        _refuse(own, _OF_EXACTLY_ONCE, f"is of delivery={EXACTLY_ONCE}: leave out one of the two")
    if "bootstrap_servers" not in client:
        raise ConfigError('set the address of the cluster: .option("bootstrap.servers", "host:9092")')
    client = {"client_id": DEFAULT_CLIENT_ID, **carried(client)}
    client["transport"] = TRANSPORTS[one_of(own, "transport", tuple(TRANSPORTS))]
    parsed = parse_options(ProducerOptions, client, {})
    if "topic" in own:
        try:
            validate_topic_name(own["topic"])
        except ApiError as error:
            raise ConfigError(f"option topic: {error.message}") from error
    once = None
    if delivery == EXACTLY_ONCE:
        if not parsed.idempotent:
            raise ConfigError(NOT_IDEMPOTENT)
        once = _once(own, {name.lower(): text for name, text in given.items()}.get(CHECKPOINT, ""))
    return WriteOptions(client=CarriedOptions(client), topic=own.get("topic", ""), once=once)


def _once(own: Mapping[str, str], location: str) -> OnceOptions:
    timeout_ms = parse_duration_ms("transactionTimeout", own.get("transactionTimeout", "1h"))
    if timeout_ms == 0:
        raise ConfigError("transactionTimeout must be above 0: it is how long a task's rows may wait for their batch")
    if timeout_ms > MAX_TIMEOUT_MS:
        raise ConfigError(
            f"transactionTimeout must be at most {MAX_TIMEOUT_MS} ms, and joint.max.timeout.ms of the cluster (1 day "
            f"unless set): {own['transactionTimeout']!r}"
        )
    if ("writeId" in own) != ("writeVersion" in own):
        there, missing = ("writeId", "writeVersion") if "writeId" in own else ("writeVersion", "writeId")
        raise ConfigError(f"option {there} needs {missing}, too: a write is known again by both of them")
    if own.get("writeId") == "" or own.get("sinkId") == "":
        raise ConfigError("options writeId and sinkId must not be empty: they name a writer for good")
    sink_id = own.get("sinkId", "")
    if sink_id.startswith(OF_THE_SINK):
        raise ConfigError(
            f"option sinkId must not begin with {' or '.join(OF_THE_SINK)}: other writers have such names"
        )
    if "skipOlder" in own and "writeId" not in own:
        raise ConfigError("option skipOlder needs writeId and writeVersion: only they say what is older")
    return OnceOptions(
        transaction_timeout_ms=timeout_ms,
        location=_plain(location),
        sink_id=sink_id,
        write_id=own.get("writeId", ""),
        write_version=_number(own, "writeVersion"),
        skip_older=one_of(own, "skipOlder", ("false", "true")) == "true",
        first_batch=_number(own, "firstBatch"),
        replay_mismatch=_number(own, "replayMismatch"),
        accept_lost=_number(own, "acceptLost"),
        checkpoint_moved=_plain(own.get("checkpointMoved", "")),
    )


def _plain(location: str) -> str:
    """Without what Spark does not look at, so that another spelling is no other checkpoint."""
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    return location.rstrip("/") or location


def _number(own: Mapping[str, str], option: str) -> int:
    """-1 if it is not given."""
    if option not in own:
        return -1
    text = own[option]
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_NUMBER):
        raise ConfigError(f"{option} must be a whole number from 0 to {MAX_NUMBER}: {text!r}")
    return int(text)


def _refuse(own: Mapping[str, str], names: Sequence[str], why: str) -> None:
    for name in names:
        if name in own:
            raise ConfigError(f"option {name!r} {why}")
