"""Every key of a node's configuration: Kafka's names and meanings, with our defaults where DESIGN 12 differs.

`NODE_KEYS` are the node's own keys. `TOPIC_SYNONYMS` are the defaults that a broker sets for its topics (Kafka's
`log.*` names). `WITHOUT_EFFECT` are keys of Kafka that have no effect here: accepted with a warning, so that an
existing file can be used as it is. Any other key is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cli.server.properties import ConfigError
from cli.server.values import parse_bool, parse_bytes, parse_int, parse_list
from quorumlog.broker_config import TOPIC_SYNONYMS

MAX_PORT = 65_535
MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKey:
    """One key. default None: required, or absent if `optional`. Limits are inclusive, for numbers only."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    doc: str
    optional: bool = False
    minimum: int | None = None
    maximum: int | None = None


def _text(text: str) -> str:
    return text.strip()


def _number(name: str, default: int, minimum: int, doc: str, maximum: int = MAX_INT) -> NodeKey:
    return NodeKey(name=name, parse=parse_int, default=str(default), doc=doc, minimum=minimum, maximum=maximum)


def _bytes(name: str, default: int, minimum: int, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse_bytes, default=str(default), doc=doc, minimum=minimum, maximum=MAX_INT)


def _number_or_not(name: str, minimum: int, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse_int, default=None, optional=True, doc=doc, minimum=minimum, maximum=MAX_INT)


def _maybe(name: str, parse: Callable[[str], Any], doc: str) -> NodeKey:
    return NodeKey(name=name, parse=parse, default=None, optional=True, doc=doc)


