"""Serving snapshots to followers and observers, by position. Any bytes of the file; a request counts as contact.

The shell reads the file. The answer is sent only if this node still leads then.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, ZERO_UUID
from quorumlog.messages.quorum import FetchSnapshotRequest, FetchSnapshotResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import ReadSnapshot
from quorumlog_quorum.raft.events import SnapshotRead
from quorumlog_quorum.raft.leading import epoch_refusal, find_replica
from quorumlog_quorum.raft.roles import Leader
from quorumlog_storage.rules.fetch_rule import SnapshotId


def on_fetch_snapshot_request(core: Core, token: int, request: FetchSnapshotRequest, now_ms: int) -> None:
    code = _refusal(core, request)
    if code is ErrorCode.NONE:
        leader = core.role
        assert isinstance(leader, Leader) and request.snapshot_id is not None
        replica = find_replica(core, leader, request.replica_id, request.replica_directory_id, now_ms)
        if replica is not None:
            replica.on_contact(now_ms)
        snapshot = SnapshotId(request.snapshot_id.end_offset, request.snapshot_id.epoch)
        if snapshot in core.log.snapshots and snapshot.offset > 0:
            max_bytes = max(1, min(request.max_bytes, core.config.fetch_snapshot_max_bytes))
            leader.start_reading_snapshot(token, request)
            core.add_effect(ReadSnapshot(token, snapshot, request.position, max_bytes))
            return
        code = ErrorCode.SNAPSHOT_NOT_FOUND
    core.reply(token, core.refusals.snapshot(code))


def on_snapshot_read(core: Core, event: SnapshotRead) -> None:
    """A node that stopped leading in the meantime has answered already."""
    request = core.role.finish_reading_snapshot(event.token) if isinstance(core.role, Leader) else None
    if request is None:
        return
    if event.size < 0:
        core.reply(event.token, core.refusals.snapshot(ErrorCode.SNAPSHOT_NOT_FOUND))
    elif request.position >= event.size:
        core.reply(event.token, core.refusals.snapshot(ErrorCode.POSITION_OUT_OF_RANGE))
    else:
        core.reply(
            event.token,
            FetchSnapshotResponse(
                leader_id=core.node_id,
                leader_epoch=core.epoch,
                snapshot_id=request.snapshot_id,
                size=event.size,
                position=request.position,
                unaligned_records=event.data,
            ),
        )


def _refusal(core: Core, request: FetchSnapshotRequest) -> ErrorCode:
    code = epoch_refusal(core, request.current_leader_epoch)
    if code is not ErrorCode.NONE:
        return code
    if request.replica_id < NO_NODE or request.replica_id == core.node_id or request.snapshot_id is None:
        return ErrorCode.INVALID_REQUEST
    if len(request.replica_directory_id) not in (0, len(ZERO_UUID)):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.POSITION_OUT_OF_RANGE if request.position < 0 else ErrorCode.NONE
