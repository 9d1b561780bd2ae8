"""Cores without drivers, a heap of events, and a world that loses messages, processes and data that is not synced.

Every invariant of Raft's on elections, logs and commits is checked when the effect appears that could
break it. The world knows more than any node: what is durable where, and what was ever committed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from struct import Struct

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse, VoteRequest, VoteResponse
from quorumlog.settings.quorum import RaftConfig
from quorumlog_quorum.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    AppendValues,
    HighWatermark,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipLost,
    PersistQuorumState,
    ProbeLeader,
    RaftEffect,
    ReadForFetch,
    RecordsRegained,
    Reply,
    Send,
    ShutdownFinished,
    TruncateTo,
)
from quorumlog_quorum.raft.events import (
    AppendRequested,
    LogSynced,
    LogTruncated,
    LogWritten,
    NotLeader,
    PeerProvenDead,
    RaftEvent,
    RecordsRead,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from quorumlog_quorum.raft.log_state import EpochSpan, LogState
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.raft import Raft
from quorumlog_quorum.raft.roles import RaftRole
from quorumlog_quorum.raft.voters import Voter, VoterKey, VoterSet
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache

ENTRY = Struct(">qqq")  # offset, epoch, value; one entry is one batch
Entry = tuple[Epoch, int]


@dataclass(kw_only=True)
class Faults:
    loss: float = 0.0
    min_delay_ms: int = 1
    max_delay_ms: int = 10
    max_sync_ms: int = 10
    wrong_refusal: float = 0.0
    max_probe_ms: int = 55  # until a proof of death is there
    max_truncation_ms: int = 0  # on top of its turn at the disk
    cut: set[frozenset[NodeId]] = field(default_factory=set)  # only used with `in`: its order never matters


@dataclass
class Node:
    key: VoterKey
    # durable
    state: QuorumState = field(default_factory=QuorumState)
    entries: list[Entry] = field(default_factory=list)  # synced up to `synced`
    synced: int = 0
    # of this life
    life: int = 0
    raft: Raft | None = None
    rests: list[RaftEffect] = field(default_factory=list)  # effects that wait for a persist
    persisting: bool = False
    disk_free_at: int = 0
    high_watermark: Offset = -1
    shutdown_finished: bool = False
    calls: dict[int, Callable[[object], None]] = field(default_factory=dict)  # by token: the callback for the answer
    claims: list[Epoch] = field(default_factory=list)


class Cluster:
    def __init__(self, seed: int, voters: int = 3, observers: int = 0, config: RaftConfig | None = None) -> None:
        self.rng = Random(seed)
        self.now = 0
        self.config = config or RaftConfig()
        self.faults = Faults()
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.sequence = 0
        endpoints = [Endpoint(name="INTERNAL", host="h", port=9000 + i) for i in range(voters)]
        self.voters = VoterSet(Voter(node_id=i, endpoint=endpoints[i]) for i in range(voters))
        self.nodes = [Node(VoterKey(i, bytes([i] * 16))) for i in range(voters + observers)]
        self.token = 0
        self.next_value = 0
        self.lost_disks: list[Node] = []  # as they were when they were lost
        # for the invariants
        self.leaders: dict[Epoch, NodeId] = {}
        self.votes: dict[tuple[VoterKey, Epoch], VoterKey] = {}
        self.prefixes: dict[tuple[Offset, Epoch], int] = {}
        self.committed: list[Entry] = []

    # --- running ---

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (self.now + delay_ms, self.sequence, action))

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Run for so long, or until the condition holds. Returns whether it holds."""
        end = self.now + duration_ms
        while self.heap and self.heap[0][0] <= end:
            if until is not None and until():
                return True
            self.now, _, action = heapq.heappop(self.heap)
            action()
        self.now = end
        return until is not None and until()

    def start(self, node_id: NodeId) -> None:
        node = self.nodes[node_id]
        assert node.raft is None
        node.life += 1
        log = LogState(start=0, end=len(node.entries), epochs=epochs_of(node.entries))
        node.raft = Raft(
            key=node.key,
            voters=self.voters,
            config=self.config,
            rng=Random(self.rng.random()),
            log=log,
            saved=node.state,
            membership=self.membership_of(node),
        )
        node.disk_free_at, node.high_watermark, node.shutdown_finished = self.now, -1, False
        self.step(node, Started())

    def membership_of(self, node: Node) -> Membership:
        return Membership()

    def start_all(self) -> None:
        for node_id, node in enumerate(self.nodes):
            if node.raft is None:
                self.start(node_id)

    def kill(self, node_id: NodeId) -> None:
        """A prefix of the data that was not synced survives."""
        node = self.nodes[node_id]
        assert node.raft is not None
        node.raft = None
        node.rests, node.persisting = [], False
        node.entries = node.entries[: self.rng.randint(node.synced, len(node.entries))]
        node.synced = len(node.entries)
        calls, node.calls = node.calls, {}
        for answer in calls.values():
            answer(None)

    def step(self, node: Node, event: RaftEvent) -> None:
        raft = node.raft
        assert raft is not None
        node.rests.extend(raft.step(event, self.now))
        self.perform(node)
        self.arm(node)

    def arm(self, node: Node) -> None:
        deadline = None if node.raft is None else node.raft.deadline_ms()
        if deadline is not None:
            life = node.life
            self.at(max(0, deadline - self.now), lambda: self.fire(node, life, deadline))

    def fire(self, node: Node, life: int, deadline: int) -> None:
        if node.life == life and node.raft is not None and node.raft.deadline_ms() == deadline:
            self.step(node, TimerFired())

    def later(self, node: Node, delay_ms: int, event: RaftEvent) -> None:
        life = node.life

        def act() -> None:
            if node.life == life and node.raft is not None:
                self.step(node, event)

        self.at(delay_ms, act)

    # --- effects ---

    def append(self, count: int = 1) -> bool:
        """Append one entry on each node that leads, in its own view."""
        leaders = [node for node in self.nodes if node.raft is not None and node.raft.core.role.role is RaftRole.LEADER]
        if not leaders:
            return False
        node = self.rng.choice(leaders)
        assert node.raft is not None
        for _ in range(count):
            self.next_value += 1
            try:
                self.step(node, AppendRequested(node.raft.core.epoch, [b"%d" % self.next_value]))
            except NotLeader:
                return False
        return True

    def perform(self, node: Node) -> None:
        while node.rests and not node.persisting:
            self.perform_one(node, node.rests.pop(0))

    def perform_one(self, node: Node, effect: RaftEffect) -> None:
        match effect:
            case PersistQuorumState(state):
                node.persisting = True
                life = node.life
                self.at(self.disk_ms(node), lambda: self.persisted(node, life, state))
            case Send():
                self.check_send(node, effect)
                self.deliver(node, effect)
            case Reply(token, message):
                self.check_reply(node, message)
                answer = node.calls.pop(token, None)
                if answer is not None:
                    answer(message)
            case AppendLeaderChange(offset, epoch):
                self.check_elected(node, epoch)
                self.write(node, offset, [(epoch, -1)])
            case AppendValues(offset, epoch, values):
                self.write(node, offset, [(epoch, int(value)) for value in values])
            case AppendFetched(records, spans):
                self.write(node, spans[0].first_offset, decode(records))
            case TruncateTo(end):
                self.truncate(node, end)
            case ReadForFetch(token, offset, _, upper_bound):
                entries = node.entries[offset : min(upper_bound, offset + 5)]
                self.step_soon(node, RecordsRead(token, encode(offset, entries)))
            case HighWatermark(offset):
                self.check_committed(node, offset)
            case RecordsRegained():
                pass
            case LeadershipClaimed(epoch, _):
                assert self.leaders[epoch] == node.key.node_id
                node.claims.append(epoch)
            case ProbeLeader(peer, epoch):
                self.probe(node, peer, epoch)
            case ShutdownFinished():
                node.shutdown_finished = True
            case LeaderChanged() | LeadershipLost():
                pass

    def step_soon(self, node: Node, event: RaftEvent) -> None:
        self.later(node, 0, event)

    def disk_ms(self, node: Node) -> int:
        """How long one more sync takes on this node's disk."""
        node.disk_free_at = max(node.disk_free_at, self.now) + self.rng.randint(0, self.faults.max_sync_ms)
        return node.disk_free_at - self.now

    def persisted(self, node: Node, life: int, state: QuorumState) -> None:
        if node.life != life or node.raft is None:
            return
        if state.voted is not None:
            first = self.votes.setdefault((node.key, state.epoch), state.voted)
            assert first == state.voted, f"node {node.key.node_id} votes twice in epoch {state.epoch}"
        assert state.epoch >= node.state.epoch
        node.state, node.persisting = state, False
        self.perform(node)

    def write(self, node: Node, offset: Offset, entries: list[Entry]) -> None:
        """Write at once and sync later. The core gets both events, in order."""
        assert offset == len(node.entries), "an append that leaves a gap"
        node.entries.extend(entries)
        self.check_matching(node, offset)
        end, life = len(node.entries), node.life
        self.step_soon(node, LogWritten(end))

        def synced() -> None:
            if node.life == life and node.raft is not None:
                node.synced = max(node.synced, end)
                self.step(node, LogSynced(end))

        self.at(self.disk_ms(node), synced)

    def truncate(self, node: Node, end: Offset) -> None:
        assert end >= node.high_watermark, "committed records cut off"
        del node.entries[end:]
        node.synced = min(node.synced, end)
        slow_ms = self.rng.randint(0, self.faults.max_truncation_ms)  # out of the disk's order, which no core may need
        self.later(node, self.disk_ms(node) + slow_ms, LogTruncated(end))

    def probe(self, node: Node, peer: NodeId, epoch: Epoch) -> None:
        life, wrong = node.life, self.rng.random() < self.faults.wrong_refusal

        def look() -> None:
            refused = self.nodes[peer].raft is None and not self.is_cut(node.key.node_id, peer)
            if refused or wrong:
                self.at(self.rng.randint(55, self.faults.max_probe_ms) - 55, lambda: prove(epoch))

        def prove(epoch: Epoch) -> None:
            if node.life != life or node.raft is None:
                return
            before = (node.raft.core.epoch, node.raft.core.leader_id)
            self.step(node, PeerProvenDead(peer, epoch))
            forgot = (node.raft.core.epoch, node.raft.core.leader_id) != before
            assert not forgot or before == (epoch, peer), f"the proof that {peer} died in {epoch} changed {before}"

        self.at(55, look)

    # --- the network ---

    def is_cut(self, one: NodeId, other: NodeId) -> bool:
        return frozenset((one, other)) in self.faults.cut

    def isolate(self, node_id: NodeId) -> None:
        self.faults.cut = {frozenset((node_id, other.key.node_id)) for other in self.nodes}

    def heal(self) -> None:
        self.faults = Faults(max_sync_ms=self.faults.max_sync_ms)

    def delay(self) -> int:
        return self.rng.randint(self.faults.min_delay_ms, self.faults.max_delay_ms)

    def deliver(self, node: Node, call: Send) -> None:
        life, peer = node.life, self.peer_of(call.to)
        open_call = [True]

        def finish(event: RaftEvent) -> None:
            if open_call[0] and node.life == life and node.raft is not None:
                open_call[0] = False
                self.step(node, event)

        def arrive() -> None:
            if self.is_cut(node.key.node_id, peer.key.node_id):
                return
            if peer.raft is None:
                self.at(self.delay(), lambda: finish(RequestFailed(call.correlation, delivered=False)))
                return
            self.token += 1
            peer.calls[self.token] = answer
            before = (peer.raft.core.role.role, peer.raft.core.epoch, peer.raft.core.leader_id)
            self.step(peer, RequestReceived(self.token, call.message))
            if isinstance(call.message, VoteRequest) and call.message.pre_vote:
                after = (peer.raft.core.role.role, peer.raft.core.epoch, peer.raft.core.leader_id)
                assert after == before, f"a pre-vote of {node.key.node_id} changed {before} to {after}"

        def answer(message: object) -> None:
            if self.is_cut(node.key.node_id, peer.key.node_id) or self.rng.random() < self.faults.loss:
                return
            event: RaftEvent = RequestFailed(call.correlation)
            if message is not None:
                spans = self.spans_of(message)
                event = ResponseReceived(call.correlation, message, spans)  # type: ignore[arg-type]
            self.at(self.delay(), lambda: finish(event))

        if self.rng.random() >= self.faults.loss:
            self.at(self.delay(), arrive)
        self.at(call.timeout_ms, lambda: finish(RequestFailed(call.correlation)))

    def peer_of(self, node_id: NodeId) -> Node:
        return self.nodes[node_id]

    def spans_of(self, message: object) -> tuple[EpochSpan, ...]:
        return spans_of(message)

    # --- invariants ---

    def check_send(self, node: Node, call: Send) -> None:
        message, node_id = call.message, node.key.node_id
        if isinstance(message, VoteRequest) and not message.pre_vote:
            assert node.state.epoch == message.epoch and node.state.voted == node.key, "asked for votes before its own"
        if isinstance(message, QuorumFetchRequest) and node_id in self.voters:
            assert node.synced == len(node.entries) == message.fetch_offset, "fetch acknowledges what is not synced"

    def check_reply(self, node: Node, message: object) -> None:
        if isinstance(message, VoteResponse | QuorumFetchResponse) and message.error_code == 0:
            assert node.state.epoch >= message.leader_epoch, "told an epoch that is not durable"

    def check_elected(self, node: Node, epoch: Epoch) -> None:
        node_id = node.key.node_id
        assert self.leaders.setdefault(epoch, node_id) == node_id, f"two leaders in epoch {epoch}"
        assert node.state == QuorumState(epoch=epoch, leader_id=node_id, voted=node.key), "leads before it is durable"
        assert node.entries[: len(self.committed)] == self.committed, f"leader of {epoch} lacks committed records"

    def check_matching(self, node: Node, first: Offset) -> None:
        """Log matching: entries of the same offset and epoch are equal, and so are the entries before them."""
        for offset in range(first, len(node.entries)):
            epoch, value = node.entries[offset]
            before = node.entries[offset - 1] if offset else None
            mark = hash((value, before))
            assert self.prefixes.setdefault((offset, epoch), mark) == mark, f"logs differ at {offset} in epoch {epoch}"

    def check_committed(self, node: Node, offset: Offset) -> None:
        assert offset > node.high_watermark, "high watermark fell"
        node.high_watermark = offset
        assert offset <= len(node.entries), "high watermark past the log"
        mine = node.entries[:offset]
        if offset > len(self.committed):
            assert node.raft is not None
            voters = node.raft.core.voters
            voting = [n for n in (*self.nodes, *self.lost_disks) if voters.names(n.key)]
            holders = [n for n in voting if n.entries[:offset] == mine and n.synced >= offset]
            assert len(holders) >= voters.majority, f"{offset} committed, synced on {len(holders)} only"
            assert mine[-1][0] == node.raft.core.epoch, "an older epoch's record committed by counting"
            self.committed = list(mine)
        assert self.committed[:offset] == mine, "two histories committed"

    # --- queries ---

    @property
    def leader(self) -> Node | None:
        """The leader of the largest epoch, if it has committed its first record."""
        best = max(
            (n for n in self.nodes if n.raft is not None and n.raft.core.role.role is RaftRole.LEADER),
            key=lambda n: n.raft.core.epoch if n.raft else -1,
            default=None,
        )
        return best if best is not None and best.raft is not None and best.raft.core.epoch in best.claims else None

    def everyone_agrees(self) -> bool:
        """Whether there is one leader, every node follows it, and all entries are committed on every node."""
        leader = self.leader
        if leader is None or leader.raft is None or leader.high_watermark != len(leader.entries):
            return False
        epoch = leader.raft.core.epoch
        return all(
            n.raft is not None
            and n.raft.core.epoch == epoch
            and n.raft.core.leader_id == leader.key.node_id
            and n.high_watermark == leader.high_watermark
            for n in self.nodes
        )

    def ask_shutdown(self, node_id: NodeId) -> None:
        self.step(self.nodes[node_id], ShutdownRequested())


def epochs_of(entries: list[Entry]) -> tuple[EpochStart, ...]:
    cache = LeaderEpochCache()
    for offset, (epoch, _) in enumerate(entries):
        cache.assign(epoch, offset)
    return cache.entries


def encode(first: Offset, entries: list[Entry]) -> bytes:
    return b"".join(ENTRY.pack(first + index, *entry) for index, entry in enumerate(entries))


def decode(records: Buffer) -> list[Entry]:
    return [(epoch, value) for _, epoch, value in ENTRY.iter_unpack(bytes(records))]


def spans_of(message: object) -> tuple[EpochSpan, ...]:
    if not isinstance(message, QuorumFetchResponse):
        return ()
    return tuple(EpochSpan(epoch, offset, offset + 1) for offset, epoch, _ in ENTRY.iter_unpack(bytes(message.records)))
