"""Options of reads: the names of Spark's Kafka source, and the client's options under `kafka.` or `quorumlog.`.

Spark passes every name in lower case. An unknown name raises an error that names the nearest option, so that a typo
does not go unnoticed. A name that Kafka's source knows but this one does not support yet is refused as such.

`OptionNames` sorts the names of a read or a write. `table` asks what a cluster tells of itself, or its files, in place
of a topic's records; `readFrom=files` says which log directories are read in place of a cluster, and how far.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from quorumlog.client.carried import CarriedOptions, carried
from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.client.options import MAX_PREFETCH_CHUNKS, ConsumerOptions, parse_options
from quorumlog.client.security.names import canonical
from quorumlog.client.security.options import NAMES as OF_SECURITY
from quorumlog.spark.read.places import Place, TimePlace, parse_assign, parse_place, parse_time, parse_times
from quorumlog.spark.session.protection import NOT_OPTIONS

PREFIXES = ("kafka.", "quorumlog.")
SERVERS = "bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """own: of the connector. client: of the client, underscored. not_yours: names of Kafka's clients that are refused,
    and what to do instead. aliases: names of Kafka's for own ones, in lower case; they go before these. refused: own
    names that are of no use here, in lower case, and why. ignored: in lower case, what Spark itself adds."""

    own: Sequence[str]
    client: Sequence[str]
    not_yours: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    def sort(self, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
        """The connector's options by their spelling, and the client's by their underscored names. Raises
        ConfigError."""
        spelling = {name.lower(): name for name in self.own}
        own: dict[str, str] = {}
        aliased: dict[str, str] = {}
        client: dict[str, Any] = {}
        called: dict[str, str] = {}  # what the user calls an option of the client that has several names

        def take(key: str, name: str, value: str) -> None:
            if name in OF_SECURITY and name in called and value != client[name]:
                raise ConfigError(f"{key} and {called[name]} are two names of one option: remove one of both")
            called[name], client[name] = key, value

        for key, value in given.items():
            name = key.lower()
            if name in (SERVERS, *(prefix + SERVERS for prefix in PREFIXES)):
                client["bootstrap_servers"] = value
            elif name in self.aliases:
                aliased[self.aliases[name]] = value
            elif name in spelling:
                own[spelling[name]] = value
            elif name.startswith(PREFIXES):
                take(key, self._client_name(key, name.partition(".")[2]), value)
            elif name in self.refused:
                raise ConfigError(f"option {key!r} {self.refused[name]}")
            elif canonical(name) in self.client:
                take(key, self._client_name(key, name), value)
            elif name not in self.ignored:
                raise ConfigError(self._refusal(key))
        return own | aliased, client

    def _client_name(self, key: str, given: str) -> str:
        """given: the key in lower case, without its prefix."""
        name = canonical(given)
        if name in self.not_yours:
            raise ConfigError(f"option {key!r} cannot be set here: {self.not_yours[name]}")
        if name not in self.client:
            raise ConfigError(self._refusal(key))
        return name

    def _refusal(self, key: str) -> str:
        name = key.lower()
        prefix = next((p for p in PREFIXES if name.startswith(p)), "")
        known = [prefix + field.replace("_", ".") for field in self.client] if prefix else list(self.own)
        spelling = {candidate.lower(): candidate for candidate in known}
        near = difflib.get_close_matches(name, list(spelling), n=1)
        hint = f"did you mean {spelling[near[0]]!r}?" if near else f"known options: {', '.join(known)}"
        return f"unknown option {key!r}; {hint}"


def one_of(own: Mapping[str, str], option: str, words: Sequence[str]) -> str:
    """An option that takes one of these words, in any case. The first word is the default. Raises ConfigError."""
    spelling = {word.lower(): word for word in words}
    given = own.get(option, words[0]).lower()
    if given not in spelling:
        raise ConfigError(f"{option} must be one of {', '.join(words)}: {own[option]!r}")
    return spelling[given]


TABLES = ("partitions", "groups", "transactions")
METADATA_RECORDS = "metadata.records"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """client: options that every client knows, by their underscored names. directories: of `readFrom=files`; empty:
    brokers are asked."""

    table: str
    client: Mapping[str, Any]
    directories: tuple[str, ...] = ()


def check_table(name: str, *, from_files: bool) -> str:
    """Raises ConfigError for a table that there is not."""
    if from_files:
        if name.lower() != METADATA_RECORDS:
            raise ConfigError(
                f"table {name!r} is what brokers tell, and readFrom=files asks none: leave readFrom out, and set "
                f"bootstrap.servers. Of files there is {METADATA_RECORDS}"
            )
        return METADATA_RECORDS
    if name.lower() == METADATA_RECORDS:
        raise ConfigError(
            "table 'metadata.records' is read from files only: no broker, of quorumlog or of Apache Kafka, serves its "
            "metadata log to clients. Set readFrom=files, and path to the log directory of a node that has "
            f"__cluster_metadata-0; leave bootstrap.servers out. Tables that brokers tell: {', '.join(TABLES)}"
        )
    if name.lower() not in TABLES:
        raise ConfigError(f"table must be one of {', '.join(TABLES)}: {name!r}")
    return name.lower()


FROM_FILES = "files"
READ_FROM = ("leader", FROM_FILES)  # the first word of a table is the default
LOG_END = "logEnd"
READ_UP_TO = ("highWatermark", LOG_END)

_OF_CLUSTERS = (
    "transport", "prefetch", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "keepConnectionsFor",
)  # fmt: skip
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)(?:://|:(?=/))(.*)")


def parse_files(own: Mapping[str, str], client: Mapping[str, Any]) -> tuple[str, ...]:
    """Absolute paths, each once. own, client: the options, as `options` sorts them. Raises ConfigError."""
    of_cluster = [name for name in _OF_CLUSTERS if name in own] + [name.replace("_", ".") for name in client]
    if of_cluster:
        raise ConfigError(
            f"option {of_cluster[0]!r} has no meaning with readFrom=files, which asks no broker: leave it out, or "
            "leave readFrom out"
        )
    found = [*_paths("path", own.get("path", "")), *_paths("paths", own.get("paths", ""))]
    if not found:
        raise ConfigError('readFrom=files needs a log directory: .option("path", "/mnt/logs"), or "/mnt/a,/mnt/b"')
    return tuple(dict.fromkeys(os.path.abspath(_local(path)) for path in found))


def _paths(option: str, text: str) -> list[str]:
    """Separated by commas, or as a JSON list, which is also what Spark makes of load(["/a", "/b"])."""
    if not text.strip().startswith("["):
        return [path.strip() for path in text.split(",") if path.strip()]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text!r} is no JSON list of directories: {error}") from error
    if not all(isinstance(path, str) and path for path in found):
        raise ConfigError(f"{option} must list names of directories: {text!r}")
    return list(found)


def _local(path: str) -> str:
    scheme = _SCHEME.fullmatch(path)
    if scheme is None:
        return path
    if scheme[1].lower() == "file":
        return scheme[2]
    raise ConfigError(f"path {path!r}: readFrom=files reads local and mounted directories; mount it, or copy it first")


DEFAULT_CLIENT_ID = "spark-quorumlog-source"
DEFAULT_ISOLATION_LEVEL = "read_committed"  # rows of tasks that failed lie in every topic that is written exactly once
DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60 * 1_000  # as in Kafka's source
DEFAULT_KEEP_CONNECTIONS_MS = 5 * 60 * 1_000  # as Spark keeps the consumers of its Kafka source
DEFAULT_PREFETCH = 2  # chunks of a task: read by the broker, on their way, or waiting in the worker
DEFAULT_POLL_TIMEOUT_MS = 120_000  # spark.network.timeout, as in Kafka's source
DEFAULT_OFFSET_TRIES = 3  # of a plan to learn its offsets, the first one included, as in Kafka's source
DEFAULT_OFFSET_RETRY_INTERVAL_MS = 1_000  # as in Kafka's source
MAX_NUMBER = 2**63 - 1  # of rows, bytes and ms: Spark and the brokers know no larger one

_BOTH = (
    "bootstrap.servers", "subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "failOnDataLoss", "minPartitions",
    "maxRecordsPerPartition", "includeHeaders", "columns", "keyFormat", "valueFormat", "badKeys", "badValues",
    "isolationLevel", "kafkaConsumer.pollTimeoutMs", "groupIdPrefix", "includeMetadata", "includeValue",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxBytesPerPartition", "transport", "prefetch",
    "readFrom", "keepConnectionsFor",
)  # fmt: skip
_BATCH = (
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "pushdown",
    "table",
    "path",
    "paths",
    "readUpTo",
)
_STREAM = (
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "pinId", "allowUnpinnedLatest", "commitGroup",
    "maxBytesPerTrigger",
)  # fmt: skip
_OWN = (*_BOTH, *_BATCH, *_STREAM)
FORMATS = ("binary", "utf8", "int", "long")  # the last two as Kafka's IntegerSerializer and LongSerializer write them
_NOT_YET = ("wire", "asOf")
TRANSPORTS = {  # and how a task asks for chunks of its partition: the client's `transport` and `stream_chunks`
    "auto": ("auto", "auto"),  # in a stream by gRPC where the broker serves it, as ours do; else by Kafka's protocol
    "grpc": ("grpc", "true"),
    "lane": ("auto", "false"),
}
_NOT_YOURS = {
    "auto_offset_reset": "set startingOffsets and failOnDataLoss instead",
    "check_crcs": "it is always on",
    "group_id": "Spark keeps the offsets; set groupIdPrefix to name the reader",
    "key_deserializer": "keys are bytes: convert the column in Spark",
    "value_deserializer": "values are bytes: convert the column in Spark",
    "enable_auto_commit": "a batch read commits no offsets",
    "interceptor_classes": "they are Java classes",
    "interceptors": "they are objects of an application, and this reads columns",
    "transport": "set transport",
    **NOT_OPTIONS,
    "stream_chunks": "set transport",
    "prefetch_chunks": "set prefetch",
}
FILES_HINT = (
    'readFrom=files, which reads log directories without a broker. Name topics with .option("subscribe", "a,b"), and '
    "call load() without a path"
)
NAMES = OptionNames(
    own=_OWN,
    client=tuple(field.name for field in fields(ConsumerOptions)),
    not_yours=_NOT_YOURS,
    aliases={"kafka.isolation.level": "isolationLevel", "kafka.group.id": "groupIdPrefix"},
    refused={name.lower(): f"is not supported yet; supported: {', '.join(_OWN)}" for name in _NOT_YET},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Exactly one field is set. pattern: a Python regular expression that some part of a topic's name must match, as in
    Kafka's source of Spark (Scala's findFirstIn); Kafka's own consumers match the whole name."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Of the rows. columns: their names in order; empty: all. null_if_bad: as for `columns.to_batch`."""

    include_headers: bool = False
    include_metadata: bool = False
    include_value: bool = True
    columns: tuple[str, ...] = ()
    key_format: str = "binary"
    value_format: str = "binary"
    null_if_bad: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """client: options of quorumlog.client, by their underscored names.

    directories: log directories to read in place of a cluster; empty: a cluster is read. to_log_end: of these, also
    what lies above the high watermark.
    """

    client: Mapping[str, Any]
    subscription: Subscription
    directories: tuple[str, ...] = ()
    to_log_end: bool = False
    starting: Place | TimePlace = EARLIEST
    ending: Place | TimePlace = LATEST
    fail_on_data_loss: bool = True
    min_partitions: int = 0  # tasks; 0: one for each partition that has records
    max_records_per_partition: int = 0  # offsets of one task; 0: no limit
    max_bytes_per_partition: int = 0  # of one task; 0: no limit
    pushdown: bool = False
    shape: Shape = Shape()
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    offset_tries: int = DEFAULT_OFFSET_TRIES
    offset_retry_interval_ms: int = DEFAULT_OFFSET_RETRY_INTERVAL_MS
    keep_connections_ms: int = DEFAULT_KEEP_CONNECTIONS_MS  # of a task, for the next one of its worker; 0: not at all


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(ReadOptions):
    """most, least: offsets of a batch; most_bytes: of its records as they are stored; 0: no limit. names_start: the
    user said where the stream begins."""

    most: int = 0
    most_bytes: int = 0
    least: int = 0
    max_trigger_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    pin_id: str = ""
    allow_unpinned_latest: bool = False
    commit_group: str = ""
    names_start: bool = False


