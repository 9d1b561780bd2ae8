"""Moves of replicas between log directories: under load, cancelled, replaced, cut off by crashes and failing disks."""

from __future__ import annotations

import asyncio

import pytest
from moves_world import KEY, MovingCluster
from replica_cluster import TOPIC_ID, batch, fail_writes_of, next_generation

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation, no_faults
from quorumlog.configs.throttle import MOVE_RATE
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch
from quorumlog_broker.moves.progress import Phase, Rate, eta_s
from quorumlog_quorum.metadata.image import BROKER_RESOURCE
from tests.rules import rule

SMALL = {"segment_bytes": "1048576"}


def moving_cluster(values: int = 200, **settings: object) -> MovingCluster:
    cluster = MovingCluster(**settings)  # type: ignore[arg-type]
    cluster.create_topic(**SMALL)
    cluster.wait_led(1)
    for number in range(values):
        cluster.produce(1, f"v{number}", "x" * 200)
    cluster.run_for(300)
    return cluster


def keyed_cluster() -> MovingCluster:
    cluster = MovingCluster()
    cluster.create_topic(**SMALL, cleanup_policy="compact")
    cluster.wait_led(1)
    for number in range(200):
        record = Record(0, 1_700_000_000_000, f"k{number % 10}".encode(), b"x" * 200, ())
        cluster.produce_batch(1, encode_batch([record]))
    cluster.run_for(300)
    return cluster


def values(count: int) -> list[str]:
    return [value for number in range(count) for value in (f"v{number}", "x" * 200)]


def moved(cluster: MovingCluster, node_id: int, path: str) -> bool:
    return cluster.path_of(node_id) == path and not cluster.nodes[node_id].data_plane.moves.under_way()


def names(cluster: MovingCluster, node_id: int, path: str) -> list[str]:
    return [name for name in cluster.nodes[node_id].disk.list(path) if name.startswith("t-0")]


@pytest.mark.parametrize("node_id", [1, 2], ids=["leader", "follower"])
def test_a_replica_moves_while_it_is_written_to(node_id: int) -> None:
    cluster = moving_cluster()
    before, target = cluster.path_of(node_id), cluster.other(node_id)
    cluster.move(node_id, target)
    count = 200
    while not moved(cluster, node_id, target):
        cluster.produce(1, f"v{count}", "x" * 200)
        count += 1
        assert count < 2_000
    for _ in range(20):
        cluster.produce(1, f"v{count}", "x" * 200)
        count += 1
    cluster.run_for(1_000)
    for each in cluster.nodes.values():
        assert each.log_values() == values(count)
    assert names(cluster, node_id, target) == ["t-0"] and not cluster.nodes[node_id].disk.exists(f"{before}/t-0")
    registration = cluster.image.partition(*KEY)
    node = cluster.nodes[node_id]
    assert registration is not None and registration.directory(node_id) == node.directory_id(target)
    assert (registration.leader, registration.leader_epoch) == (1, 0) and set(registration.isr) == {1, 2, 3}


@rule("log 8.12")
def test_appends_that_come_during_the_exchange_keep_their_order() -> None:
    cluster = moving_cluster(20)
    node, target = cluster.nodes[1], cluster.other(1)
    replica = cluster.replica(1)
    held_up = 0

    async def write() -> list[int]:
        nonlocal held_up
        await node.data_plane.moves.alter("t", 0, target)
        pending = []
        while replica.queue is None or replica.queue.directory.path != target:
            held_up += replica.is_frozen
            pending.append(node.produce_path.append(TOPIC_ID, 0, batch(f"n{len(pending)}"), acks=-1, timeout_ms=5_000))
            await asyncio.sleep(0.001)
        for _ in range(10):
            pending.append(node.produce_path.append(TOPIC_ID, 0, batch(f"n{len(pending)}"), acks=-1, timeout_ms=5_000))
        return [(await one).base_offset for one in pending]

    offsets = node.run(write())
    assert held_up > 0, "no append came while the source was frozen"
    assert offsets == list(range(40, 40 + len(offsets)))
    cluster.run_for(500)
    for each in cluster.nodes.values():
        assert each.log_values()[40:] == [f"n{number}" for number in range(len(offsets))]


