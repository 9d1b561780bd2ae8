"""What a leader knows of the nodes that fetch from it: their end offsets, and when they fetched last.

A voter's fetch offset is its acknowledgement: it has synced all below it. Pure arithmetic; no message is sent here.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId, Offset
from quorumlog_quorum.raft.voters import VoterKey, VoterSet
from quorumlog_storage.rules.commit_rule import high_watermark


@dataclass(slots=True)
class Replica:
    end_offset: Offset = -1  # exclusive; -1 until its first valid fetch in this epoch
    fetched_at_ms: int | None = None
    caught_up_at_ms: int | None = None  # when it last had every record of the leader
    leader_end_at_fetch: Offset = -1

    def on_contact(self, now_ms: int) -> None:
        """A fetch from a position that is not in the leader's log: the node is alive, its end is not known."""
        self.fetched_at_ms = now_ms

    def on_fetch(self, offset: Offset, leader_end: Offset, now_ms: int) -> None:
        """A valid fetch. `offset` may be lower than before: a voter may lose what it never acknowledged."""
        if offset >= leader_end:
            self.caught_up_at_ms = now_ms
        elif self.fetched_at_ms is not None and offset >= self.leader_end_at_fetch:
            self.caught_up_at_ms = max(self.caught_up_at_ms or 0, self.fetched_at_ms)
        self.end_offset, self.fetched_at_ms, self.leader_end_at_fetch = offset, now_ms, leader_end


class Replicas:
    """The voters except the leader itself, by node id; observers by node id and directory.

    A leader that is not in the set in force does not count itself: its removal waits for its commit.
    """

    def __init__(self, voters: VoterSet, leader: NodeId, now_ms: int) -> None:
        self.elected_at_ms = now_ms
        self._set = voters
        self.majority = voters.majority
        self.leader_counts = leader in voters
        self.voters: dict[NodeId, Replica] = {node_id: Replica() for node_id in voters.others(leader)}
        self.observers: dict[VoterKey, Replica] = {}

    def committed(self, own_synced_end: Offset) -> Offset:
        """The end offset that a majority has synced, the leader included; -1 if too few voters have fetched."""
        own = [own_synced_end] if self.leader_counts else []
        return high_watermark([*own, *(voter.end_offset for voter in self.voters.values())], self.majority)

    def quorum_lost_at_ms(self, timeout_ms: int) -> int | None:
        """When no majority, the leader included, will have fetched for timeout_ms; None for a single voter."""
        if not self.voters:
            return None
        contacts = sorted((self._last_contact_ms(voter) for voter in self.voters.values()), reverse=True)
        return contacts[self.majority - 1 - self.leader_counts] + timeout_ms

    def change_voters(self, voters: VoterSet, leader: VoterKey) -> None:
        """Another set is in force. A node keeps what is known of it, as a voter or as an observer."""
        self.leader_counts = voters.names(leader)
        own_id = leader.node_id if self.leader_counts else None
        known = dict(self.observers)
        for node_id, replica in self.voters.items():
            known[self._set.by_id[node_id].key] = replica
        self.voters = {}
        for voter in voters.voters:
            key = voter.key if voter.key in known else VoterKey(voter.node_id)  # a static set names no directories
            if voter.node_id != own_id:
                self.voters[voter.node_id] = known.pop(key, Replica())
        self.observers = {key: replica for key, replica in known.items() if replica.fetched_at_ms is not None}
        self._set, self.majority = voters, voters.majority

    def end_of(self, key: VoterKey) -> Offset:
        """The end offset of a voter or an observer, exclusive; -1: it has not fetched from this leader."""
        replica = self._replica(key)
        return -1 if replica is None else replica.end_offset

    def is_caught_up(self, key: VoterKey, within_ms: int, now_ms: int) -> bool:
        """Whether the observer had every record of the leader within the last within_ms."""
        replica = self._replica(key)
        return (
            replica is not None
            and replica.caught_up_at_ms is not None
            and (replica.caught_up_at_ms + within_ms >= now_ms)
        )

    def _replica(self, key: VoterKey) -> Replica | None:
        if key in self.observers:
            return self.observers[key]
        return self.voters.get(key.node_id) if self._set.names(key) else None

    def silent(self, interval_ms: int, now_ms: int) -> list[NodeId]:
        """Voters that have not fetched in this epoch within interval_ms."""
        return [
            node_id
            for node_id, voter in self.voters.items()
            if voter.fetched_at_ms is None or voter.fetched_at_ms + interval_ms <= now_ms
        ]

    def by_progress(self) -> tuple[NodeId, ...]:
        """The voters except the leader, the largest end offset first."""
        return tuple(sorted(self.voters, key=lambda node_id: (-self.voters[node_id].end_offset, node_id)))

    def observer(self, key: VoterKey, limit: int, session_ms: int, now_ms: int) -> Replica | None:
        """An observer's replica, new or known; None if `limit` observers are known already."""
        if key not in self.observers:
            self.forget_observers(session_ms, now_ms)
            if len(self.observers) >= limit:
                return None
            self.observers[key] = Replica()
        return self.observers[key]

    def forget_observers(self, session_ms: int, now_ms: int) -> None:
        self.observers = {
            key: replica
            for key, replica in self.observers.items()
            if replica.fetched_at_ms is None or replica.fetched_at_ms + session_ms > now_ms
        }

    def _last_contact_ms(self, voter: Replica) -> int:
        return self.elected_at_ms if voter.fetched_at_ms is None else max(voter.fetched_at_ms, self.elected_at_ms)
