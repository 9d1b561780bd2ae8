"""A client that means one cluster asks nothing of a node of another one, whose address it was given."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import WrongCluster
from quorumlog.client.options import CommonOptions
from quorumlog.messages.cluster import CreateTopicsRequest, MetadataRequest, MetadataResponse
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown


def asked(cluster: FakeCluster, ask: Callable[[AsyncAdmin], Awaitable[Any]], **options: Any) -> Any:
    async def scenario() -> Any:
        given: dict[str, Any] = {"bootstrap_servers": "b1,b2,b3", **options}
        async with AsyncAdmin(cluster, clock=TestClock(), rng=random.Random(1), **given) as admin:  # type: ignore[arg-type]
            return await ask(admin)

    return asyncio.run(scenario())


def kinds(cluster: FakeCluster, node: int) -> set[type]:
    return {type(request) for asked_node, request in cluster.requests if asked_node == node}


def test_another_cluster_is_refused_with_both_ids() -> None:
    cluster = FakeCluster()
    cluster.cluster_ids = dict.fromkeys(cluster.brokers, "theirs")
    with pytest.raises(WrongCluster, match=r"b\d:9092 belongs to cluster theirs, not to cluster ours"):
        asked(cluster, lambda admin: admin.create_topic("new", 1), cluster_id="ours")
    assert cluster.created == []
    assert {type(request) for _, request in cluster.requests} == {MetadataRequest}


def test_nodes_of_another_cluster_are_passed_over() -> None:
    cluster = FakeCluster()
    cluster.cluster_ids = {1: "theirs", 2: "ours", 3: "ours"}
    asked(cluster, lambda admin: admin.create_topic("new", 1), cluster_id="ours")
    assert cluster.created == ["new"]
    assert kinds(cluster, 1) <= {MetadataRequest}


def test_a_node_that_was_never_asked_is_refused_where_it_is_called_by_its_id() -> None:
    cluster = FakeCluster()
    cluster.cluster_ids = {1: "ours", 2: "theirs", 3: "ours"}

    async def scenario() -> None:
        link = Link(
            cluster,  # type: ignore[arg-type]
            CommonOptions(bootstrap_servers="b1", cluster_id="ours"),
            clock=TestClock(),
            rng=random.Random(1),
        )
        await link.refresh([])
        with pytest.raises(WrongCluster):
            await link.call_node(2, InitProducerIdRequest())

    asyncio.run(scenario())
    assert kinds(cluster, 2) == {MetadataRequest}


@pytest.mark.parametrize("error", [NotDelivered("refused"), OutcomeUnknown("broke")])
def test_a_node_that_cannot_say_its_id_was_not_asked(error: Exception) -> None:
    """So that a change is tried elsewhere as if nothing had happened, and no doubt remains."""
    cluster = FakeCluster()
    cluster.cluster_ids = dict.fromkeys(cluster.brokers, "ours")
    cluster.fault(MetadataRequest, lambda _: error)
    asked(cluster, lambda admin: admin.create_topic("new", 1), cluster_id="ours")
    assert sum(isinstance(request, CreateTopicsRequest) for _, request in cluster.requests) == 1


class SlowToSay(FakeCluster):
    """Calls come in while a node is asked for its cluster's id."""

    async def _MetadataRequest(self, node: int, request: MetadataRequest) -> MetadataResponse:
        for _ in range(5):
            await asyncio.sleep(0)
        return await super()._MetadataRequest(node, request)


def test_calls_keep_their_order_around_the_proof() -> None:
    cluster = SlowToSay()
    cluster.cluster_ids = dict.fromkeys(cluster.brokers, "ours")

    async def scenario() -> None:
        link = Link(
            cluster,  # type: ignore[arg-type]
            CommonOptions(bootstrap_servers="b1", cluster_id="ours"),
            clock=TestClock(),
            rng=random.Random(1),
        )
        await link.refresh([])

        async def call(number: int) -> None:
            await link.call_node(2, InitProducerIdRequest(transaction_timeout_ms=number))

        early = [asyncio.create_task(call(number)) for number in range(3)]
        late: list[asyncio.Task[None]] = []
        for number in range(3, 30):
            await asyncio.sleep(0)
            late.append(asyncio.create_task(call(number)))
        await asyncio.gather(*early, *late)

    asyncio.run(scenario())
    sent = [request.transaction_timeout_ms for node, request in cluster.requests if node == 2 and kind(request)]
    assert sent == sorted(sent) and len(sent) == 30


def kind(request: Any) -> bool:
    return isinstance(request, InitProducerIdRequest)


def test_without_an_id_nothing_more_is_asked() -> None:
    cluster = FakeCluster()
    asked(cluster, lambda admin: admin.create_topic("new", 1))
    assert [type(request) for _, request in cluster.requests] == [CreateTopicsRequest]