def test_the_same_target_again_changes_nothing_and_the_own_directory_cancels() -> None:
    cluster = moving_cluster()
    cluster.tells_controller = False
    home, target = cluster.path_of(1), cluster.other(1)
    moves = cluster.nodes[1].data_plane.moves
    cluster.move(1, target)
    (first,) = names(cluster, 1, target)
    cluster.move(1, target)
    assert names(cluster, 1, target) == [first]
    cluster.run_for(2_000)
    assert len(moves.under_way()) == 1, "it has moved before the controller knew"
    (one,) = moves.under_way()
    assert (one.phase, one.lag, one.source, one.target) == (Phase.ASSIGNING, 0, home, target)
    assert cluster.nodes[1].data_plane.placements.pending_assignments()[0].directory_id == cluster.nodes[
        1
    ].directory_id(target)
    cluster.move(1, home)
    cluster.run_for(500)
    assert moves.under_way() == [] and names(cluster, 1, target) == [] and cluster.path_of(1) == home
    assert cluster.replica(1).assigned in (cluster.nodes[1].directory_id(home),)
    cluster.produce(1, "after")
    cluster.tells_controller = True
    cluster.move(1, target)
    cluster.run_until(lambda: moved(cluster, 1, target))
    assert cluster.nodes[1].log_values() == [*values(200), "after"]


REFUSED = [
    ("t", 0, "/elsewhere", ErrorCode.LOG_DIR_NOT_FOUND),
    ("t", 9, "/d1", ErrorCode.REPLICA_NOT_AVAILABLE),
    ("none", 0, "/d1", ErrorCode.REPLICA_NOT_AVAILABLE),
]


@pytest.mark.parametrize(("topic", "index", "path", "code"), REFUSED)
def test_what_cannot_be_moved(topic: str, index: int, path: str, code: ErrorCode) -> None:
    cluster = moving_cluster(1)
    node = cluster.nodes[1]
    with pytest.raises(ApiError) as caught:
        node.run(node.data_plane.moves.alter(topic, index, path))
    assert caught.value.code is code
    assert node.data_plane.moves.under_way() == []


@pytest.mark.parametrize("path", ["/d0", "/d1"])
def test_a_replica_that_is_not_there_yet_is_made_where_it_was_asked_for(path: str) -> None:
    cluster = MovingCluster()
    for node in cluster.nodes.values():
        with pytest.raises(ApiError):
            node.run(node.data_plane.moves.alter("t", 0, path))
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.run_for(500)
    assert [cluster.path_of(node_id) for node_id in (1, 2, 3)] == [path] * 3


def test_nothing_moves_while_a_directory_is_offline() -> None:
    cluster = moving_cluster(5)
    target = cluster.other(1)
    node = cluster.nodes[1]
    fail_writes_of(node, target)
    with pytest.raises(ApiError) as caught:
        cluster.move(1, target)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.run_for(200)
    assert node.failed == [node.directory_id(target)] and cluster.path_of(1) != target
    with pytest.raises(ApiError) as caught:
        cluster.move(1, target)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.produce(1, "goes on")
    assert not cluster.core(1).failed


@pytest.mark.parametrize("delay_ms", [0, 2, 5, 10, 20, 40, 80, 160])
def test_a_target_that_fails_at_any_time_leaves_the_replica_with_everything(delay_ms: int) -> None:
    """Its disk fails in the middle of the copy, or of the exchange; after that, the replica lies in it."""
    cluster = moving_cluster()
    home, target = cluster.path_of(2), cluster.other(2)
    cluster.move(2, target)
    cluster.run_for(delay_ms)
    fail_writes_of(cluster.nodes[2], target)
    for number in range(200, 230):
        cluster.produce(1, f"v{number}", "x" * 200)
    cluster.run_for(2_000)
    core = cluster.core(2)
    if cluster.path_of(2) == home:
        assert not core.failed and cluster.nodes[2].log_values() == values(230)
        assert cluster.nodes[2].data_plane.moves.under_way() == []
    else:
        assert core.failed and not cluster.nodes[2].disk.exists(f"{home}/t-0")


