"""What an operator may set of the controller. Defaults are Kafka's where DESIGN 12 names no other."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PARTITIONS_PER_REQUEST = 10_000  # of CreateTopics and CreatePartitions, summed: it is one batch and one turn
MAX_ASSIGNMENTS_PER_REQUEST = 2_250  # of AssignReplicasToDirectories
MAX_WAITING_OPERATIONS = 10_000  # appended or read, not yet committed; above it requests are refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Names are Kafka's, with `.` as `_`. Times in milliseconds.

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
    probe_timeout_ms: int = 500
    max_slice_work: int = 5_000
