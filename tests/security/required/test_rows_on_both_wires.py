"""Every row of the table through the real handlers of a whole node, over gRPC and the lane.

Denied: the error of the row and nothing else, the same on both wires, and the same whether the resource exists or not.
Allowed: no denial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import format_uuid
from quorumlog.messages import admin, cluster, fetch, groups, produce, transactions
from quorumlog.messages.controller import EnvelopeRequest
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST as BY_TYPE
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.rpc.transport import Address, Connection, Listener, NotDelivered, OutcomeUnknown
from quorumlog.security.principal import ANONYMOUS
from quorumlog.security.required.need import (
    CLUSTER_CREATE,
    CLUSTER_DESCRIBE,
    TOPIC_CREATE,
    TOPIC_DESCRIBE,
    TOPIC_READ,
    Need,
)
from quorumlog.security.required.nodes_only import NODES_ONLY
from quorumlog.testing.waiting import wait_until
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog_storage.rules.isolation import Isolation
from tests.rules import rule
from tests.scenarios.asking import errors_in
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode, make_topic
from tests.security.required.cases import CASES, DENIALS, STRANGE, Names
from tests.security.required.scripted_rules import ScriptedRules

E = ErrorCode
NOT_ASKED = -(2**31)

MADE_S = 30.0  # for a coordinator on a busy machine


@dataclass
class World:
    node: RealNode
    rules: ScriptedRules
    connections: dict[str, Connection]
    there: Names
    absent: Names

    def ask(self, wire: str, request: Any) -> Any:
        return self.node.do(_call(self.connections[wire], request))


async def _call(connection: Connection, request: Any) -> Any:
    for _ in range(5):
        try:
            return await connection.call(request, CALL_MS)
        except NotDelivered:
            continue  # a busy machine: the node, which shares this loop, was not reached in time
    raise AssertionError(f"never delivered: {request}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    rules = ScriptedRules()
    node = RealNode(tmp_path_factory.mktemp("rights"), rules=rules)
    connections = {wire: node.connect(wire) for wire in (GRPC, LANE)}
    topic_id = node.do(make_topic(connections[GRPC], "there"))
    names = Names("there", topic_id, "group-there", "id-there")
    world = World(node, rules, connections, names, Names("blank", STRANGE, "group-blank", "id-blank"))
    _make_resources(world)
    yield world
    for connection in connections.values():
        node.do(connection.close())
    node.close()
    assert not node.crashes


def _make_resources(world: World) -> None:
    """A group with an offset, and a transactional id: other tests may have deleted them."""
    names = world.there
    _until_found(world, CASES[groups.OffsetCommitRequest].make(names))
    _until_found(world, produce.InitProducerIdRequest(transactional_id=names.transactional_id))


def _until_found(world: World, request: Any) -> None:
    key_type = 0 if isinstance(request, groups.OffsetCommitRequest) else 1
    key = request.group_id if key_type == 0 else request.transactional_id

    def is_made() -> bool:
        world.ask(GRPC, admin.FindCoordinatorRequest(key_type=key_type, keys=(key,)))
        return not errors_in(world.ask(GRPC, request))

    wait_until(is_made, MADE_S, f"{request} to be answered")


@pytest.fixture(autouse=True)
def _rules(world: World) -> Iterator[None]:
    world.rules.allow_all()
    yield
    world.rules.allow_all()


def _shown(answer: Any, names: Names) -> str:
    """The answer without what the request named."""
    text = repr(answer)
    for name, word in zip(names, ("TOPIC", "TOPIC_ID", "GROUP", "ID"), strict=True):
        text = text.replace(repr(name), word)
    return text


BOTH = [request_type for request_type in CASES if request_type in BY_REQUEST]
"""Kafka's protocol has the others not."""
ON_WIRES = [(GRPC, request_type) for request_type in CASES] + [(LANE, request_type) for request_type in BOTH]
each = pytest.mark.parametrize(("wire", "request_type"), ON_WIRES, ids=lambda one: getattr(one, "__name__", one))


