"""One file per API. `HANDLERS[type(request)](services, context, request)` gives the answer, None for "no answer"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from broker.handlers.create_partitions import handle_create_partitions
from broker.handlers.create_topics import handle_create_topics
from broker.handlers.delete_records import handle_delete_records
from broker.handlers.delete_topics import handle_delete_topics
from broker.handlers.describe_cluster import handle_describe_cluster
from broker.handlers.describe_configs import handle_describe_configs
from broker.handlers.describe_log_dirs import handle_describe_log_dirs
from broker.handlers.describe_quorum import handle_describe_quorum
from broker.handlers.describe_topic_partitions import handle_describe_topic_partitions
from broker.handlers.fetch import handle_fetch
from broker.handlers.find_coordinator import handle_find_coordinator
from broker.handlers.incremental_alter_configs import handle_incremental_alter_configs
from broker.handlers.init_producer_id import handle_init_producer_id
from broker.handlers.list_groups import handle_list_groups
from broker.handlers.list_offsets import handle_list_offsets
from broker.handlers.metadata import handle_metadata
from broker.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from broker.handlers.produce import handle_produce
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from quorumlog.messages.produce import InitProducerIdRequest, ProduceRequest
from quorumlog.messages.quorum import DescribeQuorumRequest

BrokerHandler = Callable[..., Awaitable[Any]]

HANDLERS: Mapping[type, BrokerHandler] = {
    ProduceRequest: handle_produce,
    FetchRequest: handle_fetch,
    ListOffsetsRequest: handle_list_offsets,
    MetadataRequest: handle_metadata,
    DescribeClusterRequest: handle_describe_cluster,
    CreateTopicsRequest: handle_create_topics,
    DeleteTopicsRequest: handle_delete_topics,
    DescribeConfigsRequest: handle_describe_configs,
    DescribeQuorumRequest: handle_describe_quorum,
    InitProducerIdRequest: handle_init_producer_id,
    OffsetForLeaderEpochRequest: handle_offset_for_leader_epoch,
    CreatePartitionsRequest: handle_create_partitions,
    IncrementalAlterConfigsRequest: handle_incremental_alter_configs,
    DescribeTopicPartitionsRequest: handle_describe_topic_partitions,
    DeleteRecordsRequest: handle_delete_records,
    DescribeLogDirsRequest: handle_describe_log_dirs,
    ListGroupsRequest: handle_list_groups,
    FindCoordinatorRequest: handle_find_coordinator,
}
