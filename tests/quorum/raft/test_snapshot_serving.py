"""A leader with snapshots (KIP-630, Kafka's `KafkaRaftClientSnapshotTest` and others)."""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import CONFIG, begin, fetch, follower, leader, reply_of, role_of

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.common import SnapshotId as SnapshotIdMessage
from quorumlog.messages.quorum import FetchSnapshotRequest, FetchSnapshotResponse, QuorumFetchResponse
from quorumlog_quorum.raft.effects import RaftEffect, ReadForFetch, ReadSnapshot, Reply
from quorumlog_quorum.raft.events import (
    LogStartRaised,
    RecordsRead,
    RequestReceived,
    SnapshotLost,
    SnapshotRead,
    SnapshotTaken,
    TimerFired,
)
from quorumlog_quorum.raft.log_state import EpochSpan, LogState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.rules.fetch_rule import SnapshotId
from tests.rules import rule

EPOCHS = (EpochStart(1, 0), EpochStart(2, 40), EpochStart(4, 60))
OLDEST, LATEST = SnapshotId(50, 2), SnapshotId(80, 4)


def leading(*snapshots: SnapshotId, start: SnapshotId | None = None) -> Raft:
    """Leader of epoch 5: its log holds 100 records of epochs 1, 2 and 4, and its first record. All are committed."""
    raft = leader(end=100, epochs=EPOCHS)
    raft.step(fetch(101, 5, replica=1, known=-1, wait_ms=0), 1)
    for snapshot in snapshots:
        raft.step(SnapshotTaken(snapshot), 1)
    if start is not None:
        raft.step(LogStartRaised(start), 1)
    return raft


def answer(raft: Raft, offset: int, last_epoch: int) -> SnapshotId | EpochEndOffset | ErrorCode | None:
    """What a fetch of an observer is answered; None: with records, or none yet."""
    effects = raft.step(fetch(offset, last_epoch, replica=7, wait_ms=0, known=1_000), 2)
    replies = [effect.message for effect in effects if isinstance(effect, Reply)]
    if not replies:
        assert [type(effect) for effect in effects] == [ReadForFetch]
        return None
    (response,) = replies
    assert isinstance(response, QuorumFetchResponse)
    if response.snapshot_id is not None:
        return SnapshotId(response.snapshot_id.end_offset, response.snapshot_id.epoch)
    return response.diverging_epoch or (ErrorCode(response.error_code) if response.error_code else None)


# The log is [50, 101) behind a snapshot of epoch 2; a later snapshot ends at 80 in epoch 4.
BEHIND_A_SNAPSHOT = [
    ("from nothing", 0, -1, LATEST),
    ("below the start", 49, 2, LATEST),
    ("at the start", 50, 2, None),
    ("at the start, an older epoch", 50, 1, LATEST),
    ("at the start, a newer epoch", 50, 4, LATEST),
    ("in the log", 70, 4, None),
    ("in the log, an epoch before the oldest snapshot", 70, 1, LATEST),
    ("an epoch that ends before the position", 70, 2, EpochEndOffset(epoch=2, end_offset=60)),
    ("an epoch that the leader has not seen", 70, 3, EpochEndOffset(epoch=2, end_offset=60)),
    ("past the end", 102, 5, EpochEndOffset(epoch=5, end_offset=101)),
]


@rule("kraft 5.10")
@pytest.mark.parametrize(
    ("offset", "epoch", "want"), [case[1:] for case in BEHIND_A_SNAPSHOT], ids=[case[0] for case in BEHIND_A_SNAPSHOT]
)
def test_the_position_of_a_fetch(offset: int, epoch: int, want: SnapshotId | EpochEndOffset | None) -> None:
    assert answer(leading(OLDEST, LATEST, start=OLDEST), offset, epoch) == want


@rule("kraft 5.11")
def test_a_whole_log_beside_a_snapshot() -> None:
    raft = leading(LATEST)
    assert answer(raft, 0, -1) == LATEST, "a new node takes the snapshot"
    assert answer(raft, 70, 4) is None


@rule("kraft 5.11")
def test_the_bootstrap_snapshot_is_never_offered() -> None:
    raft = leader(end=100, epochs=EPOCHS)
    raft.step(SnapshotTaken(SnapshotId(0, 0)), 1)
    assert answer(raft, 0, -1) is None
    request = ask(SnapshotId(0, 0))
    assert error_of(raft.step(request, 2)) is ErrorCode.SNAPSHOT_NOT_FOUND


