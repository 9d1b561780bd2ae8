"""Drivers that take snapshots, drop old ones, fetch one from a leader, and start from one. On the simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from driver_world import WORLDS, Process, World, log_path, outcome_of

from quorumlog.settings.metadata_log import NEVER, SnapshotConfig, SnapshotRetention
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.snapshots import damaged_name, list_snapshots, parse_snapshot_name, snapshot_path, verify_snapshot
from quorumlog_quorum.snapshots.log_aside import set_log_aside
from quorumlog_quorum.snapshots.opening import SnapshotMissing
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, OffsetFile
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

SMALL = LogConfig(segment_bytes=1_024)
EVERY_KIB = SnapshotConfig(
    bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=2_048, ms=-1), check_interval_ms=1_000
)


@pytest.fixture(autouse=True)
def no_errors() -> Iterator[None]:
    yield
    crashes = [crash for world in WORLDS for process in world.running.values() for crash in process.crashes]
    WORLDS.clear()
    assert not crashes


def world_of(**fields: Any) -> World:
    known: dict[str, Any] = {"log_config": SMALL, "snapshots": EVERY_KIB, **fields}
    world = World(**known)
    assert world.run(20_000, until=world.has_leader)
    return world


def append(world: World, count: int, first: int = 0) -> list[bytes]:
    """One batch each, all committed everywhere that runs."""
    values = [b"value-%05d" % number for number in range(first, first + count)]
    for value in values:
        assert world.leader is not None
        world.leader.append(value)
        world.run(5)
    for process in world.running.values():
        assert world.run(20_000, until=lambda p=process: p.recorder.values[-1:] == values[-1:])  # type: ignore[misc]
    return values


def snapshots_of(process: Process) -> list[int]:
    names = process.disk.list(log_path(process.driver.node_id))
    return [snapshot.offset for snapshot in list_snapshots(names).snapshots]


@rule("kraft 5.6")
def test_every_node_takes_snapshots_and_its_log_shrinks() -> None:
    world = world_of(observers=1)
    append(world, 120)
    world.run(3_000)
    for process in world.running.values():
        driver = process.driver
        assert driver.core is not None and driver.snapshots is not None
        stored = [one.id for one in driver.snapshots.stored]
        assert stored and tuple(stored) == driver.core.log.snapshots
        assert driver.core.log.start == stored[0].offset > 0
        assert snapshots_of(process) == [snapshot.offset for snapshot in stored]
        log = driver.opened.log if driver.opened else None
        assert log is not None and log.start_offset == driver.core.log.start
        assert log.segment_bases[0] > 0 and log.size_bytes < 4_096


@rule("kraft 5.6")
def test_a_snapshot_is_due_after_its_interval_however_little_was_written() -> None:
    world = world_of(snapshots=SnapshotConfig(bytes_between=NEVER, interval_ms=60_000))
    append(world, 20)
    assert not any(snapshots_of(process) for process in world.running.values())
    world.run(60_000)
    append(world, 1, first=20)
    world.run(1_000)
    assert [len(snapshots_of(process)) for process in world.running.values()] == [1, 1, 1]


@rule("kraft 5.7")
def test_equal_images_give_equal_bytes_on_every_node() -> None:
    world = world_of()
    append(world, 60)
    contents: dict[str, set[bytes]] = {}
    for process in world.running.values():
        path = log_path(process.driver.node_id)
        for name in process.disk.list(path):
            if parse_snapshot_name(name) is not None:
                contents.setdefault(name, set()).add(process.disk.read_bytes(f"{path}/{name}"))
    assert contents and all(len(bytes_) == 1 for bytes_ in contents.values())


def test_a_node_starts_from_its_snapshot_and_the_log_behind_it() -> None:
    world = world_of()
    values = append(world, 100)
    for power_cut in (False, True):
        world.kill(1, power_cut=power_cut)
        process = world.start(1)
        assert world.run(20_000, until=_has(process, values))
        (loaded,) = [call for call in process.recorder.calls if call.startswith("snapshot")]
        assert int(loaded.split()[1]) > 0


@pytest.mark.parametrize("node_id", [1, 3], ids=["voter", "observer"])
def test_a_node_that_was_left_behind_fetches_the_snapshot(node_id: int) -> None:
    world = world_of(observers=1)
    leader = world.leader
    assert leader is not None
    node_id = node_id if node_id != leader.driver.node_id else 2
    values = append(world, 5)
    world.kill(node_id)
    values += append(world, 150, first=5)
    world.run(3_000)
    process = world.start(node_id)
    assert world.run(20_000, until=lambda: process.recorder.values == values)
    assert process.driver.core is not None and process.driver.core.log.start > 0
    values += append(world, 5, first=500)
    assert process.recorder.values == values

    def parts() -> list[str]:
        return [name for name in process.disk.list(log_path(node_id)) if name.endswith(".part")]

    # The part of the fetched one is gone. What the node writes of its own state meanwhile is gone as it is finished.
    assert world.run(1_000, until=lambda: not parts())


def test_a_running_node_that_was_cut_off_loads_the_snapshot() -> None:
    world = world_of()
    leader = world.leader
    assert leader is not None
    lost = next(process for process in world.running.values() if process is not leader)
    values = append(world, 5)
    name = f"n{lost.driver.node_id}"
    others = {f"n{node_id}" for node_id in world.running} - {name}
    for other in others:
        world.network.cut(name, other)
    del world.running[lost.driver.node_id]
    values += append(world, 150, first=5)
    world.run(3_000)
    world.running[lost.driver.node_id] = lost
    for other in others:
        world.network.heal(name, other)
    assert world.run(30_000, until=lambda: lost.recorder.values == values)
    assert [call for call in lost.recorder.calls if call.startswith("snapshot")]


@rule("kraft 5.29")
def test_a_damaged_snapshot_is_set_aside_and_the_one_before_it_is_used() -> None:
    keep_all = SnapshotConfig(bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=-1, ms=-1))
    world = world_of(snapshots=keep_all)
    values = append(world, 100)
    offsets = snapshots_of(world.running[1])
    assert len(offsets) >= 3
    world.kill(1)
    _flip(world, 1, offsets[-1])
    process = world.start(1)
    assert world.run(20_000, until=lambda: process.recorder.values == values)
    assert f"snapshot {offsets[-2]}" in process.recorder.calls
    names = process.disk.list(log_path(1))
    assert [name for name in names if name.endswith(".damaged")] and snapshots_of(process)[
        : len(offsets) - 1
    ] == offsets[:-1]
    assert process.driver.snapshots is not None and process.driver.snapshots.damaged == 1


@rule("kraft 5.9")
@pytest.mark.parametrize("wrong", [1, 2, 100], ids=["the newest", "two", "all"])
def test_a_snapshot_with_wrong_content_is_not_used(wrong: int) -> None:
    """Its bytes are intact; only the listener finds out. What cannot be used is not offered to others either."""
    keep_all = SnapshotConfig(bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=-1, ms=-1))
    world = world_of(snapshots=keep_all)
    values = append(world, 100)
    offsets = snapshots_of(world.running[1])
    world.kill(1)
    process = world.start(1, begin=False)
    process.recorder.refused = tuple(offsets[-wrong:])
    process.start()
    assert world.run(20_000, until=_has(process, values))
    loaded = [call for call in process.recorder.calls if call.startswith("snapshot")]
    good = offsets[: -min(wrong, len(offsets))]
    assert loaded == [f"snapshot {offset}" for offset in good[-1:]]
    assert process.driver.core is not None
    assert not {one.offset for one in process.driver.core.log.snapshots} & set(process.recorder.refused)
    set_aside = [name for name in process.disk.list(log_path(1)) if name.endswith(".damaged")]
    assert len(set_aside) == min(wrong, len(offsets)) and snapshots_of(process)[: len(good)] == good
    append(world, 1, first=900)
    assert world.run(10_000, until=lambda: len(snapshots_of(process)) > len(good)), "another one is taken soon"


@rule("kraft 5.29")
def test_without_any_snapshot_a_whole_log_is_replayed() -> None:
    keep_all = SnapshotConfig(bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=-1, ms=-1))
    world = world_of(snapshots=keep_all)
    values = append(world, 100)
    world.kill(1)
    for offset in snapshots_of_disk(world, 1):
        _flip(world, 1, offset)
    process = world.start(1)
    assert world.run(20_000, until=lambda: process.recorder.values == values)
    assert process.recorder.calls == [] or "snapshot" not in process.recorder.calls[0]


@rule("kraft 5.30")
def test_a_log_that_begins_behind_a_damaged_snapshot_does_not_start() -> None:
    world = world_of()
    append(world, 120)
    world.run(3_000)
    world.kill(1)
    for offset in snapshots_of_disk(world, 1):
        _flip(world, 1, offset)
    before = world.disks[1].list(log_path(1))
    process = world.start(1, begin=False)
    error = outcome_of(world, process, process.driver.start())
    assert isinstance(error, SnapshotMissing) and "storage refetch-metadata -c FILE" in str(error)
    world.disks[1].kill()
    after = world.disks[1].list(log_path(1))
    assert [name for name in after if name.endswith(".log")] == [name for name in before if name.endswith(".log")]
    del world.running[1]


@rule("kraft 5.30")
def test_a_log_that_was_set_aside_is_fetched_anew_and_votes_later() -> None:
    world = world_of()
    values = append(world, 120)
    world.run(3_000)
    node_id = next(n for n in world.running if n != world.leader.driver.node_id)  # type: ignore[union-attr]
    world.kill(node_id)
    for offset in snapshots_of_disk(world, node_id):
        _flip(world, node_id, offset)
    path = log_path(node_id)
    segments = [name for name in world.disks[node_id].list(path) if name.endswith(".log")]
    end = set_log_aside(world.disks[node_id], path, METADATA_PARTITION)
    assert end >= len(values)
    assert set_log_aside(world.disks[node_id], path, METADATA_PARTITION) == end, "it may be repeated"
    names = world.disks[node_id].list(path)
    assert [name for name in names if name.endswith(".cut")] == [f"{name}.0.cut" for name in segments]
    world.disks[node_id].kill()

    process = world.start(node_id, begin=False)
    assert outcome_of(world, process, process.driver.start()) is None
    assert process.driver.opened is not None and process.driver.opened.lost_before == end
    world.kill(node_id)
    process = world.start(node_id)
    assert world.run(20_000, until=_has(process, values))
    assert world.run(20_000, until=lambda: _lost_line(world, node_id) == 0), "it has caught up"


def _lost_line(world: World, node_id: int) -> int:
    """What the node has noted about records that it lacks; it does not vote while that is not 0."""
    return OffsetFile(world.disks[node_id], f"{log_path(node_id)}/{LOST_OFFSETS}").get(METADATA_PARTITION)


@rule("kraft 5.31")
def test_a_snapshot_that_covers_what_was_lost_makes_a_voter_whole() -> None:
    keep_all = SnapshotConfig(bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=-1, ms=-1))
    world = world_of(snapshots=keep_all)
    values = append(world, 100)
    world.kill(1)
    disk, path = world.disks[1], log_path(1)
    latest = max(snapshots_of_disk(world, 1))
    OffsetFile(disk, f"{path}/{LOST_OFFSETS}").raise_to(METADATA_PARTITION, latest)
    process = world.start(1)
    assert world.run(20_000, until=_has(process, values))
    assert process.driver.opened is not None and process.driver.opened.lost_before == 0


KEEP_ALL = SnapshotConfig(bytes_between=1_024, interval_ms=0, retention=SnapshotRetention(bytes=-1, ms=-1))
DAMAGED = [
    ("an older one is left", KEEP_ALL, 1, 3),
    ("all are damaged, the log is whole", KEEP_ALL, 100, 3),
    ("the log begins behind what is left", EVERY_KIB, 100, 3),
    ("the newest ends where the log ends", KEEP_ALL, 1, 0),
]


@rule("kraft 5.21", "kraft 5.34")
@pytest.mark.parametrize(
    ("config", "count", "behind"), [case[1:] for case in DAMAGED], ids=[case[0] for case in DAMAGED]
)
def test_a_leader_serves_no_damaged_snapshot_and_takes_another_one(
    config: SnapshotConfig, count: int, behind: int
) -> None:
    """Nothing is appended from the damage until the node that needs a snapshot has one."""
    world = world_of(snapshots=config)
    leader = world.leader
    assert leader is not None and leader.driver.snapshots is not None and leader.driver.core is not None
    store, raft, own_id = leader.driver.snapshots, leader.driver.core, leader.driver.node_id
    node_id = next(n for n in world.running if n != own_id)
    world.kill(node_id)
    world.disks[node_id].replace()  # so it needs a snapshot, where the log is whole, too
    world.disks[node_id].make_directory(f"/n{node_id}")
    world.disks[node_id].sync_directory("/")
    values = append(world, 100)
    world.run(3_000)
    while leader.driver.end_offset - store.stored[-1].id.offset != behind:
        values += append(world, 1, first=len(values))
        world.run(100)
    damaged = [one.id for one in store.stored][-count:]
    if config is EVERY_KIB:
        assert raft.log.start == damaged[0].offset > 0
    for snapshot in damaged:
        _flip(world, own_id, snapshot.offset)

    process = world.start(node_id)
    assert world.run(5_000, until=_has(process, values))
    assert damaged[-1] not in (one.id for one in store.stored[:-1]) and store.latest is not None
    verify_snapshot(world.disks[own_id], snapshot_path(log_path(own_id), store.latest.id), store.latest.id)
    names = world.disks[own_id].list(log_path(own_id))
    assert damaged_name(damaged[-1]) in names and store.damaged >= 1
    assert not leader.crashes and leader.recorder.claimed is not None, "it leads on"
    values += append(world, 60, first=700)
    world.kill(own_id)
    restarted = world.start(own_id)
    assert world.run(20_000, until=_has(restarted, values)), "it starts from what it has taken"


@rule("kraft 5.28")
def test_a_power_cut_while_snapshots_come_and_go_loses_nothing() -> None:
    for seed in range(1, 9):
        world = world_of(seed=seed)
        values = append(world, 40 + 7 * seed)
        for round_ in range(3):
            leader = world.leader
            assert leader is not None
            node_id = next(n for n in world.running if n != leader.driver.node_id)
            leader.append(b"more-%d" % round_)
            values.append(b"more-%d" % round_)
            world.run(seed % 5 + round_)
            world.kill(node_id, power_cut=True)
            process = world.start(node_id)
            assert world.run(20_000, until=_has(process, values))
        path = log_path(0)
        for snapshot in list_snapshots(world.disks[0].list(path)).snapshots:
            verify_snapshot(world.disks[0], snapshot_path(path, snapshot), snapshot)


def _has(process: Process, values: list[bytes]) -> Callable[[], bool]:
    return lambda: process.recorder.values == values


def append_here(world: World, leader: Process, count: int, first: int) -> list[bytes]:
    values = [b"value-%05d" % number for number in range(first, first + count)]
    for value in values:
        leader.append(value)
        world.run(5)
    return values


def snapshots_of_disk(world: World, node_id: int) -> list[int]:
    return [one.offset for one in list_snapshots(world.disks[node_id].list(log_path(node_id))).snapshots]


def _flip(world: World, node_id: int, offset: int) -> None:
    disk, path = world.disks[node_id], log_path(node_id)
    (snapshot,) = [one for one in list_snapshots(disk.list(path)).snapshots if one.offset == offset]
    disk.flip_bit(snapshot_path(path, snapshot), 8 * 70)
