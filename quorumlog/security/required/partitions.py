"""What else is asked of a leader: offsets, epochs, layout, producers, deletions."""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from quorumlog.messages.fetch import (
    CountedRecords,
    CountRecordsRequest,
    CountRecordsResponse,
    CountRecordsTopicResponse,
    DescribedRanges,
    DescribeRangesRequest,
    DescribeRangesResponse,
    DescribeRangesTopicResponse,
    EpochPartitionResult,
    EpochTopicResult,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from quorumlog.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducersOfPartition,
    ProducersOfTopic,
)
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged, split_topics
from quorumlog.security.required.need import (
    CLUSTER_ACTION,
    TOPIC_DELETE,
    TOPIC_DESCRIBE,
    TOPIC_READ,
)


def list_offsets(ask: Asker, request: ListOffsetsRequest) -> Judged:
    return split_topics(ask, TOPIC_DESCRIBE, request, ListOffsetsResponse, _no_offsets)


def _no_offsets(topic: Any, fault: ErrorCode) -> ListOffsetsTopicResponse:
    partitions = (ListOffsetsPartitionResponse(index=one.index, error_code=fault) for one in topic.partitions)
    return ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions))


def offset_for_leader_epoch(ask: Asker, request: OffsetForLeaderEpochRequest) -> Judged:
    if ask.holds(CLUSTER_ACTION):
        return Judged(request)
    return split_topics(ask, TOPIC_DESCRIBE, request, OffsetForLeaderEpochResponse, _no_epochs)


def _no_epochs(topic: Any, fault: ErrorCode) -> EpochTopicResult:
    partitions = (EpochPartitionResult(index=one.index, error_code=fault) for one in topic.partitions)
    return EpochTopicResult(name=topic.name, partitions=tuple(partitions))


def describe_ranges(ask: Asker, request: DescribeRangesRequest) -> Judged:
    return split_topics(ask, TOPIC_DESCRIBE, request, DescribeRangesResponse, _no_ranges)


def _no_ranges(topic: Any, fault: ErrorCode) -> DescribeRangesTopicResponse:
    partitions = (DescribedRanges(index=one.index, error_code=fault) for one in topic.partitions)
    return DescribeRangesTopicResponse(name=topic.name, partitions=tuple(partitions))


def count_records(ask: Asker, request: CountRecordsRequest) -> Judged:
    return split_topics(ask, TOPIC_DESCRIBE, request, CountRecordsResponse, _no_counts)


def _no_counts(topic: Any, fault: ErrorCode) -> CountRecordsTopicResponse:
    partitions = (CountedRecords(index=one.index, error_code=fault) for one in topic.partitions)
    return CountRecordsTopicResponse(name=topic.name, partitions=tuple(partitions))


def delete_records(ask: Asker, request: DeleteRecordsRequest) -> Judged:
    return split_topics(ask, TOPIC_DELETE, request, DeleteRecordsResponse, _not_deleted)


def _not_deleted(topic: Any, fault: ErrorCode) -> DeleteRecordsTopicResult:
    partitions = (DeleteRecordsPartitionResult(index=one.index, error_code=fault) for one in topic.partitions)
    return DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions))


def describe_producers(ask: Asker, request: DescribeProducersRequest) -> Judged:
    return split_topics(ask, TOPIC_READ, request, DescribeProducersResponse, _no_producers)


def _no_producers(topic: Any, fault: ErrorCode) -> ProducersOfTopic:
    partitions = (ProducersOfPartition(index=index, error_code=fault) for index in topic.partitions)
    return ProducersOfTopic(name=topic.name, partitions=tuple(partitions))
