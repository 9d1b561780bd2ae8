"""Fetching the leader's snapshot, for a follower or observer whose position the leader's log does not hold any more.

Pieces are asked for one after the other, by position; the next one when the last is written. A request that failed is
repeated from the same position while the epoch lasts; another epoch begins anew (KIP-595). The file is verified as a
whole. Then it takes the place of the log, and fetching goes on where it ends.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.common import SnapshotId as SnapshotIdMessage
from quorumlog.messages.quorum import FetchSnapshotRequest, FetchSnapshotResponse
from quorumlog.records.control import KRaftVersion
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import FinishSnapshot, StoreSnapshotPiece
from quorumlog_quorum.raft.events import SnapshotFinished, SnapshotPieceStored
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.roles import FetchState, Follower
from quorumlog_quorum.raft.snapshot_download import SnapshotDownload
from quorumlog_storage.rules.fetch_rule import SnapshotId

_START_AGAIN = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


def on_snapshot_offered(core: Core, offered: SnapshotIdMessage) -> bool:
    """The leader answers a fetch with a snapshot. Returns False if it is impossible; then nothing has changed."""
    snapshot = SnapshotId(offered.end_offset, offered.epoch)
    known = max(core.high_watermark, core.log.committed_floor)
    if snapshot.offset <= known or not 0 <= snapshot.epoch <= core.epoch:
        return False
    if core.download is None or core.download.snapshot != snapshot:
        core.begin_download(snapshot)
    return True


def fetch_snapshot_if_due(core: Core, fetch: FetchState, now_ms: int) -> None:
    """Go on with the download, of which no request is in flight."""
    download = core.download
    assert download is not None and isinstance(core.role, Follower) and fetch.in_flight is None
    if download.is_finished:
        if core.log.settled:  # an observer's last write may not be synced yet
            core.install_download()
        return
    if download.is_busy or (fetch.retry_at_ms is not None and now_ms < fetch.retry_at_ms):
        return
    assert core.leader_id is not None
    request = FetchSnapshotRequest(
        replica_id=core.node_id,
        replica_directory_id=core.key.directory_id,
        current_leader_epoch=core.epoch,
        snapshot_id=SnapshotIdMessage(end_offset=download.snapshot.offset, epoch=download.snapshot.epoch),
        position=download.position,
        max_bytes=core.config.fetch_snapshot_max_bytes,
    )
    fetch.on_sent(core.send(core.leader_id, request))


def on_snapshot_response(
    core: Core, fetch: FetchState, request: InFlightRequest, response: FetchSnapshotResponse, now_ms: int
) -> bool:
    """The answer to the fetch that was in flight. Returns False if the next request has to wait."""
    role, download, asked = core.role, core.download, request.message
    assert isinstance(asked, FetchSnapshotRequest)
    is_from_leader = request.to == core.leader_id and asked.current_leader_epoch == core.epoch == response.leader_epoch
    if not isinstance(role, Follower) or download is None or not is_from_leader:
        return False
    if response.error_code in _START_AGAIN:
        core.drop_download()
        return False
    if response.error_code != ErrorCode.NONE:
        return False
    if not _continues(download, response):
        core.drop_download()
        return False
    role.on_good_answer(fetch_by_ms=now_ms + core.config.fetch_timeout_ms, read_round=0)
    position = download.position
    download.on_piece(response.size, len(response.unaligned_records))
    core.add_effect(StoreSnapshotPiece(download.snapshot, position, response.unaligned_records))
    return True


def on_piece_stored(core: Core, event: SnapshotPieceStored) -> None:
    """A piece of a download that was dropped meanwhile is of no interest."""
    download = core.download
    if download is None or (download.snapshot, download.position) != (event.snapshot, event.size):
        return
    download.on_stored()
    if download.is_complete:
        download.on_finishing()
        core.add_effect(FinishSnapshot(download.snapshot))


def on_snapshot_finished(core: Core, event: SnapshotFinished) -> None:
    """The next step of a follower puts it in the place of the log."""
    download = core.download
    if download is None or download.snapshot != event.snapshot or not download.is_complete:
        return
    if event.is_intact:
        level = event.kraft_version
        download.on_finished(None if level is None else KRaftVersion(level), event.voters)
    else:
        core.drop_download()


def _continues(download: SnapshotDownload, response: FetchSnapshotResponse) -> bool:
    """Whether the answer holds the next bytes of this snapshot, of the size that the first answer named."""
    found = response.snapshot_id
    if found is None or (found.end_offset, found.epoch) != (download.snapshot.offset, download.snapshot.epoch):
        return False
    end = response.position + len(response.unaligned_records)
    return response.position == download.position < end <= response.size and download.size in (None, response.size)
