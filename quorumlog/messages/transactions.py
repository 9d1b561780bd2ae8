"""Transactions: what producers and brokers ask of a transaction coordinator, and what it asks of the leaders of
partitions.

Field by field these are Kafka's messages under our names. The leader of a transactional id's partition of
__transaction_state, its coordinator, answers them; the leader of a partition answers WriteTxnMarkers, and the
coordinator of a group TxnOffsetCommit. InitProducerId is in produce.proto.

Written by `./dev proto` from proto/quorumlog/v1/transactions.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.groups import OffsetCommitTopic, OffsetCommitTopicResult
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnRequest:
    """transactions: One, unless a broker asks for several producers."""

    transactions: tuple[TransactionToExtend, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TransactionToExtend:
    """verify_only: Only say whether the partitions are in the transaction (KIP-890, part 1).
    transaction_version: 2: the producer gets an epoch for each transaction (KIP-890, part 2; version 4 of Kafka's
    message).
    takes_producer_fenced: The producer understands PRODUCER_FENCED (KIP-588; version 2).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool = False
    topics: tuple[TransactionTopic, ...] = ()
    transaction_version: int = 0
    takes_producer_fenced: bool = True


@message(frozen=True, slots=True, kw_only=True)
class TransactionTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[ExtendedTransaction, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ExtendedTransaction:
    transactional_id: str
    topics: tuple[TransactionTopicResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TransactionTopicResult:
    name: str
    partitions: tuple[TransactionPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TransactionPartitionResult:
    index: int
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AddOffsetsToTxnRequest:
    """Adds the partition of __consumer_offsets that has the group.

    takes_producer_fenced: Version 2 of Kafka's message.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    takes_producer_fenced: bool = True


@message(frozen=True, slots=True, kw_only=True)
class AddOffsetsToTxnResponse:
    error_code: int = 0
    error_message: str = ""
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class EndTxnRequest:
    """transaction_version: 2: the producer takes its next epoch from the answer (version 5 of Kafka's message).
    takes_producer_fenced: Version 2 of Kafka's message.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int = 0
    takes_producer_fenced: bool = True


@message(frozen=True, slots=True, kw_only=True)
class EndTxnResponse:
    """producer_id, producer_epoch: of the next transaction; -1 for a producer that keeps its own."""

    error_code: int = 0
    error_message: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersRequest:
    """From a coordinator to the leader of partitions, or from a tool that ends a transaction that hangs."""

    markers: tuple[TransactionMarker, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TransactionMarker:
    """coordinator_epoch: Leader epoch of the coordinator's partition.
    transaction_version: From 2 on the epoch is newer than that of the transaction's records.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    topics: tuple[TransactionTopic, ...] = ()
    coordinator_epoch: int
    transaction_version: int = 0


@message(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponse:
    error_code: int = 0
    error_message: str = ""
    markers: tuple[WrittenMarker, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class WrittenMarker:
    producer_id: int
    topics: tuple[TransactionTopicResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    """generation_id: -1 and "": of software before KIP-447; nothing is checked then.
    transaction_version: 2: the group's coordinator adds itself to the transaction (version 5 of Kafka's message).
    takes_abortable: The producer understands TRANSACTION_ABORTABLE (KIP-890; version 4).
    """

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitTopic, ...] = ()
    transaction_version: int = 0
    takes_abortable: bool = True


@message(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[OffsetCommitTopicResult, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponse:
    error_code: int = 0
    error_message: str = ""
    transactions: tuple[DescribedTransaction, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribedTransaction:
    """Times in ms since 1970, -1 for none. topics: of an open transaction, and of one whose markers are not all
    written.
    joint_group: whose child the id is; empty for others. Kafka's message has no such field.
    """

    error_code: int = 0
    transactional_id: str
    state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    topics: tuple[TransactionTopic, ...] = ()
    joint_group: str = ""


@message(frozen=True, slots=True, kw_only=True)
class ListTransactionsRequest:
    """An empty filter lets everything pass.

    state_filters: Names of states, as Kafka shows them.
    duration_filter_ms: Only those that began longer ago; -1: all.
    transactional_id_pattern: A regular expression (RE2) for the whole id; None and "": all.
    """

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter_ms: int = -1
    transactional_id_pattern: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class ListTransactionsResponse:
    """partitions: Of __transaction_state, whose ids were looked at; Kafka's message has no such field."""

    error_code: int = 0
    error_message: str = ""
    unknown_state_filters: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()
    throttle_time_ms: int = 0
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    """Kafka's message has the first three fields.

    transaction_version: By which rules its producer runs it.
    joint_group: Whose child the id is; empty for others.
    start_time_ms: In ms since 1970; -1: no transaction is open.
    """

    transactional_id: str
    producer_id: int
    state: str
    transaction_version: int = 0
    joint_group: str = ""
    producer_epoch: int = -1
    timeout_ms: int = 0
    start_time_ms: int = -1


@message(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequest:
    """What the answering broker's replicas know of producers, for tools that look for transactions that hang."""

    topics: tuple[TransactionTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponse:
    error_code: int = 0
    error_message: str = ""
    topics: tuple[ProducersOfTopic, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ProducersOfTopic:
    name: str
    partitions: tuple[ProducersOfPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ProducersOfPartition:
    index: int
    error_code: int = 0
    error_message: str = ""
    active_producers: tuple[ActiveProducer, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ActiveProducer:
    """last_timestamp_ms: of its newest batch, ms since 1970. coordinator_epoch: of its newest marker."""

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    current_transaction_start_offset: int = -1
