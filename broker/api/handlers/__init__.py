"""The APIs of a broker, one file each. `HANDLERS[type(request)](services, context, request)` is the way to all of them.

A handler checks the request, asks the rooms by `Services`, and builds the response; None means that none is sent. It
knows neither the wire that the request came by nor any disk. Begin with `produce.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from broker.api.handlers.create_partitions import handle_create_partitions
from broker.api.handlers.create_topics import handle_create_topics
from broker.api.handlers.delete_records import handle_delete_records
from broker.api.handlers.delete_topics import handle_delete_topics
from broker.api.handlers.describe_cluster import handle_describe_cluster
from broker.api.handlers.describe_configs import handle_describe_configs
from broker.api.handlers.describe_log_dirs import handle_describe_log_dirs
from broker.api.handlers.describe_quorum import handle_describe_quorum
from broker.api.handlers.describe_topic_partitions import handle_describe_topic_partitions
from broker.api.handlers.fetch import handle_fetch
from broker.api.handlers.find_coordinator import handle_find_coordinator
from broker.api.handlers.incremental_alter_configs import handle_incremental_alter_configs
from broker.api.handlers.init_producer_id import handle_init_producer_id
from broker.api.handlers.list_groups import handle_list_groups
from broker.api.handlers.list_offsets import handle_list_offsets
from broker.api.handlers.metadata import handle_metadata
from broker.api.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from broker.api.handlers.produce import handle_produce
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
