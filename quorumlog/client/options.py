"""Options of the clients: Kafka's names, with dots in a dict or with underscores as keywords, checked and typed.

`AsyncProducer({"bootstrap.servers": "h:1", "linger.ms": 5})` and `AsyncProducer(bootstrap_servers="h:1", linger_ms=5)`
are the same. An unknown name raises an error that names the nearest option, so that a typo does not go unnoticed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from quorumlog.client.batches.numbering import MAX_IN_FLIGHT
from quorumlog.client.errors import ConfigError
from quorumlog.client.security.names import canonical
from quorumlog.client.security.options import SecurityOptions
from quorumlog.rpc.transport import Address

DEFAULT_PORT = 9092
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
TRANSPORTS = ("auto", "lane", "grpc")
SWITCH = ("auto", "true", "false")
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}  # and their numbers on the wire
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
MAX_ID_BYTES = 2**15 - 1  # of a transactional id
GROUP_PROTOCOLS = ("classic", "consumer")
MAX_PREFETCH_CHUNKS = 16
OFFSET_RESETS = ("earliest", "latest", "none")
BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.ASCII | re.IGNORECASE
)  # java.time.Duration's, without signs

OptionsKind = TypeVar("OptionsKind", bound="CommonOptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions(SecurityOptions):
    """bootstrap_servers: the first brokers to ask, `host:port[,host:port]`. Times are in ms, sizes in bytes.

    cluster_id: of the cluster that is meant; a node that says another is not used. "": any.
    """

    bootstrap_servers: str | Sequence[str] = "localhost:9092"
    client_id: str = "quorumlog"
    cluster_id: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    default_api_timeout_ms: int = 60_000
    transport: str = "auto"  # "auto" uses the fastest transport that the cluster offers

    def check(self) -> None:
        """Raises ConfigError for an impossible value."""
        parse_bootstrap(self.bootstrap_servers)
        _one_of("transport", self.transport, TRANSPORTS)
        self.check_security()
        if self.transport == "grpc" and (why := self.why_no_grpc):
            raise ConfigError(f"transport=grpc: {why}, or remove transport")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not isinstance(value, bool) and field.name != "acks" and value < 0:
                raise ConfigError(f"{field.name} must not be negative: {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions(CommonOptions):
    acks: int | str = "all"
    enable_idempotence: bool | str = "auto"  # retries neither duplicate nor reorder records; auto: on with acks=all
    batch_size: int = 512 * 1024  # upper limit; a batch is sent as soon as its partition has none in flight
    linger_ms: int = 0  # 0: records that arrive while a request is in flight form the next batch
    buffer_memory: int = 32 * 1024 * 1024
    max_block_ms: int = 60_000
    max_request_size: int = 4 * 1024 * 1024
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: int = 120_000
    compression_type: str = "none"
    transactional_id: str | None = None  # of one producer at a time: a new one fences the one before
    transaction_timeout_ms: int = 60_000  # the cluster aborts a transaction that is open for longer
    key_serializer: Any = None  # of keys that are not None: a function, or an object with Kafka's `serialize`
    value_serializer: Any = None
    partitioner: Any = None  # f(topic, key, value, partitions) -> int, of what is serialized; for records without one
    on_delivery: Any = None  # f(metadata, error), for each record
    interceptors: Sequence[Any] = ()  # objects with on_send, on_acknowledgement

    def check(self) -> None:
        CommonOptions.check(self)
        _one_of("acks", str(self.acks), tuple(ACKS))
        _one_of("compression_type", self.compression_type, ("none", "gzip", "snappy", "lz4", "zstd"))
        for name in ("batch_size", "buffer_memory", "max_request_size", "max_in_flight_requests_per_connection"):
            if getattr(self, name) == 0:
                raise ConfigError(f"{name} must be positive")
        switch = str(self.enable_idempotence).lower()
        _one_of("enable_idempotence", switch, SWITCH)
        if switch == "true" and (self.required_acks != ACKS["all"] or not self._few_in_flight):
            raise ConfigError(
                f"enable_idempotence needs acks=all and max_in_flight_requests_per_connection <= {MAX_IN_FLIGHT}"
            )

        for name, method in (("key_serializer", "serialize"), ("value_serializer", "serialize")):
            _callable(name, getattr(self, name), method)
        _callable("partitioner", self.partitioner)
        _callable("on_delivery", self.on_delivery)
        _objects("interceptors", self.interceptors)
        if self.transactional_id is not None:
            self._check_transactions(self.transactional_id)

    def _check_transactions(self, transactional_id: str) -> None:
        if not isinstance(transactional_id, str) or not 0 < len(transactional_id.encode()) <= MAX_ID_BYTES:
            raise ConfigError(f"transactional_id must be a text of 1 to {MAX_ID_BYTES} bytes: {transactional_id!r}")
        if not self.idempotent:
            raise ConfigError(
                "transactional_id needs acks=all, enable_idempotence, "
                f"and max_in_flight_requests_per_connection <= {MAX_IN_FLIGHT}"
            )
        if self.transaction_timeout_ms == 0:
            raise ConfigError("transaction_timeout_ms must be positive")

    @property
    def idempotent(self) -> bool:
        """True if batches are numbered, so that the log holds each batch once."""
        if str(self.enable_idempotence).lower() == "auto":
            return self.required_acks == ACKS["all"] and self._few_in_flight
        return str(self.enable_idempotence).lower() == "true"

    @property
    def _few_in_flight(self) -> bool:
        return self.max_in_flight_requests_per_connection <= MAX_IN_FLIGHT

    @property
    def required_acks(self) -> int:
        """-1, 0 or 1, as in a produce request."""
        return ACKS[str(self.acks)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions(CommonOptions):
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    max_partition_fetch_bytes: int = 2 * 1024 * 1024
    prefetch_bytes: int = 16 * 1024 * 1024  # fetched and not yet taken, in all partitions together
    prefetch_chunks: int = 2  # of a partition: answers that were fetched and not yet taken
    stream_chunks: bool | str = "false"  # how a consumer of one partition fetches: ahead of itself, in a stream by gRPC
    max_poll_records: int = 500
    auto_offset_reset: str = "earliest"  # used if the log loses the position; `assign` names the first start
    check_crcs: bool = True
    isolation_level: str = "read_uncommitted"  # read_committed: only records of transactions that were committed
    group_id: str = ""  # of the consumer group that it commits for, and whose member it is once it subscribes
    group_instance_id: str = ""  # of a static member, which keeps its partitions over a restart
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000  # without a poll for so long it leaves the group
    enable_auto_commit: bool = True  # of what polls returned: in later polls, before it gives partitions up, on close
    auto_commit_interval_ms: int = 5_000
    partition_assignment_strategy: str | Sequence[str] = "range,cooperative-sticky"  # the preferred one first
    group_protocol: str = "classic"  # consumer: the coordinator assigns, and settles sessions and heartbeats (KIP-848)
    group_remote_assignor: str = ""  # of the consumer protocol: uniform or range; "": the coordinator's choice
    # Where it runs: `range` and the sticky assignors prefer partitions with a replica there, and a fetch by calls is
    # answered by one, if brokers have Kafka's `replica.selector.class` (KIP-392); a stream of chunks by the leader.
    client_rack: str = ""
    exclude_internal_topics: bool = True  # from a subscription by pattern
    key_deserializer: Any = None  # of keys that are not null: a function, or an object with Kafka's `deserialize`
    value_deserializer: Any = None
    interceptors: Sequence[Any] = ()  # objects with on_consume, on_commit

    @property
    def only_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    @property
    def streams_chunks(self) -> bool:
        """Where the brokers do; `needs_streams`: and nowhere else."""
        return self.needs_streams or str(self.stream_chunks).lower() == "auto"

    @property
    def needs_streams(self) -> bool:
        return str(self.stream_chunks).lower() == "true"

    @property
    def assignors(self) -> tuple[str, ...]:
        given = self.partition_assignment_strategy
        return tuple(name.strip() for name in (given.split(",") if isinstance(given, str) else given))

    def check(self) -> None:
        CommonOptions.check(self)
        _one_of("stream_chunks", str(self.stream_chunks).lower(), SWITCH)
        if not 0 < self.prefetch_chunks <= MAX_PREFETCH_CHUNKS:
            raise ConfigError(f"prefetch_chunks must be 1 to {MAX_PREFETCH_CHUNKS}: {self.prefetch_chunks}")
        _one_of("group_protocol", self.group_protocol, GROUP_PROTOCOLS)
        for name in self.assignors:
            _one_of("partition_assignment_strategy", name, ASSIGNORS)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError("heartbeat_interval_ms must be less than session_timeout_ms; a third of it is usual")
        if self.group_instance_id and not self.group_id:
            raise ConfigError("group_instance_id needs group_id")
        _one_of("isolation_level", self.isolation_level, tuple(ISOLATION_LEVELS))
        if self.reset_age_ms is None:
            _one_of("auto_offset_reset", self.auto_offset_reset, (*OFFSET_RESETS, f"{BY_DURATION}PT1H (ISO 8601)"))
        for name in ("key_deserializer", "value_deserializer"):
            _callable(name, getattr(self, name), "deserialize")
        _objects("interceptors", self.interceptors)

    @property
    def reset_age_ms(self) -> int | None:
        """How old the first record is at most, with `auto_offset_reset=by_duration:...` (KIP-1106)."""
        reset = self.auto_offset_reset
        return parse_duration_ms(reset.removeprefix(BY_DURATION)) if reset.startswith(BY_DURATION) else None


def parse_options(
    kind: type[OptionsKind], config: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> OptionsKind:
    """Options from a dict (dotted or underscored names) and from keywords. Keywords win. Raises ConfigError.

    Options of security have librdkafka's and kafka-python's names, too (`security.names`).
    """
    names = {field.name for field in fields(kind)}
    defaults = kind()
    values: dict[str, Any] = {}
    for given in (config or {}, keywords):
        called: dict[str, str] = {}
        for name, value in given.items():
            key = canonical(name)
            if key not in names:
                raise ConfigError(_unknown(name, sorted(names)))
            if key in called and value != given[called[key]]:
                raise ConfigError(f"{name} and {called[key]} are two names of one option: remove one of both")
            called[key] = name
            values[key] = _typed(name, value, getattr(defaults, key))
    options = kind(**values)
    options.check()
    return options


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds, as Java's `Duration.parse`. Raises ConfigError."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ConfigError(f"not an ISO 8601 duration such as PT1H, PT90M or P2DT12H: {text!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction_ms = int((found[5] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + fraction_ms


def parse_bootstrap(servers: str | Sequence[str]) -> list[Address]:
    """Addresses in the given order. A missing port is 9092. Raises ConfigError."""
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    addresses = [_address(text.strip()) for text in texts if text.strip()]
    if not addresses:
        raise ConfigError("bootstrap_servers is empty: give at least one host:port")
    return addresses


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or (host.count(":") and not host.startswith("[")):
        return Address(text.strip("[]"), DEFAULT_PORT)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) or not host:
        raise ConfigError(f"not a host:port: {text!r}")
    return Address(host.strip("[]"), int(port))


def _unknown(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.replace(".", "_").replace("-", "_"), names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known options: {', '.join(names)}"
    return f"unknown option {name!r}; {hint}"


def _typed(name: str, value: Any, default: Any) -> Any:
    """`value` as the type of the option's default. Strings (from a properties file) are converted."""
    if isinstance(default, bool):
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if isinstance(value, bool):
            return value
        raise ConfigError(f"{name} must be true or false: {value!r}")
    if isinstance(default, int):
        try:
            return int(value)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{name} must be a whole number: {value!r}") from error
    return value


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}: {value!r}")


def _callable(name: str, value: Any, method: str = "") -> None:
    """method: that an object may have instead."""
    if value is None or callable(value) or (method and callable(getattr(value, method, None))):
        return
    also = f", or an object with a method {method}()" if method else ""
    raise ConfigError(f"{name} must be a function{also}: {value!r}")


def _objects(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{name} must be a list of objects, not names of classes: {value!r}")
