"""What a voter promises with a message must be on its disk when the message leaves.

Checks the bytes on the wire, decoded by the production codec, against the disk of the sending host:
- persist-before-vote: a power cut would not make the voter forget a vote that it grants.
- persist-before-candidacy: nor its own candidacy, when it asks for votes.
- votes-on-synced-tail: it has synced every record that it names there, so nobody leads on a tail that a power cut would
  take away.
- vote-granted-twice: no voter grants its vote to two candidates of one epoch.
- sync-before-quorum-fetch: a fetch acknowledges only synced records.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.truth.mirrors import METADATA, Mirrors
from quorumlog.ids import Epoch, NodeId
from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest
from quorumlog.proof.call_proof import MAC_BYTES
from quorumlog.rpc.calls import BY_REQUEST, OLDER
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, CorruptQuorumState, QuorumState, decode_quorum_state

_VOTE, _QUORUM_FETCH = BY_REQUEST[VoteRequest], BY_REQUEST[QuorumFetchRequest]
_OLDER_FETCH = OLDER[QuorumFetchRequest]
STATE_PATH = f"{METADATA_LOG}/{QUORUM_STATE_NAME}"


class VotePromises(Invariant):
    def __init__(self, machines: dict[str, Machine], mirrors: Mirrors, findings: Findings) -> None:
        self._machines, self._mirrors, self._findings = machines, mirrors, findings
        self._asked: dict[tuple[str, str, int], list[VoteRequest]] = {}  # by candidate, voter and call number
        self._granted: dict[tuple[str, Epoch], NodeId] = {}
        self.votes_granted = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"votes": self.votes_granted}

    def forget_disk(self, host: str) -> None:
        """An operator put an older state in the place of this voter's: it knows its later votes no more."""
        self._granted = {key: candidate for key, candidate in self._granted.items() if key[0] != host}

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
        synced = self._mirrors.of(machine, METADATA).durable_end()
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
        mirror = self._mirrors.of(self._machines[message.source], METADATA)
        if mirror.durable_end() < request.fetch_offset:
            what = f"{message.source} acknowledges {request.fetch_offset} of the metadata"
            self._findings.broken("sync-before-quorum-fetch", f"{what}; it has synced up to {mirror.durable_end()}")


def durable_state(machine: Machine) -> QuorumState:
    """The voter's state after a power cut now. An unreadable file promises nothing."""
    content = file_at(machine.disk, STATE_PATH, durable=True)
    try:
        return QuorumState() if content is None else decode_quorum_state(STATE_PATH, content)
    except CorruptQuorumState:
        return QuorumState()
