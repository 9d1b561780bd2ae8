"""Throttled replication between production brokers on virtual time: which bytes pass, what it costs in fetches, whom it
does not concern, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from quorumlog.configs.throttle import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.replicas.throttle import BURST_MS, DEBT_MS, LONGEST_DELAY_MS
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE

VALUE = "v" * 1_000
BATCH_BYTES = len(batch(VALUE))
RATE = 20 * BATCH_BYTES  # bytes per second
LEADER, IN_SYNC, BEHIND = 1, 2, 3
LONGEST_WAIT_MS = 500  # of a fetch at the leader
SIDES = {"leader": {LEADER: LEADER_RATE}, "follower": {BEHIND: FOLLOWER_RATE}}


def set_rates(cluster: ReplicaCluster, rates: Mapping[int, str], rate: int | None) -> None:
    """rates: by broker. rate: None removes them."""
    text = None if rate is None else str(rate)
    records = [
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=str(node), name=name, value=text)
        for node, name in rates.items()
    ]
    cluster.commit(*records)


def cluster_with_a_follower_behind(
    rates: Mapping[int, str], rate: int | None, *, partitions: int = 1, batches: int = 200
) -> ReplicaCluster:
    """The follower is down, and out of the ISR; the throttle has been on for long."""
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=partitions, **{LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"})
    for index in range(partitions):
        cluster.wait_led(LEADER, index)
    cluster.kill(BEHIND)
    for index in range(partitions):
        cluster.elect(LEADER, isr=(LEADER, IN_SYNC), index=index)
        cluster.wait_led(LEADER, index)
        for _ in range(batches // partitions):
            cluster.produce(LEADER, VALUE, index=index)
    if rate is not None:
        set_rates(cluster, rates, rate)
    cluster.run_for(5_000)
    return cluster


def copied_bytes(cluster: ReplicaCluster) -> int:
    """All batches have one size."""
    logs = [replica.log for replica in cluster.nodes[BEHIND].replicas.values()]
    return BATCH_BYTES * sum(log.end_offset for log in logs if log is not None)


@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("side", SIDES)
def test_a_replica_that_catches_up_gets_the_rate_and_not_more(side: str, partitions: int) -> None:
    """On the leader's side not even in its first second. A follower can take one response too much, as in Kafka."""
    cluster = cluster_with_a_follower_behind(SIDES[side], RATE, partitions=partitions)
    limit = RATE * BURST_MS // 1000 + BATCH_BYTES if side == "leader" else 200 * BATCH_BYTES
    cluster.start(BEHIND)
    seconds = 5
    for tenth in range(1, seconds * 10 + 1):
        cluster.run_for(100)
        assert copied_bytes(cluster) <= limit + RATE * tenth / 10, f"after {tenth * 100} ms"
    if side == "leader":
        assert copied_bytes(cluster) >= 0.8 * RATE * seconds


def test_a_follower_waits_until_what_it_took_too_much_is_paid_for() -> None:
    cluster = cluster_with_a_follower_behind(SIDES["follower"], RATE)
    cluster.start(BEHIND)
    cluster.run_for(500)
    first = copied_bytes(cluster)
    assert first == 200 * BATCH_BYTES, "one response"
    cluster.kill(IN_SYNC)
    cluster.elect(LEADER, isr=(LEADER,))
    cluster.wait_led(LEADER)
    for _ in range(10):
        cluster.produce(LEADER, VALUE)
    cluster.run_for((first - RATE) * 1000 // RATE - 1_000)
    assert copied_bytes(cluster) == first
    cluster.run_for(3_000)
    assert copied_bytes(cluster) == first + 10 * BATCH_BYTES


@pytest.mark.parametrize("side", SIDES)
def test_a_replica_that_is_held_does_not_spin(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by its own fetches, nor when its partition grows."""
    cluster = cluster_with_a_follower_behind(SIDES[side], 0)
    cluster.start(BEHIND)
    cluster.run_for(1_000)
    asked = count_requests_of(cluster, BEHIND, monkeypatch)
    seconds = 5
    for _ in range(seconds * 10):
        cluster.run_for(80)
        cluster.produce(LEADER, VALUE)
    assert copied_bytes(cluster) == 0
    assert asked() <= seconds * 1_000 / LONGEST_WAIT_MS * 2 + 2


def count_requests_of(cluster: ReplicaCluster, follower: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    leader: Node = cluster.nodes[LEADER]
    seen: list[int] = []
    begin = leader.sessions.begin

    def counted(request: Any, now_ms: int) -> Any:
        if request.replica is not None and request.replica.replica_id == follower:
            seen.append(now_ms)
        return begin(request, now_ms)

    monkeypatch.setattr(leader.sessions, "begin", counted)
    return lambda: len(seen)


@pytest.mark.parametrize("side", ["leader", "follower in sync"])
def test_a_replica_in_sync_is_never_held_and_producers_do_not_wait(side: str) -> None:
    rates = {LEADER: LEADER_RATE} if side == "leader" else {IN_SYNC: FOLLOWER_RATE}
    cluster = cluster_with_a_follower_behind(rates, 0)
    began_ns = cluster.scheduler.now_ns
    for _ in range(20):
        cluster.produce(LEADER, VALUE)  # acks=all
    assert cluster.scheduler.now_ns - began_ns < 1_000_000_000
    assert cluster.core(LEADER).high_watermark == 220


def test_another_partition_of_the_same_fetch_is_not_held_up() -> None:
    """Partition 1 is not named; it is fetched by the same requests."""
    cluster = cluster_with_a_follower_behind(SIDES["leader"], 0, partitions=2)
    cluster.commit(
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=LEADER_REPLICAS, value=f"0:{LEADER}")
    )
    cluster.start(BEHIND)
    cluster.run_for(1_500)
    assert copied_bytes(cluster) == 100 * BATCH_BYTES
    assert cluster.nodes[BEHIND].log(index=1).end_offset == 100
    cluster.produce(LEADER, VALUE, index=1)
    cluster.run_for(50)
    assert cluster.nodes[BEHIND].log(index=1).end_offset == 101


@pytest.mark.parametrize("removed", ["rate", "replicas"])
@pytest.mark.parametrize("side", SIDES)
def test_when_the_throttle_goes_the_replica_catches_up_and_joins(side: str, removed: str) -> None:
    cluster = cluster_with_a_follower_behind(SIDES[side], 0)
    cluster.start(BEHIND)
    cluster.run_for(3_000)
    assert copied_bytes(cluster) == 0
    if removed == "rate":
        set_rates(cluster, SIDES[side], None)
    else:
        names = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
        cluster.commit(
            *[ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=name, value=None) for name in names]
        )
    cluster.run_for(2 * LONGEST_DELAY_MS)
    assert copied_bytes(cluster) == 200 * BATCH_BYTES
    assert cluster.image.partition(TOPIC_ID, 0).isr == (LEADER, IN_SYNC, BEHIND)  # type: ignore[union-attr]


def test_traffic_in_sync_above_the_rate_holds_back_for_seconds_after_it_not_longer() -> None:
    """It counts, as in Kafka; but a newcomer does not wait for hours because of it."""
    cluster = cluster_with_a_follower_behind(SIDES["leader"], RATE)
    for _ in range(40):
        cluster.produce(LEADER, *[VALUE] * 50)
    cluster.start(BEHIND)
    cluster.run_for(DEBT_MS - 2_000)
    assert copied_bytes(cluster) == 0
    cluster.run_for(4_000)
    assert copied_bytes(cluster) > 0
