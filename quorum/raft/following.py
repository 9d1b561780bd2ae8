"""Following a leader by fetching from it; observers also look for it this way.

The next fetch leaves only when what the last one brought is on disk: its offset is the acknowledgement. Observers, whom
nobody counts, wait for the write only.
"""

from __future__ import annotations

from quorum.raft.core import Core, Flight
from quorum.raft.effects import AppendFetched, ProbeLeader, TruncateTo
from quorum.raft.log_state import EpochSpan
from quorum.raft.roles import Follower, Prospective, Pull, Unattached
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse
from storage.fetch_rule import Diverging, truncation_point


class TruncationBelowHighWatermark(Exception):
    """The leader asks to cut off what is committed: this log or the leader's is not what it was."""

    def __init__(self, point: Offset, high_watermark: Offset, leader_id: NodeId) -> None:
        super().__init__(
            f"leader {leader_id} would have the metadata log cut at {point}, below its committed end {high_watermark}; "
            "a voter came back with an older disk: stop, compare the logs of all voters, restore the longest"
        )
        self.point, self.high_watermark, self.leader_id = point, high_watermark, leader_id


class SnapshotNeeded(Exception):
    """The leader's log begins after what this node has, and snapshots are not fetched yet."""

    def __init__(self, leader_id: NodeId, end_offset: Offset) -> None:
        super().__init__(
            f"leader {leader_id} offers a snapshot up to {end_offset}, not records, and this version cannot fetch one; "
            "copy the metadata log of another node to this one"
        )
        self.leader_id, self.end_offset = leader_id, end_offset


def pull_of(core: Core) -> Pull | None:
    return core.role.pull if isinstance(core.role, Follower | Unattached) else None


def fetch_if_due(core: Core, now_ms: int) -> None:
    """Send the next fetch, unless one is under way, it is too early, or the disk is not done with the last one."""
    pull = pull_of(core)
    if pull is None or pull.in_flight is not None or core.shutting_down or not _is_ready(core):
        return
    if pull.retry_at_ms is not None and now_ms < pull.retry_at_ms:
        return
    source = _source(core)
    if source is None:
        return
    pull.retry_at_ms = None
    request = QuorumFetchRequest(
        replica_id=core.node_id,
        replica_directory_id=core.key.directory_id,
        current_leader_epoch=core.epoch,
        fetch_offset=core.log.accepted_end,
        last_fetched_epoch=core.log.last_epoch,
        max_wait_ms=core.config.fetch_max_wait_ms,
        max_bytes=core.config.fetch_max_bytes,
        high_watermark=core.high_watermark,
    )
    pull.in_flight = core.send(source, request, extra_ms=core.config.fetch_max_wait_ms)


def on_fetch_response(
    core: Core,
    correlation: int,
    flight: Flight,
    response: QuorumFetchResponse,
    spans: tuple[EpochSpan, ...] | None,
    now_ms: int,
) -> None:
    pull = pull_of(core)
    if pull is None or pull.in_flight != correlation:
        return  # of another role or leader
    pull.in_flight = None
    good = response.error_code == ErrorCode.NONE and isinstance(core.role, Follower) and spans is not None
    if not good or not _is_ours(core, flight, response):
        _retry_later(core, pull, now_ms)
        return
    assert spans is not None
    _take(core, response, spans, now_ms)


def on_fetch_failed(core: Core, correlation: int, flight: Flight, now_ms: int) -> None:
    pull = pull_of(core)
    if pull is not None and pull.in_flight == correlation:
        pull.in_flight = None
        _retry_later(core, pull, now_ms)
    if flight.to == core.leader_id and isinstance(core.role, Follower | Prospective):
        core.effects.append(ProbeLeader(flight.to))


def learn_high_watermark(core: Core) -> None:
    """What the leader calls committed, as far as it is in the own log."""
    assert isinstance(core.role, Follower)
    core.raise_high_watermark(min(core.role.offered_high_watermark, core.readable_end))


def on_fetch_timeout(core: Core, now_ms: int) -> None:
    """An observer that hears nothing from its leader looks for another one; it never elects."""
    assert isinstance(core.role, Follower) and not core.is_voter
    core.become_unattached(core.epoch, now_ms)


def _is_ready(core: Core) -> bool:
    if core.is_voter:
        return core.log.settled
    return core.log.written_end == core.log.accepted_end and not core.log.truncating


def _source(core: Core) -> NodeId | None:
    """Whom to ask: the leader; any voter where an observer knows none."""
    if core.leader_id is not None:
        return core.leader_id
    if core.is_voter:
        return None  # learns of the leader by BeginQuorumEpoch, or becomes it
    voters = core.voters.others(core.node_id)
    return core.rng.choice(voters) if voters else None


def _is_ours(core: Core, flight: Flight, response: QuorumFetchResponse) -> bool:
    """Of the leader that this node follows, in this epoch."""
    asked = flight.message
    assert isinstance(asked, QuorumFetchRequest)
    return flight.to == core.leader_id and asked.current_leader_epoch == core.epoch == response.leader_epoch


def _take(core: Core, response: QuorumFetchResponse, spans: tuple[EpochSpan, ...], now_ms: int) -> None:
    """A good answer. At most one of divergence, snapshot and records is in it."""
    role = core.role
    assert isinstance(role, Follower) and core.leader_id is not None
    role.fetch_by_ms = now_ms + core.config.fetch_timeout_ms
    role.has_fetched = True
    if response.snapshot_id is not None:
        raise SnapshotNeeded(core.leader_id, response.snapshot_id.end_offset)
    if response.diverging_epoch is not None:
        diverging = Diverging(response.diverging_epoch.epoch, response.diverging_epoch.end_offset)
        _truncate(core, role, diverging, now_ms)
        return
    if spans:
        if not _continues(core, spans):
            _retry_later(core, role.pull, now_ms)
            return
        for span in spans:
            core.log.accept(span)
        core.effects.append(AppendFetched(response.records, spans))
    role.offered_high_watermark = max(role.offered_high_watermark, response.high_watermark)
    learn_high_watermark(core)


def _continues(core: Core, spans: tuple[EpochSpan, ...]) -> bool:
    """Whether the batches go on where the own log ends, without a gap, no epoch falling or past the leader's."""
    end, epoch = core.log.accepted_end, core.log.last_epoch
    for span in spans:
        if span.first_offset != end or span.end_offset <= end or not epoch <= span.epoch <= core.epoch:
            return False
        end, epoch = span.end_offset, span.epoch
    return True


def _truncate(core: Core, role: Follower, diverging: Diverging, now_ms: int) -> None:
    assert core.leader_id is not None
    if not core.log.settled:  # an observer's last write is not synced yet: ask again when it is
        _retry_later(core, role.pull, now_ms)
        return
    point = truncation_point(core.log.epochs, core.log.accepted_end, diverging)
    if point < core.high_watermark:
        raise TruncationBelowHighWatermark(point, core.high_watermark, core.leader_id)
    if point >= core.log.accepted_end:  # the answer of a confused leader: nothing would change
        _retry_later(core, role.pull, now_ms)
        return
    core.log.truncate(point)
    core.effects.append(TruncateTo(point))


def _retry_later(core: Core, pull: Pull, now_ms: int) -> None:
    backoff_ms = core.config.retry_backoff_ms
    pull.retry_at_ms = now_ms + backoff_ms + core.rng.randrange(backoff_ms)
