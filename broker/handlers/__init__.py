"""One file per API. `HANDLERS[type(request)](services, context, request)` gives the answer, None for "no answer"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from broker.handlers.create_topics import handle_create_topics
from broker.handlers.delete_topics import handle_delete_topics
from broker.handlers.describe_cluster import handle_describe_cluster
from broker.handlers.describe_configs import handle_describe_configs
from broker.handlers.describe_quorum import handle_describe_quorum
from broker.handlers.fetch import handle_fetch
from broker.handlers.list_offsets import handle_list_offsets
from broker.handlers.metadata import handle_metadata
from broker.handlers.produce import handle_produce
from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
)
from quorumlog.messages.fetch import FetchRequest, ListOffsetsRequest
from quorumlog.messages.produce import ProduceRequest
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
}
