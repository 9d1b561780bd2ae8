"""Copying partitions that another cluster wrote into a new topic
(docs/decisions/0037-import-into-a-leaderless-topic.md).
None of these calls is Kafka's.

Written by `./dev proto` from proto/quorumlog/v1/imports.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.cluster import ReplicaAssignment
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class BeginImportRequest:
    """Make a topic whose partitions take an import: no partition has a leader before FinishImport. If the topic is
    there and
    still takes one, the answer is that topic.

    replication_factor: -1: `default.replication.factor`.
    assignments: Empty: the controller places the replicas.
    last_epochs: Of each partition from 0 on: the largest leader epoch in what is imported; -1: none. The first
    leader's is above it.
    next_producer_id: Above every producer id in what is imported; ids below it are not given out any more.
    """

    name: str
    replication_factor: int = -1
    assignments: tuple[ReplicaAssignment, ...] = ()
    configs: tuple[ConfigEntry, ...] = ()
    last_epochs: tuple[int, ...] = ()
    next_producer_id: int = 0
    timeout_ms: int


@message(frozen=True, slots=True, kw_only=True)
class BeginImportResponse:
    """assignments: Where the replicas lie. The brokers of a partition are all sent its records.
    resumed: The topic was there: an earlier import was interrupted.
    """

    error_code: int = 0
    error_message: str = ""
    topic_id: bytes = b""
    assignments: tuple[ReplicaAssignment, ...] = ()
    resumed: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ImportRecordsRequest:
    """To each replica's broker: append these batches, as they are, at the replica's end.

    end_offset: Where the replica ends as far as the sender knows, exclusive. If it ends elsewhere, nothing is
    appended. -1: only ask.
    start_offset: The first batch's base offset: an empty replica begins there.
    records: Whole batches with offsets and leader epochs.
    seal_at_log_start: Nothing follows: records before this offset are not served, and everything is made durable.
    -1: more will follow.
    """

    topic_id: bytes
    index: int
    end_offset: int = -1
    start_offset: int = 0
    records: bytes = b""
    seal_at_log_start: int = -1


@message(frozen=True, slots=True, kw_only=True)
class ImportRecordsResponse:
    """Where the replica ends now.

    last_checksum: Of the last batch, as its header says; 0 if there is none. It tells whether this is the log
    that is being copied.
    sealed: Everything before end_offset is on this disk, in this life of the broker.
    """

    error_code: int = 0
    error_message: str = ""
    end_offset: int = -1
    start_offset: int = -1
    last_checksum: int = 0
    sealed: bool = False
    broker_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class FinishImportRequest:
    """All replicas hold all records: let the partitions have leaders."""

    topic_id: bytes
    partitions: tuple[ImportedPartition, ...] = ()
    timeout_ms: int


@message(frozen=True, slots=True, kw_only=True)
class ImportedPartition:
    index: int
    replicas: tuple[SealedReplica, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class SealedReplica:
    broker_id: int
    broker_epoch: int
    end_offset: int


@message(frozen=True, slots=True, kw_only=True)
class FinishImportResponse:
    error_code: int = 0
    error_message: str = ""
