"""Settings that the edges of a node obey take effect from the metadata on, and go back to those of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import ConfigResource, DescribeConfigsRequest
from quorumlog.rpc.transport import Address, Connection, Listener
from quorumlog.settings.connections import (
    ADDRESSES,
    CONNECTIONS,
    CONNECTIONS_OF_ADDRESS,
    CREATION_RATE,
    ConnectionSettings,
)
from quorumlog.settings.disks import RECOVERY_THREADS
from quorumlog.settings.requests import SLOW_REQUEST
from quorumlog.wire.protocol.limits import ConnectionLimits
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.named_addresses import NamedAddresses
from quorumlog_server.edge.own_notice import OwnNotice
from quorumlog_server.edge.real_edges import arrivals_of, connection_limits, requests_of
from tests.scenarios.one_node import CALL_MS, GRPC, RealNode

BROKER, SET, DELETE = 4, 0, 1
OF_DESCRIPTORS = 500
CLIENT = Listener(name="CLIENT", address=Address("127.0.0.1", 0), internal=False, lane=True)
OTHER = dataclasses.replace(CLIENT, name="OTHER")
NODES = dataclasses.replace(CLIENT, name="REPLICATION", internal=True)
OF_CLIENT, OF_NODES = "listener.name.client.max.connections", "listener.name.replication.max.connections"


def limits_of(config: NodeConfig, own: OwnNotice) -> ConnectionLimits:
    return connection_limits(config, OF_DESCRIPTORS, own, NamedAddresses(lambda _names, _told: None, lambda: 0))


@pytest.fixture
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("edges"))
    yield made
    made.close()
    assert made.crashes == []


def alter(at: RealNode, broker: str, settings: dict[str, str | None]) -> None:
    connection: Connection = at.connect(GRPC)
    configs = tuple(
        AlterableConfig(name=name, operation=DELETE if value is None else SET, value=value)
        for name, value in settings.items()
    )
    resources = (AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=configs),)

    async def ask() -> ErrorCode:
        request = IncrementalAlterConfigsRequest(resources=resources)
        (result,) = (await connection.call(request, CALL_MS)).results
        await connection.close()
        return ErrorCode(result.error_code)

    assert at.do(ask()) is ErrorCode.NONE


def test_connections_and_threads(at: RealNode) -> None:
    own = at.node.edges.own
    config = dataclasses.replace(at.config, connections=ConnectionSettings(overrides="10.0.0.9:3"))
    limits = limits_of(config, own)
    of_file = min(config.wire.max_connections, OF_DESCRIPTORS)
    assert (limits.of_listener(CLIENT), limits.of_address("10.0.0.9")) == (of_file, 3)
    assert limits.of_address("10.0.0.8") == config.connections.of_address
    alter(at, "", {CONNECTIONS: "7", CONNECTIONS_OF_ADDRESS: "5", RECOVERY_THREADS: "9"})
    alter(at, str(at.config.node_id), {ADDRESSES: "10.0.0.8:2,::1:1", RECOVERY_THREADS: "4"})
    assert (limits.of_listener(CLIENT), limits.of_listener(NODES)) == (7, of_file)
    assert [limits.of_address(host) for host in ("10.0.0.9", "::ffff:10.0.0.8", "::1")] == [5, 2, 1]
    assert own.number(RECOVERY_THREADS, 2) == 4
    alter(at, "", {CONNECTIONS: "9999999", CONNECTIONS_OF_ADDRESS: None})
    assert limits.of_listener(CLIENT) == OF_DESCRIPTORS, "no more than there are descriptors"
    assert limits.of_address("10.0.0.9") == config.connections.of_address


def test_how_fast_clients_may_come_follows_the_metadata(at: RealNode) -> None:
    config = dataclasses.replace(at.config, connections=ConnectionSettings(creation_rate=50))
    arrivals = arrivals_of(config, at.node.edges.own, at.node.edges.quotas)
    assert [arrivals.turn("ANY", 0) for _ in range(501)][-2:] == [0, 20]
    alter(at, "", {CREATION_RATE: None, "listener.name.client.max.connection.creation.rate": "2"})
    assert [arrivals.turn("CLIENT", 100_000) for _ in range(21)][-2:] == [0, 500]
    alter(at, "", {CREATION_RATE: "1"})
    assert [arrivals.turn("OTHER", 200_000) for _ in range(11)][-2:] == [0, 1_000]


def test_what_is_slow_follows_the_metadata(at: RealNode) -> None:
    slow = requests_of(at.config, at.node.edges.own).slow
    assert slow is not None
    found = list[float]()
    changes: list[dict[str, str | None]] = [{}, {SLOW_REQUEST: "7"}, {SLOW_REQUEST: None}]
    for at_s, change in enumerate(changes):
        if change:
            alter(at, "", change)
        slow.look(at_s)
        found.append(slow.least_s)
    assert found == [0.5, 0.007, 0.5]


def test_before_there_is_a_node_the_file_counts(at: RealNode) -> None:
    limits = limits_of(at.config, OwnNotice())
    assert limits.of_listener(CLIENT) == min(at.config.wire.max_connections, OF_DESCRIPTORS)
    assert limits.of_address("10.0.0.9") == at.config.connections.of_address


def test_a_listener_has_a_maximum_of_its_own_beside_that_of_all(at: RealNode) -> None:
    """Of a listener for nodes that of the file alone, as with `max.connections`."""
    own = at.node.edges.own
    config = dataclasses.replace(at.config, listener_max_connections={OF_CLIENT: 40, OF_NODES: 30})
    limits = limits_of(config, own)
    of_file = min(config.wire.max_connections, OF_DESCRIPTORS)
    assert [limits.of_listener(one) for one in (CLIENT, OTHER, NODES)] == [40, of_file, 30]
    alter(at, "", {OF_CLIENT: "9", OF_NODES: "1"})
    assert [limits.of_listener(one) for one in (CLIENT, OTHER, NODES)] == [9, of_file, 30]
    alter(at, str(at.config.node_id), {OF_CLIENT: "12"})
    assert limits.of_listener(CLIENT) == 12
    assert shown(at) == {OF_CLIENT: "12", OF_NODES: "1"}
    alter(at, "", {CONNECTIONS: "7"})
    assert [limits.of_listener(one) for one in (CLIENT, OTHER)] == [7, 7]
    alter(at, "", {CONNECTIONS: None, OF_CLIENT: None})
    alter(at, str(at.config.node_id), {OF_CLIENT: None})
    assert limits.of_listener(CLIENT) == 40


def shown(at: RealNode) -> dict[str, str | None]:
    """What the node tells of its listeners' maxima."""
    connection: Connection = at.connect(GRPC)

    async def ask() -> dict[str, str | None]:
        resource = ConfigResource(resource_type=BROKER, resource_name=str(at.config.node_id))
        (result,) = (await connection.call(DescribeConfigsRequest(resources=(resource,)), CALL_MS)).results
        await connection.close()
        return {one.name: one.value for one in result.configs if one.name.startswith("listener.name.")}

    found: dict[str, str | None] = at.do(ask())
    return found
