"""Our clients by gRPC at a protected node: who may log in on the lane does the same there, with the same protection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from protected_node import CERTIFIED, GRPC_CERTIFIED, LOGINS, SECURE, USER, ProtectedNode, token

from quorumlog.client.real_edges import admin, consumer, joint, make_transport, producer, security_of
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.messages.joint import AbortJointRequest, BeginJointRequest, ListJointRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.transport import CanRest

WAYS = {"password": f"User:{USER}", "PLAIN": f"User:{USER}", "token": "User:ada", "certificate": "User:CN=ada"}
RECORDS = [b"%d" % number for number in range(50)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("node"))
    yield made
    made.close()
    assert not made.crashes


@pytest.fixture
def node(shared: ProtectedNode) -> ProtectedNode:
    shared.came.clear()
    return shared


def options(node: ProtectedNode, way: str, *, by_grpc_address: bool = False, **more: Any) -> dict[str, Any]:
    listener = LOGINS if by_grpc_address else SECURE
    match way:
        case "password":
            return node.by_login(listener, **more)
        case "PLAIN":
            return node.by_login(listener, sasl_mechanism="PLAIN", **more)
        case "token":
            return node.by_token(token, listener, **more)
    return node.by_certificate(node.issue("ada"), GRPC_CERTIFIED if by_grpc_address else CERTIFIED, **more)


def of_wire(way: str) -> tuple[str, str]:
    """The lane's listener, and that of gRPC."""
    return (CERTIFIED, GRPC_CERTIFIED) if way == "certificate" else (SECURE, LOGINS)


async def writes(given: dict[str, Any], topic: str) -> None:
    async with admin(given) as client:
        await client.create_topic(topic, partitions=1, replication=1)
    async with producer(given) as sender:
        for value in RECORDS:
            await (await sender.send(topic, value))


async def reads(given: dict[str, Any], topic: str) -> list[bytes | None]:
    async with consumer(given) as reader:
        await reader.assign_topic(topic)
        found: list[bytes | None] = []
        while len(found) < len(RECORDS):
            found += [record.value for record in await reader.poll(timeout_ms=5_000)]
    return found


@pytest.mark.parametrize("by_grpc_address", [False, True], ids=["found by the lane", "found by gRPC"])
@pytest.mark.parametrize("way", WAYS)
def test_records_go_round_by_grpc(node: ProtectedNode, way: str, by_grpc_address: bool) -> None:
    given = options(node, way, by_grpc_address=by_grpc_address, transport="grpc")
    topic = f"round-{way}-{by_grpc_address}"

    async def scenario() -> None:
        await writes(given, topic)
        assert await reads(given, topic) == RECORDS

    node.do(scenario())
    lane, by_grpc = of_wire(way)
    made = node.requests(by_grpc)
    assert {"CreateTopics", "Produce", "Fetch", "Metadata"} <= set(made)
    assert set().union(*made.values()) == {WAYS[way]}
    assert node.requests(lane) == {}


@pytest.mark.parametrize("way", WAYS)
def test_only_what_the_lane_does_not_carry_goes_by_grpc(node: ProtectedNode, way: str) -> None:
    """A password is shown by gRPC as it is, and by SCRAM it is not."""
    given = options(node, way)
    topic = f"auto-{way}"

    async def scenario() -> None:
        await writes(given, topic)
        assert await reads(given, topic) == RECORDS
        lane, by_grpc = of_wire(way)
        assert {"CreateTopics", "Produce", "Fetch"} <= set(node.requests(lane))
        assert node.requests(by_grpc) == {}
        assert await reads({**given, "stream_chunks": True}, topic) == RECORDS
        assert node.requests(by_grpc) == {"FetchChunk": {WAYS[way]}}

    node.do(scenario())


def test_a_connection_is_left_to_the_next_reader(node: ProtectedNode) -> None:
    """As executors of Spark keep them: what a caller leaves behind ends, and both wires go on."""

    async def scenario() -> None:
        transport = make_transport("auto", security_of(options(node, "password")))
        connection = transport.connect(node.address(SECURE), internal=False)
        requests = (MetadataRequest(all_topics=True), ListJointRequest(), FetchChunkRequest())
        for request in (*requests, *requests):
            answer = await connection.call(request, 5_000)
            assert type(answer) is BY_REQUEST[type(request)].method.response
            assert isinstance(connection, CanRest) and connection.rest()
        await connection.close()

    node.do(scenario())
    assert node.requests(LOGINS).keys() == {"ListJoint", "FetchChunk"}


@pytest.mark.parametrize("way", WAYS)
def test_joint_transactions(node: ProtectedNode, way: str) -> None:
    given, group = options(node, way), f"joint-{way}"

    async def scenario() -> None:
        async with joint(given) as client:
            begun = await client.begin(
                BeginJointRequest(group_id=group, location="/here", timeout_ms=60_000, run="r", sequence=0, token=b"t")
            )
            assert begun.transactional_id.startswith(f"joint:{group}:")
            await client.abort(AbortJointRequest(group_id=group, location="/here", sequence=0))
            assert group in [one.group_id for one in await client.list_groups()]

    node.do(scenario())
    _, by_grpc = of_wire(way)
    assert node.requests(by_grpc)["BeginJoint"] == {WAYS[way]}
