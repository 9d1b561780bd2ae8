"""DescribeCluster: the brokers with their epochs, fenced ones if asked for, and the hash of the metadata image."""

from __future__ import annotations

from broker.endpoints import client_endpoints, endpoint_for
from broker.services import Services
from quorum.metadata.registration import BrokerRegistration
from quorumlog.ids import NO_NODE
from quorumlog.messages.cluster import ClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from quorumlog.rpc.transport import Context


async def handle_describe_cluster(
    services: Services, context: Context, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    image = services.caught_up_image()
    shown = [broker for broker in image.sorted_brokers() if request.include_fenced_brokers or not broker.fenced]
    described = [_broker(services, context, broker) for broker in shown]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.node_id if services.subscription.active_controller is not None else NO_NODE,
        brokers=tuple(broker for broker in described if broker is not None),
        metadata_offset=image.offset,
        state_hash=image.state_hash_bytes,
    )


def _broker(services: Services, context: Context, broker: BrokerRegistration) -> ClusterBroker | None:
    endpoint = endpoint_for(services, context, broker)
    if endpoint is None:
        return None
    return ClusterBroker(
        node_id=broker.broker_id,
        host=endpoint.host,
        port=endpoint.port,
        rack=broker.rack,
        fenced=broker.fenced,
        broker_epoch=broker.broker_epoch,
        endpoints=client_endpoints(services, broker),
    )
