"""A client's quota of partitions that it makes and deletes: what is refused, what is charged, who is held back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from service_world import Bench, FakeContext

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import CreatePartitionsRequest, PartitionsOfTopic
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, TopicQuery
from quorumlog.proof.peer import Peer
from quorumlog.security.principal import Principal
from quorumlog.security.quota import mutations
from quorumlog.security.quota.entity import CONTROLLER_MUTATION_RATE
from quorumlog.security.quota.mutations import Limited, MutationUse
from quorumlog.security.quota.resolution import QuotaIndex, index_of

ADA = FakeContext(Principal("User", "ada"), "c")
BOB = FakeContext(Principal("User", "bob"), "c")
NODE_PEER = Peer(cluster_id="cluster", node_id=NodeId(2), incarnation_id=bytes(16))
NODE = FakeContext(Principal("Node", "2"), "broker-2", NODE_PEER)
INDEX: QuotaIndex = index_of([((("user", "ada"),), CONTROLLER_MUTATION_RATE, 2.0)])
REFUSED, NONE = ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE
BURST = 22


@pytest.fixture
def world() -> Iterator[Bench]:
    """A controller whose clients have used nothing, with a broker."""
    made = Bench(mutations=MutationUse(lambda: INDEX))
    made.do(lambda: made.driver.lead(1))
    made.start_broker(NodeId(1))
    yield made
    made.loop.kill()
    killed_coroutines.empty()


def create(*sizes: int, names: str = "abcdefgh", **fields: Any) -> CreateTopicsRequest:
    wanted = tuple(
        CreatableTopic(name=name, num_partitions=size, replication_factor=1)
        for name, size in zip(names, sizes, strict=False)
    )
    return CreateTopicsRequest(topics=wanted, timeout_ms=1_000, **fields)


def ask(world: Bench, request: Any, who: FakeContext = ADA) -> tuple[list[int], int]:
    """The codes of its topics, and for how many ms the client is held back."""
    response = world.run(world.ask(request, who))
    results = response.results if isinstance(request, CreatePartitionsRequest) else response.topics
    return [one.error_code for one in results], response.throttle_time_ms


def test_a_strict_request_is_refused_topic_by_topic_while_there_is_a_debt(world: Bench) -> None:
    response = world.run(world.ask(create(20, 6, 1), ADA))
    assert [topic.error_code for topic in response.topics] == [NONE, NONE, REFUSED]
    assert response.throttle_time_ms == 2_000  # (26 - BURST) / 2 s
    assert "try again in 2000 ms" in response.topics[2].error_message
    assert sorted(world.service.tip.topic_ids) == ["a", "b"]
    world.wait(2_000)
    assert ask(world, create(1, names="c")) == ([NONE], 0)


GROWTH = (PartitionsOfTopic(name="x", count=4 + BURST + 1), PartitionsOfTopic(name="y", count=5))
ASKED: dict[str, tuple[int, Any]] = {  # what was used before, and a request whose first part leaves a debt of one
    "topics": (0, create(BURST + 1, 1)),
    "partitions": (0, CreatePartitionsRequest(topics=GROWTH, timeout_ms=1_000)),
    "deletion": (
        BURST - 3,
        DeleteTopicsRequest(topics=(TopicQuery(name="y"), TopicQuery(name="z")), timeout_ms=1_000),
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_all_three_are_charged_by_partitions(world: Bench, kind: str) -> None:
    ask(world, create(4, 4, 4, names="xyz"), NODE)
    before, asked = ASKED[kind]
    if before:
        assert ask(world, create(before, names="q")) == ([NONE], 0)
    assert ask(world, asked) == ([NONE, REFUSED], 500)


def test_an_older_client_gets_all_and_is_held_back_after(world: Bench) -> None:
    assert ask(world, create(26, 2, takes_throttling=False)) == ([NONE, NONE], 3_000)
    assert ask(world, create(1, names="c")) == ([REFUSED], 3_000)


def test_it_is_the_clients_own_quota_that_counts(world: Bench) -> None:
    """Not that of another client, and not one of the node that passes the request on."""
    assert ask(world, create(100), NODE) == ([NONE], 0)
    assert ask(world, create(100, names="b"), BOB) == ([NONE], 0)
    assert ask(world, create(BURST + 1, 1, names="cd")) == ([NONE, REFUSED], 500)
    assert ask(world, create(1, names="d"), BOB) == ([NONE], 0)


def test_what_is_refused_for_another_reason_costs_nothing_and_a_trial_does(world: Bench) -> None:
    """As in Kafka, which charges `validate_only`."""
    assert ask(world, create(0)) == ([ErrorCode.INVALID_PARTITIONS], 0)
    assert ask(world, create(BURST + 1, validate_only=True)) == ([NONE], 0)
    assert ask(world, create(100, 0)) == ([REFUSED, ErrorCode.INVALID_PARTITIONS], 500)
    assert not world.service.tip.topic_ids


def test_a_topic_is_charged_once_however_often_its_places_are_found() -> None:
    permits = MutationUse(lambda: INDEX).permits("ada", "c", 0, strict=True)
    assert permits is not None
    asked = [("t", BURST), ("t", BURST), ("t", BURST), ("u", 2), ("v", 1)]
    assert [refused(permits, name, partitions) for name, partitions in asked] == [False] * 4 + [True]
    assert permits.wait_ms == 1_000


def refused(permits: Limited, topic: str, partitions: int) -> bool:
    try:
        permits.spend(topic, partitions, 0)
    except ApiError as error:
        assert error.code is REFUSED
        return True
    return False


@pytest.mark.parametrize(("limit", "codes"), [(1.7976931348623157e308, [NONE, NONE]), (5e-324, [NONE, REFUSED])])
def test_a_quota_at_the_ends_of_doubles_stops_no_controller(limit: float, codes: list[int]) -> None:
    use = MutationUse(lambda: index_of([((("user", "ada"),), CONTROLLER_MUTATION_RATE, limit)]))
    bench = Bench(mutations=use)
    try:
        bench.do(lambda: bench.driver.lead(1))
        bench.start_broker(NodeId(1))
        assert ask(bench, create(1, 1))[0] == codes
    finally:
        bench.loop.kill()
        killed_coroutines.empty()


def test_buckets_that_are_full_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "MAX_BUCKETS", 10)
    index = index_of([((("client-id", None),), CONTROLLER_MUTATION_RATE, 1.0)])
    use = MutationUse(lambda: index)
    for number in range(50):
        permits = use.permits("", f"c{number}", number, strict=True)
        assert permits is not None
        permits.spend("t", 12, number)
    assert len(use) == 10
    assert use.permits("", "new", 30_000, strict=True) is not None and len(use) == 1
    assert MutationUse(lambda: INDEX).permits("bob", "c", 0, strict=True) is None
