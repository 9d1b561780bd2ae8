"""Consumers that name their rack read from a replica there (KIP-392): on simulated machines."""

from __future__ import annotations

from typing import Any

import pytest
from replica_cluster import LAG_MS, TOPIC_ID, ReplicaCluster, values_of
from transactional_batches import in_transaction, verified

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.isolation import READ_COMMITTED
from quorumlog_broker.fetch.near_replicas import RackReader
from quorumlog_broker.fetch.targets import FetchTarget

RACKS = {1: "north", 2: "south", 3: "south"}
SOUTH, NORTH, ELSEWHERE = (RackReader(rack, "INTERNAL") for rack in ("south", "north", "east"))
WAIT_MS = 4_000


def led_cluster(racks: dict[int, str] | None = None, **topic: Any) -> ReplicaCluster:
    """Broker 1 leads, and the others have fetched all that it has."""
    cluster = ReplicaCluster(racks=RACKS if racks is None else racks)
    cluster.create_topic(**topic)
    cluster.wait_led(1)
    cluster.produce(1, "a", "b")
    cluster.run_for(1_000)
    return cluster


def read(cluster: ReplicaCluster, node: int, reader: RackReader | None, **options: Any) -> FetchPartitionResponse:
    return cluster.fetch(node, options.pop("offset", 0), reader=reader, **options)


def values(answer: FetchPartitionResponse) -> list[str]:
    return values_of(bytes(answer.records))


# --- at the leader ---


def test_a_leader_elsewhere_sends_the_reader_to_a_replica_in_its_rack_at_once() -> None:
    cluster = led_cluster()
    began_ms = cluster.nodes[1].clock.now_ms()
    answer = read(cluster, 1, SOUTH, max_wait_ms=WAIT_MS, min_bytes=1 << 20)
    assert answer.preferred_read_replica == 3, "of two that hold the same, the one with the larger id, as in Kafka"
    assert (answer.error_code, bytes(answer.records), answer.high_watermark) == (0, b"", 2)
    assert cluster.nodes[1].clock.now_ms() - began_ms < WAIT_MS


@pytest.mark.parametrize("reader", [NORTH, ELSEWHERE, RackReader("south", "OTHER"), None])
def test_a_leader_serves_who_has_no_replica_nearer(reader: RackReader | None) -> None:
    """It is in the reader's rack itself, nobody is, whoever is has no address for the reader, or there is no rack."""
    answer = read(led_cluster(), 1, reader)
    assert (answer.preferred_read_replica, values(answer)) == (NO_NODE, ["a", "b"])


def test_without_the_selector_a_leader_sends_nobody() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.produce(1, "a")
    assert read(cluster, 1, SOUTH).preferred_read_replica == NO_NODE


def test_a_leader_sends_nobody_to_a_replica_outside_the_isr_or_without_the_position() -> None:
    cluster = led_cluster()
    cluster.elect(1, (1, 2))
    cluster.wait_led(1)
    cluster.run_for(1_000)
    assert read(cluster, 1, SOUTH).preferred_read_replica == 2, "3 has left the ISR"
    assert read(cluster, 1, SOUTH, offset=2).preferred_read_replica == 2
    assert read(cluster, 1, SOUTH, offset=3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_sends_nobody_to_a_replica_that_does_not_fetch_any_more() -> None:
    """It stays in the ISR while nothing is written. It would send each reader back, who would come again at once."""
    cluster = led_cluster({1: "north", 2: "south", 3: "east"})
    assert read(cluster, 1, SOUTH).preferred_read_replica == 2
    cluster.run_for(LAG_MS * 3)
    assert read(cluster, 1, SOUTH).preferred_read_replica == 2, "it fetches, though nothing is written"
    cluster.kill(2)
    cluster.run_for(LAG_MS * 3)
    assert 2 in cluster.core(1).isr_state.isr
    answer = read(cluster, 1, SOUTH)
    assert (answer.preferred_read_replica, values(answer)) == (NO_NODE, ["a", "b"])


# --- at a follower ---


@pytest.mark.parametrize("node", [2, 3])
def test_a_follower_serves_a_reader_that_names_its_rack(node: int) -> None:
    answer = read(led_cluster(), node, SOUTH)
    assert (answer.error_code, values(answer), answer.high_watermark) == (0, ["a", "b"], 2)


def test_a_follower_serves_nobody_without_a_rack() -> None:
    answer = read(led_cluster(), 2, None)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is not None and answer.current_leader.leader_id == 1


def test_a_follower_gives_nothing_that_is_not_replicated() -> None:
    """Its log has more than its high watermark."""
    cluster = led_cluster()
    cluster.kill(3)
    cluster.produce(1, "c", acks=1)
    cluster.run_for(200)
    assert cluster.nodes[2].log_values() == ["a", "b", "c"], "3 is in the ISR and has not got it"
    answer = read(cluster, 2, SOUTH)
    assert (values(answer), answer.high_watermark) == (["a", "b"], 2)


def test_a_reader_that_waits_at_a_follower_is_woken_by_its_high_watermark() -> None:
    cluster = led_cluster()
    node = cluster.nodes[2]
    target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=2, max_bytes=1 << 20))
    params = FetchParams(WAIT_MS, 1, 1 << 20, reader=SOUTH)
    answers: list[FetchPartitionResponse] = []

    async def wait() -> None:
        responses, _ = await node.fetch_path.fetch(FetchContext((target,), None), params)
        answers.extend(responses)

    waiting = node.loop.create_task(wait())
    cluster.run_for(100)
    assert not waiting.done()
    cluster.produce(1, "c")
    cluster.run_for(1_000)
    assert waiting.done() and values(answers[0]) == ["c"]


def test_a_reader_of_committed_records_reads_to_the_followers_last_stable_offset() -> None:
    cluster = led_cluster()
    verified(cluster, in_transaction(7, 0, "open"))
    cluster.produce(1, "behind")
    cluster.run_for(1_000)
    answer = read(cluster, 2, SOUTH, isolation_level=READ_COMMITTED)
    assert (values(answer), answer.last_stable_offset, answer.high_watermark) == (["a", "b"], 2, 4)
    assert values(read(cluster, 2, SOUTH)) == ["a", "b", "open", "behind"]


def test_a_follower_that_left_the_isr_sends_its_readers_back() -> None:
    cluster = led_cluster()
    cluster.alter_answer = ErrorCode.INELIGIBLE_REPLICA  # it may not come back
    cluster.elect(1, (1, 3))
    cluster.run_for(1_000)
    answer = read(cluster, 2, SOUTH)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is not None and answer.current_leader.leader_id == 1


def test_a_follower_that_hears_nothing_from_its_leader_sends_its_readers_back() -> None:
    cluster = led_cluster()
    cluster.kill(1)
    assert values(read(cluster, 2, SOUTH)) == ["a", "b"], "its leader may be back at once"
    cluster.run_for(LAG_MS + 1_000)
    assert read(cluster, 2, SOUTH).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_reader_of_an_older_leadership_is_told_so_by_a_follower() -> None:
    cluster = led_cluster()
    cluster.elect(3, (1, 2, 3))
    cluster.wait_led(3)
    cluster.run_for(1_000)
    assert read(cluster, 2, SOUTH, current_leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert values(read(cluster, 2, SOUTH, current_leader_epoch=1)) == ["a", "b"]
