"""A follower that is offered a snapshot (KIP-630, Kafka's `KafkaRaftClientSnapshotTest`)."""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import CONFIG, begin, fetched, follower, make_raft, names, role_of, sends

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.common import SnapshotId as SnapshotIdMessage
from quorumlog.messages.quorum import FetchSnapshotRequest, FetchSnapshotResponse, QuorumFetchRequest, VoteRequest
from quorumlog_quorum.raft.effects import (
    DropSnapshot,
    FinishSnapshot,
    HighWatermark,
    RaftEffect,
    RestartLog,
    SnapshotInstalled,
    StoreSnapshotPiece,
)
from quorumlog_quorum.raft.events import (
    LogSynced,
    LogTruncated,
    LogWritten,
    RequestFailed,
    ResponseReceived,
    SnapshotFinished,
    SnapshotPieceStored,
    Started,
    TimerFired,
)
from quorumlog_quorum.raft.following import TruncationBelowHighWatermark
from quorumlog_quorum.raft.log_state import EpochSpan, LogState
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.rules.fetch_rule import SnapshotId
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}
SNAPSHOT = SnapshotId(100, 5)
OFFERED = SnapshotIdMessage(end_offset=100, epoch=5)


def in_flight(raft: Raft) -> int:
    (correlation,) = raft.core.outbox.in_flight
    return correlation


def offered(raft: Raft, snapshot: SnapshotIdMessage = OFFERED, now_ms: int = 1) -> list[RaftEffect]:
    return raft.step(fetched(in_flight(raft), snapshot_id=snapshot), now_ms)


def downloading(**log: Any) -> Raft:
    """It has asked for the first piece."""
    raft = follower(**(log or LOG))
    offered(raft)
    return raft


def request(effects: list[RaftEffect]) -> FetchSnapshotRequest:
    (send,) = sends(effects, FetchSnapshotRequest)
    assert isinstance(send.message, FetchSnapshotRequest)
    return send.message


def piece(raft: Raft, position: int, data: bytes, /, *, size: int = 10, **fields: Any) -> ResponseReceived:
    known: dict[str, Any] = {"leader_id": 1, "leader_epoch": 5, "snapshot_id": OFFERED}
    known |= {"size": size, "position": position, **fields}
    return ResponseReceived(in_flight(raft), FetchSnapshotResponse(unaligned_records=data, **known))


@rule("kraft 5.16", "kraft 5.22")
def test_a_snapshot_is_fetched_piece_by_piece_and_takes_the_place_of_the_log() -> None:
    raft = follower(**LOG)
    asked = request(offered(raft))
    assert (asked.snapshot_id, asked.position, asked.current_leader_epoch) == (OFFERED, 0, 5)
    assert asked.max_bytes == CONFIG.fetch_snapshot_max_bytes == 1 << 20

    assert raft.step(piece(raft, 0, b"abcdef"), 2) == [StoreSnapshotPiece(SNAPSHOT, 0, b"abcdef")]
    assert request(raft.step(SnapshotPieceStored(SNAPSHOT, 6), 3)).position == 6
    assert raft.step(piece(raft, 6, b"ghij"), 4) == [StoreSnapshotPiece(SNAPSHOT, 6, b"ghij")]
    assert raft.step(SnapshotPieceStored(SNAPSHOT, 10), 5) == [FinishSnapshot(SNAPSHOT)]
    assert raft.step(SnapshotFinished(SNAPSHOT, is_intact=True), 6) == [RestartLog(SNAPSHOT)]

    effects = raft.step(LogTruncated(100), 7)
    assert effects[:2] == [SnapshotInstalled(SNAPSHOT), HighWatermark(100)]
    (send,) = sends(effects, QuorumFetchRequest)
    assert (send.message.fetch_offset, send.message.last_fetched_epoch) == (100, 5)  # type: ignore[union-attr]
    assert (raft.core.log.start, raft.core.log.accepted_end, raft.core.log.snapshots) == (100, 100, (SNAPSHOT,))


def test_what_follows_the_snapshot_is_appended() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"x" * 10), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 10), 3)
    raft.step(SnapshotFinished(SNAPSHOT, is_intact=True), 4)
    raft.step(LogTruncated(100), 5)
    effects = raft.step(fetched(in_flight(raft), records=b"r", spans=(EpochSpan(5, 100, 103),)), 6)
    assert names(effects) == ["AppendFetched"] and raft.core.log.accepted_end == 103


