"""What a topic takes at most in one batch: its `max.message.bytes`, of which a producer else hears by a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import QuorumlogError
from quorumlog.messages.cluster import ConfigResource, DescribeConfigsRequest, DescribeConfigsResponse
from quorumlog.rpc.transport import RpcError

TOPIC_RESOURCE = 2  # Kafka's number
MOST_BYTES = 2**31 - 1  # of a batch: an int32
AS_PRODUCED = "producer"
MARGIN = 64  # a part of the limit: some codecs make a little more of what cannot be compressed
ASK_MS = 5_000  # for a limit; without it the leaders' refusals are what is known


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimit:
    """batch_bytes: of a batch of several rows. row_bytes: of a batch of one row, above which the leader refuses it for
    sure; a leader that compresses with a codec of its own judges what that has made of it."""

    batch_bytes: int = MOST_BYTES
    row_bytes: int = MOST_BYTES


NO_LIMIT = BatchLimit()


async def ask_limit(link: Link, topic: str) -> BatchLimit:
    """NO_LIMIT if no node says it: a cluster may not let everybody see settings."""
    wanted = ConfigResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, names=("max.message.bytes", "compression.type")
    )
    request = DescribeConfigsRequest(resources=(wanted,), include_documentation=False)
    try:
        response: DescribeConfigsResponse = await link.call_any(request, ASK_MS)
    except (QuorumlogError, RpcError):
        return NO_LIMIT
    values = {config.name: config.value for result in response.results for config in result.configs}
    most = values.get("max.message.bytes") or ""
    if not most.isdigit():
        return NO_LIMIT
    limit = int(most)
    is_exact = values.get("compression.type") == AS_PRODUCED
    return BatchLimit(batch_bytes=limit - limit // MARGIN, row_bytes=limit if is_exact else MOST_BYTES)
