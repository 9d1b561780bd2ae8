"""Fetching, truncating, learning the high watermark; observers.

Sources: KIP-595, Kafka's `KafkaRaftClientTest`.
"""

from __future__ import annotations

from typing import Any

import pytest
from raft_samples import CONFIG, fetched, follower, make_raft, names, role_of, sends

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.quorum import QuorumFetchRequest
from quorumlog_quorum.raft.effects import HighWatermark, ProbeLeader, TruncateTo
from quorumlog_quorum.raft.events import LogSynced, LogTruncated, LogWritten, RequestFailed, Started, TimerFired
from quorumlog_quorum.raft.following import TruncationBelowHighWatermark
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

LOG: dict[str, Any] = {"end": 10, "epochs": (EpochStart(4, 0),)}
SPAN = (EpochSpan(5, 10, 12),)


def in_flight(raft: Raft) -> int:
    (correlation,) = (c for c, f in raft.core.outbox.in_flight.items() if isinstance(f.message, QuorumFetchRequest))
    return correlation


@rule("kraft 4.8")
def test_the_next_fetch_waits_for_the_sync() -> None:
    raft = follower(**LOG)
    assert names(raft.step(fetched(in_flight(raft), records=b"r", spans=SPAN), 1)) == ["AppendFetched"]
    assert raft.step(LogWritten(12), 2) == []
    (send,) = raft.step(LogSynced(12), 3)
    assert sends([send], QuorumFetchRequest)
    assert (send.message.fetch_offset, send.message.last_fetched_epoch) == (12, 5)  # type: ignore[union-attr]


def test_an_observer_waits_for_the_write_only() -> None:
    raft = follower(node_id=7, **LOG)
    raft.step(fetched(in_flight(raft), records=b"r", spans=SPAN), 1)
    assert names(raft.step(LogWritten(12), 2)) == ["QuorumFetchRequest"]


@rule("kraft 4.11")
def test_the_high_watermark_of_a_voter_never_passes_its_synced_end() -> None:
    raft = follower(**LOG)
    effects = raft.step(fetched(in_flight(raft), records=b"r", spans=SPAN, high_watermark=12), 1)
    assert HighWatermark(10) in effects
    assert raft.step(LogWritten(12), 2) == []
    assert HighWatermark(12) in raft.step(LogSynced(12), 3)


@rule("kraft 4.11")
def test_a_smaller_high_watermark_is_ignored() -> None:
    raft = follower(**LOG)
    raft.step(fetched(in_flight(raft), high_watermark=9), 1)
    raft.step(fetched(in_flight(raft), high_watermark=3), 2)
    assert raft.core.high_watermark == 9


@rule("kraft 4.9")
@pytest.mark.parametrize(
    "spans",
    [
        None,
        (EpochSpan(5, 11, 12),),
        (EpochSpan(5, 9, 12),),
        (EpochSpan(6, 10, 12),),
        (EpochSpan(3, 10, 12),),
        (EpochSpan(5, 10, 12), EpochSpan(4, 12, 13)),
        (EpochSpan(5, 10, 11), EpochSpan(5, 12, 13)),
    ],
    ids=["corrupt", "gap", "overlap", "later epoch", "earlier epoch", "epoch falls", "gap between"],
)
def test_records_that_do_not_fit_are_dropped(spans: tuple[EpochSpan, ...] | None) -> None:
    raft = follower(**LOG)
    effects = raft.step(fetched(in_flight(raft), records=b"r", spans=spans), 1)
    assert effects == [] and raft.core.log.accepted_end == 10
    assert raft.deadline_ms() is not None and raft.deadline_ms() <= 1 + 2 * CONFIG.retry_backoff_ms  # type: ignore[operator]


@rule("kraft 4.4")
def test_divergence_truncates_before_the_next_fetch() -> None:
    raft = follower(end=10, epochs=(EpochStart(3, 0), EpochStart(4, 6)))
    effects = raft.step(fetched(in_flight(raft), diverging_epoch=EpochEndOffset(epoch=3, end_offset=8)), 1)
    assert effects == [TruncateTo(6)]
    (send,) = raft.step(LogTruncated(6), 2)
    assert (send.message.fetch_offset, send.message.last_fetched_epoch) == (6, 3)  # type: ignore[union-attr]


