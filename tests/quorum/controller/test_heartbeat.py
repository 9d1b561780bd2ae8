"""Heartbeats: the table of states, sessions, controlled shutdown, directories that go offline."""

from __future__ import annotations

import pytest
from controller_world import SESSION_MS, World, cluster, registration, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest as AssignRequest
from quorumlog.messages.controller import DirectoryAssignment
from quorumlog_quorum.controller.engine.sessions import Sessions
from quorumlog_quorum.controller.requests.heartbeat import BrokerState, next_state
from tests.rules import rule

F, U, C, S = BrokerState.FENCED, BrokerState.UNFENCED, BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW

# now, want_fence, want_shutdown, caught_up, leads_any, may_stop -> then
TABLE = [
    (F, False, False, False, False, False, F),
    (F, False, False, True, False, False, U),
    (F, True, False, True, False, False, F),
    (F, False, True, True, False, False, S),
    (F, True, True, False, False, False, S),
    (U, False, False, False, True, False, U),
    (U, True, False, True, True, False, F),
    (U, True, True, True, True, False, S),
    (U, False, True, True, True, False, C),
    (U, False, True, True, False, False, S),
    (C, False, True, True, True, True, C),
    (C, False, True, True, False, False, C),
    (C, False, True, True, False, True, S),
]


@rule("kraft 8.7")
@pytest.mark.parametrize(("now", "want_fence", "want_shutdown", "caught_up", "leads_any", "may_stop", "then"), TABLE)
def test_next_state(
    now: BrokerState,
    want_fence: bool,
    want_shutdown: bool,
    caught_up: bool,
    leads_any: bool,
    may_stop: bool,
    then: BrokerState,
) -> None:
    wishes = {"want_fence": want_fence, "want_shutdown": want_shutdown}
    assert next_state(now, **wishes, caught_up=caught_up, leads_any=leads_any, may_stop=may_stop) is then


def assignment(world: World, directory: bytes) -> DirectoryAssignment:
    return DirectoryAssignment(topic_id=world.tip.topic_ids["t"], index=0, directory_id=directory)


@rule("kraft 8.8")
def test_a_broker_is_unfenced_when_it_has_seen_its_own_registration() -> None:
    world = World()
    epoch = world.ask(registration(1)).broker_epoch
    behind = world.heartbeat(1, current_metadata_offset=epoch)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    there = world.heartbeat(1, current_metadata_offset=epoch + 1)
    assert (there.is_caught_up, there.is_fenced) == (True, False)
    assert not world.tip.brokers[1].fenced


STALE = [
    ("unknown broker", {"broker_id": 7}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("old epoch", {"broker_epoch": 0}, ErrorCode.STALE_BROKER_EPOCH),
    ("another process", {"incarnation_id": uuid(5)}, ErrorCode.STALE_BROKER_EPOCH),
]


@rule("kraft 8.9")
@pytest.mark.parametrize(("changes", "code"), [case[1:] for case in STALE], ids=[case[0] for case in STALE])
def test_a_stale_heartbeat_keeps_no_broker_alive(changes: dict[str, object], code: ErrorCode) -> None:
    world = cluster(1)
    world.now_ms += SESSION_MS - 1
    with pytest.raises(ApiError) as raised:
        world.heartbeat(1, **changes)
    assert raised.value.code is code
    world.now_ms += 1
    assert world.core.expired_broker(world.now_ms) == 1


@rule("kraft 8.10")
def test_sessions_end_exactly_on_time_and_one_broker_is_fenced_at_a_time() -> None:
    world = cluster(1, 2)
    world.now_ms += 100
    world.heartbeat(2)
    world.now_ms += SESSION_MS - 101
    assert world.core.expired_broker(world.now_ms) is None
    assert world.core.expired_broker(world.now_ms + 500) == 1
    world.fence(1)
    assert world.core.expired_broker(world.now_ms + 500) == 2


@rule("kraft 8.11")
def test_a_new_controller_gives_every_unfenced_broker_a_full_session() -> None:
    world = cluster(1, 2)
    world.now_ms = 50_000
    world.new_controller()
    assert world.core.expired_broker(50_000 + SESSION_MS - 1) is None
    assert world.core.expired_broker(50_000 + SESSION_MS) == 1


def test_no_broker_is_fenced_right_after_a_stall() -> None:
    world = cluster(1)
    late = world.now_ms + 2 * SESSION_MS
    world.core.on_stall(late)
    assert world.core.expired_broker(late + 499) is None
    assert world.core.expired_broker(late + 500) == 1


def test_a_fenced_broker_comes_back_by_its_next_heartbeat_and_may_lead_again() -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    world.fence(1)
    assert (world.partition().leader, world.partition().isr) == (-1, ())
    assert not world.heartbeat(1).is_fenced
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)


@rule("kraft 8.12")
def test_controlled_shutdown_waits_until_every_broker_knows_the_new_leaders() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3))
    known = len(world.log)
    answer = world.heartbeat(1, want_shutdown=True)
    assert (answer.should_shutdown, answer.is_fenced) == (False, False)
    assert (world.partition().leader, world.partition().isr) == (2, (2, 3))
    moved = len(world.log)
    assert not world.heartbeat(1, want_shutdown=True).should_shutdown
    world.heartbeat(2, current_metadata_offset=moved)
    world.heartbeat(3, current_metadata_offset=known)
    assert not world.heartbeat(1, want_shutdown=True).should_shutdown
    world.heartbeat(3, current_metadata_offset=moved)
    answer = world.heartbeat(1, want_shutdown=True)
    assert (answer.should_shutdown, answer.is_fenced) == (True, True)
    assert world.tip.brokers[1].fenced


