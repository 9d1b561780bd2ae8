"""Following a leader by fetching from it. Observers also find the leader by fetching.

A voter sends its next fetch only when the records of the last one are synced: the fetch offset is the acknowledgement.
So does a controller that is no voter: a leader may count it before it knows. Other observers wait for the write only.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.quorum import FetchSnapshotResponse, QuorumFetchRequest, QuorumFetchResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import AppendFetched, ProbeLeader
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.read_rounds import NONE_TOLD
from quorumlog_quorum.raft.roles import FetchState, Follower, Prospective, Unattached
from quorumlog_quorum.raft.snapshot_fetching import fetch_snapshot_if_due, on_snapshot_offered, on_snapshot_response
from quorumlog_storage.rules.fetch_rule import Diverging, truncation_point


class TruncationBelowHighWatermark(Exception):
    """The leader's log diverges below this node's high watermark: one of the two logs has lost committed records."""

    def __init__(self, point: Offset, high_watermark: Offset, leader_id: NodeId) -> None:
        super().__init__(
            f"leader {leader_id} asks to truncate the log to {point}, below its committed end {high_watermark}; "
            "a voter came back with an older disk; stop, compare the logs of all voters, restore the longest"
        )
        self.point, self.high_watermark, self.leader_id = point, high_watermark, leader_id


def fetch_state(core: Core) -> FetchState | None:
    """None in a role that does not fetch."""
    return core.role.fetch if isinstance(core.role, Follower | Unattached) else None


def fetch_if_due(core: Core, now_ms: int) -> None:
    """Send the next fetch, unless one is in flight, it is too early, or the disk still writes the last one."""
    fetch = fetch_state(core)
    if fetch is None or fetch.in_flight is not None or core.shutting_down or not _is_ready(core):
        return
    if core.download is not None and isinstance(core.role, Follower):
        fetch_snapshot_if_due(core, fetch, now_ms)
        return
    if fetch.retry_at_ms is not None and now_ms < fetch.retry_at_ms:
        return
    source = _source(core)
    if source is None:
        return
    request = QuorumFetchRequest(
        replica_id=core.node_id,
        replica_directory_id=core.key.directory_id,
        current_leader_epoch=core.epoch,
        fetch_offset=core.log.accepted_end,
        last_fetched_epoch=core.log.last_epoch,
        max_wait_ms=core.config.fetch_max_wait_ms,
        max_bytes=core.config.fetch_max_bytes,
        high_watermark=core.high_watermark,
        read_round=core.role.read_round if isinstance(core.role, Follower) else NONE_TOLD,
    )
    fetch.on_sent(core.send(source, request, extra_ms=core.config.fetch_max_wait_ms))


def on_fetch_response(
    core: Core,
    correlation: int,
    request: InFlightRequest,
    response: QuorumFetchResponse | FetchSnapshotResponse,
    spans: tuple[EpochSpan, ...] | None,
    now_ms: int,
) -> None:
    fetch = fetch_state(core)
    if fetch is None or fetch.in_flight != correlation:
        return  # the answer to a fetch of an earlier role or leader
    fetch.on_done()
    if isinstance(response, FetchSnapshotResponse):
        if not on_snapshot_response(core, fetch, request, response, now_ms):
            retry_later(core, fetch, now_ms)
        return
    good = response.error_code == ErrorCode.NONE and isinstance(core.role, Follower) and spans is not None
    if not good or not _is_from_leader(core, request, response):
        retry_later(core, fetch, now_ms)
        return
    assert spans is not None
    _on_good_answer(core, response, spans, now_ms)


def on_fetch_failed(core: Core, correlation: int, request: InFlightRequest, now_ms: int) -> None:
    fetch = fetch_state(core)
    if fetch is not None and fetch.in_flight == correlation:
        fetch.on_done()
        retry_later(core, fetch, now_ms)
    if request.to == core.leader_id and isinstance(core.role, Follower | Prospective):
        core.add_effect(ProbeLeader(request.to, core.epoch))


def learn_high_watermark(core: Core) -> None:
    """Take over the leader's high watermark, as far as the own log reaches."""
    assert isinstance(core.role, Follower)
    core.raise_high_watermark(min(core.role.offered_high_watermark, core.readable_end))
    if not core.is_whole and _holds_all_committed(core, core.role.offered_high_watermark):
        core.regain_records()


