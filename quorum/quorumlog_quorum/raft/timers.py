"""The next deadline of each role: when a TimerFired event is due."""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.roles import Candidate, FetchState, Follower, Leader, Prospective, Resigned, Unattached
from quorumlog_quorum.raft.voter_change import ChangePhase
from quorumlog_quorum.raft.voter_requests import ask_at_ms


def deadline_ms(core: Core) -> int | None:
    role = core.role  # a leader with many observers is asked most often
    return min(_leader_deadlines(core, role) if isinstance(role, Leader) else _deadlines(core), default=None)


def _deadlines(core: Core) -> Iterator[int]:
    match core.role:
        case Unattached(election_at_ms=election_at_ms, fetch=fetch):
            if election_at_ms is not None:
                yield election_at_ms
            if not core.is_voter:
                yield from _fetch_deadlines(core, fetch)
        case (Prospective() | Candidate()) as role:
            yield role.election_at_ms
            if role.votes.retry_at_ms is not None:
                yield role.votes.retry_at_ms
        case Follower(fetch_by_ms=fetch_by_ms, fetch=fetch):
            if not core.shutting_down:
                yield fetch_by_ms
                yield from _fetch_deadlines(core, fetch)
                ask_ms = ask_at_ms(core)
                if ask_ms is not None:
                    yield ask_ms
        case Resigned() as resigned:
            yield from _resigned_deadlines(resigned)


def _fetch_deadlines(core: Core, fetch: FetchState) -> Iterator[int]:
    if fetch.in_flight is None and fetch.retry_at_ms is not None and not core.shutting_down:
        yield fetch.retry_at_ms


def _leader_deadlines(core: Core, leader: Leader) -> Iterator[int]:
    if leader.replicas.voters:
        yield leader.begin_at_ms
    lost_at_ms = leader.replicas.quorum_lost_at_ms(core.config.check_quorum_timeout_ms)
    if lost_at_ms is not None:
        yield lost_at_ms
    if leader.hand_over is not None:
        yield leader.hand_over.until_ms
    for parked in leader.parked:
        yield parked.deadline_ms
        if core.high_watermark > parked.high_watermark:  # it waits for records
            yield parked.alone_ms
    if leader.watched_due_ms is not None:
        yield leader.watched_due_ms
    if leader.change is not None and (leader.change.token is not None or leader.change.phase is not ChangePhase.COMMIT):
        yield leader.change.deadline_ms


def _resigned_deadlines(resigned: Resigned) -> Iterator[int]:
    if resigned.election_at_ms is not None:
        yield resigned.election_at_ms
    if resigned.shutdown_by_ms is not None:
        yield resigned.shutdown_by_ms
    for due_at_ms in resigned.unacked.values():
        if due_at_ms is not None:
            yield due_at_ms