def test_a_source_that_fails_as_it_leaves_and_comes_back_leaves_the_complete_copy() -> None:
    """It is renamed, durably, and then a line of it cannot be removed: the mark on the copy says what that is."""
    cluster = moving_cluster()
    node, home, target = cluster.nodes[2], cluster.path_of(2), cluster.other(2)
    has_left = False

    def plan(operation: Operation) -> Fault | None:
        nonlocal has_left
        has_left = has_left or (operation.kind, operation.path) == ("rename", f"{home}/t-0")
        fails = has_left and operation.kind == "pwritev" and operation.path.startswith(f"{home}/")
        return Fail() if fails else None

    node.disk.faults = plan
    cluster.move(2, target)
    cluster.run_for(2_000)
    assert node.failed == [node.directory_id(home)] and names(cluster, 2, home) != ["t-0"]
    node.disk.faults = no_faults
    queue = node.data_plane.store.queues[node.directory_id(home)]
    returned = next_generation(node, queue.directory)
    node.run(node.data_plane.returns.take_back(returned))
    cluster.run_until(lambda: cluster.path_of(2) == target and cluster.replica(2).log is not None)
    assert names(cluster, 2, target) == ["t-0"] and node.log_values() == values(200)


@pytest.mark.parametrize("delay_ms", [1, 5, 15, 30, 60, 90, 120, 200])
@pytest.mark.parametrize("ends", ["killed", "power", "stopped"])
def test_a_move_goes_on_after_a_restart(delay_ms: int, ends: str) -> None:
    cluster = moving_cluster()
    node, target = cluster.nodes[2], cluster.other(2)
    cluster.move(2, target)
    cluster.run_for(delay_ms)
    if ends == "stopped":
        in_order = node.run(node.data_plane.close())
        assert in_order == frozenset(node.paths)
        node.loop.kill()
    elif ends == "power":
        node.cut_power()
    else:
        node.kill()
    for number in range(200, 220):
        cluster.produce(1, f"v{number}", "x" * 200)
    cluster.start(2, clean=ends == "stopped")
    cluster.run_until(lambda: KEY in node.replicas and moved(cluster, 2, target))
    cluster.run_for(1_500)
    assert node.log_values() == values(220)
    assert names(cluster, 2, target) == ["t-0"]


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_the_copy_of_a_compacted_log_is_made_anew_when_its_directory_comes_back(policy: str) -> None:
    """The source was compacted meanwhile: a copy of before could hold a key whose tombstone is gone."""
    cluster = moving_cluster() if policy == "delete" else keyed_cluster()
    node, target = cluster.nodes[2], cluster.other(2)
    node.data_plane.moves.set_rate(node.log().size_bytes / 4)
    cluster.move(2, target)
    (before,) = names(cluster, 2, target)
    fail_writes_of(node, target)
    cluster.run_until(lambda: not node.data_plane.moves.under_way())
    node.disk.faults = no_faults
    node.data_plane.moves.set_rate(1e9)
    queue = node.data_plane.store.queues[node.directory_id(target)]
    cluster.tells_controller = False
    returned = next_generation(node, queue.directory)

    async def come_back() -> None:
        await node.data_plane.returns.take_back(returned)
        node.data_plane.directory_returned(returned)

    node.run(come_back())
    cluster.run_until(lambda: bool(node.data_plane.moves.under_way()))
    cluster.run_for(1_000)
    (copy,) = [name for name in names(cluster, 2, target) if name.endswith("-future")]
    assert (copy == before) == (policy == "delete")
    cluster.tells_controller = True
    cluster.run_until(lambda: moved(cluster, 2, target))
    assert node.log().end_offset == cluster.nodes[1].log().end_offset


def test_a_deleted_topic_takes_its_copy_with_it_and_its_name_is_free_at_once() -> None:
    cluster = moving_cluster()
    cluster.tells_controller = False
    target = cluster.other(1)
    cluster.move(1, target)
    cluster.run_for(50)
    cluster.delete_topic()
    cluster.create_topic(topic_id=bytes([8]) * 16, file_delete_delay_ms="0")
    cluster.run_for(1_000)
    cluster.tells_controller = True
    node = cluster.nodes[1]
    assert node.log(bytes([8]) * 16).end_offset == 0
    assert not [name for path in node.paths for name in node.disk.list(path) if "-future" in name]


