"""Records of `__transaction_state`: one per transactional id, its last state (KIP-98, KIP-890).

A child of a joint transaction says so in a tag of ours: `joint.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from quorumlog.records.coordinator.joint import CHILD_TAG, JOINT_CHILD, JointChild
from quorumlog.records.coordinator.layout import (
    BYTE,
    INT,
    LONG,
    SHORT,
    TEXT,
    Field,
    Layout,
    array,
    optional_struct,
)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1


class TransactionStatus(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


class TransactionKey(NamedTuple):
    """Type 0."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class TransactionPartitions:
    topic: str
    partition_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransactionValue:
    """Times in ms. transaction_partitions: None only while the transaction is empty.

    previous_producer_id, next_producer_id, next_producer_epoch: while the epochs of a producer id run out; -1 for none.
    joint: of a child of a joint transaction.
    """

    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: tuple[TransactionPartitions, ...] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_transaction_version: int = 0
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    joint: JointChild | None = None


_PARTITIONS = Layout(TransactionPartitions, Field("topic", TEXT), Field("partition_ids", array(INT)))

TRANSACTION = Layout(
    TransactionValue,
    Field("producer_id", LONG),
    Field("previous_producer_id", LONG, since=1, tag=0, default=NO_PRODUCER_ID),
    Field("next_producer_id", LONG, since=1, tag=1, default=NO_PRODUCER_ID),
    Field("producer_epoch", SHORT),
    Field("next_producer_epoch", SHORT, since=1, tag=3, default=NO_PRODUCER_EPOCH),
    Field("transaction_timeout_ms", INT),
    Field("transaction_status", BYTE),
    Field("transaction_partitions", array(_PARTITIONS.kind, nullable=True)),
    Field("transaction_last_update_timestamp_ms", LONG),
    Field("transaction_start_timestamp_ms", LONG),
    Field("client_transaction_version", SHORT, since=1, tag=2, default=0),
    Field("joint", optional_struct(JOINT_CHILD), since=1, tag=CHILD_TAG),
    newest=1,
    flexible_since=1,
)
