"""`Cluster` with voters that change: its nodes are controllers, and the voters are in the log.

More invariants: at most one set in a leader's log is not committed; each set has a majority in common with the one
before it; what a leader has confirmed is what is committed.
"""

from __future__ import annotations

from raft_cluster import Cluster, Entry, Node, decode
from voter_samples import endpoint

from quorumlog.ids import NodeId, Offset
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    RemoveRaftVoterRequest,
)
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_quorum.raft.effects import AppendControl, ProbeCandidate, RaftEffect, Send
from quorumlog_quorum.raft.events import CandidateProbed, FoundCandidate, RequestReceived
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.membership import FIRST_BOOTSTRAP_ID, Membership
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.voters import (
    BOOTSTRAP,
    MembershipRecord,
    Voter,
    VoterKey,
    VoterSet,
    have_overlapping_majorities,
    record_of,
    set_of,
)

LEVEL_1 = -2  # the value of an entry that holds KRaftVersion 1
FIRST_SET = -10  # the value of the first set; the next one is one below


class VoterCluster(Cluster):
    def __init__(self, seed: int, nodes: int = 5, voters: int = 3) -> None:
        super().__init__(seed, voters=nodes)
        for node_id, node in enumerate(self.nodes):
            node.key = self.new_key(node_id, 0)
        self.sets: list[VoterSet] = [VoterSet(self.as_voter(node.key) for node in self.nodes[:voters])]
        self.formatted = {node.key for node in self.nodes[:voters]}  # these directories have the bootstrap checkpoint
        self.voters = VoterSet(())
        self.directories = [0] * nodes
        self.answers: list[tuple[str, int]] = []
        self.auto_join = False

    @staticmethod
    def new_key(node_id: NodeId, number: int) -> VoterKey:
        return VoterKey(node_id, bytes([node_id + 1] * 15 + [number]))

    def as_voter(self, key: VoterKey) -> Voter:
        return Voter(node_id=key.node_id, directory_id=key.directory_id, endpoint=endpoint(key.node_id), max_version=1)

    # --- nodes ---

    def membership_of(self, node: Node) -> Membership:
        records = [MembershipRecord(BOOTSTRAP, KRaftVersion(1)), MembershipRecord(BOOTSTRAP, record_of(self.sets[0]))]
        in_log = self.members_in(0, node.entries)
        return Membership(
            records=(*(records if node.key in self.formatted else ()), *in_log),
            endpoints=(endpoint(node.key.node_id),),
            can_become_voter=True,
            auto_join=self.auto_join,
            bootstrap=tuple(endpoint(node_id) for node_id in range(len(self.nodes))),
        )

    def members_in(self, first: Offset, entries: list[Entry]) -> tuple[MembershipRecord, ...]:
        found = []
        for index, (_, value) in enumerate(entries):
            if value == LEVEL_1:
                found.append(MembershipRecord(first + index, KRaftVersion(1)))
            elif value <= FIRST_SET:
                found.append(MembershipRecord(first + index, record_of(self.sets[FIRST_SET - value])))
        return tuple(found)

    def peer_of(self, node_id: NodeId) -> Node:
        return self.nodes[node_id if node_id >= 0 else FIRST_BOOTSTRAP_ID - node_id]

    def spans_of(self, message: object) -> tuple[EpochSpan, ...]:
        if not isinstance(message, QuorumFetchResponse):
            return ()
        return tuple(
            span._replace(members=self.members_in(span.first_offset, [entry]))
            for span, entry in zip(super().spans_of(message), decode(message.records), strict=True)
        )

    def wipe(self, node_id: NodeId) -> None:
        """The node comes back with an empty disk, on another directory."""
        node = self.nodes[node_id]
        if node.raft is not None:
            self.kill(node_id)
        self.directories[node_id] += 1
        self.lost_disks.append(Node(key=node.key, entries=node.entries, synced=node.synced))
        node.key, node.state = self.new_key(node_id, self.directories[node_id]), QuorumState()
        node.entries, node.synced = [], 0

    # --- effects ---

    def perform_one(self, node: Node, effect: RaftEffect) -> None:
        match effect:
            case AppendControl(offset, epoch, members):
                self.write(node, offset, [(epoch, self.value_of(record)) for _, record in members])
                self.check_sets(node)
            case ProbeCandidate(number, where):
                self.at(20, lambda: self.probed(node, node.life, number, where.port - 9000))
            case _:
                super().perform_one(node, effect)

    def value_of(self, record: KRaftVersion | Voters) -> int:
        if isinstance(record, KRaftVersion):
            return LEVEL_1
        self.sets.append(set_of(record))
        return FIRST_SET - (len(self.sets) - 1)

    def probed(self, node: Node, life: int, number: int, candidate: NodeId) -> None:
        if node.life != life or node.raft is None:
            return
        peer = self.nodes[candidate]
        up = peer.raft is not None and not self.is_cut(node.key.node_id, candidate)
        self.step(node, CandidateProbed(number, FoundCandidate(peer.key, True, 0, 1) if up else None))

    # --- changes ---

    def change(self, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> bool:
        """Ask the leader. Returns whether there is one; the answer is added to `answers`."""
        leader = self.leader
        if leader is None:
            return False
        self.token += 1
        name, key = type(request).__name__, VoterKey(request.voter_id, request.voter_directory_id)

        def answered(message: object) -> None:
            code = getattr(message, "error_code", -1)
            self.answers.append((name, code))
            if code == 0:
                is_in = self.committed_set.names(key)
                assert is_in == (name == "AddRaftVoterRequest"), f"{name} {key} confirmed: {self.committed_set}"

        leader.calls[self.token] = answered
        self.step(leader, RequestReceived(self.token, request))
        return True

    def add(self, node_id: NodeId, timeout_ms: int = 3_000) -> bool:
        request = AddRaftVoterRequest(
            timeout_ms=timeout_ms,
            voter_id=node_id,
            voter_directory_id=self.nodes[node_id].key.directory_id,
            listeners=(endpoint(node_id),),
        )
        return self.change(request)

    def remove(self, key: VoterKey) -> bool:
        return self.change(RemoveRaftVoterRequest(voter_id=key.node_id, voter_directory_id=key.directory_id))

    @property
    def committed_set(self) -> VoterSet:
        return next((self.sets[FIRST_SET - v] for _, v in reversed(self.committed) if v <= FIRST_SET), self.sets[0])

    @property
    def is_settled(self) -> bool:
        """Whether no node holds a set that is not committed."""
        end = len(self.committed)
        return not any(value <= FIRST_SET for node in self.nodes for _, value in node.entries[end:])

    # --- invariants ---

    def check_sets(self, node: Node) -> None:
        sets = [(offset, value) for offset, (_, value) in enumerate(node.entries) if value <= FIRST_SET]
        open_sets = [value for offset, value in sets if offset >= len(self.committed)]
        assert len(open_sets) == 1, f"node {node.key.node_id} appends a set beside {open_sets}"
        if len(sets) > 1:
            before, after = (self.sets[FIRST_SET - value] for _, value in sets[-2:])
            assert have_overlapping_majorities(before, after), f"{before} -> {after}"

    def check_send(self, node: Node, call: Send) -> None:
        super().check_send(node, call)
        if isinstance(call.message, QuorumFetchRequest):
            assert node.synced == len(node.entries) == call.message.fetch_offset, "a controller acknowledges too much"
