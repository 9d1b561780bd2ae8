"""Giving leadership up, and what others make of it (EndQuorumEpoch).

A leader resigns when a majority is silent, when it is shut down, and when it restarts: it may not lead the same epoch
twice, because its tail that was not synced may be gone. The best successor starts its election as soon as it is told.
"""

from __future__ import annotations

from quorum.raft.core import Core, Flight
from quorum.raft.effects import ShutdownFinished
from quorum.raft.election import start_election
from quorum.raft.roles import Follower, Leader, Prospective, Resigned, Unattached
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    PreferredCandidate,
)


def resign(core: Core, now_ms: int) -> Resigned:
    assert isinstance(core.role, Leader)
    successors = core.role.replicas.by_progress()
    role = _resigned(core, successors, now_ms)
    core.become(role, epoch=core.epoch, voted=core.voted)
    send_ends(core, now_ms)
    return role


def resume_resigned(core: Core, now_ms: int) -> None:
    """At start, after having led: the others may still follow this node's former life."""
    core.role = _resigned(core, (), now_ms)
    core.leader_id = None
    send_ends(core, now_ms)


def shut_down(core: Core, now_ms: int) -> None:
    if core.shutting_down:
        return
    core.shutting_down = True
    if isinstance(core.role, Leader) and len(core.voters) > 1:
        resign(core, now_ms).shutdown_by_ms = now_ms + core.config.request_timeout_ms
        return
    core.effects.append(ShutdownFinished())


def send_ends(core: Core, now_ms: int) -> None:
    """To every voter that has not acknowledged and is due."""
    role = core.role
    assert isinstance(role, Resigned)
    endpoint = core.voters.endpoint_of(core.node_id)
    request = EndQuorumEpochRequest(
        leader_id=core.node_id,
        leader_epoch=core.epoch,
        preferred_candidates=tuple(
            PreferredCandidate(node_id=node_id, directory_id=core.voters.directory_of(node_id))
            for node_id in role.successors
        ),
        leader_endpoints=() if endpoint is None else (endpoint,),
    )
    for voter, due_at_ms in role.unacked.items():
        if due_at_ms is not None and due_at_ms <= now_ms:
            role.unacked[voter] = None
            core.send(voter, request)


def on_end_answered(core: Core, flight: Flight, *, acknowledged: bool, now_ms: int) -> None:
    role = core.role
    if not isinstance(role, Resigned) or flight.to not in role.unacked:
        return
    if acknowledged or core.shutting_down:  # whoever cannot be told finds out by itself
        del role.unacked[flight.to]
    else:
        role.unacked[flight.to] = now_ms + core.config.retry_backoff_ms
    if core.shutting_down and not role.unacked and role.shutdown_by_ms is not None:
        _finish_shutdown(core, role)


def on_resigned_timer(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Resigned)
    if role.shutdown_by_ms is not None and role.shutdown_by_ms <= now_ms:
        _finish_shutdown(core, role)
    elif role.election_at_ms is not None and role.election_at_ms <= now_ms:
        core.become_unattached(core.epoch + 1, now_ms)  # never again in the epoch that it led
    else:
        send_ends(core, now_ms)


def on_begin_request(core: Core, token: int, request: BeginQuorumEpochRequest, now_ms: int) -> None:
    code = ErrorCode.NONE
    if request.voter_id != core.node_id or request.voter_directory_id not in (b"", core.key.directory_id):
        code = ErrorCode.INVALID_VOTER_KEY
    elif _is_impossible(core, request.leader_id, request.leader_epoch):
        code = ErrorCode.INVALID_REQUEST
    elif request.leader_epoch < core.epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        _believe(core, request.leader_id, request.leader_epoch, now_ms)
    answer = BeginQuorumEpochResponse(error_code=code, leader_id=core.leader_hint, leader_epoch=core.epoch)
    core.reply(token, answer)


def on_end_request(core: Core, token: int, request: EndQuorumEpochRequest, now_ms: int) -> None:
    code = ErrorCode.NONE
    if _is_impossible(core, request.leader_id, request.leader_epoch):
        code = ErrorCode.INVALID_REQUEST
    elif request.leader_epoch < core.epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        _let_go(core, request, now_ms)
    core.reply(token, EndQuorumEpochResponse(error_code=code, leader_id=core.leader_hint, leader_epoch=core.epoch))


def _believe(core: Core, leader_id: NodeId, epoch: int, now_ms: int) -> None:
    """The leader itself says so, even if it was thought dead. An epoch with two leaders ends the process."""
    if epoch > core.epoch or (core.leader_id is None and core.may_follow()):
        core.forsaken = None
        core.become_follower(epoch, leader_id, now_ms)
    elif core.leader_id not in (None, leader_id):
        core.one_leader(leader_id)


def _let_go(core: Core, request: EndQuorumEpochRequest, now_ms: int) -> None:
    if request.leader_epoch > core.epoch:
        core.become_unattached(request.leader_epoch, now_ms)
    names = [candidate.node_id for candidate in request.preferred_candidates]
    position = names.index(core.node_id) if core.node_id in names else None
    if names or not core.is_voter:
        delay_ms = core.config.successor_delay_ms(position, len(names))
    else:  # it restarted and knows of no progress: as if it were dead
        delay_ms = rank_delay_ms(core, request.leader_id)
    role = core.role
    if isinstance(role, Follower | Prospective) and core.leader_id == request.leader_id:
        core.forget_leader(now_ms, delay_ms)
    elif isinstance(role, Unattached) and core.leader_id is None:
        core.forsaken = (request.leader_id, request.leader_epoch)
        if role.election_at_ms is not None:
            role.election_at_ms = min(role.election_at_ms, now_ms + delay_ms)
    if position == 0 and isinstance(core.role, Unattached) and core.is_voter and not core.shutting_down:
        start_election(core, now_ms)


def rank_delay_ms(core: Core, gone: NodeId) -> int:
    """How long this voter leaves the election to survivors of lower rank."""
    return core.config.draw_rank_delay_ms(core.voters.rank(core.node_id, gone), core.rng)


def _is_impossible(core: Core, leader_id: NodeId, epoch: int) -> bool:
    """Only another voter can lead, and none before the first election."""
    return epoch < 1 or leader_id == core.node_id or leader_id not in core.voters


def _resigned(core: Core, successors: tuple[NodeId, ...], now_ms: int) -> Resigned:
    return Resigned(
        election_at_ms=core.election_at_ms(now_ms),
        successors=successors,
        unacked=dict.fromkeys(core.voters.others(core.node_id), now_ms),
    )


def _finish_shutdown(core: Core, role: Resigned) -> None:
    role.shutdown_by_ms = None
    role.unacked.clear()
    core.effects.append(ShutdownFinished())
