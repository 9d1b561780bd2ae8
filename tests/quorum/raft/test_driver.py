"""The production driver in a simulated world: elections, kills, power cuts, stalls, failing disks, newer metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driver_world import WORLDS, World, log_path, outcome_of

from jepsen.sim.machine.disk_faults import Fail
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.quorum import DescribeQuorumRequest, VoteRequest
from quorumlog.rpc.transport import Identity
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.raft import NotLeader, QuorumState
from quorumlog_quorum.raft.quorum_state import CorruptQuorumState, read_quorum_state
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline
from tests.rules import rule


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """Kill the processes that still run at the end of a test."""
    yield
    for world in WORLDS:
        for node_id in list(world.running):
            world.kill(node_id)
    WORLDS.clear()


class Caller:
    """A context of a request whose sender the transport has verified."""

    def __init__(self, node_id: int) -> None:
        self.peer = Identity(cluster_id="c", node_id=node_id, incarnation_id=b"i" * 16, secret=b"s")


def elected(seed: int = 1, voters: int = 3, observers: int = 0) -> World:
    world = World(seed, voters, observers)
    assert world.run(5_000, until=world.has_leader)
    return world


@rule("kraft 3.18")
@pytest.mark.parametrize(("voters", "observers"), [(1, 0), (1, 1), (2, 0), (3, 0), (3, 2), (5, 1)])
def test_values_reach_every_listener_in_order(voters: int, observers: int) -> None:
    world = elected(voters=voters, observers=observers)
    assert world.leader is not None
    world.leader.append(b"a", b"b")
    world.leader.append(b"c")
    assert world.run(3_000, until=world.all_have(b"a", b"b", b"c"))


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_leader_is_replaced_within_half_a_second_and_nothing_is_lost(seed: int) -> None:
    world = elected(seed)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    leader.append(b"kept")
    assert world.run(1_000, until=world.all_have(b"kept"))
    world.kill(leader.driver.node_id, power_cut=True)
    before_ms = world.now_ms
    assert world.run(3_000, until=world.has_leader)
    assert world.now_ms - before_ms <= 500
    world.start(leader.driver.node_id)
    assert world.run(3_000, until=world.all_have(b"kept"))


@pytest.mark.parametrize("seed", range(4))
def test_a_graceful_stop_hands_over(seed: int) -> None:
    world = elected(seed)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    leader.append(b"kept")
    assert world.run(1_000, until=world.all_have(b"kept"))
    before_ms = world.now_ms
    outcome_of(world, leader, leader.driver.stop(graceful=True))
    assert leader.recorder.claimed is None
    world.kill(leader.driver.node_id)
    assert world.run(1_000, until=world.has_leader)
    assert world.now_ms - before_ms <= 150
    world.start(leader.driver.node_id)
    assert world.run(3_000, until=world.all_have(b"kept"))


def test_committed_values_survive_a_power_cut_of_every_node() -> None:
    world = elected(7)
    assert world.leader is not None
    for number in range(20):
        world.leader.append(b"%d" % number)
    values = [b"%d" % number for number in range(20)]
    assert world.run(3_000, until=world.all_have(*values))
    for node_id in range(3):
        world.kill(node_id, power_cut=True)
    for node_id in range(3):
        world.start(node_id)
    assert world.run(6_000, until=world.all_have(*values))


def test_a_paused_leader_is_replaced_and_comes_back_as_a_follower() -> None:
    world = elected(3)
    world.run(1_000)
    old = world.leader
    assert old is not None
    old.loop.pause()
    assert world.run(4_000, until=lambda: world.leader is not None and world.leader is not old)
    old.loop.resume()
    assert world.run(3_000, until=lambda: old.recorder.claimed is None)
    new = world.leader
    assert new is not None
    assert world.run(3_000, until=lambda: old.driver.announcements.leader_id == new.driver.node_id)


def test_a_paused_follower_starts_no_election_when_it_wakes() -> None:
    world = elected(4)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    epoch = leader.driver.announcements.epoch
    follower = next(process for process in world.running.values() if process is not leader)
    for _ in range(5):
        follower.loop.pause()
        world.run(5_000)
        follower.loop.resume()
        world.run(1_000)
    assert leader.recorder.claimed == epoch and leader.driver.announcements.epoch == epoch


def test_a_wrong_proof_of_death_costs_at_most_an_election() -> None:
    world = elected(9)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    follower = next(process for process in world.running.values() if process is not leader)
    names = f"n{leader.driver.node_id}", f"n{follower.driver.node_id}"
    world.network.wrong_refusals[names[0]] = None
    world.network.cut_both(*names)
    world.run(3_000)
    world.network.wrong_refusals.clear()
    world.network.heal_all()
    assert world.run(3_000, until=world.has_leader)
    assert world.leader is not None
    world.leader.append(b"on")
    assert world.run(3_000, until=world.all_have(b"on"))


@rule("kraft 2.17")
def test_a_leader_that_restarts_at_once_is_replaced() -> None:
    world = elected(10)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    epoch, node_id = leader.driver.announcements.epoch, leader.driver.node_id
    world.kill(node_id)
    world.start(node_id)
    before_ms = world.now_ms
    assert world.run(3_000, until=world.has_leader)
    assert world.leader is not None and world.leader.driver.announcements.epoch > epoch
    assert world.now_ms - before_ms <= 1_000


def test_append_on_a_node_that_does_not_lead_is_refused() -> None:
    world = elected()
    follower = next(process for process in world.running.values() if process is not world.leader)
    with pytest.raises(NotLeader):
        follower.driver.append(follower.driver.announcements.epoch, [b"x"])
    assert world.leader is not None
    with pytest.raises(NotLeader):
        world.leader.driver.append(world.leader.driver.announcements.epoch - 1, [b"x"])


@rule("kraft 3.8")
def test_a_batch_that_is_too_large_is_refused_before_it_gets_offsets() -> None:
    world = elected()
    assert world.leader is not None
    end = world.leader.driver.end_offset
    with pytest.raises(ApiError) as refusal:
        world.leader.driver.append(world.leader.driver.announcements.epoch, [bytes(5 << 20), bytes(5 << 20)])
    assert refusal.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert world.leader.driver.end_offset == end


def test_describe_quorum() -> None:
    world = elected(observers=1)
    world.run(2_000)
    leader = world.leader
    assert leader is not None
    answer = outcome_of(world, leader, leader.driver.handle(Caller(0), DescribeQuorumRequest()))  # type: ignore[arg-type]
    assert answer.error_code == 0 and answer.cluster_id == "c" and answer.leader_id == leader.driver.node_id
    assert [row.replica_id for row in answer.voters] == [0, 1, 2] and [row.replica_id for row in answer.observers] == [
        3
    ]
    assert {row.log_end_offset for row in (*answer.voters, *answer.observers)} == {leader.driver.end_offset}


def test_a_vote_request_in_the_name_of_another_node_is_refused() -> None:
    world = elected()
    process = world.running[0]
    request = VoteRequest(epoch=99, candidate_id=2, voter_id=0, last_epoch=98, last_epoch_end_offset=9, pre_vote=False)
    answer = outcome_of(world, process, process.driver.handle(Caller(1), request))  # type: ignore[arg-type]
    assert isinstance(answer, ApiError) and answer.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert process.driver.announcements.epoch < 99


def test_a_disk_that_fails_stops_its_node_and_the_others_go_on() -> None:
    world = elected(5)
    leader = world.leader
    assert leader is not None
    leader.disk.faults = lambda operation: Fail() if operation.kind == "pwritev" else None
    leader.append(b"lost")
    world.scheduler.run_for(1_000_000_000)
    assert [type(error) for error in leader.crashes] == [DirectoryOffline]
    assert not leader.driver.is_leader
    world.kill(leader.driver.node_id)
    assert world.run(5_000, until=world.has_leader)


@pytest.mark.parametrize("seed", range(4))
def test_a_leader_whose_disk_hangs_hears_of_the_next_one_and_stops_without_its_disk(seed: int) -> None:
    """Its broker hands partitions over to the next controller, and must know it (decision 18)."""
    world = elected(seed)
    world.run(1_000)
    old = world.leader
    assert old is not None
    old_id, epoch = old.driver.node_id, old.driver.announcements.epoch
    durable = quorum_state_on_disk(world, old_id)
    old.disk.hang.begin(log_path(old_id), reads=False)
    old.loop.deliver(old.driver.on_directory_failed)
    assert world.run(1_000, until=lambda: world.leader not in (None, old))
    new = world.leader
    assert new is not None
    assert world.run(200, until=lambda: old.recorder.leader == (new.driver.node_id, new.driver.announcements.epoch))
    before_ms = world.now_ms
    outcome_of(world, old, old.driver.stop(graceful=True))
    assert world.now_ms - before_ms <= 50
    assert new.driver.announcements.epoch > epoch and quorum_state_on_disk(world, old_id) == durable


def test_a_state_that_the_disk_has_not_kept_is_promised_to_nobody() -> None:
    """Its disk hangs while it adopts an epoch: nothing of that epoch leaves the node, before or after it gives up."""
    world = elected(5)
    world.run(1_000)
    leader = world.leader
    assert leader is not None
    victim = next(process for process in world.running.values() if process is not leader)
    victim_id = victim.driver.node_id
    victim.disk.hang.begin(log_path(victim_id), reads=False)
    request = VoteRequest(
        epoch=leader.driver.announcements.epoch + 1,
        candidate_id=leader.driver.node_id,
        candidate_directory_id=leader.directory_id,
        voter_id=victim_id,
        voter_directory_id=victim.directory_id,
        last_epoch=leader.driver.announcements.epoch,
        last_epoch_end_offset=leader.driver.end_offset,
        pre_vote=False,
    )
    answers: list[object] = []

    async def ask() -> None:
        try:
            answers.append(await victim.driver.handle(Caller(leader.driver.node_id), request))  # type: ignore[arg-type]
        except ApiError as error:
            answers.append(error.code)

    victim.do(ask())
    world.run(300)
    assert answers == [], "the vote waits for the disk"
    victim.loop.deliver(victim.driver.on_directory_failed)
    world.run(300)
    assert answers == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert quorum_state_on_disk(world, victim_id).epoch < request.epoch


def quorum_state_on_disk(world: World, node_id: int) -> QuorumState:
    return read_quorum_state(world.disks[node_id], f"{log_path(node_id)}/quorum-state")


@rule("kraft 12.12")
def test_a_follower_that_meets_newer_metadata_stays_out_and_asks_to_be_stopped() -> None:
    world = elected(5)
    leader = world.leader
    assert leader is not None
    old = next(process for process in world.running.values() if process is not leader)
    old.recorder.unsupported = b"new"
    leader.append(b"known")
    leader.append(b"new", b"after")
    leader.append(b"later")
    others = [process for process in world.running.values() if process is not old]
    assert world.run(3_000, until=lambda: all(p.recorder.values[-1:] == [b"later"] for p in others))
    world.run(1_000)
    assert old.recorder.values == [b"known"], "nothing after the unsupported record is delivered"
    assert len(old.fatal) == 1 and "a record of type 99" in old.fatal[0] and "Upgrade this node" in old.fatal[0]
    assert not old.crashes
    assert old.driver.end_offset == leader.driver.end_offset, "its voter still counts for the majority"
    assert outcome_of(world, old, old.driver.stop()) is True, "it stops in good order"


@rule("kraft 12.12")
def test_a_leader_that_meets_newer_metadata_claims_nothing_and_stops_in_good_order() -> None:
    world = World(voters=1)
    assert world.run(5_000, until=world.has_leader)
    world.running[0].append(b"new")
    assert world.run(3_000, until=world.all_have(b"new"))
    world.kill(0)
    old = world.start(0, begin=False)
    old.recorder.unsupported = b"new"
    old.start()
    assert world.run(5_000, until=lambda: bool(old.fatal))
    world.run(1_000)
    assert old.driver.is_leader and old.recorder.claimed is None and old.recorder.calls == []
    assert len(old.fatal) == 1 and not old.crashes
    assert outcome_of(world, old, old.driver.stop()) is True


@rule("kraft 1.12")
def test_a_corrupt_quorum_state_is_fatal() -> None:
    world = elected(6)
    world.kill(0)
    disk = world.disks[0]
    disk.flip_bit("/n0/__cluster_metadata-0/quorum-state", 8 * 15)
    process = world.start(0, begin=False)
    assert isinstance(outcome_of(world, process, process.driver.start()), CorruptQuorumState)


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[tuple[int, int]]:
        world = elected(seed)
        world.kill(0)
        world.run(2_000)
        return [(world.scheduler.steps, process.driver.announcements.epoch) for process in world.running.values()]

    assert history(11) == history(11)


def appended_and_killed(world: World, times: int) -> None:
    """Append enough values for several segments, then cut the power of every node."""
    assert world.run(5_000, until=world.has_leader)
    for number in range(times):
        leader = world.leader
        assert leader is not None
        leader.append(b"%d" % number * 40)
        assert world.run(5_000, until=lambda end=number + 1: len(world.running[0].recorder.values) == end)  # type: ignore[misc]
    world.run(1_000)
    for node_id in list(world.running):
        world.kill(node_id, power_cut=True)


SMALL_SEGMENTS = LogConfig(segment_bytes=600)


def points_of(world: World, node_id: int) -> OffsetFile:
    return OffsetFile(world.disks[node_id], f"{log_path(node_id)}/{RECOVERY_POINTS}")


def test_an_unclean_start_reads_the_newest_segment_and_not_the_whole_log() -> None:
    world = World(log_config=SMALL_SEGMENTS)
    appended_and_killed(world, times=30)
    process = world.start(0)
    assert world.run(5_000, until=lambda: process.driver.core is not None)
    log = process.driver._log._log
    assert len(log.segment_bases) > 3
    noted = points_of(world, 0).get(METADATA_PARTITION)
    assert log.segment_bases[-3] <= noted <= log.synced_end
    assert 0 < log.recovery.scanned_bytes <= 2 * SMALL_SEGMENTS.segment_bytes
    assert not log.recovery.lost_below_recovery_point


def test_a_clean_stop_notes_the_recovery_point() -> None:
    world = World(voters=1, log_config=SMALL_SEGMENTS)
    assert world.run(5_000, until=world.has_leader)
    process = world.running[0]
    outcome_of(world, process, process.driver.stop())
    noted = points_of(world, 0).get(METADATA_PARTITION)
    assert noted == process.driver._log._log.end_offset > 0


def test_a_truncation_lowers_the_recovery_point_first() -> None:
    world = World(voters=3, log_config=SMALL_SEGMENTS)
    assert world.run(5_000, until=world.has_leader)
    old = world.leader
    assert old is not None
    others = [node_id for node_id in world.running if node_id != old.driver.node_id]
    for node_id in others:
        world.kill(node_id)
    for number in range(20):  # accepted by the leader alone, over several segments
        old.append(b"never %d" % number * 20)
    world.run(300)
    points = points_of(world, old.driver.node_id)
    assert points.get(METADATA_PARTITION) > 5
    world.kill(old.driver.node_id)
    for node_id in others:
        world.start(node_id)
    assert world.run(5_000, until=world.has_leader)
    process = world.start(old.driver.node_id)
    assert world.run(5_000, until=lambda: process.recorder.end_offset > 0 and process.driver.end_offset < 15)
    points = points_of(world, old.driver.node_id)
    assert points.get(METADATA_PARTITION) <= process.driver._log._log.synced_end