@each
@rule("security 1.10")
def test_without_rights_a_client_hears_the_same_whether_it_exists_or_not(
    world: World, request_type: type, wire: str
) -> None:
    """Invariant 10; CVE-2023-32082, CVE-2023-50976: a row for each request."""
    case = CASES[request_type]
    world.rules.deny(lambda _need, _name: True)
    answer = world.ask(wire, case.make(world.there))
    assert set(errors_in(answer)) == ({case.denied} if case.denied is not None else set())
    if case.denied is not None:
        absent = world.ask(wire, case.make(world.absent))
        assert _told(_shown(answer, world.there)) == _told(_shown(absent, world.absent))
    assert world.rules.askers <= {(ANONYMOUS, "127.0.0.1")}


def _told(text: str) -> str:
    """Of the metadata that an answer tells of the cluster, its offset changes by itself."""
    return text.split(", metadata_offset=", maxsplit=1)[0] if text.startswith("MetadataResponse") else text


@pytest.mark.parametrize("request_type", BOTH, ids=lambda one: one.__name__)
@rule("security 1.11")
def test_a_denial_is_the_same_on_both_wires(world: World, request_type: type) -> None:
    """Invariant 11; CVE-2025-30215: the other way in asked for less."""
    case = CASES[request_type]
    world.rules.deny(lambda _need, _name: True)
    request = case.make(world.there)
    by_lane, by_grpc = world.ask(LANE, request), world.ask(GRPC, request)
    assert set(errors_in(by_lane)) == set(errors_in(by_grpc))


@each
def test_with_rights_nothing_is_denied(world: World, request_type: type, wire: str) -> None:
    world.rules.asked.clear()
    answer = world.ask(wire, CASES[request_type].make(world.there))
    assert not DENIALS & set(errors_in(answer)), answer


# --- what is left out


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_listings_leave_out(world: World, wire: str) -> None:
    _make_resources(world)
    requests = {
        cluster.MetadataRequest(all_topics=True): "there",
        admin.DescribeTopicPartitionsRequest(): "there",
        admin.ListGroupsRequest(): "group-there",
        transactions.ListTransactionsRequest(): "id-there",
    }
    for request, name in requests.items():
        world.rules.allow_all()
        assert name in repr(world.ask(wire, request))
        world.rules.deny(lambda need, name, listed=name: listed in name or need == CLUSTER_DESCRIBE)
        answer = world.ask(wire, request)
        assert repr(name) not in repr(answer)
        assert not errors_in(answer)


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_offsets_of_hidden_topics_are_left_out(world: World, wire: str) -> None:
    _make_resources(world)
    all_topics = groups.OffsetFetchRequest(groups=(groups.OffsetFetchGroup(group_id="group-there"),))
    assert "'there'" in repr(world.ask(wire, all_topics))
    world.rules.deny_needs([TOPIC_DESCRIBE])
    answer = world.ask(wire, all_topics)
    assert answer.groups[0].topics == ()
    assert not errors_in(answer)


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_page_never_names_a_hidden_topic(world: World, wire: str) -> None:
    for name in ("page-a", "page-b", "page-c"):
        world.node.do(_ensure(world.connections[GRPC], name))
    world.rules.deny_names("page-b")
    seen, cursor = [], None
    for _ in range(20):
        asked = admin.DescribeTopicPartitionsRequest(response_partition_limit=1, cursor=cursor)
        page = world.ask(wire, asked)
        assert "page-b" not in repr(page)
        seen += [topic.name for topic in page.topics]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert "page-a" in seen and "page-c" in seen


@pytest.mark.parametrize("wire", [GRPC, LANE])
@pytest.mark.parametrize("first", [0, 1, 9])
def test_no_page_is_shorter_for_a_hidden_topic(world: World, wire: str, first: int) -> None:
    """A page that loses a topic, and is not filled, tells that the topic is there: whoever names it in a cursor asks
    for it."""
    for name in ("page-a", "page-b", "page-c"):
        world.node.do(_ensure(world.connections[GRPC], name))
    world.rules.deny_names("page-b")

    def page(name: str, limit: int) -> Any:
        cursor = admin.PartitionCursor(topic_name=name, partition_index=first)
        asked = admin.DescribeTopicPartitionsRequest(response_partition_limit=limit, cursor=cursor)
        return world.ask(wire, asked)

    assert page("page-b", 1) == page("page-bb", 1)
    assert [topic.name for topic in page("page-b", 1).topics] == ["page-c"]
    assert [topic.name for topic in page("page-a", 2).topics][:2] == ["page-a", "page-c"]
    world.rules.deny(lambda need, _name: need == TOPIC_DESCRIBE)
    assert page("page-b", 1) == page("page-bb", 1) == admin.DescribeTopicPartitionsResponse()


