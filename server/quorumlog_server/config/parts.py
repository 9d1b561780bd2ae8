"""What the parts of a node get: what their keys say, and what follows from several keys together."""

from __future__ import annotations

from dataclasses import replace

from quorumlog.configs.broker import BROKER_CONFIGS, DECIDED_TOGETHER
from quorumlog.ids import BrokerEpoch
from quorumlog.messages.cluster import ConfigSynonym, DescribedConfig
from quorumlog.messages.common import Endpoint
from quorumlog.settings.controller import ControllerConfig
from quorumlog.settings.key import NodeKey, type_of
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.types import INT
from quorumlog_broker.node import BrokerConfig
from quorumlog_quorum.metadata.topic_settings import DEFAULT, SET_IN_FILE
from quorumlog_quorum.raft.membership import Membership, MovedVoter
from quorumlog_quorum.raft.voters import Voter, VoterSet
from quorumlog_server.config import idle_intervals as rest
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.keys import NODE_KEYS
from quorumlog_storage.segment.log_config import LogConfig


def voter_set(config: NodeConfig) -> VoterSet:
    """The static set, without directory ids (kraft.version 0). It is in force until the metadata log names another."""
    name = config.internal_listener.name
    return VoterSet(
        Voter(
            node_id=voter.node_id,
            endpoint=Endpoint(name=name, host=voter.address.host, port=voter.address.port),
        )
        for voter in config.voters
    )


def membership(config: NodeConfig) -> Membership:
    """What this node tells about itself as a voter. A port that the system chooses cannot be told before the start."""
    listener = config.internal_listener
    address = config.internal_address
    endpoint = Endpoint(name=listener.name, host=address.host, port=address.port)
    return Membership(
        endpoints=(endpoint,) if endpoint.port else (),
        can_become_voter=config.is_controller,
        auto_join=config.auto_join,
        bootstrap=tuple(
            Endpoint(name=listener.name, host=server.host, port=server.port) for server in config.bootstrap_servers
        ),
        moved=tuple(
            MovedVoter(node_id=one.node_id, old=(one.old.host, one.old.port), new=(one.new.host, one.new.port))
            for one in config.moved_voters
        ),
    )


def metadata_log_config(config: NodeConfig) -> LogConfig:
    return LogConfig(segment_bytes=config.metadata_log.segment_bytes)


def controller_config(config: NodeConfig) -> ControllerConfig:
    return replace(
        config.controller,
        access_rules=config.rights.on,
        internal_listener=config.internal_listener.name,
        metadata_rest_interval_ms=rest.no_ops_ms(config),
        min_insync_replicas=int(config.topic_defaults.get("min.insync.replicas", "1")),
        decided_together={name: value for name, value in config.topic_defaults.items() if name in DECIDED_TOGETHER},
    )


def broker_config(config: NodeConfig, previous_broker_epoch: BrokerEpoch) -> BrokerConfig:
    return BrokerConfig(
        client_listener=config.client_listeners[0].name,
        internal_listener=config.internal_listener.name,
        replication_listener=_replication_listener(config),
        rack=config.broker.rack,
        previous_broker_epoch=previous_broker_epoch,
        auto_create_topics=config.broker.auto_create_topics,
        topic_defaults=config.topic_defaults,
        settings=described(config),
        lifecycle=replace(config.lifecycle, heartbeat_rest_ms=rest.heartbeats_ms(config)),
        replication=_replication(config),
        limits=config.requests,
        cleaner=config.cleaner,
        moves=config.moves,
        groups=config.groups,
        offsets_topic=config.offsets_topic,
        transactions=config.transactions,
        transactions_topic=config.transactions_topic,
        verification=config.verification,
        access_rules=config.rights.on,
    )


def described(config: NodeConfig) -> tuple[DescribedConfig, ...]:
    """The values of the node's own keys, for DescribeConfigs. Those that are secret are left out."""
    rows = []
    for key in NODE_KEYS.values():
        given = config.given.get(key.name)
        shown = None if key.secret else given if given is not None else key.default
        rows.append(
            DescribedConfig(
                name=key.name,
                value=shown,
                source=DEFAULT if given is None else SET_IN_FILE,
                read_only=True,
                documentation=key.doc,
                config_type=type_of(key),
                is_sensitive=key.secret,
                synonyms=_synonyms(key, given),
            )
        )
    return (*rows, *(_of_listener(name, config.given[name]) for name in config.listener_max_connections))


def _of_listener(name: str, given: str) -> DescribedConfig:
    key = BROKER_CONFIGS[name]
    return DescribedConfig(
        name=name,
        value=given,
        source=SET_IN_FILE,
        read_only=True,
        documentation=key.doc,
        config_type=INT,
        synonyms=(ConfigSynonym(name=name, value=given, source=SET_IN_FILE),),
    )


def _synonyms(key: NodeKey, given: str | None) -> tuple[ConfigSynonym, ...]:
    layers = ((given, SET_IN_FILE), (key.default, DEFAULT))
    return tuple(
        ConfigSynonym(name=key.name, value=None if key.secret else value, source=source)
        for value, source in layers
        if value is not None
    )


def _replication(config: NodeConfig) -> ReplicationConfig:
    return replace(
        config.replication,
        fetch_rest_max_ms=rest.fetch_waits_ms(config),
        cordoned_directories=frozenset(config.cordoned_log_dirs),
        topic_defaults=config.topic_defaults,
        internal_listener_name=config.internal_listener.name,
        replication_listener_name=_replication_listener(config),
    )


def _replication_listener(config: NodeConfig) -> str:
    listener = config.replication_listener
    return "" if listener is None else listener.name
