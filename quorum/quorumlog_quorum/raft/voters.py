"""The voters of the quorum: one set of them.

With kraft.version 0 the set is static (`controller.quorum.voters`). With 1 it is in the metadata log (voter_history).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quorumlog.ids import ZERO_UUID, NodeId, Uuid
from quorumlog.messages.common import Endpoint


@dataclass(frozen=True, slots=True)
class VoterKey:
    """A voter is a node with one directory: the same node on another directory does not know its earlier promises."""

    node_id: NodeId
    directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """directory_id: None if the set does not name it; then the node is a voter on any directory."""

    node_id: NodeId
    directory_id: Uuid | None = None
    endpoint: Endpoint  # of the internal listener
    more_endpoints: tuple[Endpoint, ...] = ()
    min_version: int = 0  # of kraft.version that the node's software can run, inclusive
    max_version: int = 0

    @property
    def key(self) -> VoterKey:
        return VoterKey(self.node_id, self.directory_id or ZERO_UUID)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters, ordered by node id."""

    voters: tuple[Voter, ...]
    by_id: dict[NodeId, Voter] = field(init=False, repr=False, compare=False)

    def __init__(self, voters: Iterable[Voter]) -> None:
        ordered = tuple(sorted(voters, key=lambda voter: voter.node_id))
        by_id = {voter.node_id: voter for voter in ordered}
        if len(by_id) != len(ordered):
            raise ValueError(f"a voter is named twice: {[voter.node_id for voter in ordered]}; name each once")
        object.__setattr__(self, "voters", ordered)
        object.__setattr__(self, "by_id", by_id)

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self.by_id)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.by_id

    def names(self, key: VoterKey) -> bool:
        """Whether the node is a voter on this directory."""
        voter = self.by_id.get(key.node_id)
        return voter is not None and voter.directory_id in (None, key.directory_id)

    @property
    def majority(self) -> int:
        """The smallest number of voters such that any two groups of that size overlap."""
        return len(self.voters) // 2 + 1

    def others(self, node_id: NodeId | None) -> tuple[NodeId, ...]:
        """Every voter except `node_id`, ascending; every voter for None."""
        return tuple(voter.node_id for voter in self.voters if voter.node_id != node_id)

    def rank(self, node_id: NodeId, without: NodeId | None = None) -> int:
        """Place of a voter among the voters except `without`; the first is 0."""
        return self.others(without).index(node_id)

    def directory_of(self, node_id: NodeId) -> Uuid:
        """The directory id that a request to this voter names; empty if the set does not name it."""
        return self.by_id[node_id].directory_id or b""

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        voter = self.by_id.get(node_id)
        return voter.endpoint if voter else None
