"""Settings that the edges of a node obey take effect from the metadata on, and go back to those of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.live_settings import ADDRESSES, CONNECTIONS, CONNECTIONS_OF_ADDRESS, RECOVERY_THREADS
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.rpc.transport import Connection
from quorumlog_cli.server.own_notice import OwnNotice
from quorumlog_cli.server.real_edges import connection_limits
from tests.scenarios.one_node import CALL_MS, GRPC, RealNode

BROKER, SET, DELETE = 4, 0, 1
OF_DESCRIPTORS = 500


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
    own, config = at.node.edges.own, dataclasses.replace(at.config, max_connections_per_ip_overrides="10.0.0.9:3")
    limits = connection_limits(config, OF_DESCRIPTORS, own)
    of_file = min(config.max_connections, OF_DESCRIPTORS)
    assert (limits.of_listener(False), limits.of_address("10.0.0.9")) == (of_file, 3)
    assert limits.of_address("10.0.0.8") == config.max_connections_per_ip
    alter(at, "", {CONNECTIONS: "7", CONNECTIONS_OF_ADDRESS: "5", RECOVERY_THREADS: "9"})
    alter(at, str(at.config.node_id), {ADDRESSES: "10.0.0.8:2,::1:1", RECOVERY_THREADS: "4"})
    assert (limits.of_listener(False), limits.of_listener(True)) == (7, of_file)
    assert [limits.of_address(host) for host in ("10.0.0.9", "::ffff:10.0.0.8", "::1")] == [5, 2, 1]
    assert own.number(RECOVERY_THREADS, 2) == 4
    alter(at, "", {CONNECTIONS: "9999999", CONNECTIONS_OF_ADDRESS: None})
    assert limits.of_listener(False) == OF_DESCRIPTORS, "no more than there are descriptors"
    assert limits.of_address("10.0.0.9") == config.max_connections_per_ip


def test_before_there_is_a_node_the_file_counts(at: RealNode) -> None:
    limits = connection_limits(at.config, OF_DESCRIPTORS, OwnNotice())
    assert limits.of_listener(False) == min(at.config.max_connections, OF_DESCRIPTORS)
    assert limits.of_address("10.0.0.9") == at.config.max_connections_per_ip
