"""Splits a node's configuration into the configurations of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker.api.services import HandlerLimits
from broker.lifecycle.lifecycle import LifecycleConfig
from broker.node import BrokerConfig
from broker.replicas.config import ReplicationConfig
from cli.server import rest
from cli.server.config import NodeConfig
from cli.server.keys import NODE_KEYS, NodeKey
from cli.server.values import parse_bool, parse_bytes, parse_int, parse_list
from quorum.controller.config import ControllerConfig
from quorum.metadata.topic_settings import BOOLEAN, DEFAULT, INT, LIST, SET_IN_FILE, STRING
from quorum.raft.config import RaftConfig
from quorum.raft.voters import Voter, VoterSet
from quorumlog.ids import BrokerEpoch
from quorumlog.messages.cluster import ConfigSynonym, DescribedConfig
from quorumlog.messages.common import Endpoint
from storage.log_config import LogConfig

_TYPES: Mapping[Callable[[str], Any], int] = {parse_bool: BOOLEAN, parse_int: INT, parse_bytes: INT, parse_list: LIST}


def voter_set(config: NodeConfig) -> VoterSet:
    """Without directory ids, because the voter set is static (kraft.version 0)."""
    name = config.internal_listener.name
    return VoterSet(
        Voter(
            node_id=voter.node_id,
            endpoint=Endpoint(name=name, host=voter.address.host, port=voter.address.port),
        )
        for voter in config.voters
    )


def raft_config(config: NodeConfig) -> RaftConfig:
    """A leader holds a fetch for at most half of the fetch timeout, so that it is not taken for dead."""
    return RaftConfig(
        election_timeout_ms=config.quorum_election_timeout_ms,
        fetch_timeout_ms=config.quorum_fetch_timeout_ms,
        fetch_max_wait_ms=max(1, config.quorum_fetch_timeout_ms // 2),
    )


def metadata_log_config(config: NodeConfig) -> LogConfig:
    return LogConfig(segment_bytes=config.metadata_log_segment_bytes)


def controller_config(config: NodeConfig) -> ControllerConfig:
    return ControllerConfig(
        internal_listener=config.internal_listener.name,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        metadata_max_idle_interval_ms=config.metadata_max_idle_interval_ms,
        metadata_rest_interval_ms=rest.no_ops_ms(config),
        max_slice_work=config.controller_max_slice_work,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        min_insync_replicas=int(config.topic_defaults.get("min.insync.replicas", "1")),
    )


def broker_config(config: NodeConfig, previous_broker_epoch: BrokerEpoch) -> BrokerConfig:
    return BrokerConfig(
        client_listener=config.client_listeners[0].name,
        internal_listener=config.internal_listener.name,
        replication_listener=_replication_listener(config),
        rack=config.rack,
        previous_broker_epoch=previous_broker_epoch,
        auto_create_topics=config.auto_create_topics_enable,
        topic_defaults=config.topic_defaults,
        settings=described(config),
        lifecycle=LifecycleConfig(
            heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
            heartbeat_rest_ms=rest.heartbeats_ms(config),
            registration_timeout_ms=config.initial_broker_registration_timeout_ms,
            controlled_shutdown_timeout_ms=config.controlled_shutdown_timeout_ms,
        ),
        replication=_replication(config),
        limits=HandlerLimits(
            max_fetch_bytes=config.fetch_max_bytes,
            fetch_session_slots=config.max_incremental_fetch_session_cache_slots,
        ),
    )


def described(config: NodeConfig) -> tuple[DescribedConfig, ...]:
    """The values of the node's own keys, for DescribeConfigs. They contain no secret."""
    rows = []
    for key in NODE_KEYS.values():
        given = config.given.get(key.name)
        rows.append(
            DescribedConfig(
                name=key.name,
                value=given if given is not None else key.default,
                source=DEFAULT if given is None else SET_IN_FILE,
                read_only=True,
                documentation=key.doc,
                config_type=_TYPES.get(key.parse, STRING),
                synonyms=_synonyms(key, given),
            )
        )
    return tuple(rows)


def _synonyms(key: NodeKey, given: str | None) -> tuple[ConfigSynonym, ...]:
    layers = ((given, SET_IN_FILE), (key.default, DEFAULT))
    return tuple(
        ConfigSynonym(name=key.name, value=value, source=source) for value, source in layers if value is not None
    )


def _replication(config: NodeConfig) -> ReplicationConfig:
    return ReplicationConfig(
        replica_lag_time_max_ms=config.replica_lag_time_max_ms,
        max_slice_work=config.broker_max_slice_work,
        fetch_wait_max_ms=config.replica_fetch_wait_max_ms,
        fetch_rest_max_ms=rest.fetch_waits_ms(config),
        fetch_min_bytes=config.replica_fetch_min_bytes,
        fetch_max_bytes=config.replica_fetch_max_bytes,
        fetch_response_max_bytes=config.replica_fetch_response_max_bytes,
        high_watermark_checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
        recovery_checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
        tail_bytes=config.log_tail_bytes,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        free_space_reserve_bytes=config.log_dir_free_space_reserve_bytes,
        looks_inside_batches=config.record_validation == "full",
        topic_defaults=config.topic_defaults,
        internal_listener_name=config.internal_listener.name,
        replication_listener_name=_replication_listener(config),
    )


def _replication_listener(config: NodeConfig) -> str:
    listener = config.replication_listener
    return "" if listener is None else listener.name
