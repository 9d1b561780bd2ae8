"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/transactions.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.transactions import (
    ActiveProducer,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ExtendedTransaction,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducersOfPartition,
    ProducersOfTopic,
    TransactionMarker,
    TransactionPartitionResult,
    TransactionToExtend,
    TransactionTopic,
    TransactionTopicResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.rpc.convert.groups import (
    fill_OffsetCommitTopic,
    fill_OffsetCommitTopicResult,
    read_OffsetCommitTopic,
    read_OffsetCommitTopicResult,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import transactions_pb2 as pb


def fill_AddPartitionsToTxnRequest(m: AddPartitionsToTxnRequest, p: pb.AddPartitionsToTxnRequest) -> None:
    for x_transactions in m.transactions:
        fill_TransactionToExtend(x_transactions, p.transactions.add())


def read_AddPartitionsToTxnRequest(p: pb.AddPartitionsToTxnRequest) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=tuple([read_TransactionToExtend(x) for x in p.transactions]),
    )


def encode_AddPartitionsToTxnRequest(m: AddPartitionsToTxnRequest) -> bytes:
    p = pb.AddPartitionsToTxnRequest()
    fill_AddPartitionsToTxnRequest(m, p)
    return p.SerializeToString()


def decode_AddPartitionsToTxnRequest(data: Buffer) -> AddPartitionsToTxnRequest:
    return read_AddPartitionsToTxnRequest(parse(pb.AddPartitionsToTxnRequest, data))


def fill_TransactionToExtend(m: TransactionToExtend, p: pb.TransactionToExtend) -> None:
    p.transactional_id = m.transactional_id
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.verify_only = m.verify_only
    for x_topics in m.topics:
        fill_TransactionTopic(x_topics, p.topics.add())
    p.transaction_version = m.transaction_version
    p.takes_producer_fenced = m.takes_producer_fenced


def read_TransactionToExtend(p: pb.TransactionToExtend) -> TransactionToExtend:
    return TransactionToExtend(
        transactional_id=p.transactional_id,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        verify_only=p.verify_only,
        topics=tuple([read_TransactionTopic(x) for x in p.topics]),
        transaction_version=p.transaction_version,
        takes_producer_fenced=p.takes_producer_fenced,
    )


def encode_TransactionToExtend(m: TransactionToExtend) -> bytes:
    p = pb.TransactionToExtend()
    fill_TransactionToExtend(m, p)
    return p.SerializeToString()


def decode_TransactionToExtend(data: Buffer) -> TransactionToExtend:
    return read_TransactionToExtend(parse(pb.TransactionToExtend, data))


