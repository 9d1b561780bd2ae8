"""A pre-vote is a question: it changes nothing at the voter that is asked (KIP-996).

pre-vote-is-a-question: no voter answers a pre-vote in an epoch that only this pre-vote can have told it. Every other
message tells its receiver at most the epoch that its sender has when the message leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.durable_state import durable_state
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from quorumlog.ids import Epoch
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from quorumlog.rpc.calls import BY_REQUEST, OLDER
from quorumlog_quorum.raft import RaftRole

_VOTE = BY_REQUEST[VoteRequest]
_KINDS = (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest, QuorumFetchRequest)
_PATHS = frozenset(  # only used with `in`
    calls[kind].method.path for calls in (BY_REQUEST, OLDER) for kind in _KINDS if kind in calls
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A pre-vote under way: its epoch, and the voter's own when the request left."""

    epoch: Epoch
    own_epoch: Epoch


class PreVotes(Invariant):
    def __init__(self, machines: dict[str, Machine], findings: Findings) -> None:
        self._machines, self._findings = machines, findings
        self._asked: dict[tuple[str, str, int], _Asked] = {}  # by candidate, voter and call number
        self._told: dict[str, Epoch] = {}  # host -> the largest epoch that another message can have told it

    def on_message(self, message: Message) -> None:
        if message.path not in _PATHS or not (self._votes(message.source) and self._votes(message.destination)):
            return
        if message.path == _VOTE.method.path and message.phase is Phase.REQUEST:
            request = _VOTE.codec.decode_request(message.data)
            if request.pre_vote:
                self._on_asked(message, request.epoch)
                return
        if message.path == _VOTE.method.path and message.phase is Phase.RESPONSE:
            self._on_answered(message, _VOTE.codec.decode_response(message.data).leader_epoch)
        raft = raft_of(self._machines[message.source])
        if raft is not None:
            self._told[message.destination] = max(raft.epoch, self._told.get(message.destination, 0))

    def _votes(self, host: str) -> bool:
        machine = self._machines.get(host)
        return machine is not None and machine.config.is_controller

    def _on_asked(self, message: Message, epoch: Epoch) -> None:
        key = (message.source, message.destination, message.number)
        self._asked.pop(key, None)
        raft = raft_of(self._machines[message.destination])
        if (
            raft is not None and raft.epoch < epoch and raft.role.role is not RaftRole.RESIGNED
        ):  # it raises its epoch itself
            self._asked[key] = _Asked(epoch, raft.epoch)

    def _on_answered(self, message: Message, answered: Epoch) -> None:
        asked = self._asked.pop((message.destination, message.source, message.number), None)
        if asked is None or answered < asked.epoch or self._told.get(message.source, 0) >= asked.epoch:
            return
        state = durable_state(self._machines[message.source])
        if (
            state.voted is None or state.voted.node_id != self._machines[message.source].node_id
        ):  # else it may be its own candidate
            what = f"{message.source} went from epoch {asked.own_epoch} to {answered}"
            self._findings.broken("pre-vote-is-a-question", f"{what} for a pre-vote of {message.destination}")