def parse_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Options of `spark.read`, in any case. Raises ConfigError."""
    own, client = NAMES.sort(given)
    _refuse(own, _STREAM, "is for streams, and this is a batch read")
    directories = parse_files(own, client) if one_of(own, "readFrom", READ_FROM) == FROM_FILES else ()
    if not directories:
        _refuse(own, ("path", "paths", "readUpTo"), f"is for {FILES_HINT}")
    return ReadOptions(
        **_shared(own, client if directories else _who_asks(own, client)),
        directories=directories,
        to_log_end=one_of(own, "readUpTo", READ_UP_TO) == LOG_END,
        starting=_by_time(own, "starting") or _starting(own.get("startingOffsets", "earliest")),
        ending=_by_time(own, "ending") or _ending(own.get("endingOffsets", "latest")),
        pushdown=_truth("pushdown", own.get("pushdown", "false")),
    )


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Options of `spark.readStream`, in any case. Raises ConfigError."""
    own, client = NAMES.sort(given)
    if one_of(own, "readFrom", READ_FROM) == FROM_FILES:
        raise ConfigError(
            "readFrom=files is for batch reads: files tell nobody that they have grown. Read them by spark.read, from "
            "startingOffsets where the last read has ended; or set readFrom=leader"
        )
    _refuse(own, _BATCH, "is for batch reads: a stream has no end, no filters and no tables")
    most, least = _positive(own, "maxOffsetsPerTrigger", 0), _positive(own, "minOffsetsPerTrigger", 0)
    if most and least > most:
        raise ConfigError(f"minOffsetsPerTrigger ({least}) must not be above maxOffsetsPerTrigger ({most})")
    return StreamOptions(
        **_shared(own, _who_asks(own, client)),
        starting=_by_time(own, "starting") or parse_place("startingOffsets", own.get("startingOffsets", "latest")),
        most=most,
        most_bytes=_bytes(own, "maxBytesPerTrigger"),
        least=least,
        max_trigger_delay_ms=_duration_ms(own, "maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY_MS),
        pin_id=own.get("pinId", ""),
        allow_unpinned_latest=_truth("allowUnpinnedLatest", own.get("allowUnpinnedLatest", "false")),
        commit_group=own.get("commitGroup", ""),
        names_start="pinId" in own or any(name.startswith("starting") for name in own),
    )


def parse_table_options(given: Mapping[str, str]) -> TableOptions | None:
    """Of `table`, in any case; None: a topic's records are read. Raises ConfigError."""
    own, client = NAMES.sort(given)
    if "table" not in own:
        return None
    from_files = one_of(own, "readFrom", READ_FROM) == FROM_FILES
    table = check_table(own["table"], from_files=from_files)
    of_place = ("path", "paths") if from_files else ("groupIdPrefix",)
    others = [name for name in own if name not in ("table", "readFrom", *of_place)]
    if others:
        raise ConfigError(f"option {others[0]!r} has no meaning with table: filter its rows in Spark")
    if from_files:
        return TableOptions(table=table, client={}, directories=parse_files(own, client))
    return TableOptions(table=table, client=CarriedOptions(_who_asks(own, client)))


def parse_shape(given: Mapping[str, str]) -> Shape:
    """Of a read of either kind: Spark asks for the schema before it says which one it is. Raises ConfigError."""
    own, _ = NAMES.sort(given)
    return _shape(own)


def _shape(own: Mapping[str, str]) -> Shape:
    columns = tuple(dict.fromkeys(name.strip() for name in own.get("columns", "").split(",") if name.strip()))
    if "columns" in own and not columns:
        raise ConfigError("columns names no column")
    bad = {"key": one_of(own, "badKeys", ("error", "null")), "value": one_of(own, "badValues", ("error", "null"))}
    return Shape(
        include_headers=_truth("includeHeaders", own.get("includeHeaders", "false")),
        include_metadata=_truth("includeMetadata", own.get("includeMetadata", "false")),
        include_value=_truth("includeValue", own.get("includeValue", "true")),
        columns=columns,
        key_format=one_of(own, "keyFormat", FORMATS),
        value_format=one_of(own, "valueFormat", FORMATS),
        null_if_bad=tuple(name for name, then in bad.items() if then == "null"),
    )


def _refuse(own: Mapping[str, str], names: Sequence[str], why: str) -> None:
    for name in names:
        if name in own:
            raise ConfigError(f"option {name!r} {why}")


def _shared(own: Mapping[str, str], client: dict[str, Any]) -> dict[str, Any]:
    """The fields that batch reads and streams have in common."""
    client["isolation_level"] = own.get("isolationLevel", DEFAULT_ISOLATION_LEVEL)
    client["transport"], client["stream_chunks"] = TRANSPORTS[one_of(own, "transport", tuple(TRANSPORTS))]
    client["prefetch_chunks"] = _positive(own, "prefetch", DEFAULT_PREFETCH)
    if client["prefetch_chunks"] > MAX_PREFETCH_CHUNKS:
        raise ConfigError(f"prefetch must be 1 to {MAX_PREFETCH_CHUNKS} chunks: {own['prefetch']}")
    parse_options(ConsumerOptions, client, {})
    return {
        "client": CarriedOptions(client),
        "subscription": _subscription(own),
        "fail_on_data_loss": _truth("failOnDataLoss", own.get("failOnDataLoss", "true")),
        "min_partitions": _positive(own, "minPartitions", 0),
        "max_records_per_partition": _positive(own, "maxRecordsPerPartition", 0),
        "max_bytes_per_partition": _bytes(own, "maxBytesPerPartition"),
        "shape": _shape(own),
        "poll_timeout_ms": _positive(own, "kafkaConsumer.pollTimeoutMs", DEFAULT_POLL_TIMEOUT_MS),
        "offset_tries": _positive(own, "fetchOffset.numRetries", DEFAULT_OFFSET_TRIES),
        "offset_retry_interval_ms": _positive(own, "fetchOffset.retryIntervalMs", DEFAULT_OFFSET_RETRY_INTERVAL_MS),
        "keep_connections_ms": _duration_ms(own, "keepConnectionsFor", DEFAULT_KEEP_CONNECTIONS_MS),
    }


def _who_asks(own: Mapping[str, str], client: dict[str, Any]) -> dict[str, Any]:
    """The client's options, with its name, and with its secrets. Raises ConfigError where no cluster is named."""
    if "bootstrap_servers" not in client:
        raise ConfigError('set the address of the cluster: .option("bootstrap.servers", "host:9092")')
    return {"client_id": own.get("groupIdPrefix", DEFAULT_CLIENT_ID), **carried(client)}


def _subscription(own: Mapping[str, str]) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if name in own]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ConfigError(f"give exactly one of subscribe, subscribePattern and assign; found {found}")
    text = own[given[0]]
    if given[0] == "assign":
        return Subscription(assigned=parse_assign(text))
    if given[0] == "subscribePattern":
        text = text.strip()  # as Kafka's source does
        if not text:
            raise ConfigError("subscribePattern is empty: give a regular expression, as ^orders-")
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern {text!r} is not a regular expression: {error}") from error
        return Subscription(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigError("subscribe names no topic")
    return Subscription(names=names)


def _starting(text: str) -> Place:
    place = parse_place("startingOffsets", text)
    if place == LATEST or (not isinstance(place, int) and LATEST in place.values()):
        raise ConfigError("startingOffsets: a batch read cannot start at latest: it would always be empty")
    return place


def _ending(text: str) -> Place:
    place = parse_place("endingOffsets", text)
    if place == EARLIEST or (not isinstance(place, int) and EARLIEST in place.values()):
        raise ConfigError("endingOffsets: a batch read cannot end at earliest: it would always be empty")
    return place


def _by_time(own: Mapping[str, str], side: str) -> TimePlace | None:
    """side: starting or ending. One time for all goes before times by partition, and both before offsets."""
    latest_if_none = (
        side == "ending" or one_of(own, "startingOffsetsByTimestampStrategy", ("error", "latest")) == "latest"
    )
    for_all, by_partition = f"{side}Timestamp", f"{side}OffsetsByTimestamp"
    if for_all in own:
        time_ms = parse_time(for_all, own[for_all])
        return TimePlace(option=for_all, times_ms=time_ms, latest_if_none=latest_if_none)
    if by_partition in own:
        times = parse_times(by_partition, own[by_partition])
        return TimePlace(option=by_partition, times_ms=times, latest_if_none=latest_if_none)
    return None


def _truth(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{option} must be true or false: {text!r}")
    return text.lower() == "true"


def _positive(own: Mapping[str, str], option: str, default: int) -> int:
    if option not in own:
        return default
    text = own[option]
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigError(f"{option} must be a positive whole number: {text!r}")
    return _not_too_large(option, int(text))


def _bytes(own: Mapping[str, str], option: str) -> int:
    """As Spark writes sizes: 64m, 512k, 1g; a number alone is in bytes. 0 if it is not given."""
    if option not in own:
        return 0
    found = re.fullmatch(r"(\d{1,19})\s*([kmg]?)b?", own[option].strip().lower(), re.ASCII)
    if found is None or not int(found[1]):
        raise ConfigError(f"{option} must be a size such as 64m, 512k or 1g, and above 0: {own[option]!r}")
    return _not_too_large(option, int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]])


def _not_too_large(option: str, number: int) -> int:
    if number > MAX_NUMBER:
        raise ConfigError(f"{option} must be at most {MAX_NUMBER}, and is {number}; leave it out for no limit")
    return number


def _duration_ms(own: Mapping[str, str], option: str, default: int) -> int:
    return parse_duration_ms(option, own[option]) if option in own else default


def parse_duration_ms(option: str, text: str) -> int:
    """As Spark writes times: 500ms, 30s, 15m, 1h, 2d; a number alone is in ms. Raises ConfigError."""
    found = re.fullmatch(r"(\d{1,15})\s*(ms|s|m|min|h|d)?", text.strip().lower(), re.ASCII)
    if found is None:
        raise ConfigError(f"{option} must be a time such as 500ms, 30s, 15m or 1h: {text!r}")
    units = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(found[1]) * units[found[2] or "ms"]
