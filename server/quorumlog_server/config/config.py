"""The typed form of a node's configuration, checked as a whole before anything is opened.

`read_config` reads a file, `load` its text. The composition root uses only `NodeConfig`. Commands use it too, so it
loads no part of a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from quorumlog.configs.broker import DECIDED_TOGETHER, TOPIC_SYNONYMS
from quorumlog.configs.live import connections_of_listener, key_of_listener
from quorumlog.configs.topic import parse_text, validate_all, validate_words
from quorumlog.errors import ApiError
from quorumlog.group_config import GroupConfig
from quorumlog.ids import NodeId
from quorumlog.node_settings import NodeKey, parse_bytes, parse_int, part_of
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.rpc.transport import Address, Listener
from quorumlog.transaction_config import TransactionConfig, VerificationConfig
from quorumlog.transactions_topic import TransactionsTopicConfig
from quorumlog_server.config.directory_paths import anchored, check_only_in_file, checked_cordoned, checked_directories
from quorumlog_server.config.foreign_keys import check_foreign, idle_of
from quorumlog_server.config.group_keys import group_config
from quorumlog_server.config.keys import COARSER, MOVED_VOTERS, NODE_KEYS, SIZES, all_keys, check_known
from quorumlog_server.config.listeners import (
    GRPC,
    MovedVoter,
    Voter,
    check_protocols,
    internal_name,
    parse_moved,
    parse_named,
    parse_servers,
    parse_voters,
    resolve_advertised,
    resolve_listeners,
    with_grpc,
)
from quorumlog_server.config.properties import ConfigError, from_environment, parse_file
from quorumlog_server.config.transaction_keys import transaction_config

ROLES = ("broker", "controller")
LOG_FORMATS = ("console", "json")
RECORD_VALIDATIONS = ("full", "header")
LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """A node's whole configuration. Times in ms, sizes in bytes; fields are named like Kafka's keys.

    listeners: client listeners first, then internal ones; the last one serves the calls of all nodes.
    advertised: by listener name; port 0: the actual port.
    topic_defaults: by the topic's config names; only those that the file sets.
    given: the flat keys that were set, as text.
    warnings: messages for the operator at the start.
    """

    node_id: NodeId
    roles: tuple[str, ...]
    listeners: tuple[Listener, ...]
    advertised: Mapping[str, Address]
    voters: tuple[Voter, ...]
    bootstrap_servers: tuple[Address, ...]
    moved_voters: tuple[MovedVoter, ...]
    auto_join: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...]
    metadata_log_dir: str
    log_dir_stall_ms: int
    num_recovery_threads_per_data_dir: int
    log_open_files_max: int | None
    log_index_bytes_max: int
    log_dir_free_space_reserve_bytes: int | None
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    metadata_retention_check_interval_ms: int
    rack: str | None
    auto_create_topics_enable: bool
    num_partitions: int
    default_replication_factor: int
    topic_defaults: Mapping[str, str]
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    controlled_shutdown_enable: bool
    controlled_shutdown_timeout_ms: int
    quorum_fetch_timeout_ms: int
    quorum_election_timeout_ms: int
    quorum_fetch_snapshot_max_bytes: int
    metadata_max_idle_interval_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    unclean_recovery_timeout_ms: int
    controller_max_slice_work: int
    controller_max_batch_records: int
    broker_max_slice_work: int
    replica_lag_time_max_ms: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    replica_fetch_response_max_bytes: int
    replica_high_watermark_checkpoint_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_backoff_ms: int
    replica_alter_log_dirs_io_max_bytes_per_second: int
    num_replica_alter_log_dirs_threads: int | None
    log_retention_check_interval_ms: int
    log_initial_task_delay_ms: int
    log_dir_failure_timeout_ms: int
    log_index_check_interval_ms: int
    log_index_check_max_bytes_per_second: int
    log_tail_bytes: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    record_validation: str
    fetch_max_bytes: int
    socket_request_max_bytes: int
    queued_max_request_bytes: int
    queued_max_internal_request_bytes: int
    max_connections: int
    max_connections_per_ip: int
    listener_max_connections: Mapping[str, int]  # by the names of keys: of those listeners that have one
    max_connections_per_ip_overrides: str
    connections_max_idle_ms: int
    metrics_port: int | None
    metrics_host: str
    log_format: str
    log_level: str
    cluster_secret_in_clear: bool
    rpc_reflection: bool
    groups: GroupConfig
    offsets_topic: OffsetsTopicConfig
    transactions: TransactionConfig
    transactions_topic: TransactionsTopicConfig
    verification: VerificationConfig
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def internal_listener(self) -> Listener:
        return self.listeners[-1]

    @property
    def internal_address(self) -> Address:
        """Where other nodes reach the internal listener. Port 0: the system chooses it at the start."""
        listener = self.internal_listener
        address = self.advertised[listener.name]
        return Address(address.host, address.port or listener.address.port)

    @property
    def client_listeners(self) -> tuple[Listener, ...]:
        return tuple(listener for listener in self.listeners if not listener.internal)

    @property
    def replication_listener(self) -> Listener | None:
        """The internal listener for Kafka's protocol, if there is one."""
        return next((listener for listener in self.listeners[:-1] if listener.internal), None)

    @property
    def directories(self) -> tuple[str, ...]:
        """Every directory that this node opens: those of partitions, and that of the metadata log."""
        of_broker = self.log_dirs if self.is_broker else ()
        return tuple(dict.fromkeys((*of_broker, self.metadata_log_dir)))