@rule("kraft 5.23")
def test_the_position_that_a_voter_compares_includes_the_snapshot() -> None:
    """An empty log behind a snapshot is as up to date as the snapshot's last record."""
    log = LogState(start=100, end=100, epochs=(), snapshots=[SNAPSHOT])
    assert log.position == (5, 100)
    log.restart_at(SnapshotId(200, 7))
    log.on_truncated(200)
    assert log.position == (7, 200)
    log.accept(EpochSpan(8, 200, 201))
    assert log.position == (8, 201)


@rule("kraft 5.17")
def test_the_next_piece_waits_for_the_disk() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"abc"), 2)
    assert raft.step(TimerFired(), 3) == []


@rule("kraft 5.18")
def test_after_a_lost_connection_it_goes_on_where_it_was() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"abc"), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 3), 3)
    assert names(raft.step(RequestFailed(in_flight(raft)), 4)) == ["ProbeLeader"]
    due = raft.deadline_ms()
    assert due is not None and due <= 4 + 2 * CONFIG.retry_backoff_ms
    assert request(raft.step(TimerFired(), due)).position == 3


@rule("kraft 5.18")
def test_it_goes_on_after_an_election_that_found_the_same_leader() -> None:
    """The fetch timeout passes; the pre-votes say that the leader of the epoch is still there."""
    raft = downloading()
    raft.step(piece(raft, 0, b"abc"), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 3), 3)
    raft.step(TimerFired(), 2 + CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE
    due = raft.deadline_ms()
    assert due is not None
    assert request(raft.step(TimerFired(), due)).position == 3


@rule("kraft 5.18")
def test_another_epoch_drops_what_was_fetched() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"abc"), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 3), 3)
    asked = in_flight(raft)
    effects = raft.step(begin(6, leader_id=2), 4)
    assert DropSnapshot(SNAPSHOT) in effects and sends(effects, QuorumFetchRequest)
    raft.core.outbox.finish(max(raft.core.outbox.in_flight))
    late = FetchSnapshotResponse(
        leader_id=1, leader_epoch=5, snapshot_id=OFFERED, size=10, position=3, unaligned_records=b"def"
    )
    assert raft.step(ResponseReceived(asked, late), 5) == []


@rule("kraft 5.19")
@pytest.mark.parametrize("code", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_the_leader_lacks_is_asked_for_anew(code: ErrorCode) -> None:
    raft = downloading()
    assert raft.step(piece(raft, 0, b"", error_code=code), 2) == [DropSnapshot(SNAPSHOT)]
    due = raft.deadline_ms()
    assert due is not None and sends(raft.step(TimerFired(), due), QuorumFetchRequest)


BAD_PIECES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "another position": (b"abc", {"position": 4}),
    "another snapshot": (b"abc", {"snapshot_id": SnapshotIdMessage(end_offset=101, epoch=5)}),
    "no snapshot": (b"abc", {"snapshot_id": None}),
    "nothing": (b"", {}),
    "more than the file holds": (b"x" * 11, {}),
    "another size than before": (b"abc", {"size": 11}),
}


@rule("kraft 5.16")
@pytest.mark.parametrize(("data", "fields"), BAD_PIECES.values(), ids=BAD_PIECES.keys())
def test_a_piece_that_does_not_fit_starts_it_anew(data: bytes, fields: dict[str, Any]) -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"ab"), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 2), 3)
    assert raft.step(piece(raft, 2, data, **fields), 4) == [DropSnapshot(SNAPSHOT)]
    assert raft.core.log.accepted_end == 10


@rule("kraft 5.19")
def test_other_errors_keep_what_was_fetched() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"ab"), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 2), 3)
    assert raft.step(piece(raft, 2, b"", error_code=ErrorCode.UNKNOWN_SERVER_ERROR), 4) == []
    due = raft.deadline_ms()
    assert due is not None and request(raft.step(TimerFired(), due)).position == 2


@rule("kraft 5.21")
def test_a_damaged_snapshot_changes_nothing_and_is_fetched_again() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"x" * 10), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 10), 3)
    effects = raft.step(SnapshotFinished(SNAPSHOT, is_intact=False), 4)
    assert effects[0] == DropSnapshot(SNAPSHOT) and sends(effects, QuorumFetchRequest)
    assert (raft.core.log.accepted_end, raft.core.log.snapshots) == (10, ())