def fill_TransactionTopic(m: TransactionTopic, p: pb.TransactionTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_TransactionTopic(p: pb.TransactionTopic) -> TransactionTopic:
    return TransactionTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_TransactionTopic(m: TransactionTopic) -> bytes:
    p = pb.TransactionTopic()
    fill_TransactionTopic(m, p)
    return p.SerializeToString()


def decode_TransactionTopic(data: Buffer) -> TransactionTopic:
    return read_TransactionTopic(parse(pb.TransactionTopic, data))


def fill_AddPartitionsToTxnResponse(m: AddPartitionsToTxnResponse, p: pb.AddPartitionsToTxnResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_results in m.results:
        fill_ExtendedTransaction(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_AddPartitionsToTxnResponse(p: pb.AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        results=tuple([read_ExtendedTransaction(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AddPartitionsToTxnResponse(m: AddPartitionsToTxnResponse) -> bytes:
    p = pb.AddPartitionsToTxnResponse()
    fill_AddPartitionsToTxnResponse(m, p)
    return p.SerializeToString()


def decode_AddPartitionsToTxnResponse(data: Buffer) -> AddPartitionsToTxnResponse:
    return read_AddPartitionsToTxnResponse(parse(pb.AddPartitionsToTxnResponse, data))


def fill_ExtendedTransaction(m: ExtendedTransaction, p: pb.ExtendedTransaction) -> None:
    p.transactional_id = m.transactional_id
    for x_topics in m.topics:
        fill_TransactionTopicResult(x_topics, p.topics.add())


def read_ExtendedTransaction(p: pb.ExtendedTransaction) -> ExtendedTransaction:
    return ExtendedTransaction(
        transactional_id=p.transactional_id,
        topics=tuple([read_TransactionTopicResult(x) for x in p.topics]),
    )


def encode_ExtendedTransaction(m: ExtendedTransaction) -> bytes:
    p = pb.ExtendedTransaction()
    fill_ExtendedTransaction(m, p)
    return p.SerializeToString()


def decode_ExtendedTransaction(data: Buffer) -> ExtendedTransaction:
    return read_ExtendedTransaction(parse(pb.ExtendedTransaction, data))


def fill_TransactionTopicResult(m: TransactionTopicResult, p: pb.TransactionTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_TransactionPartitionResult(x_partitions, p.partitions.add())


def read_TransactionTopicResult(p: pb.TransactionTopicResult) -> TransactionTopicResult:
    return TransactionTopicResult(
        name=p.name,
        partitions=tuple([read_TransactionPartitionResult(x) for x in p.partitions]),
    )


def encode_TransactionTopicResult(m: TransactionTopicResult) -> bytes:
    p = pb.TransactionTopicResult()
    fill_TransactionTopicResult(m, p)
    return p.SerializeToString()


def decode_TransactionTopicResult(data: Buffer) -> TransactionTopicResult:
    return read_TransactionTopicResult(parse(pb.TransactionTopicResult, data))


def fill_TransactionPartitionResult(m: TransactionPartitionResult, p: pb.TransactionPartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code


def read_TransactionPartitionResult(p: pb.TransactionPartitionResult) -> TransactionPartitionResult:
    return TransactionPartitionResult(
        index=p.index,
        error_code=p.error_code,
    )


def encode_TransactionPartitionResult(m: TransactionPartitionResult) -> bytes:
    p = pb.TransactionPartitionResult()
    fill_TransactionPartitionResult(m, p)
    return p.SerializeToString()


def decode_TransactionPartitionResult(data: Buffer) -> TransactionPartitionResult:
    return read_TransactionPartitionResult(parse(pb.TransactionPartitionResult, data))


def fill_AddOffsetsToTxnRequest(m: AddOffsetsToTxnRequest, p: pb.AddOffsetsToTxnRequest) -> None:
    p.transactional_id = m.transactional_id
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.group_id = m.group_id
    p.takes_producer_fenced = m.takes_producer_fenced


def read_AddOffsetsToTxnRequest(p: pb.AddOffsetsToTxnRequest) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=p.transactional_id,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        group_id=p.group_id,
        takes_producer_fenced=p.takes_producer_fenced,
    )


def encode_AddOffsetsToTxnRequest(m: AddOffsetsToTxnRequest) -> bytes:
    p = pb.AddOffsetsToTxnRequest()
    fill_AddOffsetsToTxnRequest(m, p)
    return p.SerializeToString()


def decode_AddOffsetsToTxnRequest(data: Buffer) -> AddOffsetsToTxnRequest:
    return read_AddOffsetsToTxnRequest(parse(pb.AddOffsetsToTxnRequest, data))


def fill_AddOffsetsToTxnResponse(m: AddOffsetsToTxnResponse, p: pb.AddOffsetsToTxnResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.throttle_time_ms = m.throttle_time_ms


def read_AddOffsetsToTxnResponse(p: pb.AddOffsetsToTxnResponse) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_AddOffsetsToTxnResponse(m: AddOffsetsToTxnResponse) -> bytes:
    p = pb.AddOffsetsToTxnResponse()
    fill_AddOffsetsToTxnResponse(m, p)
    return p.SerializeToString()


def decode_AddOffsetsToTxnResponse(data: Buffer) -> AddOffsetsToTxnResponse:
    return read_AddOffsetsToTxnResponse(parse(pb.AddOffsetsToTxnResponse, data))


def fill_EndTxnRequest(m: EndTxnRequest, p: pb.EndTxnRequest) -> None:
    p.transactional_id = m.transactional_id
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.committed = m.committed
    p.transaction_version = m.transaction_version
    p.takes_producer_fenced = m.takes_producer_fenced


def read_EndTxnRequest(p: pb.EndTxnRequest) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=p.transactional_id,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        committed=p.committed,
        transaction_version=p.transaction_version,
        takes_producer_fenced=p.takes_producer_fenced,
    )


def encode_EndTxnRequest(m: EndTxnRequest) -> bytes:
    p = pb.EndTxnRequest()
    fill_EndTxnRequest(m, p)
    return p.SerializeToString()


def decode_EndTxnRequest(data: Buffer) -> EndTxnRequest:
    return read_EndTxnRequest(parse(pb.EndTxnRequest, data))


def fill_EndTxnResponse(m: EndTxnResponse, p: pb.EndTxnResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.throttle_time_ms = m.throttle_time_ms


def read_EndTxnResponse(p: pb.EndTxnResponse) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_EndTxnResponse(m: EndTxnResponse) -> bytes:
    p = pb.EndTxnResponse()
    fill_EndTxnResponse(m, p)
    return p.SerializeToString()


def decode_EndTxnResponse(data: Buffer) -> EndTxnResponse:
    return read_EndTxnResponse(parse(pb.EndTxnResponse, data))


def fill_WriteTxnMarkersRequest(m: WriteTxnMarkersRequest, p: pb.WriteTxnMarkersRequest) -> None:
    for x_markers in m.markers:
        fill_TransactionMarker(x_markers, p.markers.add())


def read_WriteTxnMarkersRequest(p: pb.WriteTxnMarkersRequest) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=tuple([read_TransactionMarker(x) for x in p.markers]),
    )


def encode_WriteTxnMarkersRequest(m: WriteTxnMarkersRequest) -> bytes:
    p = pb.WriteTxnMarkersRequest()
    fill_WriteTxnMarkersRequest(m, p)
    return p.SerializeToString()


def decode_WriteTxnMarkersRequest(data: Buffer) -> WriteTxnMarkersRequest:
    return read_WriteTxnMarkersRequest(parse(pb.WriteTxnMarkersRequest, data))


def fill_TransactionMarker(m: TransactionMarker, p: pb.TransactionMarker) -> None:
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.committed = m.committed
    for x_topics in m.topics:
        fill_TransactionTopic(x_topics, p.topics.add())
    p.coordinator_epoch = m.coordinator_epoch
    p.transaction_version = m.transaction_version


def read_TransactionMarker(p: pb.TransactionMarker) -> TransactionMarker:
    return TransactionMarker(
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        committed=p.committed,
        topics=tuple([read_TransactionTopic(x) for x in p.topics]),
        coordinator_epoch=p.coordinator_epoch,
        transaction_version=p.transaction_version,
    )


def encode_TransactionMarker(m: TransactionMarker) -> bytes:
    p = pb.TransactionMarker()
    fill_TransactionMarker(m, p)
    return p.SerializeToString()


def decode_TransactionMarker(data: Buffer) -> TransactionMarker:
    return read_TransactionMarker(parse(pb.TransactionMarker, data))


def fill_WriteTxnMarkersResponse(m: WriteTxnMarkersResponse, p: pb.WriteTxnMarkersResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_markers in m.markers:
        fill_WrittenMarker(x_markers, p.markers.add())


def read_WriteTxnMarkersResponse(p: pb.WriteTxnMarkersResponse) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        markers=tuple([read_WrittenMarker(x) for x in p.markers]),
    )


def encode_WriteTxnMarkersResponse(m: WriteTxnMarkersResponse) -> bytes:
    p = pb.WriteTxnMarkersResponse()
    fill_WriteTxnMarkersResponse(m, p)
    return p.SerializeToString()


def decode_WriteTxnMarkersResponse(data: Buffer) -> WriteTxnMarkersResponse:
    return read_WriteTxnMarkersResponse(parse(pb.WriteTxnMarkersResponse, data))


def fill_WrittenMarker(m: WrittenMarker, p: pb.WrittenMarker) -> None:
    p.producer_id = m.producer_id
    for x_topics in m.topics:
        fill_TransactionTopicResult(x_topics, p.topics.add())


def read_WrittenMarker(p: pb.WrittenMarker) -> WrittenMarker:
    return WrittenMarker(
        producer_id=p.producer_id,
        topics=tuple([read_TransactionTopicResult(x) for x in p.topics]),
    )


def encode_WrittenMarker(m: WrittenMarker) -> bytes:
    p = pb.WrittenMarker()
    fill_WrittenMarker(m, p)
    return p.SerializeToString()


def decode_WrittenMarker(data: Buffer) -> WrittenMarker:
    return read_WrittenMarker(parse(pb.WrittenMarker, data))


def fill_TxnOffsetCommitRequest(m: TxnOffsetCommitRequest, p: pb.TxnOffsetCommitRequest) -> None:
    p.transactional_id = m.transactional_id
    p.group_id = m.group_id
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.generation_id = m.generation_id
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    for x_topics in m.topics:
        fill_OffsetCommitTopic(x_topics, p.topics.add())
    p.transaction_version = m.transaction_version
    p.takes_abortable = m.takes_abortable


def read_TxnOffsetCommitRequest(p: pb.TxnOffsetCommitRequest) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=p.transactional_id,
        group_id=p.group_id,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        generation_id=p.generation_id,
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        topics=tuple([read_OffsetCommitTopic(x) for x in p.topics]),
        transaction_version=p.transaction_version,
        takes_abortable=p.takes_abortable,
    )


def encode_TxnOffsetCommitRequest(m: TxnOffsetCommitRequest) -> bytes:
    p = pb.TxnOffsetCommitRequest()
    fill_TxnOffsetCommitRequest(m, p)
    return p.SerializeToString()


def decode_TxnOffsetCommitRequest(data: Buffer) -> TxnOffsetCommitRequest:
    return read_TxnOffsetCommitRequest(parse(pb.TxnOffsetCommitRequest, data))


def fill_TxnOffsetCommitResponse(m: TxnOffsetCommitResponse, p: pb.TxnOffsetCommitResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_OffsetCommitTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_TxnOffsetCommitResponse(p: pb.TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_OffsetCommitTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_TxnOffsetCommitResponse(m: TxnOffsetCommitResponse) -> bytes:
    p = pb.TxnOffsetCommitResponse()
    fill_TxnOffsetCommitResponse(m, p)
    return p.SerializeToString()


def decode_TxnOffsetCommitResponse(data: Buffer) -> TxnOffsetCommitResponse:
    return read_TxnOffsetCommitResponse(parse(pb.TxnOffsetCommitResponse, data))


def fill_DescribeTransactionsRequest(m: DescribeTransactionsRequest, p: pb.DescribeTransactionsRequest) -> None:
    p.transactional_ids.extend(m.transactional_ids)


def read_DescribeTransactionsRequest(p: pb.DescribeTransactionsRequest) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(
        transactional_ids=tuple(p.transactional_ids[:]),
    )


def encode_DescribeTransactionsRequest(m: DescribeTransactionsRequest) -> bytes:
    p = pb.DescribeTransactionsRequest()
    fill_DescribeTransactionsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeTransactionsRequest(data: Buffer) -> DescribeTransactionsRequest:
    return read_DescribeTransactionsRequest(parse(pb.DescribeTransactionsRequest, data))


def fill_DescribeTransactionsResponse(m: DescribeTransactionsResponse, p: pb.DescribeTransactionsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_transactions in m.transactions:
        fill_DescribedTransaction(x_transactions, p.transactions.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeTransactionsResponse(p: pb.DescribeTransactionsResponse) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        transactions=tuple([read_DescribedTransaction(x) for x in p.transactions]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeTransactionsResponse(m: DescribeTransactionsResponse) -> bytes:
    p = pb.DescribeTransactionsResponse()
    fill_DescribeTransactionsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeTransactionsResponse(data: Buffer) -> DescribeTransactionsResponse:
    return read_DescribeTransactionsResponse(parse(pb.DescribeTransactionsResponse, data))


def fill_DescribedTransaction(m: DescribedTransaction, p: pb.DescribedTransaction) -> None:
    p.error_code = m.error_code
    p.transactional_id = m.transactional_id
    p.state = m.state
    p.transaction_timeout_ms = m.transaction_timeout_ms
    p.transaction_start_time_ms = m.transaction_start_time_ms
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    for x_topics in m.topics:
        fill_TransactionTopic(x_topics, p.topics.add())
    p.joint_group = m.joint_group


def read_DescribedTransaction(p: pb.DescribedTransaction) -> DescribedTransaction:
    return DescribedTransaction(
        error_code=p.error_code,
        transactional_id=p.transactional_id,
        state=p.state,
        transaction_timeout_ms=p.transaction_timeout_ms,
        transaction_start_time_ms=p.transaction_start_time_ms,
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        topics=tuple([read_TransactionTopic(x) for x in p.topics]),
        joint_group=p.joint_group,
    )


def encode_DescribedTransaction(m: DescribedTransaction) -> bytes:
    p = pb.DescribedTransaction()
    fill_DescribedTransaction(m, p)
    return p.SerializeToString()


def decode_DescribedTransaction(data: Buffer) -> DescribedTransaction:
    return read_DescribedTransaction(parse(pb.DescribedTransaction, data))


def fill_ListTransactionsRequest(m: ListTransactionsRequest, p: pb.ListTransactionsRequest) -> None:
    p.state_filters.extend(m.state_filters)
    p.producer_id_filters.extend(m.producer_id_filters)
    p.duration_filter_ms = m.duration_filter_ms
    if m.transactional_id_pattern is not None:
        p.transactional_id_pattern = m.transactional_id_pattern


def read_ListTransactionsRequest(p: pb.ListTransactionsRequest) -> ListTransactionsRequest:
    return ListTransactionsRequest(
        state_filters=tuple(p.state_filters[:]),
        producer_id_filters=tuple(p.producer_id_filters[:]),
        duration_filter_ms=p.duration_filter_ms,
        transactional_id_pattern=p.transactional_id_pattern if p.HasField("transactional_id_pattern") else None,
    )


def encode_ListTransactionsRequest(m: ListTransactionsRequest) -> bytes:
    p = pb.ListTransactionsRequest()
    fill_ListTransactionsRequest(m, p)
    return p.SerializeToString()


def decode_ListTransactionsRequest(data: Buffer) -> ListTransactionsRequest:
    return read_ListTransactionsRequest(parse(pb.ListTransactionsRequest, data))


def fill_ListTransactionsResponse(m: ListTransactionsResponse, p: pb.ListTransactionsResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.unknown_state_filters.extend(m.unknown_state_filters)
    for x_transactions in m.transactions:
        fill_ListedTransaction(x_transactions, p.transactions.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.partitions.extend(m.partitions)


def read_ListTransactionsResponse(p: pb.ListTransactionsResponse) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        unknown_state_filters=tuple(p.unknown_state_filters[:]),
        transactions=tuple([read_ListedTransaction(x) for x in p.transactions]),
        throttle_time_ms=p.throttle_time_ms,
        partitions=tuple(p.partitions[:]),
    )


def encode_ListTransactionsResponse(m: ListTransactionsResponse) -> bytes:
    p = pb.ListTransactionsResponse()
    fill_ListTransactionsResponse(m, p)
    return p.SerializeToString()


def decode_ListTransactionsResponse(data: Buffer) -> ListTransactionsResponse:
    return read_ListTransactionsResponse(parse(pb.ListTransactionsResponse, data))


def fill_ListedTransaction(m: ListedTransaction, p: pb.ListedTransaction) -> None:
    p.transactional_id = m.transactional_id
    p.producer_id = m.producer_id
    p.state = m.state
    p.transaction_version = m.transaction_version
    p.joint_group = m.joint_group
    p.producer_epoch = m.producer_epoch
    p.timeout_ms = m.timeout_ms
    p.start_time_ms = m.start_time_ms


def read_ListedTransaction(p: pb.ListedTransaction) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=p.transactional_id,
        producer_id=p.producer_id,
        state=p.state,
        transaction_version=p.transaction_version,
        joint_group=p.joint_group,
        producer_epoch=p.producer_epoch,
        timeout_ms=p.timeout_ms,
        start_time_ms=p.start_time_ms,
    )


def encode_ListedTransaction(m: ListedTransaction) -> bytes:
    p = pb.ListedTransaction()
    fill_ListedTransaction(m, p)
    return p.SerializeToString()


def decode_ListedTransaction(data: Buffer) -> ListedTransaction:
    return read_ListedTransaction(parse(pb.ListedTransaction, data))


def fill_DescribeProducersRequest(m: DescribeProducersRequest, p: pb.DescribeProducersRequest) -> None:
    for x_topics in m.topics:
        fill_TransactionTopic(x_topics, p.topics.add())


def read_DescribeProducersRequest(p: pb.DescribeProducersRequest) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=tuple([read_TransactionTopic(x) for x in p.topics]),
    )


def encode_DescribeProducersRequest(m: DescribeProducersRequest) -> bytes:
    p = pb.DescribeProducersRequest()
    fill_DescribeProducersRequest(m, p)
    return p.SerializeToString()


def decode_DescribeProducersRequest(data: Buffer) -> DescribeProducersRequest:
    return read_DescribeProducersRequest(parse(pb.DescribeProducersRequest, data))


def fill_DescribeProducersResponse(m: DescribeProducersResponse, p: pb.DescribeProducersResponse) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_topics in m.topics:
        fill_ProducersOfTopic(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms


def read_DescribeProducersResponse(p: pb.DescribeProducersResponse) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        topics=tuple([read_ProducersOfTopic(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_DescribeProducersResponse(m: DescribeProducersResponse) -> bytes:
    p = pb.DescribeProducersResponse()
    fill_DescribeProducersResponse(m, p)
    return p.SerializeToString()


def decode_DescribeProducersResponse(data: Buffer) -> DescribeProducersResponse:
    return read_DescribeProducersResponse(parse(pb.DescribeProducersResponse, data))


def fill_ProducersOfTopic(m: ProducersOfTopic, p: pb.ProducersOfTopic) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_ProducersOfPartition(x_partitions, p.partitions.add())


def read_ProducersOfTopic(p: pb.ProducersOfTopic) -> ProducersOfTopic:
    return ProducersOfTopic(
        name=p.name,
        partitions=tuple([read_ProducersOfPartition(x) for x in p.partitions]),
    )


def encode_ProducersOfTopic(m: ProducersOfTopic) -> bytes:
    p = pb.ProducersOfTopic()
    fill_ProducersOfTopic(m, p)
    return p.SerializeToString()


def decode_ProducersOfTopic(data: Buffer) -> ProducersOfTopic:
    return read_ProducersOfTopic(parse(pb.ProducersOfTopic, data))


def fill_ProducersOfPartition(m: ProducersOfPartition, p: pb.ProducersOfPartition) -> None:
    p.index = m.index
    p.error_code = m.error_code
    p.error_message = m.error_message
    for x_active_producers in m.active_producers:
        fill_ActiveProducer(x_active_producers, p.active_producers.add())


def read_ProducersOfPartition(p: pb.ProducersOfPartition) -> ProducersOfPartition:
    return ProducersOfPartition(
        index=p.index,
        error_code=p.error_code,
        error_message=p.error_message,
        active_producers=tuple([read_ActiveProducer(x) for x in p.active_producers]),
    )


def encode_ProducersOfPartition(m: ProducersOfPartition) -> bytes:
    p = pb.ProducersOfPartition()
    fill_ProducersOfPartition(m, p)
    return p.SerializeToString()


def decode_ProducersOfPartition(data: Buffer) -> ProducersOfPartition:
    return read_ProducersOfPartition(parse(pb.ProducersOfPartition, data))


def fill_ActiveProducer(m: ActiveProducer, p: pb.ActiveProducer) -> None:
    p.producer_id = m.producer_id
    p.producer_epoch = m.producer_epoch
    p.last_sequence = m.last_sequence
    p.last_timestamp_ms = m.last_timestamp_ms
    p.coordinator_epoch = m.coordinator_epoch
    p.current_transaction_start_offset = m.current_transaction_start_offset


def read_ActiveProducer(p: pb.ActiveProducer) -> ActiveProducer:
    return ActiveProducer(
        producer_id=p.producer_id,
        producer_epoch=p.producer_epoch,
        last_sequence=p.last_sequence,
        last_timestamp_ms=p.last_timestamp_ms,
        coordinator_epoch=p.coordinator_epoch,
        current_transaction_start_offset=p.current_transaction_start_offset,
    )


def encode_ActiveProducer(m: ActiveProducer) -> bytes:
    p = pb.ActiveProducer()
    fill_ActiveProducer(m, p)
    return p.SerializeToString()


def decode_ActiveProducer(data: Buffer) -> ActiveProducer:
    return read_ActiveProducer(parse(pb.ActiveProducer, data))