@rule("kraft 5.10")
def test_the_oldest_of_several_is_not_the_bootstrap_snapshot() -> None:
    raft = leader(end=100, epochs=EPOCHS)
    for snapshot in (SnapshotId(0, 0), LATEST):
        raft.step(SnapshotTaken(snapshot), 1)
    assert answer(raft, 30, 1) == LATEST  # an epoch before the oldest snapshot's


def test_a_start_at_the_end_of_the_log_keeps_the_last_epoch() -> None:
    raft = leading(LATEST)
    newest = SnapshotId(101, 5)
    raft.step(SnapshotTaken(newest), 2)
    raft.step(LogStartRaised(newest), 3)
    effects = raft.step(fetch(101, 5, replica=7, known=101), 4)
    assert effects == [], "the fetch is parked"


# --- FetchSnapshot ---


def ask(
    snapshot: SnapshotId = LATEST, position: int = 0, *, epoch: int = 5, replica: int = 7, token: int = 9, **fields: Any
) -> RequestReceived:
    request = FetchSnapshotRequest(
        **{
            "replica_id": replica,
            "replica_directory_id": bytes([replica]) * 16,
            "current_leader_epoch": epoch,
            "snapshot_id": SnapshotIdMessage(end_offset=snapshot.offset, epoch=snapshot.epoch),
            "position": position,
            "max_bytes": 4,
            **fields,
        }
    )
    return RequestReceived(token, request)


def error_of(effects: list[RaftEffect]) -> ErrorCode:
    response = reply_of(effects)
    assert isinstance(response, FetchSnapshotResponse)
    return ErrorCode(response.error_code)


def test_bytes_are_served_by_position() -> None:
    raft = leading(LATEST)
    assert raft.step(ask(position=6), 2) == [ReadSnapshot(9, LATEST, 6, 4)]
    response = reply_of(raft.step(SnapshotRead(9, 10, b"ghij"), 3))
    assert response == FetchSnapshotResponse(
        leader_id=0,
        leader_epoch=5,
        snapshot_id=SnapshotIdMessage(end_offset=80, epoch=4),
        size=10,
        position=6,
        unaligned_records=b"ghij",
    )


@rule("kraft 5.13")
@pytest.mark.parametrize(("wanted", "given"), [(1 << 30, CONFIG.fetch_snapshot_max_bytes), (0, 1), (-5, 1), (7, 7)])
def test_a_piece_is_bounded(wanted: int, given: int) -> None:
    (read,) = leading(LATEST).step(ask(max_bytes=wanted), 2)
    assert isinstance(read, ReadSnapshot) and read.max_bytes == given