_KEYS = (
    NodeKey(
        name="node.id", parse=parse_int, default=None, minimum=0, maximum=MAX_INT, doc="This node's id, 0 or more."
    ),
    NodeKey(
        name="process.roles", parse=parse_list, default="broker,controller", doc="Roles: broker, controller, or both."
    ),
    NodeKey(
        name="listeners",
        parse=parse_list,
        default="CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093,GRPC://127.0.0.1:9094,REPLICATION://127.0.0.1:9095",
        doc="NAME://HOST:PORT of each listener; port 0 takes a free port (not on the internal listener).",
    ),
    _maybe("advertised.listeners", parse_list, "Addresses that others connect to, if they differ from `listeners`."),
    NodeKey(
        name="inter.broker.listener.name",
        parse=_text,
        default="INTERNAL",
        doc="The listener for calls between nodes: quorum, controller, replication.",
    ),
    NodeKey(
        name="lane.listeners",
        parse=parse_list,
        default="CLIENT,REPLICATION",
        doc="Names of the listeners that speak Kafka's own protocol; the others speak gRPC. Not in Kafka.",
    ),
    NodeKey(
        name="replication.listener.name",
        parse=_text,
        default="REPLICATION",
        doc="A second internal listener, for replica fetches, if `listeners` has this name. Not in Kafka.",
    ),
    _maybe("controller.listener.names", parse_list, "Must name the same listener, which serves both here."),
    _maybe("listener.security.protocol.map", parse_list, "NAME:PLAINTEXT for each listener."),
    NodeKey(
        name="controller.quorum.voters",
        parse=parse_list,
        default=None,
        doc="ID@HOST:PORT of every controller's internal listener, the same on all nodes.",
    ),
    NodeKey(name="log.dirs", parse=parse_list, default="/tmp/quorumlog-logs", doc="Directories of the partitions."),
    _maybe("log.dir", parse_list, "The older name of `log.dirs`."),
    _maybe("metadata.log.dir", _text, "Directory of the metadata log; the first of `log.dirs` if not set."),
    _number(
        "log.dir.stall.ms",
        3_000,
        100,
        "A directory where a write or a sync takes longer than this is taken offline. Not in Kafka.",
    ),
    _number_or_not(
        "log.open.files.max",
        8,
        "Segment files that stay open; by default what ulimit -n leaves, at most 1,000. Not in Kafka.",
    ),
    _bytes("log.index.bytes.max", 128 << 20, 1 << 10, "Most bytes of loaded indexes. Not in Kafka."),
    NodeKey(
        name="log.dir.free.space.reserve.bytes",
        parse=parse_bytes,
        default=None,
        optional=True,
        minimum=0,
        doc="With less free space than this, producers are refused; 0: never. Not set: 1 GiB, or 5 % of the file "
        "system if that is less. Not in Kafka.",
    ),
    _bytes("metadata.log.segment.bytes", 64 << 20, 1_024, "Size at which a segment of the metadata log is closed."),
    _maybe("broker.rack", _text, "The machine's rack; replicas are spread over racks."),
    NodeKey(
        name="auto.create.topics.enable", parse=parse_bool, default="true", doc="Create a topic that a client requests."
    ),
    _number("num.partitions", 1, 1, "Partitions of a topic that is created without a number."),
    _number("default.replication.factor", 1, 1, "Replicas of a topic that is created without a number."),
    _number("broker.heartbeat.interval.ms", 500, 10, "Interval between a broker's heartbeats to the controller."),
    _number("broker.session.timeout.ms", 9_000, 100, "A broker without heartbeats for this long is fenced."),
    _number("initial.broker.registration.timeout.ms", 60_000, 100, "How long a starting broker tries to register."),
    NodeKey(
        name="controlled.shutdown.enable", parse=parse_bool, default="true", doc="Hand over leaderships before a stop."
    ),
    _number("controlled.shutdown.timeout.ms", 20_000, 0, "How long a stop waits for the handover. Not in Kafka."),
    _number("controller.quorum.fetch.timeout.ms", 1_000, 10, "Silence of the quorum's leader before an election."),
    _number("controller.quorum.election.timeout.ms", 500, 10, "How long a candidate waits, plus up to as much again."),
    _number("metadata.max.idle.interval.ms", 500, 0, "Write a no-op record after this long without others; 0: never."),
    _number(
        "controller.max.slice.work", 5_000, 1, "Partitions that a controller handles before a pause. Not in Kafka."
    ),
    _number("broker.max.slice.work", 100, 1, "Replicas that a broker changes before a pause. Not in Kafka."),
    _number("replica.lag.time.max.ms", 30_000, 1, "A replica that is behind for longer leaves the in-sync set."),
    _number("replica.fetch.wait.max.ms", 500, 0, "How long a follower's fetch waits for data."),
    _number("replica.fetch.min.bytes", 1, 0, "Bytes that a follower's fetch waits for."),
    _bytes("replica.fetch.max.bytes", 1 << 20, 1, "Largest share of one partition in a follower's fetch."),
    _bytes("replica.fetch.response.max.bytes", 10 << 20, 1, "Largest response to a follower's fetch."),
    _number(
        "replica.high.watermark.checkpoint.interval.ms", 5_000, 100, "Time between two notes of the high watermarks."
    ),
    _number(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        100,
        "Time between two notes of the recovery points, of partitions and of the metadata log.",
    ),
    _bytes("log.tail.bytes", 64 << 20, 0, "Memory for the newest batches of all partitions. Not in Kafka."),
    _number("producer.id.expiration.ms", 86_400_000, 1, "A partition forgets a producer that is silent for this long."),
    NodeKey(
        name="record.validation",
        parse=_text,
        default="full",
        doc="What is looked at before a batch is stored: full (every record) or header (faster, unsafe). Not in Kafka.",
    ),
    _bytes("fetch.max.bytes", 55 << 20, 1_024, "Largest response to any fetch."),
    _number("max.incremental.fetch.session.cache.slots", 1_000, 0, "Fetch sessions that a broker keeps."),
    _bytes("socket.request.max.bytes", 100 << 20, 1, "Largest request that is read."),
    _bytes("queued.max.request.bytes", 512 << 20, 1 << 20, "Most bytes held for clients; then reading pauses."),
    _bytes(
        "queued.max.internal.request.bytes",
        128 << 20,
        1 << 20,
        "Most bytes held for followers, beside those of clients. Not in Kafka.",
    ),
    _number("max.connections", 10_000, 1, "Connections per listener; further ones are closed at once."),
    _number("connections.max.idle.ms", 600_000, 100, "A connection that is unused for this long is closed."),
    _maybe("metrics.port", parse_int, "Port of /healthz, /readyz and /metrics; 0 takes a free port. Not in Kafka."),
    NodeKey(name="metrics.host", parse=_text, default="127.0.0.1", doc="Address for metrics.port. Not in Kafka."),
    NodeKey(name="log.format", parse=_text, default="console", doc="Format of the log: console or json. Not in Kafka."),
    NodeKey(name="log.level", parse=_text, default="info", doc="debug, info, warning or error. Not in Kafka."),
    NodeKey(name="rpc.reflection", parse=parse_bool, default="false", doc="Serve gRPC reflection. Not in Kafka."),
)

NODE_KEYS: Mapping[str, NodeKey] = {key.name: key for key in _KEYS}

SIZES = ("retention.bytes", "segment.bytes", "segment.index.bytes", "max.message.bytes", "index.interval.bytes")

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
COARSER: Mapping[str, tuple[str, int]] = {  # Kafka's older units, coarsest first: key -> (topic config, ms in one)
    "log.retention.hours": ("retention.ms", _HOUR_MS),
    "log.retention.minutes": ("retention.ms", _MINUTE_MS),
    "log.roll.hours": ("segment.ms", _HOUR_MS),
    "log.roll.jitter.hours": ("segment.jitter.ms", _HOUR_MS),
}

WITHOUT_EFFECT = frozenset(
    {
        "background.threads",
        "group.coordinator.threads",
        "group.initial.rebalance.delay.ms",
        "log.cleaner.enable",
        "log.cleaner.threads",
        "log.retention.check.interval.ms",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "queued.max.requests",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)


def all_keys() -> list[str]:
    """Every accepted name, sorted."""
    return sorted({*NODE_KEYS, *TOPIC_SYNONYMS, *COARSER, *WITHOUT_EFFECT})


def check_known(values: Mapping[str, str], where: str) -> None:
    """Raises ConfigError for the first unknown key; it names the nearest known one."""
    known = all_keys()
    for key in values:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "`quorumlog server config explain` lists the keys"
            raise ConfigError(f"{where}: unknown key {key}; {hint}")