async def _ensure(connection: Connection, name: str) -> None:
    topic = cluster.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    await connection.call(cluster.CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS), CALL_MS)


# --- what is told of rights


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_bits_of_operations(world: World, wire: str) -> None:
    """KIP-430: as Kafka tells them; without a question there are none."""
    query = (cluster.TopicQuery(name="there"),)
    asked = cluster.MetadataRequest(
        all_topics=False, topics=query, include_topic_authorized_operations=True,
        include_cluster_authorized_operations=False,
    )  # fmt: skip
    assert world.ask(wire, asked).topics[0].authorized_operations == 3576
    world.rules.deny_needs([TOPIC_READ])
    assert world.ask(wire, asked).topics[0].authorized_operations == 3576 - (1 << 3)
    not_asked = replace(asked, include_topic_authorized_operations=False)
    assert world.ask(wire, not_asked).topics[0].authorized_operations == NOT_ASKED
    of_cluster = cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert world.ask(wire, of_cluster).cluster_authorized_operations == 8096
    world.rules.deny_needs([CLUSTER_DESCRIBE])
    assert world.ask(wire, of_cluster).cluster_authorized_operations == 0
    of_group = groups.DescribeGroupsRequest(groups=("group-there",), include_authorized_operations=True)
    assert world.ask(wire, of_group).groups[0].authorized_operations == 3400


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_metadata_by_id_tells_no_name(world: World, wire: str) -> None:
    asked = cluster.MetadataRequest(
        all_topics=False, topics=(cluster.TopicQuery(topic_id=world.there.topic_id),), allow_auto_topic_creation=False
    )
    assert world.ask(wire, asked).topics[0].name == "there"
    world.rules.deny_names("there")
    answer = world.ask(wire, asked)
    assert "'there'" not in repr(answer)
    assert answer.topics[0].topic_id == world.there.topic_id, format_uuid(answer.topics[0].topic_id)
    assert errors_in(answer) == [E.TOPIC_AUTHORIZATION_FAILED]


# --- the replica's fetch, acks=0, long polls, sessions, streams


@pytest.mark.parametrize("wire", [GRPC, LANE])
@pytest.mark.parametrize("denied", [False, True])
@rule("security 1.14")
def test_no_client_fetches_as_a_replica(world: World, wire: str, denied: bool) -> None:
    """CVE-2018-1288: at each client listener, whatever the rules say."""
    if denied:
        world.rules.deny(lambda _need, _name: True)
    request: fetch.FetchRequest = CASES[fetch.FetchRequest].make(world.there)
    forged = replace(request, replica=fetch.ReplicaState(replica_id=1, broker_epoch=1))
    assert errors_in(world.ask(wire, forged)) == [E.CLUSTER_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_acks_0_ends_the_connection(world: World, wire: str) -> None:
    world.rules.deny_names("there")
    request: produce.ProduceRequest = replace(CASES[produce.ProduceRequest].make(world.there), acks=0)

    async def ended() -> None:
        connection = world.node.connect(wire)
        try:
            await connection.call(request, CALL_MS)
            with pytest.raises(OutcomeUnknown):
                await connection.call(replace(request, acks=1), CALL_MS)
        finally:
            await connection.close()

    world.node.do(ended())


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_long_poll_that_ends_after_a_denial_brings_nothing(world: World, wire: str) -> None:
    """Invariant 9."""
    request: fetch.FetchRequest = CASES[fetch.FetchRequest].make(world.there)
    waiting = replace(request, max_wait_ms=700, min_bytes=1_000_000)
    part = world.ask(wire, replace(request, max_wait_ms=0)).topics[0].partitions[0]
    assert len(part.records) > 0, "there is something to read"

    async def revoked_meanwhile() -> Any:
        poll = asyncio.ensure_future(world.connections[wire].call(waiting, CALL_MS))
        while not _waits(world):  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)
        world.rules.deny_names("there")
        return await poll

    answer = world.node.do(revoked_meanwhile())
    assert errors_in(answer) == [E.TOPIC_AUTHORIZATION_FAILED]
    assert bytes(answer.topics[0].partitions[0].records) == b""


