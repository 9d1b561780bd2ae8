"""Addresses of brokers that the client can use: those of the listener on which its request came."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.common import CurrentLeader, Endpoint, NodeEndpoint
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration


def endpoint_for(services: Services, context: Context, broker: BrokerRegistration) -> Endpoint | None:
    """The address of `broker` on the listener of the request; None if it has no such listener.

    A request on the internal listener gets addresses of the client listener: internal addresses are never given out.
    """
    return broker.endpoint(listener_for(services, context))


def listener_for(services: Services, context: Context) -> str:
    """The name of the listener whose addresses the client of the request gets."""
    return services.client_listener if context.listener.internal else context.listener.name


def client_endpoints(services: Services, broker: BrokerRegistration) -> tuple[Endpoint, ...]:
    internal = (services.internal_listener, services.replication_listener)
    return tuple(endpoint for endpoint in broker.endpoints if endpoint.name not in internal)


def live_brokers(image: Image) -> list[BrokerRegistration]:
    """Registered and unfenced, by id."""
    return [broker for broker in image.sorted_brokers() if not broker.fenced]


def controller_for_clients(services: Services, live: Sequence[BrokerRegistration]) -> NodeId:
    """The broker to which clients send requests for the controller: this one, which forwards them, or another live one.

    live: the brokers in the response. Clients can only reach a broker that is among them.
    """
    if services.subscription.active_controller is None or not live:
        return NO_NODE
    ids = [broker.broker_id for broker in live]
    return services.node_id if services.node_id in ids else ids[0]


def leader_endpoints(
    services: Services, context: Context, leaders: Sequence[CurrentLeader | None]
) -> tuple[NodeEndpoint, ...]:
    """The addresses of the leaders that a response names, each once, in order of id."""
    image = services.subscription.image
    found: list[NodeEndpoint] = []
    for node_id in _ids(leaders):
        broker = image.brokers.get(node_id)
        endpoint = endpoint_for(services, context, broker) if broker is not None else None
        if endpoint is not None:
            found.append(NodeEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port))
    return tuple(found)


def _ids(leaders: Sequence[CurrentLeader | None]) -> list[NodeId]:
    return sorted({leader.leader_id for leader in leaders if leader is not None and leader.leader_id >= 0})
