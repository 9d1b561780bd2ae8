"""Handing leadership over to a chosen successor, when this leader is stopped or told to.

1. The leader takes no more appends (HandOverBegun), and begins a read round.
2. The successor is the first voter, or the voter that was asked for, that has synced the whole log and has named the
   round: it is alive now. All that was appended must be committed too, so that no caller is left in doubt.
3. The leader resigns. EndQuorumEpoch names the successor first. It stands for election at once and without pre-votes,
   because the leader itself has said that it is gone; no voter that holds less can be elected instead of it.

If no voter is ready in time, a leader that is stopped resigns all the same, and one that was only asked to hand over
goes on: it claims its leadership again as soon as all that it appended is committed.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.quorum import TransferLeadershipRequest, TransferLeadershipResponse
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import HandOverBegun
from quorumlog_quorum.raft.events import ShutdownRequested
from quorumlog_quorum.raft.leading import advance, serve_parked
from quorumlog_quorum.raft.resigning import finish_shutdown_without_leading, resign
from quorumlog_quorum.raft.roles import HandOver, Leader


def on_transfer_request(core: Core, token: int, request: TransferLeadershipRequest, now_ms: int) -> None:
    """Answered when this leader resigns, with the successor that it has named, or when it goes on."""
    code, text = _refusal(core, request.to_node_id)
    if code is not ErrorCode.NONE or request.to_node_id == core.node_id:
        core.reply(token, _response(core, code, text))
        return
    _begin(core, None if request.to_node_id == NO_NODE else request.to_node_id, token, now_ms)


def on_shutdown_requested(core: Core, request: ShutdownRequested, now_ms: int) -> None:
    leader = core.role
    if core.shutting_down:
        if request.at_once and isinstance(leader, Leader):
            _resign(core, leader, None, now_ms)
        return
    core.begin_shutdown()
    if not isinstance(leader, Leader) or not core.voters.others(core.node_id):
        finish_shutdown_without_leading(core)
    elif request.at_once:
        _resign(core, leader, None, now_ms)
    elif leader.hand_over is None:
        _begin(core, None, None, now_ms)


def go_on(core: Core, now_ms: int) -> None:
    """After each event of a leader: resign if a successor is ready, or end a hand-over whose time is over."""
    leader = core.role
    if not isinstance(leader, Leader) or leader.hand_over is None:
        return
    hand_over = leader.hand_over
    successor = _ready_successor(core, leader, hand_over)
    if successor is not None:
        if hand_over.token is not None:
            core.reply(hand_over.token, _response(core, ErrorCode.NONE, "", successor))
            leader.end_hand_over(core.log.accepted_end)
        _resign(core, leader, successor, now_ms)
    elif hand_over.until_ms <= now_ms:
        _give_up(core, leader, hand_over, now_ms)


def _refusal(core: Core, wanted: NodeId) -> tuple[ErrorCode, str]:
    leader = core.role
    if not isinstance(leader, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {core.node_id} does not lead the quorum"
    if wanted != NO_NODE and wanted not in core.voters:
        return ErrorCode.VOTER_NOT_FOUND, f"node {wanted} is not a voter; the voters are {', '.join(_names(core))}"
    if not core.voters.others(core.node_id) and wanted == NO_NODE:
        return ErrorCode.INVALID_REQUEST, f"node {core.node_id} is the only voter; add another one first"
    if leader.hand_over is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "another hand-over of the leadership is under way; try again"
    return ErrorCode.NONE, ""


def _names(core: Core) -> list[str]:
    return [str(node_id) for node_id in core.voters]


def _begin(core: Core, wanted: NodeId | None, token: int | None, now_ms: int) -> None:
    """token: of the request that asked for it; None if this leader is stopped."""
    leader = core.role
    assert isinstance(leader, Leader)
    until_ms = now_ms + core.config.hand_over_timeout_ms
    leader.begin_hand_over(HandOver(wanted, token, leader.rounds.begin_without_read(), until_ms))
    core.add_effect(HandOverBegun(core.epoch))
    serve_parked(core, now_ms)


def _ready_successor(core: Core, leader: Leader, hand_over: HandOver) -> NodeId | None:
    end = core.log.accepted_end
    if core.high_watermark < end:
        return None
    candidates = leader.replicas.by_progress() if hand_over.wanted is None else (hand_over.wanted,)
    for voter in candidates:
        replica = leader.replicas.voters.get(voter)
        if replica is not None and replica.end_offset >= end and leader.rounds.seen_by(voter) >= hand_over.round:
            return voter
    return None


def _resign(core: Core, leader: Leader, successor: NodeId | None, now_ms: int) -> None:
    """successor: one that is ready; None: there is none. The others vote for it sooner if they need not first note, on
    disk, that their leader is gone: they hear of the election first.
    """
    order = leader.replicas.by_progress()
    if successor is None:
        role = resign(core, now_ms, order)
    else:
        rest = tuple(voter for voter in order if voter != successor)
        role = resign(core, now_ms, (successor, *rest), head_start_ms=core.config.successor_head_start_ms)
    if core.shutting_down:
        role.shut_down_by(now_ms + core.config.request_timeout_ms)


def _give_up(core: Core, leader: Leader, hand_over: HandOver, now_ms: int) -> None:
    if core.shutting_down:
        _resign(core, leader, None, now_ms)
        return
    leader.end_hand_over(core.log.accepted_end)
    assert hand_over.token is not None, "only a request or a shutdown begins a hand-over"
    who = "no voter had" if hand_over.wanted is None else f"node {hand_over.wanted} had not"
    text = f"{who} caught up within {core.config.hand_over_timeout_ms} ms; node {core.node_id} goes on leading"
    core.reply(hand_over.token, _response(core, ErrorCode.REQUEST_TIMED_OUT, text))
    advance(core)


def _response(core: Core, code: ErrorCode, text: str, successor: NodeId | None = None) -> TransferLeadershipResponse:
    leader_id = core.leader_hint if successor is None else successor
    return TransferLeadershipResponse(error_code=code, error_message=text, leader_id=leader_id, leader_epoch=core.epoch)
