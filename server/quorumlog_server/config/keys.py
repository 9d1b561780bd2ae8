"""Every key of a node's configuration: Kafka's names and meanings, some defaults of our own (docs/configuration.md).

`NODE_KEYS` are the node's own keys. `TOPIC_SYNONYMS` are the defaults that a broker sets for its topics (Kafka's
`log.*` names). The keys of foreign_keys.py are Kafka's, and have no effect here. Any other key is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from quorumlog.configs.broker import TOPIC_SYNONYMS
from quorumlog.configs.live import (
    ADDRESSES,
    CONNECTIONS,
    CONNECTIONS_OF_ADDRESS,
    IN_FORCE,
    RECOVERY_THREADS,
    RECOVERY_THREADS_MAX,
    key_of_listener,
)
from quorumlog.configs.topic import MAX_LONG, parse_text
from quorumlog.errors import ApiError
from quorumlog.node_settings import MAX_INT, NodeKey, parse_bool, parse_bytes, parse_float, parse_int, parse_list
from quorumlog.node_settings import maybe as _maybe
from quorumlog.node_settings import number as _number
from quorumlog.node_settings import number_or_not as _number_or_not
from quorumlog.node_settings import size as _bytes
from quorumlog.node_settings import text as _text
from quorumlog_server.config.balance_keys import BALANCE_KEYS
from quorumlog_server.config.directory_paths import RELATIVE_TO, TO_PROCESS
from quorumlog_server.config.foreign_keys import IDLE, ONLY, foreign
from quorumlog_server.config.group_keys import GROUP_KEYS
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.config.transaction_keys import TRANSACTION_KEYS

MAX_PORT = 65_535
MOVED_VOTERS = "controller.quorum.voters.moved"


def _addresses(text: str) -> str:
    """Raises ValueError."""
    try:
        parse_text(IN_FORCE[ADDRESSES], text)
    except ApiError as error:
        raise ValueError(str(error)) from None
    return text


_KEYS = (
    NodeKey(
        name="node.id", parse=parse_int, default=None, minimum=0, maximum=MAX_INT, doc="This node's id, 0 or more."
    ),
    NodeKey(
        name="broker.id",
        parse=parse_int,
        default="-1",
        minimum=-1,
        maximum=MAX_INT,
        doc="The older name of node.id, which must say the same; -1: not set.",
    ),
    NodeKey(
        name="process.roles", parse=parse_list, default="broker,controller", doc="Roles: broker, controller, or both."
    ),
    NodeKey(
        name="listeners",
        parse=parse_list,
        default="CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093,GRPC://127.0.0.1:9094,REPLICATION://127.0.0.1:9095",
        doc="NAME://HOST:PORT of each listener; port 0 takes a free port (not on the internal listener). A broker "
        "without a listener for gRPC gets one, GRPC, at a free port.",
    ),
    _maybe("advertised.listeners", parse_list, "Addresses that others connect to, if they differ from `listeners`."),
    NodeKey(
        name="inter.broker.listener.name",
        parse=_text,
        default="INTERNAL",
        doc="The listener for calls between nodes: quorum, controller, replication. Where controller.listener.names "
        "names another one, that one serves them all.",
    ),
    _maybe(
        "lane.listeners",
        parse_list,
        "Names of the listeners that speak Kafka's own protocol; the others speak gRPC. Default: all but the internal "
        "listener and those whose names begin with GRPC. Not in Kafka.",
    ),
    NodeKey(
        name="replication.listener.name",
        parse=_text,
        default="REPLICATION",
        doc="A second internal listener, for replica fetches, if `listeners` has this name. Not in Kafka.",
    ),
    _maybe("controller.listener.names", parse_list, "Kafka's other name for the listener for calls between nodes."),
    _maybe("listener.security.protocol.map", parse_list, "NAME:PLAINTEXT for each listener; others are left alone."),
    NodeKey(
        name="controller.quorum.voters",
        parse=parse_list,
        default="",
        doc="ID@HOST:PORT of every controller's internal listener, the same on all nodes. Not needed where the voters "
        "are in the metadata log (kraft.version 1).",
    ),
    NodeKey(
        name="controller.quorum.bootstrap.servers",
        parse=parse_list,
        default="",
        doc="HOST:PORT of the internal listeners of some controllers: a node that knows no leader asks them.",
    ),
    NodeKey(
        name=MOVED_VOTERS,
        parse=parse_list,
        default="",
        doc="ID@HOST:PORT>HOST:PORT for controllers that all got other addresses while they were stopped, with "
        "kraft.version 1: where the metadata log names the first address of a voter, it is called at the second one. "
        "Take it out when `quorumlog quorum replication` works. Not in Kafka.",
    ),
    NodeKey(
        name="controller.quorum.auto.join.enable",
        parse=parse_bool,
        default="false",
        doc="A controller that is no voter makes itself one, after it has removed its former self on another "
        "directory. Once for each directory: what was removed stays removed.",
    ),
    NodeKey(name="log.dirs", parse=parse_list, default="/tmp/quorumlog-logs", doc="Directories of the partitions."),
    _maybe("log.dir", parse_list, "The older name of `log.dirs`."),
    NodeKey(
        name=RELATIVE_TO,
        parse=_text,
        default=TO_PROCESS,
        doc="Where relative paths of this file begin: process, at the working directory of the node's process, as in "
        "Kafka; file, at the folder of the file, so that it can be moved with its data. Not in Kafka.",
    ),
    NodeKey(
        name="cordoned.log.dirs",
        parse=parse_list,
        default="",
        doc="Those of `log.dirs`, or * for all, that get new partitions only where no other directory is online.",
    ),
    _maybe("metadata.log.dir", _text, "Directory of the metadata log; the first of `log.dirs` if not set."),
    _number(
        "log.dir.stall.ms",
        3_000,
        100,
        "A directory where a write or a sync takes longer than this is taken offline. Not in Kafka.",
    ),
    _number(RECOVERY_THREADS, 2, 1, IN_FORCE[RECOVERY_THREADS].doc, maximum=RECOVERY_THREADS_MAX),
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
    _number(
        "metadata.log.segment.ms",
        7 * 24 * 3_600_000,
        1,
        "Age at which a segment of the metadata log is closed.",
        MAX_LONG,
    ),
    _bytes(
        "metadata.log.max.record.bytes.between.snapshots",
        20 << 20,
        1,
        "A node takes a snapshot of its metadata after so many bytes of the metadata log.",
    ),
    _number(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        0,
        "A node takes a snapshot of its metadata after so long, if there are new records; 0: by bytes alone.",
    ),
    _bytes(
        "metadata.max.retention.bytes",
        100 << 20,
        -1,
        "With more than this in the metadata log and its snapshots, the oldest go, as far as a newer snapshot stands "
        "for them; -1: no limit.",
        maximum=MAX_LONG,
    ),
    _number(
        "metadata.max.retention.ms",
        7 * 24 * 3_600_000,
        -1,
        "A snapshot older than this goes, and the metadata log before the next one, if there is one; -1: no limit.",
        maximum=MAX_LONG,
    ),
    _number(
        "metadata.retention.check.interval.ms",
        60_000,
        10,
        "How often a node looks at the two limits above and at metadata.log.segment.ms. Not in Kafka.",
    ),
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
    _bytes("controller.quorum.fetch.snapshot.max.bytes", 1 << 20, 1, "Most bytes of a snapshot in one answer."),
    _number("metadata.max.idle.interval.ms", 500, 0, "Write a no-op record after this long without others; 0: never."),
    _number(
        "controller.max.slice.work", 5_000, 1, "Partitions that a controller handles before a pause. Not in Kafka."
    ),
    _number("controller.max.batch.records", 10_000, 1, "Records in one batch of metadata; more are a transaction."),
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
    NodeKey(
        name="log.cleaner.enable", parse=parse_bool, default="true", doc="Compact logs of `cleanup.policy=compact`."
    ),
    _number("log.cleaner.threads", 1, 0, "Logs that are compacted at the same time, each by a process of its own."),
    _bytes(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        1 << 20,
        "Memory for the keys of all logs that are compacted now: 24 bytes a key.",
        MAX_LONG,
    ),
    _bytes("log.cleaner.io.buffer.size", 512 << 10, 0, "Memory for reading and writing, of all compactions together."),
    NodeKey(
        name="log.cleaner.io.buffer.load.factor",
        parse=parse_float,
        default="0.9",
        minimum=0.01,
        maximum=1.0,
        doc="How full the memory for keys may become.",
    ),
    NodeKey(
        name="log.cleaner.io.max.bytes.per.second",
        parse=parse_float,
        default="1.7976931348623157E308",
        minimum=1.0,
        doc="Most bytes that all compactions read and write in a second.",
    ),
    _number("log.cleaner.backoff.ms", 15_000, 0, "Pause when no log is due to be compacted."),
    _number(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        MAX_LONG,
        1,
        "Most bytes that moves between log directories copy in a second, all together.",
        MAX_LONG,
    ),
    _number_or_not(
        "num.replica.alter.log.dirs.threads",
        1,
        "Moves between log directories that copy at the same time. Default: one for each directory.",
    ),
    _number(
        "log.retention.check.interval.ms", 300_000, 1, "Time between two checks for segments that a topic lets go."
    ),
    _number("log.initial.task.delay.ms", 30_000, 0, "Time from the start to the first of these checks."),
    _number(
        "log.dir.failure.timeout.ms",
        30_000,
        1,
        "A broker stops if the controller has not learned for so long that one of its log directories has failed.",
        MAX_LONG,
    ),
    _number(
        "log.index.check.interval.ms",
        86_400_000,
        -1,
        "Time between two checks of all closed segments and their indexes in the background; -1: none. Not in Kafka.",
        maximum=MAX_LONG,
    ),
    _bytes(
        "log.index.check.max.bytes.per.second",
        4 << 20,
        1,
        "Most bytes that this check reads in a second, in each log directory. Not in Kafka.",
    ),
    _bytes("log.tail.bytes", 64 << 20, 0, "Memory for the newest batches of all partitions. Not in Kafka."),
    _number("producer.id.expiration.ms", 86_400_000, 1, "A partition forgets a producer that is silent for this long."),
    _number("producer.id.expiration.check.interval.ms", 600_000, 1, "Time between two looks for such producers."),
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
    _number(CONNECTIONS, 10_000, 1, IN_FORCE[CONNECTIONS].doc),
    _number(CONNECTIONS_OF_ADDRESS, MAX_INT, 1, IN_FORCE[CONNECTIONS_OF_ADDRESS].doc),
    NodeKey(name=ADDRESSES, parse=_addresses, default="", doc=IN_FORCE[ADDRESSES].doc),
    _number("connections.max.idle.ms", 600_000, 100, "A connection that is unused for this long is closed."),
    _maybe("metrics.port", parse_int, "Port of /healthz, /readyz and /metrics; 0 takes a free port. Not in Kafka."),
    NodeKey(name="metrics.host", parse=_text, default="127.0.0.1", doc="Address for metrics.port. Not in Kafka."),
    NodeKey(name="log.format", parse=_text, default="console", doc="Format of the log: console or json. Not in Kafka."),
    NodeKey(name="log.level", parse=_text, default="info", doc="debug, info, warning or error. Not in Kafka."),
    NodeKey(
        name="cluster.secret.in.clear",
        parse=parse_bool,
        default="false",
        doc="Take the secret itself from nodes of software that proves nothing, and show it to them. Only while such "
        "nodes are upgraded. Not in Kafka.",
    ),
    NodeKey(name="rpc.reflection", parse=parse_bool, default="false", doc="Serve gRPC reflection. Not in Kafka."),
    *BALANCE_KEYS,
    *GROUP_KEYS,
    *TRANSACTION_KEYS,
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


def all_keys() -> list[str]:
    """Every accepted name, sorted."""
    return sorted({*NODE_KEYS, *TOPIC_SYNONYMS, *COARSER, *IDLE, *ONLY})


def check_known(values: Mapping[str, str], where: str) -> None:
    """Raises ConfigError for the first unknown key; it names the nearest known one."""
    known = all_keys()
    for key in values:
        if key not in known and foreign(key) is None and key_of_listener(key) is None:
            nearest = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "`quorumlog server config explain` lists the keys"
            raise ConfigError(f"{where}: unknown key {key}; {hint}")