def _waits(world: World) -> bool:
    broker = world.node.node.broker
    assert broker is not None
    return len(broker.data_plane.delayed.readable(Isolation.HIGH_WATERMARK)) > 0


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_session_ends_with_the_right_and_is_told(world: World, wire: str) -> None:
    request: fetch.FetchRequest = CASES[fetch.FetchRequest].make(world.there)
    begun = world.ask(wire, replace(request, session_epoch=0))
    assert begun.session_id != 0
    after = replace(request, topics=(), session_id=begun.session_id)
    assert not errors_in(world.ask(wire, replace(after, session_epoch=1)))
    world.rules.deny_names("there")
    refused = world.ask(wire, replace(after, session_epoch=2))
    assert errors_in(refused) == [E.FETCH_SESSION_ID_NOT_FOUND]
    again = world.ask(wire, replace(request, session_epoch=0))
    assert errors_in(again) == [E.TOPIC_AUTHORIZATION_FAILED] and again.session_id == 0
    world.rules.allow_all()
    assert not errors_in(world.ask(wire, replace(request, session_epoch=0)))


def test_each_message_of_a_stream_is_judged(world: World) -> None:
    begin = CASES[fetch.FetchChunkRequest].make(world.there)

    async def chunks() -> list[Any]:
        connection = world.node.connect(GRPC)
        try:
            first = await connection.call(begin, CALL_MS)
            world.rules.deny_names("there")
            return [
                first,
                await connection.call(begin, CALL_MS),
                await connection.call(fetch.FetchChunkRequest(), CALL_MS),
            ]
        finally:
            await connection.close()

    first, denied, behind = world.node.do(chunks())
    assert len(first.records) > 0
    assert errors_in(denied) == [E.TOPIC_AUTHORIZATION_FAILED] and not bytes(denied.records)
    assert not bytes(behind.records)


# --- the controller decides again


@pytest.mark.parametrize("wire", [GRPC, LANE])
@rule("security 1.12")
def test_the_controller_decides_again_for_the_client(world: World, wire: str) -> None:
    """Invariant 12. Its rules are newer here than those of the broker, which has let the request pass."""
    asked: list[Need] = []

    def later(need: Need, name: str) -> bool:
        asked.append(need)
        return name == "new" and asked.count(need) > 1

    world.rules.askers.clear()
    request = cluster.CreateTopicsRequest(
        topics=(cluster.CreatableTopic(name="new"),), timeout_ms=CALL_MS, validate_only=True
    )
    world.rules.deny(lambda need, name: need == CLUSTER_CREATE or later(need, name))
    answer = world.ask(wire, request)
    assert errors_in(answer) == [E.TOPIC_AUTHORIZATION_FAILED]
    assert asked.count(TOPIC_CREATE) == 2, "the broker asked, then the controller"
    assert world.rules.askers == {(ANONYMOUS, "127.0.0.1")}


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_what_is_passed_on_comes_back_whole(world: World, wire: str) -> None:
    request = cluster.CreateTopicsRequest(
        topics=(cluster.CreatableTopic(name="there"),), timeout_ms=CALL_MS, validate_only=True
    )
    answer = world.ask(wire, request)
    assert errors_in(answer) == [E.TOPIC_ALREADY_EXISTS] and "there" in answer.topics[0].error_message
    quorum_seen = world.ask(wire, CASES[DescribeQuorumRequest].make(world.there))
    assert quorum_seen.leader_id == 1 and quorum_seen.voters


def test_a_controller_takes_no_call_of_a_node_for_a_client(world: World) -> None:
    """Invariants 13 and 14: neither a client that is called a node, nor a node's call in a client's name."""
    handle = world.node.node._handle_internal
    for sealed in (
        EnvelopeRequest(
            principal_type="Node", principal_name="1", client_host="", client_id="",
            method=BY_TYPE[DescribeQuorumRequest].method.path, request=b"",
        ),
        *(
            EnvelopeRequest(
                principal_type="User", principal_name="alice", client_host="", client_id="",
                method=BY_TYPE[request].method.path, request=b"",
            )
            for request in NODES_ONLY
        ),
    ):  # fmt: skip
        with pytest.raises(ApiError) as refused:
            world.node.do(_awaited(handle, sealed))
        assert refused.value.code is E.CLUSTER_AUTHORIZATION_FAILED


async def _awaited(handle: Any, request: Any) -> Any:
    listener = Listener(name="INTERNAL", address=Address("h", 1), internal=True)
    return await handle(PeerContext(listener, Caller("broker-1")), request)
