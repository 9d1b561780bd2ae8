"""What a voter promises with a message must be on its disk when the message leaves.

Checks the bytes on the wire, decoded by the production codec, against the disk of the sending host:
- persist-before-vote: a power cut would not make the voter forget a vote that it grants.
- persist-before-candidacy: nor its own candidacy, when it asks for votes.
- votes-on-synced-tail: it has synced every record that it names there, so nobody leads on a tail that a power cut would
  take away.
- vote-granted-twice: no voter grants its vote to two candidates of one epoch.
- sync-before-quorum-fetch: a fetch acknowledges only synced records.

A request may wait on its host until its connection stands and is proven. The sender may have truncated its log for
another leader since, as it may while a request is on its way. So what counts, too, is what it had synced when it made
the request: for a fetch, when it left the epoch of the fetch; for a candidacy, when it began the epoch by it. Raft
bears late messages: a voter that has gone on takes no such request, and a leader of the old epoch commits by it only
what the next leader holds, because no voter promises anything in an epoch that it has left (Raft §5.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.durable_state import durable_state
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from jepsen.sim.truth.mirrors import METADATA, Mirrors
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest
from quorumlog.proof.call_proof import MAC_BYTES
from quorumlog.rpc.calls import BY_REQUEST, OLDER

_VOTE, _QUORUM_FETCH = BY_REQUEST[VoteRequest], BY_REQUEST[QuorumFetchRequest]
_OLDER_FETCH = OLDER[QuorumFetchRequest]


@dataclass(slots=True)
class _Left:
    """The epochs that one process has left. synced: the end of its synced log at that moment, exclusive."""

    life: int
    epoch: Epoch  # in which it is
    synced: dict[Epoch, Offset] = field(default_factory=dict)


class VotePromises(Invariant):
    def __init__(self, machines: dict[str, Machine], mirrors: Mirrors, findings: Findings) -> None:
        self._machines, self._mirrors, self._findings = machines, mirrors, findings
        self._asked: dict[tuple[str, str, int], list[VoteRequest]] = {}  # by candidate, voter and call number
        self._granted: dict[tuple[str, Epoch], NodeId] = {}
        self._left: dict[str, _Left] = {}  # by host
        self.votes_granted = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"votes": self.votes_granted}

    def forget_disk(self, host: str) -> None:
        """An operator put an older state in the place of this voter's: it knows its later votes no more."""
        self._granted = {key: candidate for key, candidate in self._granted.items() if key[0] != host}

    def after_controller(self, machine: Machine) -> None:
        """No step leaves an epoch and truncates for the next one: that takes an answer of its leader."""
        raft = raft_of(machine)
        if raft is None:
            return
        left = self._left.get(machine.host)
        if left is None or left.life != machine.life:  # what an earlier process was about to send died with it
            left = self._left[machine.host] = _Left(machine.life, raft.epoch)
        if raft.epoch != left.epoch:
            synced = self._mirrors.of(machine, METADATA).durable_end()
            left.synced |= dict.fromkeys(range(left.epoch, raft.epoch), synced)
            left.epoch = raft.epoch

    def on_message(self, message: Message) -> None:
        if message.path == _VOTE.method.path:
            self._on_vote(message)
        elif message.phase is Phase.REQUEST and message.path == _QUORUM_FETCH.method.path:
            # In a stream its proof comes first.
            self._on_quorum_fetch(message, _QUORUM_FETCH.codec.decode_request(message.data[MAC_BYTES:]))
        elif message.phase is Phase.REQUEST and message.path == _OLDER_FETCH.method.path:
            self._on_quorum_fetch(message, _OLDER_FETCH.codec.decode_request(message.data))

    def _on_vote(self, message: Message) -> None:
        if message.phase is Phase.REQUEST:
            key = (message.source, message.destination, message.number)
            request = _VOTE.codec.decode_request(message.data)
            self._asked.setdefault(key, []).append(request)
            if not request.pre_vote:
                self._on_candidacy(message.source, request)
        elif message.phase is Phase.RESPONSE:
            response = _VOTE.codec.decode_response(message.data)
            asked = self._asked.get((message.destination, message.source, message.number), [])
            # A restarted candidate reuses call numbers. If any request was a pre-vote, nothing was promised.
            if response.vote_granted and asked and not any(request.pre_vote for request in asked):
                self._on_granted(message.source, response.leader_epoch, self._machines[message.destination].node_id)

    def _on_candidacy(self, host: str, request: VoteRequest) -> None:
        machine, epoch = self._machines[host], request.epoch
        synced = self._synced_after(machine, epoch - 1)
        if synced < request.last_epoch_end_offset:
            what = f"{host} asks for votes with a log up to {request.last_epoch_end_offset}, synced up to {synced}"
            self._findings.broken("votes-on-synced-tail", what)
        state = durable_state(machine)
        voted = None if state.voted is None else state.voted.node_id
        if state.epoch < epoch or (state.epoch == epoch and voted != machine.node_id):
            kept = f"its disk keeps epoch {state.epoch} and a vote for {voted}"
            self._findings.broken("persist-before-candidacy", f"{host} asks for votes in epoch {epoch}; {kept}")

    def _on_granted(self, host: str, epoch: Epoch, candidate: NodeId) -> None:
        self.votes_granted += 1
        first = self._granted.setdefault((host, epoch), candidate)
        if first != candidate:
            self._findings.broken("vote-granted-twice", f"{host} granted epoch {epoch} to {first} and to {candidate}")
        state = durable_state(self._machines[host])
        voted = None if state.voted is None else state.voted.node_id
        if state.epoch < epoch or (state.epoch == epoch and voted != candidate):
            kept = f"its disk keeps epoch {state.epoch} and a vote for {voted}"
            self._findings.broken("persist-before-vote", f"{host} grants epoch {epoch} to {candidate}; {kept}")

    def _on_quorum_fetch(self, message: Message, request: QuorumFetchRequest) -> None:
        if not self._machines[message.source].config.is_controller:
            return  # an observer's fetch acknowledges nothing
        synced = self._synced_after(self._machines[message.source], request.current_leader_epoch)
        if synced < request.fetch_offset:
            what = f"{message.source} acknowledges {request.fetch_offset} of the metadata"
            self._findings.broken("sync-before-quorum-fetch", f"{what}; it has synced up to {synced}")

    def _synced_after(self, machine: Machine, epoch: Epoch) -> Offset:
        """Exclusive end of what is synced now, or of what this process had synced when it left `epoch`, if it has."""
        synced, left = self._mirrors.of(machine, METADATA).durable_end(), self._left.get(machine.host)
        if left is None or left.life != machine.life:
            return synced
        return max(synced, left.synced.get(epoch, synced))
