"""Persist before send: when a message leaves, its promise must be on disk already (RELIABILITY 3.3).

Checks the bytes on the wire, decoded by the production codec, against the disk of the sending host:
- persist-before-vote: a power cut would not make the voter forget a vote that it grants.
- vote-granted-twice: no voter grants its vote to two candidates of one epoch.
- sync-before-quorum-fetch, sync-before-replica-fetch: a fetch acknowledges only synced records (written ones, where the
  topic leaves durability to the page cache).
"""

from __future__ import annotations

from collections.abc import Callable

from jepsen.checkers.findings import Findings
from jepsen.sim.durability import Durability
from jepsen.sim.log_mirror import file_at
from jepsen.sim.machine import Machine
from jepsen.sim.message import Message, Phase
from jepsen.sim.mirrors import METADATA, Mirrors, log_id
from jepsen.sim.settings import CONTROLLERS, METADATA_LOG, NODES
from jepsen.sim.sim_socket import LANE
from quorum.raft.quorum_state import QUORUM_STATE_NAME, CorruptQuorumState, QuorumState, decode_quorum_state
from quorumlog.ids import Epoch, NodeId
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.wire import apis
from quorumlog.wire.codec import decode_request
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.header import read_fixed
from quorumlog.wire.parts import LENGTH_BYTES

_VOTE, _QUORUM_FETCH, _FETCH = BY_REQUEST[VoteRequest], BY_REQUEST[QuorumFetchRequest], BY_REQUEST[FetchRequest]
_LANE_FETCH_API = apis.BY_REQUEST[FetchRequest]
_LANE_FETCH = f"{LANE}{_FETCH.method.name}"
STATE_PATH = f"{METADATA_LOG}/{QUORUM_STATE_NAME}"


class Promises:
    def __init__(
        self,
        machines: dict[str, Machine],
        mirrors: Mirrors,
        durability: Durability,
        findings: Findings,
        on_replica_fetch: Callable[[Machine], None],
    ) -> None:
        """on_replica_fetch: called before a fetch leaves by which a broker acknowledges records."""
        self._machines, self._mirrors, self._findings = machines, mirrors, findings
        self._durability = durability
        self._on_replica_fetch = on_replica_fetch
        self._asked: dict[tuple[str, str, int], list[VoteRequest]] = {}  # by candidate, voter and call number
        self._granted: dict[tuple[str, Epoch], NodeId] = {}
        self.votes_granted = 0

    def forget_disk(self, host: str) -> None:
        """An operator put an older state in the place of this voter's: it knows its later votes no more."""
        self._granted = {key: candidate for key, candidate in self._granted.items() if key[0] != host}

    def look(self, message: Message) -> None:
        """A message is about to leave its host."""
        if message.path == _VOTE.method.path:
            self._on_vote(message)
        elif message.phase is not Phase.REQUEST or message.source not in self._machines:
            return
        elif message.path == _QUORUM_FETCH.method.path:
            self._on_quorum_fetch(message)
        elif message.path == _FETCH.method.path:
            self._on_fetch(message, _FETCH.codec.decode_request(message.data))
        elif message.path == _LANE_FETCH:
            cursor = Cursor(memoryview(message.data)[LENGTH_BYTES:])
            self._on_fetch(message, decode_request(_LANE_FETCH_API, cursor, read_fixed(cursor)).request)

    # --- votes ---

    def _on_vote(self, message: Message) -> None:
        if message.phase is Phase.REQUEST:
            key = (message.source, message.destination, message.number)
            self._asked.setdefault(key, []).append(_VOTE.codec.decode_request(message.data))
        elif message.phase is Phase.RESPONSE:
            response = _VOTE.codec.decode_response(message.data)
            asked = self._asked.get((message.destination, message.source, message.number), [])
            # A restarted candidate reuses call numbers. If any request was a pre-vote, nothing was promised.
            if response.vote_granted and asked and not any(request.pre_vote for request in asked):
                self._on_granted(message.source, response.leader_epoch, NODES[message.destination])

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

    # --- fetches ---

    def _on_quorum_fetch(self, message: Message) -> None:
        if message.source not in CONTROLLERS:
            return  # an observer's fetch acknowledges nothing
        request = _QUORUM_FETCH.codec.decode_request(message.data)
        mirror = self._mirrors.of(self._machines[message.source], METADATA)
        if mirror.durable_end() < request.fetch_offset:
            what = f"{message.source} acknowledges {request.fetch_offset} of the metadata"
            self._findings.broken("sync-before-quorum-fetch", f"{what}; it has synced up to {mirror.durable_end()}")

    def _on_fetch(self, message: Message, request: FetchRequest) -> None:
        if request.replica is None:
            return
        machine = self._machines[message.source]
        self._on_replica_fetch(machine)
        for topic in request.topics:
            name = _topic_name(machine, topic.topic_id)
            for partition in topic.partitions if name else ():
                log = log_id(f"{name}-{partition.index}", topic.topic_id)
                end = self._durability.end_of(log, self._mirrors.of(machine, log))
                if end < partition.fetch_offset:
                    what = f"{message.source} acknowledges {partition.fetch_offset} of {name}-{partition.index}"
                    held = f"it has synced up to {end}"
                    self._findings.broken("sync-before-replica-fetch", f"{what}; {held}")


def durable_state(machine: Machine) -> QuorumState:
    """The voter's state after a power cut now. An unreadable file promises nothing."""
    content = file_at(machine.disk, STATE_PATH, durable=True)
    try:
        return QuorumState() if content is None else decode_quorum_state(STATE_PATH, content)
    except CorruptQuorumState:
        return QuorumState()


def _topic_name(machine: Machine, topic_id: bytes) -> str:
    if machine.node is None:
        return ""
    topic = machine.node.loader.image.topics.get(topic_id)
    return "" if topic is None else topic.name