@rule("kraft 4.5")
def test_committed_records_are_never_truncated() -> None:
    raft = follower(**LOG)
    raft.step(fetched(in_flight(raft), high_watermark=8), 1)
    with pytest.raises(TruncationBelowHighWatermark):
        raft.step(fetched(in_flight(raft), diverging_epoch=EpochEndOffset(epoch=4, end_offset=7)), 2)


def test_after_a_divergence_that_changes_nothing_the_fetch_is_repeated_later() -> None:
    raft = follower(**LOG)
    assert raft.step(fetched(in_flight(raft), diverging_epoch=EpochEndOffset(epoch=4, end_offset=10)), 1) == []


@rule("kraft 4.12")
def test_an_answer_after_the_fetch_timeout_is_ignored() -> None:
    raft = follower(**LOG)
    asked = in_flight(raft)
    raft.step(TimerFired(), CONFIG.fetch_timeout_ms)
    assert role_of(raft) is RaftRole.PROSPECTIVE
    assert raft.step(fetched(asked, records=b"r", spans=SPAN), 1_001) == []


@rule("kraft 4.13")
def test_a_good_answer_renews_the_fetch_timeout_and_a_bad_one_does_not() -> None:
    raft = follower(**LOG)
    raft.step(fetched(in_flight(raft)), 600)
    raft.step(fetched(in_flight(raft), error_code=ErrorCode.UNKNOWN_SERVER_ERROR), 900)
    raft.step(TimerFired(), 1_599)
    assert role_of(raft) is RaftRole.FOLLOWER
    raft.step(TimerFired(), 1_600)
    assert role_of(raft) is RaftRole.PROSPECTIVE


def test_after_a_failed_fetch_the_leader_is_probed_and_the_fetch_repeated() -> None:
    raft = follower(**LOG)
    assert ProbeLeader(1, 5) in raft.step(RequestFailed(in_flight(raft)), 10)
    due = raft.deadline_ms()
    assert due is not None and due < 10 + 2 * CONFIG.retry_backoff_ms
    assert names(raft.step(TimerFired(), due)) == ["QuorumFetchRequest"]


def test_a_follower_learns_of_the_new_leader_from_an_answer() -> None:
    raft = follower(1, **LOG)
    error = ErrorCode.FENCED_LEADER_EPOCH
    effects = raft.step(fetched(in_flight(raft), error_code=error, leader_id=2, epoch=6), 1)
    assert (role_of(raft), raft.core.leader_id, raft.core.epoch) == (RaftRole.FOLLOWER, 2, 6)
    assert names(effects) == ["PersistQuorumState", "LeaderChanged", "QuorumFetchRequest"]


@rule("kraft 1.2", "kraft 4.14")
def test_an_observer_looks_for_the_leader_and_never_elects() -> None:
    raft = make_raft(7, saved=QuorumState(epoch=2))
    (send,) = sends(raft.step(Started(), 0), QuorumFetchRequest)
    assert send.to in (0, 1, 2)
    raft.step(fetched(send.correlation, error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=1, epoch=5), 1)
    assert (role_of(raft), raft.core.leader_id) == (RaftRole.FOLLOWER, 1)
    raft.step(TimerFired(), 1 + CONFIG.fetch_timeout_ms)
    assert (role_of(raft), raft.core.leader_id, raft.core.epoch) == (RaftRole.UNATTACHED, None, 5)


@rule("kraft 4.14")
def test_an_observer_follows_the_leader_that_answers_its_fetch() -> None:
    raft = make_raft(7, saved=QuorumState(epoch=5))
    (send,) = sends(raft.step(Started(), 0), QuorumFetchRequest)
    raft.step(fetched(send.correlation, leader_id=send.to), 1)
    assert (role_of(raft), raft.core.leader_id) == (RaftRole.FOLLOWER, send.to)
