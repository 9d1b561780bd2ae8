"""Resigning from leadership, and the requests that announce leaders: EndQuorumEpoch and BeginQuorumEpoch.

A leader resigns when a majority of the voters is silent, when it is shut down, and when it restarts. After a restart it
must not lead the same epoch again, because records that it had not synced may be lost. The preferred successor stands
for election as soon as it receives EndQuorumEpoch. How a leader chooses it is in handing_over.py.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    PreferredCandidate,
)
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import ShutdownFinished
from quorumlog_quorum.raft.election import stand_at_once
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.roles import Follower, Leader, Prospective, Resigned, Unattached


def resign(core: Core, now_ms: int, successors: tuple[NodeId, ...], *, head_start_ms: int = 0) -> Resigned:
    """successors: all other voters, the preferred one first. head_start_ms: how much later the others are told."""
    assert isinstance(core.role, Leader)
    role = _resigned(core, successors, now_ms)
    for voter in successors[1:]:
        role.retry_end_at(voter, now_ms + head_start_ms)
    core.become(role, epoch=core.epoch, voted=core.voted)
    send_ends(core, now_ms)
    return role


def resume_resigned(core: Core, now_ms: int) -> None:
    """At start: this node led the saved epoch, and the others may still follow it."""
    core.resume(_resigned(core, (), now_ms))
    send_ends(core, now_ms)


def finish_shutdown_without_leading(core: Core) -> None:
    assert core.shutting_down
    core.add_effect(ShutdownFinished())


def send_ends(core: Core, now_ms: int) -> None:
    """Send EndQuorumEpoch to each voter that has not acknowledged it and is due."""
    role = core.role
    assert isinstance(role, Resigned)
    endpoint = core.endpoint_of(core.node_id)
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
            role.on_end_sent(voter)
            core.send(voter, request)


def on_end_answered(core: Core, request: InFlightRequest, *, acknowledged: bool, now_ms: int) -> None:
    role = core.role
    if not isinstance(role, Resigned) or request.to not in role.unacked:
        return
    if acknowledged or core.shutting_down:  # a voter that cannot be reached will notice by its fetch timeout
        role.on_end_acknowledged(request.to)
    else:
        role.retry_end_at(request.to, now_ms + core.config.retry_backoff_ms)
    if core.shutting_down and not role.unacked and role.shutdown_by_ms is not None:
        _finish_shutdown(core, role)


def on_resigned_timer(core: Core, now_ms: int) -> None:
    role = core.role
    assert isinstance(role, Resigned)
    if role.shutdown_by_ms is not None and role.shutdown_by_ms <= now_ms:
        _finish_shutdown(core, role)
    elif role.election_at_ms is not None and role.election_at_ms <= now_ms:
        core.become_unattached(core.epoch + 1, now_ms)  # it must not lead the same epoch again
    else:
        send_ends(core, now_ms)


def on_begin_request(core: Core, token: int, request: BeginQuorumEpochRequest, now_ms: int) -> None:
    code = ErrorCode.NONE
    if request.leader_epoch >= core.epoch:
        core.addresses.tell(request.leader_id, request.leader_endpoints)
    if request.voter_id != core.node_id or request.voter_directory_id not in (b"", core.key.directory_id):
        code = ErrorCode.INVALID_VOTER_KEY
    elif _is_impossible(core, request.leader_id, request.leader_epoch):
        code = ErrorCode.INVALID_REQUEST
    elif request.leader_epoch < core.epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        _follow_announced(core, request.leader_id, request.leader_epoch, now_ms)
    answer = BeginQuorumEpochResponse(error_code=code, leader_id=core.leader_hint, leader_epoch=core.epoch)
    core.reply(token, answer)


def on_end_request(core: Core, token: int, request: EndQuorumEpochRequest, now_ms: int) -> None:
    code = ErrorCode.NONE
    if _is_impossible(core, request.leader_id, request.leader_epoch):
        code = ErrorCode.INVALID_REQUEST
    elif request.leader_epoch < core.epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        _on_resignation(core, request, now_ms)
    core.reply(token, EndQuorumEpochResponse(error_code=code, leader_id=core.leader_hint, leader_epoch=core.epoch))


def _follow_announced(core: Core, leader_id: NodeId, epoch: int, now_ms: int) -> None:
    """The leader itself has spoken, so it is alive. Raises SplitBrain if another node leads its epoch."""
    if epoch > core.epoch or (core.leader_id is None and core.accepts_leader):
        core.clear_departed()
        core.become_follower(epoch, leader_id, now_ms)
    elif core.leader_id not in (None, leader_id):
        core.check_one_leader(leader_id)


def _on_resignation(core: Core, request: EndQuorumEpochRequest, now_ms: int) -> None:
    if request.leader_epoch > core.epoch:
        core.become_unattached(request.leader_epoch, now_ms)
    names = [candidate.node_id for candidate in request.preferred_candidates]
    position = names.index(core.node_id) if core.node_id in names else None
    if names or not core.is_voter:
        delay_ms = core.config.successor_delay_ms(position, len(names))
    else:  # the leader restarted and does not know the progress of others: as after its death
        delay_ms = rank_delay_ms(core, request.leader_id)
    role = core.role
    if isinstance(role, Follower | Prospective) and core.leader_id == request.leader_id:
        core.forget_leader(now_ms, delay_ms)
    elif isinstance(role, Unattached) and core.leader_id is None:
        core.mark_departed(request.leader_id, request.leader_epoch)
        role.elect_no_later_than(now_ms + delay_ms)
    if position == 0 and isinstance(core.role, Unattached) and core.can_elect and not core.shutting_down:
        stand_at_once(core, now_ms)


def rank_delay_ms(core: Core, gone: NodeId) -> int:
    """How long this voter waits for the survivors of lower rank to elect themselves. gone: the former leader."""
    return core.config.draw_rank_delay_ms(core.voters.rank(core.node_id, gone), core.rng)


def _is_impossible(core: Core, leader_id: NodeId, epoch: int) -> bool:
    """Whether this cannot be a leader: only another node can be followed, in epoch 1 or later."""
    return epoch < 1 or not core.may_lead(leader_id)


def _resigned(core: Core, successors: tuple[NodeId, ...], now_ms: int) -> Resigned:
    election_at_ms = core.election_at_ms(now_ms)
    if not core.is_voter and not core.shutting_down:  # it was removed: it leaves this epoch and looks for the leader
        election_at_ms = now_ms + core.config.draw_election_timeout_ms(core.rng)
    return Resigned(
        election_at_ms=election_at_ms,
        successors=successors,
        unacked=dict.fromkeys(core.voters.others(core.node_id), now_ms),
    )


def _finish_shutdown(core: Core, role: Resigned) -> None:
    role.finish_shutdown()
    core.add_effect(ShutdownFinished())
