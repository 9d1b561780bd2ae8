"""What an operator may set of the controller, with Kafka's defaults where DESIGN 12 names no other."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PARTITIONS_PER_REQUEST = 10_000  # of CreateTopics, summed; larger requests would hold up everybody else's
MAX_RECORDS_PER_BATCH = 10_000  # of an operation that may be cut into several appends
MAX_ASSIGNMENTS_PER_REQUEST = 2_250  # of AssignReplicasToDirectories
MAX_WAITING_OPERATIONS = 10_000  # appended or read, not yet committed; above it requests are refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Names are Kafka's, with `.` as `_`. Times in milliseconds."""

    internal_listener: str = "INTERNAL"  # inter.broker.listener.name: where brokers are probed
    broker_session_timeout_ms: int = 9_000
    metadata_max_idle_interval_ms: int = 500
    commit_timeout_ms: int = 5_000  # longest wait for an operation's records to be committed
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1  # becomes a cluster-wide setting in the log when the first controller is active
    probe_timeout_ms: int = 500