REFUSED: dict[str, tuple[RequestReceived, ErrorCode]] = {
    "an older epoch": (ask(epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
    "a newer epoch": (ask(epoch=6), ErrorCode.UNKNOWN_LEADER_EPOCH),
    "a snapshot that is not here": (ask(SnapshotId(81, 4)), ErrorCode.SNAPSHOT_NOT_FOUND),
    "another epoch of it": (ask(SnapshotId(80, 3)), ErrorCode.SNAPSHOT_NOT_FOUND),
    "a negative position": (ask(position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
    "no snapshot": (ask(snapshot_id=None), ErrorCode.INVALID_REQUEST),
    "a directory id of another length": (ask(replica_directory_id=b"x"), ErrorCode.INVALID_REQUEST),
    "itself": (ask(replica=0), ErrorCode.INVALID_REQUEST),
}


@rule("kraft 5.12")
@pytest.mark.parametrize(("request_", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(request_: RequestReceived, want: ErrorCode) -> None:
    assert error_of(leading(LATEST).step(request_, 2)) is want


@rule("kraft 5.12")
def test_a_node_that_does_not_lead_names_the_leader() -> None:
    response = reply_of(follower(1).step(ask(), 2))
    assert isinstance(response, FetchSnapshotResponse)
    assert (response.error_code, response.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)


@rule("kraft 5.12")
@pytest.mark.parametrize(
    ("size", "want"), [(-1, ErrorCode.SNAPSHOT_NOT_FOUND), (6, ErrorCode.POSITION_OUT_OF_RANGE)], ids=["gone", "short"]
)
def test_what_the_file_does_not_hold(size: int, want: ErrorCode) -> None:
    raft = leading(LATEST)
    raft.step(ask(position=6), 2)
    assert error_of(raft.step(SnapshotRead(9, size, b""), 3)) is want


@rule("kraft 5.14")
def test_a_lost_leadership_answers_what_is_being_read() -> None:
    raft = leading(LATEST)
    raft.step(ask(), 2)
    effects = raft.step(begin(6, leader_id=1), 3)
    (response,) = [e.message for e in effects if isinstance(e, Reply) and e.token == 9]
    assert isinstance(response, FetchSnapshotResponse) and response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert raft.step(SnapshotRead(9, 10, b"abcd"), 4) == []


@rule("kraft 5.15")
def test_fetching_a_snapshot_counts_as_contact() -> None:
    """A leader keeps its quorum while a voter does nothing but fetch its snapshot."""
    raft = leading(LATEST)
    now_ms = 1
    for _ in range(5):
        now_ms += CONFIG.check_quorum_timeout_ms - 1
        raft.step(ask(replica=1), now_ms)
        raft.step(SnapshotRead(9, 10, b"abcd"), now_ms)
        raft.step(TimerFired(), now_ms)
        assert role_of(raft) is RaftRole.LEADER
    raft.step(TimerFired(), now_ms + CONFIG.check_quorum_timeout_ms)
    assert role_of(raft) is RaftRole.RESIGNED


# --- the log's start ---


@rule("kraft 5.26")
def test_records_that_retention_took_while_they_were_read_are_answered_with_the_snapshot() -> None:
    raft = leading(OLDEST, LATEST)
    (read,) = raft.step(fetch(45, 2, replica=7, token=3, wait_ms=0), 2)
    assert isinstance(read, ReadForFetch)
    raft.step(LogStartRaised(OLDEST), 3)
    response = reply_of(raft.step(RecordsRead(3, b""), 4))
    assert isinstance(response, QuorumFetchResponse)
    assert response.snapshot_id == SnapshotIdMessage(end_offset=80, epoch=4)


def test_snapshots_are_kept_in_order() -> None:
    raft = leading(LATEST, OLDEST, OLDEST)
    assert snapshots_of(raft) == [OLDEST, LATEST]
    raft.step(LogStartRaised(LATEST), 2)
    assert (snapshots_of(raft), raft.core.log.start) == ([LATEST], 80)
    raft.step(SnapshotTaken(OLDEST), 3)
    assert snapshots_of(raft) == [LATEST], "the start has passed it"


def snapshots_of(raft: Raft) -> list[SnapshotId]:
    return list(raft.core.log.snapshots)


@rule("kraft 5.32")
def test_a_lost_snapshot_is_not_offered_unless_nothing_else_stands_for_the_start() -> None:
    raft = leading(OLDEST, LATEST, start=OLDEST)
    raft.step(SnapshotLost(LATEST), 2)
    assert answer(raft, 0, -1) == OLDEST
    raft.step(SnapshotLost(OLDEST), 3)
    assert snapshots_of(raft) == [OLDEST]


@rule("kraft 5.5")
@pytest.mark.parametrize(
    "snapshot", [SnapshotId(102, 5), SnapshotId(80, 2), SnapshotId(50, 4)], ids=["past the end", "older", "newer"]
)
def test_a_snapshot_that_is_not_of_this_log_is_a_mistake_of_ours(snapshot: SnapshotId) -> None:
    with pytest.raises(AssertionError):
        leading().step(SnapshotTaken(snapshot), 2)


@rule("kraft 5.25")
@pytest.mark.parametrize("oldest", [SnapshotId(60, 4), SnapshotId(101, 5)], ids=["unknown", "unknown at the end"])
def test_the_start_is_always_at_a_snapshot(oldest: SnapshotId) -> None:
    with pytest.raises(AssertionError):
        leading(OLDEST, LATEST).step(LogStartRaised(oldest), 2)


def test_a_log_that_begins_behind_nothing_is_a_mistake_of_ours() -> None:
    log = LogState(start=10, end=10, epochs=())
    with pytest.raises(AssertionError):
        log.check_invariants()


def test_a_log_goes_on_after_its_start_was_raised() -> None:
    log = LogState(start=0, end=100, epochs=EPOCHS, snapshots=[OLDEST, LATEST])
    log.raise_start(OLDEST)
    log.accept(EpochSpan(4, 100, 101))
    assert log.epochs.entries == (EpochStart(2, 50), EpochStart(4, 60))
    log.check_invariants()
