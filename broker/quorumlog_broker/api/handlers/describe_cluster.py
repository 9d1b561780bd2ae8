"""DescribeCluster: the brokers with their state (fenced ones on request), and hashes of the newest metadata images."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import ClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.authorized_operations import on_cluster
from quorumlog_broker.api.endpoints import client_endpoints, controller_for_clients, endpoint_for, live_brokers
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.features import as_shown
from quorumlog_quorum.metadata.partition_index import PartitionIndex
from quorumlog_quorum.metadata.registration import BrokerRegistration

BROKERS, CONTROLLERS = 1, 2  # Kafka's numbers of endpoint types


async def handle_describe_cluster(
    services: Services, context: Context, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    image = services.caught_up_image()
    shown = [broker for broker in image.sorted_brokers() if request.include_fenced_brokers or not broker.fenced]
    counted = image.index if request.include_partition_counts else None
    described = [_broker(services, context, broker, counted) for broker in shown]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=controller_for_clients(services, live_brokers(image)),
        brokers=tuple(broker for broker in described if broker is not None),
        metadata_offset=image.offset,
        state_hash=image.state_hash_bytes,
        recent_images=services.recent_images.newest(request.max_recent_images),
        endpoint_type=request.endpoint_type,
        cluster_authorized_operations=on_cluster(request.include_cluster_authorized_operations),
    )


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == CONTROLLERS:
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "clients reach brokers only, which serve admin requests too")
    if endpoint_type != BROKERS:
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {endpoint_type}: 1 is a broker")


def _broker(
    services: Services, context: Context, broker: BrokerRegistration, counted: PartitionIndex | None
) -> ClusterBroker | None:
    """counted: where to count its partitions; None: nobody asks."""
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
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_directories=broker.log_directories,
        cordoned_directories=broker.cordoned_directories,
        features=tuple(as_shown(supported) for supported in broker.features),
        leaders=-1 if counted is None else counted.led.get(broker.broker_id, 0),
        replicas=-1 if counted is None else counted.held_count(broker.broker_id),
    )