def load(path: str, text: str, environment: Mapping[str, str]) -> NodeConfig:
    """The configuration in `text`, which was read from `path`, changed by the environment. Raises ConfigError."""
    return from_values(flat_values(path, text, environment), path)


def flat_values(path: str, text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Keys and values of the file, changed by the environment. Raises ConfigError."""
    values = parse_file(path, text)
    check_known(values, path)
    changes = from_environment(environment, all_keys())
    check_only_in_file(changes, "the environment")
    return {**anchored(path, values), **changes}


def from_values(values: Mapping[str, str], where: str = "configuration") -> NodeConfig:
    """The typed form of flat keys. where: named in errors. Raises ConfigError."""
    check_known(values, where)
    check_foreign(values, where)
    node = {name: _value(key, values, where) for name, key in NODE_KEYS.items()}
    if node["broker.id"] not in (-1, node["node.id"]):
        raise ConfigError(f"{where}: broker.id={node['broker.id']}, but node.id={node['node.id']}; remove the former")
    roles = _roles(node["process.roles"])
    listeners, advertised = _listeners(node, broker="broker" in roles)
    log_dirs = node["log.dir"] if "log.dir" in values and "log.dirs" not in values else node["log.dirs"]
    as_they_are = {one.name: node[key] for one in fields(NodeConfig) if (key := one.name.replace("_", ".")) in node}
    found = {
        "node_id": node["node.id"],
        "roles": roles,
        "listeners": listeners,
        "advertised": advertised,
        "voters": parse_voters(node["controller.quorum.voters"]),
        "bootstrap_servers": parse_servers(node["controller.quorum.bootstrap.servers"]),
        "moved_voters": parse_moved(node[MOVED_VOTERS]),
        "auto_join": node["controller.quorum.auto.join.enable"],
        "log_dirs": checked_directories(log_dirs),
        "cordoned_log_dirs": checked_cordoned(node["cordoned.log.dirs"], log_dirs),
        "metadata_log_dir": node["metadata.log.dir"] or log_dirs[0],
        "rack": node["broker.rack"],
        "topic_defaults": _topic_defaults(values, where),
        "quorum_fetch_timeout_ms": node["controller.quorum.fetch.timeout.ms"],
        "quorum_election_timeout_ms": node["controller.quorum.election.timeout.ms"],
        "quorum_fetch_snapshot_max_bytes": node["controller.quorum.fetch.snapshot.max.bytes"],
        "groups": group_config(node),
        "offsets_topic": part_of(OffsetsTopicConfig, node),
        "transactions": transaction_config(node),
        "transactions_topic": part_of(TransactionsTopicConfig, node),
        "verification": part_of(VerificationConfig, node),
        "listener_max_connections": _of_listeners(values, where),
        "given": dict(values),
        "warnings": _warnings(values, listeners, is_controller="controller" in roles),
    }
    config = NodeConfig(**{**as_they_are, **found})
    _check(config)
    return config


def _value(key: NodeKey, values: Mapping[str, str], where: str) -> Any:
    text = values.get(key.name, key.default)
    if text is None:
        if key.optional:
            return None
        raise ConfigError(f"{where}: {key.name} is not set. {key.doc}")
    try:
        value = key.parse(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {key.name}: {error}") from error
    if key.minimum is not None and value < key.minimum:
        raise ConfigError(f"{where}: {key.name}={text} is below {key.minimum}")
    if key.maximum is not None and value > key.maximum:
        raise ConfigError(f"{where}: {key.name}={text} is above {key.maximum}")
    return value


def _roles(given: tuple[str, ...]) -> tuple[str, ...]:
    for role in given:
        if role not in ROLES:
            raise ConfigError(f"process.roles: {role!r} is neither broker nor controller")
    if not given:
        raise ConfigError("process.roles is empty; write broker, controller, or both")
    return tuple(role for role in ROLES if role in given)


def _listeners(node: Mapping[str, Any], broker: bool) -> tuple[tuple[Listener, ...], dict[str, Address]]:
    addresses = parse_named("listeners", node["listeners"])
    internal = internal_name(node["controller.listener.names"] or (), node["inter.broker.listener.name"])
    check_protocols(node["listener.security.protocol.map"] or (), addresses)
    replication = node["replication.listener.name"].upper()
    if node["lane.listeners"] is not None:
        lanes = tuple(name.upper() for name in node["lane.listeners"])
    else:
        addresses = with_grpc(addresses, (internal, replication)) if broker else addresses
        lanes = tuple(name for name in addresses if name != internal and not name.startswith(GRPC))
    given = parse_named("advertised.listeners", node["advertised.listeners"] or ())
    if GRPC in addresses and GRPC not in given and addresses[GRPC].port == 0:
        given = with_grpc(given, (internal, replication))
    listeners = resolve_listeners(addresses, internal, broker, replication=replication, lanes=lanes)
    return listeners, resolve_advertised(listeners, given)


def _topic_defaults(values: Mapping[str, str], where: str) -> dict[str, str]:
    """The defaults of topic configs in this file. Of two units of the same setting the finer wins, as in Kafka."""
    defaults: dict[str, str] = {}
    try:
        for key, (name, unit_ms) in COARSER.items():
            if key in values:
                coarse = parse_int(values[key])
                defaults[name] = str(coarse * unit_ms if coarse >= 0 else -1)
        for key, name in TOPIC_SYNONYMS.items():
            if key in values:
                defaults[name] = str(parse_bytes(values[key])) if name in SIZES else values[key].strip()
        validate_all(defaults)
        validate_words(defaults)
    except (ValueError, ApiError) as error:
        raise ConfigError(f"{where}: {error}") from error
    return defaults


def _of_listeners(values: Mapping[str, str], where: str) -> dict[str, int]:
    """The maxima of connections that listeners have of their own, by their keys. Raises ConfigError."""
    found = {}
    for name, key in ((name, key_of_listener(name)) for name in values):
        if key is not None:
            try:
                found[name] = int(parse_text(key, values[name]))
            except ApiError as error:
                raise ConfigError(f"{where}: {error}") from error
    return found


def _warnings(values: Mapping[str, str], listeners: tuple[Listener, ...], *, is_controller: bool) -> tuple[str, ...]:
    warnings = [f"no effect here: {', '.join(keys)}. {reason}" for reason, keys in idle_of(values).items()]
    together = sorted(key for key in values if TOPIC_SYNONYMS.get(key) in DECIDED_TOGETHER)
    if together and not is_controller:
        warnings.append(f"no effect on a broker alone, the cluster has one value: {', '.join(together)}")
    lanes = {connections_of_listener(one.name) for one in listeners if one.lane}
    if stray := sorted(key for key in values if key_of_listener(key) is not None and key not in lanes):
        warnings.append(f"no effect, no listener for Kafka's protocol has this name: {', '.join(stray)}")
    if any(one.name == GRPC and one.address.port == 0 for one in listeners):
        warnings.append(
            f"{GRPC} takes a free port at every start; {GRPC}://HOST:PORT in `listeners` gives it one to keep"
        )
    if values.get("record.validation", "").strip() == "header":
        warnings.append("record.validation=header: a damaged record inside a batch is stored, and stops its readers")
    for listener in listeners:
        if listener.address.host not in ("127.0.0.1", "::1", "localhost"):
            warnings.append(f"{listener.name} listens at {listener.address}: other machines reach it, unauthenticated")
    return tuple(warnings)


def _check(config: NodeConfig) -> None:
    voter_ids = [voter.node_id for voter in config.voters]
    if not voter_ids and not config.bootstrap_servers:
        raise ConfigError(
            "neither controller.quorum.voters nor controller.quorum.bootstrap.servers is set: name every controller as "
            "ID@HOST:PORT in the first, or some of them as HOST:PORT in the second"
        )
    if voter_ids and config.is_controller and config.node_id not in voter_ids:
        raise ConfigError(
            f"process.roles has controller, but node.id={config.node_id} is not in controller.quorum.voters {voter_ids}"
        )
    if not config.is_controller and config.node_id in voter_ids:
        raise ConfigError(
            f"node.id={config.node_id} is in controller.quorum.voters, but process.roles has no controller"
        )
    if config.broker_session_timeout_ms <= config.broker_heartbeat_interval_ms:
        raise ConfigError(
            f"broker.session.timeout.ms={config.broker_session_timeout_ms} must be above "
            f"broker.heartbeat.interval.ms={config.broker_heartbeat_interval_ms}"
        )
    if config.log_cleaner_threads and config.log_cleaner_dedupe_buffer_size // config.log_cleaner_threads < 1 << 20:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={config.log_cleaner_dedupe_buffer_size} is less than 1 MiB for each of "
            f"log.cleaner.threads={config.log_cleaner_threads}; raise it, or lower the threads"
        )
    if config.record_validation not in RECORD_VALIDATIONS:
        choices = ", ".join(RECORD_VALIDATIONS)
        raise ConfigError(f"record.validation={config.record_validation}: must be one of {choices}")
    if config.log_format not in LOG_FORMATS:
        raise ConfigError(f"log.format={config.log_format}: must be one of {', '.join(LOG_FORMATS)}")
    if config.log_level not in LOG_LEVELS:
        raise ConfigError(f"log.level={config.log_level}: must be one of {', '.join(LOG_LEVELS)}")


def read_config(path: str, changes: Sequence[str], environment: Mapping[str, str]) -> NodeConfig:
    """The file, changed by the environment, then by `KEY=VALUE` of the command line. Raises ConfigError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not changes:
        return load(path, text, environment)
    values = flat_values(path, text, environment)
    for change in changes:
        key, found, value = change.partition("=")
        if not found:
            raise ConfigError(f"-X {change}: write KEY=VALUE")
        check_only_in_file({key.strip(): value}, f"-X {change}")
        values[key.strip()] = value.strip()
    return from_values(values, f"{path} and -X")
