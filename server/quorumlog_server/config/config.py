"""The typed form of a node's configuration, checked as a whole before anything is opened.

`read_config` reads a file, `load` its text. The composition root uses only `NodeConfig`. Commands use it too, so it
loads no part of a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from quorumlog.configs.broker import DECIDED_TOGETHER, TOPIC_SYNONYMS
from quorumlog.configs.live import connections_of_listener, creation_rate_of_listener, key_of_listener
from quorumlog.configs.topic import validate_all, validate_words
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.redact import redacted
from quorumlog.settings.broker import BrokerSettings
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.config_key import parse_text
from quorumlog.settings.connections import ConnectionSettings
from quorumlog.settings.controller import ControllerConfig
from quorumlog.settings.disks import DiskConfig
from quorumlog.settings.groups import GroupConfig
from quorumlog.settings.key import PartSettings, keys_of, parse_bytes, parse_int, part_of
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog.settings.moves import MovesConfig
from quorumlog.settings.node import DirectorySettings, ListenerSettings, VoterSettings
from quorumlog.settings.node_auth import NODE_AUTH, NodeAuthSettings
from quorumlog.settings.process import PROVIDERS, ProcessSettings
from quorumlog.settings.quorum import RaftConfig
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.settings.rights import RightsConfig
from quorumlog.settings.security import DENIED_CERTIFICATES, DeniedSettings, StrangerLimits
from quorumlog.settings.transactions import TransactionConfig, VerificationConfig
from quorumlog.transactions_topic import TransactionsTopicConfig
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog_server.config.directory_paths import anchored, check_only_in_file, checked_cordoned, checked_directories
from quorumlog_server.config.foreign_keys import check_foreign, idle_of
from quorumlog_server.config.group_keys import group_config
from quorumlog_server.config.keys import COARSER, NODE_KEYS, SIZES, all_keys, check_known
from quorumlog_server.config.listener_security import (
    ListenerSecurity,
    asks_at_http,
    http_listener,
    http_warnings,
    protocols,
    securities,
    warnings_of,
)
from quorumlog_server.config.listeners import (
    GRPC,
    MovedVoter,
    Voter,
    internal_name,
    parse_moved,
    parse_named,
    parse_servers,
    parse_voters,
    resolve_advertised,
    resolve_listeners,
    with_grpc,
)
from quorumlog_server.config.node_security import with_node_auth
from quorumlog_server.config.open_ends import warnings_of_rights, warnings_of_users
from quorumlog_server.config.properties import ConfigError, from_environment, parse_file
from quorumlog_server.config.transaction_keys import transaction_config
from quorumlog_server.config.values import read_value

ROLES = ("broker", "controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """A node's whole configuration. Times in ms, sizes in bytes.

    Each part has what the keys say; what follows from several keys together, `parts.py` adds.

    listeners: client listeners first, then internal ones; the last one serves the calls of all nodes.
    advertised: by listener name; port 0: the actual port.
    topic_defaults: by the topic's config names; only those that the file sets.
    values: of all keys by name, as they are read.
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
    topic_defaults: Mapping[str, str]
    listener_max_connections: Mapping[str, int]  # by the names of keys: of those listeners that have one
    listener_security: Mapping[str, ListenerSecurity]  # by the names of listeners, METRICS among them if it has TLS
    asks_at_http: bool  # who asks for more than health has to show who it is
    strangers: StrangerLimits
    denied: DeniedSettings
    nodes: NodeAuthSettings
    broker: BrokerSettings
    disks: DiskConfig
    metadata_log: SnapshotConfig
    controller: ControllerConfig
    lifecycle: LifecycleConfig
    replication: ReplicationConfig
    cleaner: CleanerConfig
    moves: MovesConfig
    requests: HandlerLimits
    wire: WireLimits
    connections: ConnectionSettings
    process: ProcessSettings
    rights: RightsConfig
    groups: GroupConfig
    offsets_topic: OffsetsTopicConfig
    transactions: TransactionConfig
    transactions_topic: TransactionsTopicConfig
    verification: VerificationConfig
    values: Mapping[str, Any]
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def quorum(self) -> RaftConfig:
        """Made when a node needs it, since it asserts what only a node has to hold.

        A leader holds a fetch for at most half of the fetch timeout, so that it is not taken for dead.
        """
        fetch_timeout_ms: int = self.values["controller.quorum.fetch.timeout.ms"]
        return part_of(RaftConfig, self.values, fetch_max_wait_ms=max(1, fetch_timeout_ms // 2))

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


def shown(config: NodeConfig) -> dict[str, Any]:
    """What people see of it, as plain values: what was made of several keys, and the keys of most parts."""
    found: dict[str, Any] = {}
    for name, value in asdict(config).items():
        part: Any = getattr(config, name)
        if name in ("groups", "offsets_topic", "transactions", "transactions_topic", "verification"):
            found[name] = value
        elif hasattr(part, "__dataclass_fields__"):
            found |= _shown_keys(config, type(part))
        elif name == "given":
            found[name] = redacted(value, all_keys())
        elif name not in ("values", "listener_security", "asks_at_http"):
            found[name] = value
    return found | _shown_keys(config, RaftConfig)


def _shown_keys(config: NodeConfig, part: type[PartSettings]) -> dict[str, Any]:
    values = {key.name: config.values[key.name] for key in keys_of(part)}
    short = {name: name.replace("controller.quorum.", "quorum.").replace("broker.rack", "rack") for name in values}
    return {short[name].replace(".", "_"): value for name, value in values.items()}


def load(path: str, text: str, environment: Mapping[str, str]) -> NodeConfig:
    """The configuration in `text`, which was read from `path`, changed by the environment. Raises ConfigError."""
    return from_values(flat_values(path, text, environment), path)


def flat_values(path: str, text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Keys and values of the file, changed by the environment. Raises ConfigError."""
    values = parse_file(path, text)
    if any(key.startswith(PROVIDERS) for key in values):
        from quorumlog_server.config.providers import resolved

        values = resolved(values, path, environment)
    check_known(values, path)
    changes = from_environment(environment, all_keys())
    check_only_in_file(changes, "the environment")
    return {**anchored(path, values), **changes}


def from_values(values: Mapping[str, str], where: str = "configuration") -> NodeConfig:
    """The typed form of flat keys. where: named in errors. Raises ConfigError."""
    check_known(values, where)
    check_foreign(values, where)
    node = {name: read_value(key, values, where) for name, key in NODE_KEYS.items()}
    if node["broker.id"] not in (-1, node["node.id"]):
        raise ConfigError(f"{where}: broker.id={node['broker.id']}, but node.id={node['node.id']}; remove the former")
    roles = _roles(node["process.roles"])
    listeners, advertised = _listeners(part_of(ListenerSettings, node), broker="broker" in roles)
    nodes = part_of(NodeAuthSettings, node)
    process = part_of(ProcessSettings, node)
    found = securities(values, listeners, http_listener(process), where)
    security = with_node_auth(nodes, listeners, found, node["cluster.secret.in.clear"])
    asks = asks_at_http(values, listeners, security)
    paths, voters = part_of(DirectorySettings, node), part_of(VoterSettings, node)
    log_dirs = paths.log_dirs if paths.log_dir is None or "log.dirs" in values else paths.log_dir
    config = NodeConfig(
        node_id=node["node.id"],
        roles=roles,
        listeners=listeners,
        advertised=advertised,
        voters=parse_voters(voters.voters),
        bootstrap_servers=parse_servers(voters.bootstrap_servers),
        moved_voters=parse_moved(voters.moved),
        auto_join=voters.auto_join,
        log_dirs=checked_directories(log_dirs),
        cordoned_log_dirs=checked_cordoned(paths.cordoned, log_dirs),
        metadata_log_dir=paths.metadata_log_dir or log_dirs[0],
        topic_defaults=_topic_defaults(values, where),
        broker=part_of(BrokerSettings, node),
        disks=part_of(DiskConfig, node),
        metadata_log=part_of(SnapshotConfig, node),
        controller=part_of(ControllerConfig, node),
        lifecycle=part_of(LifecycleConfig, node),
        replication=part_of(ReplicationConfig, node),
        cleaner=part_of(CleanerConfig, node),
        moves=part_of(MovesConfig, node),
        requests=part_of(HandlerLimits, node),
        wire=part_of(WireLimits, node),
        connections=part_of(ConnectionSettings, node),
        process=process,
        rights=part_of(RightsConfig, node),
        groups=group_config(node),
        offsets_topic=part_of(OffsetsTopicConfig, node),
        transactions=transaction_config(node),
        transactions_topic=part_of(TransactionsTopicConfig, node),
        verification=part_of(VerificationConfig, node),
        listener_max_connections=_of_listeners(values, where),
        listener_security=security,
        asks_at_http=asks,
        strangers=part_of(StrangerLimits, node),
        denied=_denied(part_of(DeniedSettings, node), security),
        nodes=nodes,
        values=node,
        given=dict(values),
        warnings=(
            *_warnings(values, listeners, is_controller="controller" in roles),
            *warnings_of_rights(values, listeners, security),
            *warnings_of_users(values),
            *warnings_of(listeners, security),
            *http_warnings(process, asks),
        ),
    )
    _check(config)
    return config


def _roles(given: tuple[str, ...]) -> tuple[str, ...]:
    for role in given:
        if role not in ROLES:
            raise ConfigError(f"process.roles: {role!r} is neither broker nor controller")
    if not given:
        raise ConfigError("process.roles is empty; write broker, controller, or both")
    return tuple(role for role in ROLES if role in given)


def _listeners(said: ListenerSettings, broker: bool) -> tuple[tuple[Listener, ...], dict[str, Address]]:
    addresses = parse_named("listeners", said.listeners)
    internal = internal_name(said.of_controllers or (), said.between_brokers)
    secured = protocols(said.protocols or (), addresses)
    replication = said.replication.upper()
    if said.lanes is not None:
        lanes = tuple(name.upper() for name in said.lanes)
    else:
        clients = [name for name in addresses if name not in (internal, replication)]
        is_open = all(secured[name] is SecurityProtocol.PLAINTEXT for name in clients)
        # Beside a listener that is protected, nobody gets an open one unasked.
        addresses = with_grpc(addresses, (internal, replication)) if broker and is_open else addresses
        lanes = tuple(name for name in addresses if name != internal and not name.startswith(GRPC))
    given = parse_named("advertised.listeners", said.advertised or ())
    if GRPC in addresses and GRPC not in given and addresses[GRPC].port == 0:
        given = with_grpc(given, (internal, replication))
    listeners = resolve_listeners(addresses, internal, broker, replication=replication, lanes=lanes)
    listeners = tuple(replace(one, security=secured.get(one.name, one.security)) for one in listeners)
    return listeners, resolve_advertised(listeners, given)


def _denied(said: DeniedSettings, security: Mapping[str, ListenerSecurity]) -> DeniedSettings:
    """Raises ConfigError where the list would deny nothing."""
    if not said.path:
        return DeniedSettings()
    if not any(one.sees_certificates for one in security.values()):
        raise ConfigError(
            f"{DENIED_CERTIFICATES} is set, but no listener asks for certificates: set ssl.client.auth=required, or "
            f"{NODE_AUTH}=mtls, or remove it"
        )
    return said


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
    """What listeners have of their own of `key_of_listener`, by their keys. Raises ConfigError."""
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
    keys_of = (connections_of_listener, creation_rate_of_listener)
    lanes = {key_of(one.name) for one in listeners if one.lane for key_of in keys_of}
    if stray := sorted(key for key in values if key_of_listener(key) is not None and key not in lanes):
        warnings.append(f"no effect, no listener for Kafka's protocol has this name: {', '.join(stray)}")
    if any(one.name == GRPC and one.address.port == 0 for one in listeners):
        warnings.append(
            f"{GRPC} takes a free port at every start; {GRPC}://HOST:PORT in `listeners` gives it one to keep"
        )
    if values.get("record.validation", "").strip() == "header":
        warnings.append("record.validation=header: a damaged record inside a batch is stored, and stops its readers")
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
    lifecycle, cleaner = config.lifecycle, config.cleaner
    if lifecycle.session_timeout_ms <= lifecycle.heartbeat_interval_ms:
        raise ConfigError(
            f"broker.session.timeout.ms={lifecycle.session_timeout_ms} must be above "
            f"broker.heartbeat.interval.ms={lifecycle.heartbeat_interval_ms}"
        )
    if cleaner.threads and cleaner.dedupe_buffer_bytes // cleaner.threads < 1 << 20:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={cleaner.dedupe_buffer_bytes} is less than 1 MiB for each of "
            f"log.cleaner.threads={cleaner.threads}; raise it, or lower the threads"
        )
    for name, key in NODE_KEYS.items():
        value = config.values[name]
        if key.choices and value is not None and value not in key.choices:
            raise ConfigError(f"{name}={value}: must be one of {', '.join(key.choices)}")


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
