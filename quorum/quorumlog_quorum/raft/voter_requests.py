"""What a follower asks of its leader about itself: to be updated as a voter, or, where it may, to be made one.

- A voter tells its endpoints and its levels of kraft.version, where the set in force says otherwise. With kraft.version
  0 it tells every new leader, which keeps that in memory for an upgrade.
- With `controller.quorum.auto.join.enable` a controller that is no voter joins: it first removes its former self on
  another directory, then adds itself. It does so once in the life of its directory. What an operator has removed stays
  removed: a directory that a committed set has named never joins again by itself. Brokers alone never join.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import VoterRequest, VoterResponse
from quorumlog_quorum.raft.membership import MAX_LEVEL, MIN_LEVEL
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.roles import Follower, VoterRequestState
from quorumlog_quorum.raft.voters import DYNAMIC_LEVEL


def ask_if_due(core: Core, now_ms: int) -> None:
    """After each event."""
    _note_joined(core)
    due_at_ms = ask_at_ms(core)
    if due_at_ms is None or due_at_ms > now_ms:
        return
    request, state = _wanted(core), _state(core)
    assert request is not None and state is not None and core.leader_id is not None
    extra_ms = core.config.auto_join_timeout_ms if isinstance(request, AddRaftVoterRequest) else 0
    state.on_sent(core.send(core.leader_id, request, extra_ms=extra_ms))


def ask_at_ms(core: Core) -> int | None:
    """When the next request is due; None: there is nothing to ask for, or a request is in flight."""
    state = _state(core)
    if state is None or state.in_flight is not None or _wanted(core) is None:
        return None
    return state.due_at_ms


def on_voter_response(
    core: Core, correlation: int, request: InFlightRequest, response: VoterResponse | None, now_ms: int
) -> None:
    """response: None if there is none."""
    state = _state(core)
    if state is None or state.in_flight != correlation:
        return
    done = response is not None and response.error_code == ErrorCode.NONE
    told = done and isinstance(request.message, UpdateRaftVoterRequest)
    removed = done and isinstance(request.message, RemoveRaftVoterRequest)
    wait_ms = core.config.retry_backoff_ms if removed else core.config.voter_request_retry_ms
    state.on_done(now_ms + wait_ms, is_told=told)


def _state(core: Core) -> VoterRequestState | None:
    """None unless this node follows a leader and has copied from it."""
    if isinstance(core.role, Follower) and core.role.has_fetched and not core.shutting_down:
        return core.role.voter_request
    return None


def _wanted(core: Core) -> VoterRequest | None:
    membership = core.membership
    if not membership.endpoints:
        return None
    if core.is_voter:
        return None if _is_told(core) else _update(core)
    if not (membership.can_become_voter and membership.auto_join) or core.has_joined:
        return None
    return _join(core) if core.history.level >= DYNAMIC_LEVEL else None


def _is_told(core: Core) -> bool:
    if core.history.level < DYNAMIC_LEVEL:
        return isinstance(core.role, Follower) and core.role.voter_request.is_told
    return core.voters.by_id[core.node_id] == core.membership.as_voter(core.key)


def _update(core: Core) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        current_leader_epoch=core.epoch,
        voter_id=core.node_id,
        voter_directory_id=core.key.directory_id,
        listeners=core.membership.endpoints,
        min_kraft_version=MIN_LEVEL,
        max_kraft_version=MAX_LEVEL,
    )


def _join(core: Core) -> VoterRequest:
    former = core.voters.by_id.get(core.node_id)
    if former is not None:
        return RemoveRaftVoterRequest(voter_id=core.node_id, voter_directory_id=former.key.directory_id)
    return AddRaftVoterRequest(
        timeout_ms=core.config.auto_join_timeout_ms,
        voter_id=core.node_id,
        voter_directory_id=core.key.directory_id,
        listeners=core.membership.endpoints,
        ack_when_committed=False,
    )


def _note_joined(core: Core) -> None:
    offset = core.history.offset
    if core.has_joined or offset is None or not core.is_voter or core.history.level < DYNAMIC_LEVEL:
        return
    if offset < core.high_watermark:
        core.note_joined()
