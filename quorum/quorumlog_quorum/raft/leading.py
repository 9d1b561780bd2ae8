"""Leading an epoch: its first record, appends, the fetches of followers and observers, and the high watermark.

- The high watermark is the end offset that a majority has synced; of its own log the leader counts the synced end. It
  counts only once it passes the epoch's first record: records of an earlier epoch are not committed by counting
  replicas (Raft 5.4.2, KIP-595).
- A fetch is answered at once with an error, a divergence, records or a higher high watermark; else it is parked. While
  changes follow each other closely, a high watermark waits for the next records, for a few milliseconds
  (high_watermark_pacing.py).
- Voters get records as soon as they are written, because a commit waits for them. Observers wait for the commit and get
  records and high watermark in one answer: a hundred brokers take no part in a commit's time, and get half the answers.
  They are answered in rounds. A change that stands alone is told at once; of changes that follow each other, a round
  tells all since the last one, and the more observers there are, the fewer rounds.
- The driver reads the records. The answer is sent only if this node still leads then: its log can have been truncated
  otherwise.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, NO_NODE, ZERO_UUID, Epoch, NodeId, Offset, Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import EpochEndOffset, SnapshotId
from quorumlog.messages.quorum import BeginQuorumEpochRequest, QuorumFetchRequest, QuorumFetchResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import AppendLeaderChange, AppendValues, LeadershipClaimed, ReadForFetch
from quorumlog_quorum.raft.events import AppendRequested, NotLeader, RecordsRead
from quorumlog_quorum.raft.read_rounds import ReadRounds
from quorumlog_quorum.raft.replicas import Replica, Replicas
from quorumlog_quorum.raft.roles import Leader, ParkedFetch
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.rules.fetch_rule import BOOTSTRAP, Diverging, OutOfRange, Records, TakeSnapshot, fetch_answer

NEVER_AWAITED = 1 << 62  # as a read round: no read waits for the fetches of observers


def become_leader(core: Core, granting: tuple[NodeId, ...], now_ms: int) -> None:
    """The voters are told at once, so that they note this leader while it notes its leadership itself.

    Nothing else of it leaves the node before it is durable: their fetches wait for that. If it is never durable, the
    node starts again as the candidate of this epoch, and has given its followers nothing.
    """
    assert not core.log.truncating, f"node {core.node_id} leads epoch {core.epoch} before its log is cut: {core.log}"
    start = core.log.accepted_end
    role = Leader(
        epoch_start_offset=start,
        replicas=Replicas(core.voters, core.node_id, now_ms),
        rounds=ReadRounds(core.voters.others(core.node_id)),
        begin_at_ms=now_ms + core.config.begin_interval_ms,
    )
    for voter in role.replicas.voters:
        _send_begin(core, voter)
    core.become(role, epoch=core.epoch, leader_id=core.node_id, voted=core.voted)
    core.append(AppendLeaderChange(start, core.epoch, core.node_id, tuple(core.voters), granting))
    if core.history.needs_writing:  # the quorum was formatted with its voters, and this is its first leader
        core.append_members(core.history.held)


def on_append_requested(core: Core, event: AppendRequested) -> None:
    """Assign offsets, in the order of the requests. Raises NotLeader, also while leadership is handed over."""
    if not isinstance(core.role, Leader) or event.epoch != core.epoch or core.role.hand_over is not None:
        raise NotLeader(event.epoch, core.leader_id, core.epoch)
    assert event.values, "an append of nothing"
    core.append(AppendValues(core.log.accepted_end, core.epoch, event.values))


def on_fetch_request(core: Core, token: int, request: QuorumFetchRequest, now_ms: int) -> None:
    code = _refusal(core, request)
    if code is not ErrorCode.NONE:
        core.reply(token, core.refusals.fetch(code))
        return
    leader = core.role
    assert isinstance(leader, Leader)
    answer = fetch_answer(
        log_start=core.log.start,
        log_end=core.log.accepted_end,
        epochs=core.log.epochs,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_fetched_epoch,
        snapshot=core.log.latest_snapshot,
        oldest_snapshot=next((snapshot for snapshot in core.log.snapshots if snapshot != BOOTSTRAP), None),
    )
    replica = find_replica(core, leader, request.replica_id, request.replica_directory_id, now_ms)
    is_voter = _is_voter(core, request)
    if is_voter:
        leader.rounds.on_named(request.replica_id, request.read_round)
    if not isinstance(answer, Records):
        if replica is not None:
            replica.on_contact(now_ms)
        core.reply(token, _not_in_log(core, answer))
        return
    if replica is not None:
        replica.on_fetch(request.fetch_offset, core.log.written_end, now_ms)
    fetch = _to_park(core, leader, token, request, now_ms, is_voter=is_voter)
    before = core.high_watermark
    if is_voter:
        advance(core)
        leader.pace.note(core.high_watermark, now_ms)
    _serve(core, leader, fetch, now_ms, is_voter=is_voter)
    if core.high_watermark > before:
        serve_parked(core, now_ms)  # else it changes nothing for the others


def on_records_read(core: Core, event: RecordsRead) -> None:
    """A node that stopped leading in the meantime has answered already."""
    tokens = core.role.finish_reading(event.token) if isinstance(core.role, Leader) else []
    if tokens:
        snapshot = None if event.records else core.log.latest_snapshot  # the log's start has passed the offset
        offered = None if snapshot is None else SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        answer = _answer(core, event.records, snapshot_id=offered)
        for token in tokens:
            core.reply(token, answer)


def advance(core: Core) -> None:
    """An end offset changed: raise the high watermark if a majority has synced more."""
    leader = core.role
    assert isinstance(leader, Leader)
    committed = min(leader.replicas.committed(core.log.synced_end), core.log.written_end)
    if committed <= leader.epoch_start_offset:
        return
    core.raise_high_watermark(committed)
    if not leader.claimed and committed >= leader.claim_end and leader.hand_over is None:
        leader.claim()
        core.add_effect(LeadershipClaimed(core.epoch, leader.claim_end))


def serve_parked(core: Core, now_ms: int) -> None:
    """Answer each parked fetch that has something to get or whose wait is over, in the order of arrival: those of the
    voters first, then those of observers, which are looked at only if one may have something to get."""
    leader = core.role
    assert isinstance(leader, Leader)
    if leader.sorted_by != core.history.offset:
        leader.sort_parked(core.voters, core.history.offset)
    leader.pace.note(core.high_watermark, now_ms)
    for fetch in leader.take_parked():
        _serve(core, leader, fetch, now_ms, is_voter=True)
    due_ms = leader.watched_due_ms
    if due_ms is None or due_ms > now_ms:
        if core.high_watermark <= leader.watched_high_watermark:
            return
        round_ms = core.config.observer_round_ms(len(leader.replicas.observers))
        if leader.watched_at_ms + round_ms > now_ms and leader.watched_high_watermark >= 0:
            leader.hold_watching(leader.watched_at_ms + round_ms)
            return
    end = min(core.high_watermark, core.log.written_end)
    reads: dict[tuple[Offset, int], int] = {}  # by offset and most bytes: the token of the read that is under way
    for fetch in leader.take_watching(core.high_watermark, now_ms):
        token = reads.setdefault((fetch.offset, fetch.max_bytes), fetch.token) if fetch.offset < end else fetch.token
        if token == fetch.token:
            _serve(core, leader, fetch, now_ms, is_voter=False)
        else:
            leader.share_reading(token, fetch)  # most observers are at the same place


def _serve(core: Core, leader: Leader, fetch: ParkedFetch, now_ms: int, *, is_voter: bool) -> None:
    """Answer this fetch, or park it."""
    end = core.log.written_end if is_voter else min(leader.watched_high_watermark, core.log.written_end)
    is_news = (core.high_watermark if is_voter else leader.watched_high_watermark) > fetch.high_watermark
    if fetch.offset < end:
        leader.start_reading(fetch)
        core.add_effect(ReadForFetch(fetch.token, fetch.offset, fetch.max_bytes, end))
    elif (
        (is_news and not leader.holds_high_watermark_of(fetch, now_ms))
        or fetch.deadline_ms <= now_ms
        or fetch.read_round < leader.awaited_round
    ):
        core.reply(fetch.token, _answer(core, b""))
    elif is_voter:
        leader.park(fetch)
    else:
        leader.watch(fetch, min(fetch.deadline_ms, fetch.hold_until_ms) if is_news else fetch.deadline_ms)


def send_begins(core: Core, now_ms: int) -> None:
    """Send BeginQuorumEpoch to the voters that do not fetch."""
    leader = core.role
    assert isinstance(leader, Leader)
    leader.send_begin_at(now_ms + core.config.begin_interval_ms)
    for voter in leader.replicas.silent(core.config.begin_interval_ms, now_ms):
        _send_begin(core, voter)


def _send_begin(core: Core, voter: NodeId) -> None:
    endpoint = core.endpoint_of(core.node_id)
    request = BeginQuorumEpochRequest(
        leader_id=core.node_id,
        leader_epoch=core.epoch,
        voter_id=voter,
        voter_directory_id=core.voters.directory_of(voter),
        leader_endpoints=() if endpoint is None else (endpoint,),
    )
    core.send(voter, request)


def epoch_refusal(core: Core, current_leader_epoch: Epoch) -> ErrorCode:
    """Why a fetch of this epoch is refused; NONE if this node leads the epoch."""
    if current_leader_epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(core.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _refusal(core: Core, request: QuorumFetchRequest) -> ErrorCode:
    code = epoch_refusal(core, request.current_leader_epoch)
    if code is not ErrorCode.NONE:
        return code
    if not _is_possible(request) or request.replica_id == core.node_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _is_possible(request: QuorumFetchRequest) -> bool:
    if request.replica_id < NO_NODE or len(request.replica_directory_id) not in (0, len(ZERO_UUID)):
        return False
    if request.fetch_offset < 0 or request.last_fetched_epoch < NO_EPOCH:
        return False
    # Only an empty log has no last epoch; without one, positions cannot be compared.
    return (request.last_fetched_epoch == NO_EPOCH) == (request.fetch_offset == 0)


def _is_voter(core: Core, request: QuorumFetchRequest) -> bool:
    return core.voters.names(VoterKey(request.replica_id, request.replica_directory_id or ZERO_UUID))


def find_replica(core: Core, leader: Leader, node_id: NodeId, directory_id: Uuid, now_ms: int) -> Replica | None:
    """The replica whose fetch names this node and directory; None if it is not recorded."""
    if node_id == NO_NODE:
        return None
    key = VoterKey(node_id, directory_id or ZERO_UUID)
    if core.voters.names(key):
        return leader.replicas.voters[key.node_id]
    config = core.config
    return leader.replicas.observer(key, config.max_replicas_in_view, config.observer_session_ms, now_ms)


def _to_park(
    core: Core, leader: Leader, token: int, request: QuorumFetchRequest, now_ms: int, *, is_voter: bool
) -> ParkedFetch:
    """A fetch as it is parked, unless there is anything to get at once."""
    room = len(leader.parked) + len(leader.watching) < core.config.max_parked_fetches
    wait_ms = max(0, min(request.max_wait_ms, core.config.fetch_max_wait_ms)) if room else 0
    return ParkedFetch(
        token=token,
        key=VoterKey(request.replica_id, request.replica_directory_id or ZERO_UUID),
        offset=request.fetch_offset,
        max_bytes=max(0, min(request.max_bytes, core.config.fetch_max_bytes)),
        high_watermark=request.high_watermark,
        deadline_ms=now_ms + wait_ms,
        hold_until_ms=now_ms + core.config.high_watermark_hold_ms,
        read_round=leader.rounds.meant(request.read_round) if is_voter else NEVER_AWAITED,
    )


def _not_in_log(core: Core, answer: Diverging | TakeSnapshot | OutOfRange) -> QuorumFetchResponse:
    """The answer to a fetch whose position is not in this log."""
    if isinstance(answer, OutOfRange):
        return core.refusals.fetch(ErrorCode.OFFSET_OUT_OF_RANGE)
    if isinstance(answer, TakeSnapshot):
        return _answer(core, b"", snapshot_id=SnapshotId(end_offset=answer.offset, epoch=answer.epoch))
    return _answer(core, b"", diverging=EpochEndOffset(epoch=answer.epoch, end_offset=answer.end_offset))


def _answer(
    core: Core, records: Buffer, *, diverging: EpochEndOffset | None = None, snapshot_id: SnapshotId | None = None
) -> QuorumFetchResponse:
    return QuorumFetchResponse(
        leader_id=core.node_id,
        leader_epoch=core.epoch,
        high_watermark=core.high_watermark,
        log_start_offset=core.log.start,
        diverging_epoch=diverging,
        snapshot_id=snapshot_id,
        records=records,
        read_round=core.role.rounds.newest if isinstance(core.role, Leader) else 0,
    )
