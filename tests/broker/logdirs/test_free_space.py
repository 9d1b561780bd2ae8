"""The free-space reserve: when producers are refused, what goes on meanwhile, and when they may go on."""

from __future__ import annotations

import errno
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, fail_writes_of, next_generation

from jepsen.sim.machine.disk_faults import no_faults
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.reserve import RESERVE_MAX_BYTES, reserve_bytes
from quorumlog_broker.logdirs.free_space import FreeSpace
from tests.rules import rule

GIB = 1 << 30
CASES = [
    ("a large disk", 1_000 * GIB, None, GIB),
    ("a small disk", 10 * GIB, None, 10 * GIB // 20),
    ("as set", 10 * GIB, 5_000, 5_000),
    ("none", 10 * GIB, 0, 0),
]


@pytest.mark.parametrize(("total", "setting", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reserve_bytes(total: int, setting: int | None, want: int) -> None:
    assert reserve_bytes(total, setting) == want <= max(RESERVE_MAX_BYTES, want)


@rule("storage 7.16")
@given(st.integers(1, 1_000), st.lists(st.integers(0, 2_000), max_size=30))
def test_producers_stop_below_the_reserve_and_go_on_a_quarter_above_it(reserve: int, free: list[int]) -> None:
    space, is_short = FreeSpace(), False
    for left in free:
        if left < reserve:
            is_short = True
        elif left >= reserve + reserve // 4:
            is_short = False
        assert space.measured(left, reserve) == (is_short != space.is_short) or space.is_short == is_short
        assert space.is_short == is_short


def led_cluster() -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    return cluster


def give(node: Node, free_bytes: int) -> None:
    """From now on the node's disk has so much free space, of 100 MB."""
    node.disk.free_bytes = lambda _path: free_bytes  # type: ignore[method-assign]
    node.disk.total_bytes = lambda _path: 100_000_000  # type: ignore[method-assign]


def test_a_leader_that_is_short_of_space_refuses_producers_and_recovers_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = led_cluster()
    node = cluster.nodes[1]
    cluster.produce(1, "a")
    give(node, 4_999_999)
    with caplog.at_level(logging.INFO):
        cluster.run_for(1_000)
    assert "delete topics or records, shorten their retention, or enlarge the file system" in caplog.text
    for acks in (-1, 1, 0):
        with pytest.raises(ApiError) as refused:
            cluster.produce(1, "b", acks=acks)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR and refused.value.code.retriable
        assert "4,999,999 bytes of free space" in refused.value.message
    assert cluster.fetch(1, 0).error_code == ErrorCode.NONE

    async def delete() -> int:
        return await node.data_plane.delete_path.delete(TOPIC_ID, 0, 1, 5_000)

    assert node.run(delete()) == 1
    give(node, 5_500_000)
    cluster.run_for(1_000)
    with pytest.raises(ApiError):
        cluster.produce(1, "b")
    give(node, 6_250_000)
    with caplog.at_level(logging.INFO):
        cluster.run_for(1_000)
    assert cluster.produce(1, "c") == 1
    assert not node.failed and "producers may go on" in caplog.text


def test_a_follower_that_is_short_of_space_copies_on() -> None:
    cluster = led_cluster()
    give(cluster.nodes[2], 0)
    cluster.run_for(1_000)
    assert cluster.produce(1, "a") == 0
    cluster.run_for(500)
    assert cluster.nodes[2].log_values() == ["a"]


def test_a_write_that_finds_no_room_is_told_as_a_full_disk_until_the_directory_is_back() -> None:
    """A follower copies below the reserve, and another program may take the last byte between two measurements."""
    cluster = led_cluster()
    follower = cluster.nodes[2]
    fail_writes_of(follower, "/", errno.ENOSPC)
    cluster.produce(1, "a", acks=1)
    cluster.run_for(1_000)
    queue = next(iter(follower.data_plane.store.queues.values()))
    assert queue.space.is_short and not queue.is_usable
    queue.space.measured(1 << 40, 1)  # by a look that began before
    assert queue.space.is_short
    assert "bring it back with `quorumlog log-dirs online`" in queue.space.describe("/d")
    (told,) = follower.run(follower.data_plane.directory_report.describe())
    assert told.error_code and told.usable_bytes == 0 and told.total_bytes == queue.space.total_bytes > 0
    follower.disk.faults = no_faults
    follower.run(follower.data_plane.returns.take_back(next_generation(follower, queue.directory)))
    (after,) = follower.data_plane.store.queues.values()
    assert not after.space.is_short


def test_a_disk_that_fails_otherwise_is_not_full() -> None:
    cluster = led_cluster()
    fail_writes_of(cluster.nodes[2], "/")
    cluster.produce(1, "a", acks=1)
    cluster.run_for(1_000)
    node = cluster.nodes[2]
    (queue,), (told,) = node.data_plane.store.queues.values(), node.run(node.data_plane.directory_report.describe())
    assert not queue.is_usable and not queue.space.is_short and told.error_code and told.usable_bytes == -1
