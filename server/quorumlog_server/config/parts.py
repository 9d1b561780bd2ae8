"""Splits a node's configuration into the configurations of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.configs.broker import BROKER_CONFIGS, DECIDED_TOGETHER
from quorumlog.configs.types import BOOLEAN, DOUBLE, INT, LIST, STRING, TOLD, number_type
from quorumlog.ids import BrokerEpoch
from quorumlog.messages.cluster import ConfigSynonym, DescribedConfig
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.node_settings import NodeKey, parse_bool, parse_bytes, parse_float, parse_int, parse_list
from quorumlog_broker.api.services import HandlerLimits
from quorumlog_broker.cleaning.config import CleanerConfig
from quorumlog_broker.lifecycle.lifecycle import LifecycleConfig
from quorumlog_broker.moves.config import MovesConfig
from quorumlog_broker.node import BrokerConfig
from quorumlog_broker.replicas.config import ReplicationConfig
from quorumlog_quorum.controller.engine.config import ControllerConfig
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.topic_settings import DEFAULT, SET_IN_FILE
from quorumlog_quorum.raft.config import RaftConfig
from quorumlog_quorum.raft.membership import Membership, MovedVoter
from quorumlog_quorum.raft.voters import Voter, VoterSet
from quorumlog_quorum.snapshot_service.snapshot_config import SnapshotConfig
from quorumlog_quorum.snapshots import SnapshotRetention
from quorumlog_server.config import idle_intervals as rest
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.keys import NODE_KEYS
from quorumlog_storage.segment.log_config import LogConfig

_TYPES: Mapping[Callable[[str], Any], int] = {parse_bool: BOOLEAN, parse_float: DOUBLE, parse_list: LIST}


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


def raft_config(config: NodeConfig) -> RaftConfig:
    """A leader holds a fetch for at most half of the fetch timeout, so that it is not taken for dead."""
    return RaftConfig(
        election_timeout_ms=config.quorum_election_timeout_ms,
        fetch_timeout_ms=config.quorum_fetch_timeout_ms,
        fetch_max_wait_ms=max(1, config.quorum_fetch_timeout_ms // 2),
        fetch_snapshot_max_bytes=config.quorum_fetch_snapshot_max_bytes,
    )


def metadata_log_config(config: NodeConfig) -> LogConfig:
    return LogConfig(segment_bytes=config.metadata_log_segment_bytes)


def snapshot_config(config: NodeConfig) -> SnapshotConfig:
    return SnapshotConfig(
        bytes_between=config.metadata_log_max_record_bytes_between_snapshots,
        interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention=SnapshotRetention(bytes=config.metadata_max_retention_bytes, ms=config.metadata_max_retention_ms),
        check_interval_ms=config.metadata_retention_check_interval_ms,
        segment_ms=config.metadata_log_segment_ms,
    )


def controller_config(config: NodeConfig, supported: tuple[FeatureRange, ...] = SUPPORTED) -> ControllerConfig:
    return ControllerConfig(
        internal_listener=config.internal_listener.name,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        metadata_max_idle_interval_ms=config.metadata_max_idle_interval_ms,
        metadata_rest_interval_ms=rest.no_ops_ms(config),
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_seconds=config.leader_imbalance_check_interval_seconds,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
        unclean_recovery_timeout_ms=config.unclean_recovery_timeout_ms,
        max_slice_work=config.controller_max_slice_work,
        max_batch_records=config.controller_max_batch_records,
        supported=supported,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        min_insync_replicas=int(config.topic_defaults.get("min.insync.replicas", "1")),
        decided_together={name: value for name, value in config.topic_defaults.items() if name in DECIDED_TOGETHER},
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
            session_timeout_ms=config.broker_session_timeout_ms,
            registration_timeout_ms=config.initial_broker_registration_timeout_ms,
            controlled_shutdown_timeout_ms=config.controlled_shutdown_timeout_ms,
            directory_failure_timeout_ms=config.log_dir_failure_timeout_ms,
        ),
        replication=_replication(config),
        limits=HandlerLimits(
            max_fetch_bytes=config.fetch_max_bytes,
            fetch_session_slots=config.max_incremental_fetch_session_cache_slots,
        ),
        cleaner=CleanerConfig(
            enable=config.log_cleaner_enable,
            threads=config.log_cleaner_threads,
            dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size,
            io_buffer_bytes=config.log_cleaner_io_buffer_size,
            load_factor=config.log_cleaner_io_buffer_load_factor,
            bytes_per_s=config.log_cleaner_io_max_bytes_per_second,
            backoff_ms=config.log_cleaner_backoff_ms,
        ),
        moves=MovesConfig(
            bytes_per_s=config.replica_alter_log_dirs_io_max_bytes_per_second,
            threads=config.num_replica_alter_log_dirs_threads or 0,
        ),
        groups=config.groups,
        offsets_topic=config.offsets_topic,
        transactions=config.transactions,
        transactions_topic=config.transactions_topic,
        verification=config.verification,
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
                config_type=TOLD.get(key.name) or _type(key),
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


def _type(key: NodeKey) -> int:
    """By how its text is read."""
    if key.parse in (parse_int, parse_bytes):
        return number_type(key.maximum)
    return _TYPES.get(key.parse, STRING)


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
        retention_check_interval_ms=config.log_retention_check_interval_ms,
        initial_task_delay_ms=config.log_initial_task_delay_ms,
        index_check_interval_ms=config.log_index_check_interval_ms,
        index_check_bytes_per_s=config.log_index_check_max_bytes_per_second,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        producer_id_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
        cordoned_directories=frozenset(config.cordoned_log_dirs),
        free_space_reserve_bytes=config.log_dir_free_space_reserve_bytes,
        looks_inside_batches=config.record_validation == "full",
        topic_defaults=config.topic_defaults,
        internal_listener_name=config.internal_listener.name,
        replication_listener_name=_replication_listener(config),
    )


def _replication_listener(config: NodeConfig) -> str:
    listener = config.replication_listener
    return "" if listener is None else listener.name