def test_a_leader_change_in_the_middle_cuts_the_copy() -> None:
    """Node 1 writes what nobody else gets; the next leader writes something else there."""
    cluster = moving_cluster()
    cluster.tells_controller = False
    target = cluster.other(1)
    cluster.move(1, target)
    for other in (2, 3):
        cluster.kill(other)
    cluster.produce(1, "lost", acks=1)
    cluster.run_for(300)
    (one,) = cluster.nodes[1].data_plane.moves.under_way()
    assert one.lag == 0
    for other in (2, 3):
        cluster.start(other)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    cluster.produce(2, "kept")
    cluster.tells_controller = True
    cluster.run_until(lambda: moved(cluster, 1, target))
    cluster.run_for(1_000)
    assert cluster.nodes[1].log_values() == [*values(200), "kept"]
    assert cluster.nodes[1].log().epochs.entries == cluster.nodes[2].log().epochs.entries


def test_a_move_is_throttled() -> None:
    cluster = moving_cluster(400)
    target = cluster.other(2)
    moves = cluster.nodes[2].data_plane.moves
    size = cluster.nodes[2].log().size_bytes
    moves.set_rate(size / 4)
    before_ms = cluster.scheduler.now_ns / 1e6
    cluster.move(2, target)
    cluster.run_until(lambda: moved(cluster, 2, target))
    assert cluster.scheduler.now_ns / 1e6 - before_ms > 3_000


def test_the_rate_of_moves_is_changed_while_they_go_on() -> None:
    """First that of the broker, then that of all brokers, then that of the file."""
    cluster = moving_cluster(400)
    size, target = cluster.nodes[2].log().size_bytes, cluster.other(2)

    def change(broker: str, rate: int | None) -> None:
        text = None if rate is None else str(rate)
        cluster.commit(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=MOVE_RATE, value=text))
        cluster.run_for(100)

    change("", 1_000_000_000)
    change("2", size // 20)
    cluster.move(2, target)
    cluster.run_for(8_000)
    assert not moved(cluster, 2, target)
    change("2", None)
    cluster.run_for(15_000)  # what was copied at the old rate is paid for
    assert moved(cluster, 2, target)
    change("", None)
    cluster.move(2, cluster.other(2))
    cluster.run_for(2_000)
    assert cluster.path_of(2) != target


def test_the_cleaner_leaves_a_log_alone_while_it_moves() -> None:
    cluster = moving_cluster(5)
    cluster.tells_controller = False
    states = cluster.nodes[1].data_plane.cleaner.states
    cluster.move(1, cluster.other(1))
    assert states.describe(KEY) == "paused (1)"
    cluster.move(1, cluster.path_of(1))
    assert states.is_free(KEY)


def test_describe_shows_the_copy() -> None:
    cluster = moving_cluster()
    cluster.tells_controller = False
    node, target = cluster.nodes[1], cluster.other(1)
    cluster.move(1, target)
    cluster.run_for(500)
    found = {one.path: one for one in node.run(node.data_plane.directory_report.describe())}
    (copy,) = [one for topic in found[target].topics for one in topic.partitions if one.is_future]
    (own,) = [one for topic in found[cluster.path_of(1)].topics for one in topic.partitions]
    assert (copy.index, copy.offset_lag, copy.size_bytes) == (0, 0, own.size_bytes) and not own.is_future


def test_the_rate_and_what_is_left_say_when_it_ends() -> None:
    rate = Rate(0)
    rate.moved(5_000, 1_000)
    assert rate.per_s(2_000) == 2_500
    assert eta_s(5_000, rate.per_s(2_000)) == 2 and eta_s(0, 0) == 0 and eta_s(5, 0) is None


@rule("kraft 10.13")
def test_a_cordoned_directory_takes_no_replica_and_keeps_those_that_it_has() -> None:
    cluster = moving_cluster(20)
    target, there = cluster.other(1), cluster.path_of(1)
    store = cluster.nodes[1].data_plane.store
    store.cordoned = frozenset({target, there})
    for topic in ("t", "later"):  # a replica that is here, and one that may be made later
        with pytest.raises(ApiError) as refused:
            cluster.nodes[1].run(cluster.nodes[1].data_plane.moves.alter(topic, 0, target))
        assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT and target in refused.value.message
    cluster.move(1, there)  # where it lies: nothing changes
    store.cordoned = frozenset()
    cluster.move(1, target)
    store.cordoned = frozenset({there})
    cluster.move(1, there)  # this cancels the move, although its source is cordoned
    assert cluster.path_of(1) == there and not cluster.nodes[1].data_plane.moves.under_way()