def _holds_all_committed(core: Core, high_watermark: Offset) -> bool:
    """Whether everything is on disk here that was committed before the leader's own epoch, and in it so far.

    high_watermark: the leader's. Only once a record of its own epoch is committed does it cover all that others have
    committed before (Raft §5.4.2).
    """
    log = core.log
    if log.last_epoch != core.epoch or log.synced_end < high_watermark:
        return False
    if not log.epochs.entries:  # the log begins behind a snapshot whose last record is of this epoch
        return high_watermark >= log.start
    return high_watermark > log.epochs.entries[-1].start_offset


def on_observer_fetch_timeout(core: Core, now_ms: int) -> None:
    """An observer, or a voter that cannot elect, without a good answer from its leader. It waits for another leader."""
    assert isinstance(core.role, Follower) and not core.can_elect
    core.become_unattached(core.epoch, now_ms)


def _is_ready(core: Core) -> bool:
    if core.syncs_first:
        return core.log.settled
    return core.log.written_end == core.log.accepted_end and not core.log.truncating


def _source(core: Core) -> NodeId | None:
    """The node to fetch from: the leader; for an observer that knows no leader any voter or bootstrap server."""
    if core.leader_id is not None:
        return core.leader_id
    if core.is_voter:
        return None  # a voter learns of the leader by BeginQuorumEpoch, or becomes the leader
    sources = (*core.voters.others(core.node_id), *core.membership.bootstrap_ids)
    return core.rng.choice(sources) if sources else None


def _is_from_leader(core: Core, request: InFlightRequest, response: QuorumFetchResponse) -> bool:
    """Whether the answer comes from the leader that this node follows, to a fetch of this epoch."""
    asked = request.message
    assert isinstance(asked, QuorumFetchRequest)
    return request.to == core.leader_id and asked.current_leader_epoch == core.epoch == response.leader_epoch


def _on_good_answer(core: Core, response: QuorumFetchResponse, spans: tuple[EpochSpan, ...], now_ms: int) -> None:
    """At most one of divergence, snapshot and records is in the answer."""
    role = core.role
    assert isinstance(role, Follower) and core.leader_id is not None
    role.on_good_answer(fetch_by_ms=now_ms + core.config.fetch_timeout_ms, read_round=response.read_round)
    if response.snapshot_id is not None:
        if not on_snapshot_offered(core, response.snapshot_id):
            retry_later(core, role.fetch, now_ms)
        return
    if response.diverging_epoch is not None:
        diverging = Diverging(response.diverging_epoch.epoch, response.diverging_epoch.end_offset)
        _truncate(core, role, diverging, now_ms)
        return
    if spans:
        if not _continues(core, spans):
            retry_later(core, role.fetch, now_ms)
            return
        core.append_fetched(AppendFetched(response.records, spans))
    role.offer_high_watermark(response.high_watermark)
    learn_high_watermark(core)


def _continues(core: Core, spans: tuple[EpochSpan, ...]) -> bool:
    """Whether the batches continue the own log without a gap, with epochs that rise and do not pass the leader's."""
    end, epoch = core.log.accepted_end, core.log.last_epoch
    for span in spans:
        if span.first_offset != end or span.end_offset <= end or not epoch <= span.epoch <= core.epoch:
            return False
        end, epoch = span.end_offset, span.epoch
    return True


def _truncate(core: Core, role: Follower, diverging: Diverging, now_ms: int) -> None:
    assert core.leader_id is not None
    if not core.log.settled:  # an observer's last write is not synced yet: fetch again later
        retry_later(core, role.fetch, now_ms)
        return
    point = truncation_point(core.log.epochs, core.log.accepted_end, diverging)
    committed_end = max(core.high_watermark, core.log.committed_floor)
    if point < committed_end:
        raise TruncationBelowHighWatermark(point, committed_end, core.leader_id)
    if point >= core.log.accepted_end:  # the leader claims a divergence where the logs agree
        retry_later(core, role.fetch, now_ms)
        return
    core.truncate(point)


def retry_later(core: Core, fetch: FetchState, now_ms: int) -> None:
    backoff_ms = core.config.retry_backoff_ms
    fetch.retry_at(now_ms + backoff_ms + core.rng.randrange(backoff_ms))
