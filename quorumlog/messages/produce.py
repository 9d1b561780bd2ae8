"""Append record batches to partitions.

Written by `./dev proto` from proto/quorumlog/v1/produce.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import CurrentLeader, NodeEndpoint
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    """acks: 0: no answer; 1: the leader has appended; -1: every in-sync replica has (acks=all).
    timeout_ms: How long the leader may wait for the replicas of an acks=-1 request.
    transactional_id: Of a transactional producer: its coordinator is asked about batches that begin a transaction
    in a partition.
    transaction_version: 2: the leader adds the partition to the transaction (version 12 of Kafka's message).
    takes_abortable: The producer understands TRANSACTION_ABORTABLE (KIP-890; version 11).
    """

    acks: int
    timeout_ms: int
    topics: tuple[ProduceTopic, ...] = ()
    transactional_id: str | None = None
    transaction_version: int = 0
    takes_abortable: bool = True


@message(frozen=True, slots=True, kw_only=True)
class ProduceTopic:
    """topic_id: 16 bytes, or empty if the client knows only the name."""

    name: str
    partitions: tuple[ProducePartition, ...] = ()
    topic_id: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class ProducePartition:
    """records: Consecutive record batches, format v2. The leader sets base offsets and leader epochs."""

    index: int
    records: Buffer


@message(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    """node_endpoints: Addresses of the leaders named in `current_leader`."""

    error_code: int = 0
    error_message: str = ""
    topics: tuple[ProduceTopicResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ProduceTopicResponse:
    name: str
    partitions: tuple[ProducePartitionResponse, ...] = ()
    topic_id: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class ProducePartitionResponse:
    """base_offset: Offset of the first record; -1 with an error.
    log_append_time_ms: Broker's wall-clock time if the topic uses LogAppendTime, otherwise -1.
    record_errors: Records because of which the batch was refused; with INVALID_RECORD and INVALID_TIMESTAMP.
    """

    index: int
    error_code: int = 0
    error_message: str = ""
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    current_leader: CurrentLeader | None = None
    record_errors: tuple[RecordError, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class RecordError:
    """batch_index: Number of the record in its batch, from 0."""

    batch_index: int
    message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    """Requests a producer id and epoch, by which partitions recognize repeated batches.

    transactional_id: Set by a transactional producer. Its coordinator answers, and aborts what a former producer
    has left open.
    producer_id: The producer's current id and epoch; -1: none.
    takes_producer_fenced: The producer understands PRODUCER_FENCED (KIP-588; version 4 of Kafka's message).
    """

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60000
    producer_id: int = -1
    producer_epoch: int = -1
    takes_producer_fenced: bool = True


@message(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    error_code: int = 0
    error_message: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    throttle_time_ms: int = 0