@rule("kraft 5.20")
@pytest.mark.parametrize(
    "snapshot", [(8, 5), (0, 0), (100, 6), (100, -1), (-1, 5)], ids=["committed", "bootstrap", "epoch", "none", "end"]
)
def test_an_impossible_snapshot_is_not_fetched(snapshot: tuple[int, int]) -> None:
    raft = follower(**LOG)
    raft.step(fetched(in_flight(raft), high_watermark=8), 1)
    assert offered(raft, SnapshotIdMessage(end_offset=snapshot[0], epoch=snapshot[1]), 2) == []


@rule("kraft 5.15")
def test_each_piece_renews_the_fetch_timeout() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"ab"), 900)
    raft.step(SnapshotPieceStored(SNAPSHOT, 2), 901)
    raft.step(TimerFired(), 1_500)
    assert role_of(raft) is RaftRole.FOLLOWER


def test_an_observer_installs_it_when_its_last_write_is_synced() -> None:
    raft = follower(node_id=7, **LOG)
    raft.step(fetched(in_flight(raft), records=b"r", spans=(EpochSpan(5, 10, 12),)), 1)
    raft.step(LogWritten(12), 2)
    offered(raft, now_ms=3)
    raft.step(piece(raft, 0, b"x" * 10), 4)
    raft.step(SnapshotPieceStored(SNAPSHOT, 10), 5)
    assert raft.step(SnapshotFinished(SNAPSHOT, is_intact=True), 6) == []
    assert raft.step(LogSynced(12), 7) == [RestartLog(SNAPSHOT)]


@rule("kraft 5.24")
def test_a_node_that_stands_for_election_installs_it_later() -> None:
    raft = downloading()
    raft.step(piece(raft, 0, b"x" * 10), 2)
    raft.step(SnapshotPieceStored(SNAPSHOT, 10), 3)
    effects = raft.step(TimerFired(), 2 + CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE and sends(effects, VoteRequest)
    assert raft.step(SnapshotFinished(SNAPSHOT, is_intact=True), 1_003) == []
    due = raft.deadline_ms()
    assert due is not None and raft.step(TimerFired(), due) == [RestartLog(SNAPSHOT)]


def restarted(**fields: Any) -> Raft:
    """A follower whose log began behind a snapshot when it started. It has sent its first fetch."""
    known: dict[str, Any] = {"start": 100, "end": 100, "epochs": (), "snapshots": [SNAPSHOT], **fields}
    log = LogState(**known)
    raft = make_raft(saved=QuorumState(epoch=5, leader_id=1))
    raft = Raft(
        key=raft.core.key,
        voters=raft.core.voters,
        config=CONFIG,
        rng=raft.core.rng,
        log=log,
        saved=QuorumState(epoch=5, leader_id=1),
    )
    raft.step(Started(), 0)
    return raft


@rule("kraft 5.22")
def test_what_a_snapshot_holds_is_never_truncated() -> None:
    raft = restarted(end=110, epochs=(EpochStart(5, 100),))
    with pytest.raises(TruncationBelowHighWatermark):
        raft.step(fetched(in_flight(raft), diverging_epoch=EpochEndOffset(epoch=4, end_offset=90)), 1)


@rule("kraft 5.23")
def test_a_truncation_to_the_start_leaves_the_epoch_of_the_snapshot() -> None:
    raft = restarted(end=110, epochs=(EpochStart(5, 100),))
    raft.step(fetched(in_flight(raft), diverging_epoch=EpochEndOffset(epoch=5, end_offset=100)), 1)
    (send,) = raft.step(LogTruncated(100), 2)
    assert (send.message.fetch_offset, send.message.last_fetched_epoch) == (100, 5)  # type: ignore[union-attr]


@rule("kraft 5.23")
def test_a_log_whose_last_epoch_only_a_snapshot_knows_raises_the_epoch() -> None:
    raft = make_raft(saved=QuorumState(epoch=3, leader_id=1))
    core = raft.core
    log = LogState(start=100, end=100, epochs=(), snapshots=[SNAPSHOT])
    raft = Raft(key=core.key, voters=core.voters, config=CONFIG, rng=core.rng, log=log, saved=core.saved)
    raft.step(Started(), 0)
    assert (raft.core.epoch, role_of(raft)) == (5, RaftRole.UNATTACHED)