def test_a_broker_that_leads_nothing_may_stop_at_once() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    assert world.heartbeat(2, want_shutdown=True).should_shutdown
    assert world.partition().isr == (1,)


def test_a_new_controller_lets_a_shutdown_end() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    world.heartbeat(1, want_shutdown=True)
    world.new_controller()
    assert not world.heartbeat(1, want_shutdown=True).should_shutdown
    world.heartbeat(2)
    assert world.heartbeat(1, want_shutdown=True).should_shutdown


@rule("kraft 8.12")
def test_the_shutdown_offset_is_set_once() -> None:
    sessions = Sessions(SESSION_MS)
    sessions.touch(1, 0, 0)
    sessions.touch(2, 5, 0)
    assert not sessions.may_stop(1, [2])
    sessions.note_shutdown_end(1, 5)
    sessions.note_shutdown_end(1, 9)
    assert sessions.may_stop(1, [2]) and sessions.may_stop(1, [])
    assert not sessions.may_stop(1, [2, 3]), "3 has never sent a heartbeat"


@rule("kraft 10.2")
@pytest.mark.parametrize(("durability", "elr"), [("synced", (1,)), ("replicated", ())])
def test_an_offline_directory_takes_its_replicas_with_it(durability: str, elr: tuple[int, ...]) -> None:
    world = World()
    world.start(1, log_directories=(uuid(1), uuid(11)))
    world.start(2)
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2", "durability": durability})
    epoch = world.tip.brokers[1].broker_epoch
    world.ask(AssignRequest(broker_id=1, broker_epoch=epoch, assignments=(assignment(world, uuid(11)),)))
    world.heartbeat(1, offline_directories=(uuid(11), uuid(99)))
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (2, (2,), elr)
    assert world.tip.brokers[1].log_directories == (uuid(1),)
    end = len(world.log)
    world.heartbeat(1, offline_directories=(uuid(11), uuid(99)))
    assert len(world.log) == end, "reported again, nothing is left to do"


ASSIGNMENTS = [
    ("no such topic", {"topic_id": uuid(5)}, ErrorCode.UNKNOWN_TOPIC_ID),
    ("no such partition", {"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a short id", {"directory_id": b"x"}, ErrorCode.INVALID_REQUEST),
    ("a reserved id", {"directory_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
    ("as it is", {}, ErrorCode.NONE),
]


@rule("kraft 10.4")
@pytest.mark.parametrize(("changes", "code"), [case[1:] for case in ASSIGNMENTS], ids=[case[0] for case in ASSIGNMENTS])
def test_assignments(changes: dict[str, object], code: ErrorCode) -> None:
    world = cluster(1, 2)
    world.create(replicas=(1,))
    fields = {"topic_id": world.tip.topic_ids["t"], "index": 0, "directory_id": uuid(1)} | changes
    request = {"assignments": (DirectoryAssignment(**fields),)}  # type: ignore[arg-type]
    epoch = {broker_id: world.tip.brokers[broker_id].broker_epoch for broker_id in (1, 2)}
    end = len(world.log)
    response = world.ask(AssignRequest(broker_id=1, broker_epoch=epoch[1], **request))
    assert [ErrorCode(result.error_code) for result in response.results] == [code]
    assert len(world.log) == end
    stranger = world.ask(AssignRequest(broker_id=2, broker_epoch=epoch[2], **request))
    expected = code if changes and "directory_id" not in changes else ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode(stranger.results[0].error_code) is expected
    with pytest.raises(ApiError, match="STALE_BROKER_EPOCH"):
        world.ask(AssignRequest(broker_id=1, broker_epoch=-1, **request))


@rule("kraft 10.3")
def test_an_assignment_to_a_directory_that_is_offline_takes_the_replica_offline() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    epoch = world.tip.brokers[1].broker_epoch
    before = world.partition()
    world.ask(AssignRequest(broker_id=1, broker_epoch=epoch, assignments=(assignment(world, uuid(66)),)))
    after = world.partition()
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2,), before.leader_epoch + 1)


@rule("kraft 10.3")
def test_an_assignment_between_online_directories_elects_no_leader() -> None:
    world = World()
    world.start(1, log_directories=(uuid(1), uuid(11)))
    world.create(replicas=(1,))
    before = world.partition()
    epoch = world.tip.brokers[1].broker_epoch
    world.ask(AssignRequest(broker_id=1, broker_epoch=epoch, assignments=(assignment(world, uuid(11)),)))
    after = world.partition()
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    assert after.directories == (uuid(11),)


@rule("kraft 10.4")
def test_too_many_assignments_are_refused() -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    many = (assignment(world, uuid(1)),) * 2_251
    with pytest.raises(ApiError, match="limit 2250"):
        world.ask(AssignRequest(broker_id=1, broker_epoch=world.tip.brokers[1].broker_epoch, assignments=many))
