"""What an operator may set of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.messages.common import FeatureRange
from quorumlog_quorum.metadata.features import SUPPORTED

MAX_PARTITIONS_PER_REQUEST = 10_000  # of CreateTopics and CreatePartitions, summed: an atomic change
MAX_TRANSACTION_BYTES = 64 << 20  # of the records of one change; what is larger than a batch is a transaction
MAX_REASSIGNED_PER_REQUEST = 10_000  # partitions, of AlterPartitionReassignments
MAX_ELECTIONS_PER_REQUEST = 10_000  # partitions named by ElectLeaders; a request for all of them has no limit
MAX_ASSIGNMENTS_PER_REQUEST = 2_250  # of AssignReplicasToDirectories
MAX_WAITING_OPERATIONS = 10_000  # appended or read, not yet committed; above it requests are refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Names are Kafka's, with `.` as `_`. Times in milliseconds.

    supported: the levels of features that this software supports; a new cluster begins at the highest. first_level: of
    metadata.version, where a new cluster is to begin at another one.
    max_batch_records, max_batch_bytes: of one batch of the log, which must allow as many bytes. A change with more than
    that becomes a transaction (transaction.py).
    decided_together: what this node's file has of DECIDED_TOGETHER. The log gets them in the first activation of all.
    max_slice_work: of an operation in one turn, in partitions looked at, some 2 us each (draft.py).
    """

    internal_listener: str = "INTERNAL"  # inter.broker.listener.name: where brokers are probed
    broker_session_timeout_ms: int = 9_000
    metadata_max_idle_interval_ms: int = 500
    metadata_rest_interval_ms: int = 500  # at rest; the same as metadata_max_idle_interval_ms: it never rests
    commit_timeout_ms: int = 5_000  # longest wait for an operation's records to be committed
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1  # becomes a cluster-wide setting in the log when the first controller is active
    decided_together: Mapping[str, str] = field(default_factory=dict)
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    leader_imbalance_per_broker_percentage: int = 10  # above it the broker's preferred leaderships are given back
    probe_timeout_ms: int = 500
    unclean_recovery_timeout_ms: int = 300_000  # longest wait for the last known leader, with strategy Balanced
    max_slice_work: int = 5_000
    max_batch_records: int = 10_000
    max_batch_bytes: int = 8 << 20
    supported: tuple[FeatureRange, ...] = SUPPORTED
    first_level: int | None = None
