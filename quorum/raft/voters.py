"""Who may vote. The set is static: `controller.quorum.voters` (kraft.version 0); a later one may name directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quorumlog.ids import ZERO_UUID, NodeId, Uuid
from quorumlog.messages.common import Endpoint, NodeEndpoint


@dataclass(frozen=True, slots=True)
class VoterKey:
    """A voter is a node with one disk: the same id on another directory has not seen what the first one promised."""

    node_id: NodeId
    directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """directory_id: None where the set does not name it; then any directory of that node is the voter's."""

    node_id: NodeId
    directory_id: Uuid | None = None
    endpoint: Endpoint  # of the internal listener


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Voters by node id, ascending."""

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
        """Whether this node on this directory is a voter."""
        voter = self.by_id.get(key.node_id)
        return voter is not None and voter.directory_id in (None, key.directory_id)

    @property
    def majority(self) -> int:
        """Smallest number of voters of which any two groups overlap."""
        return len(self.voters) // 2 + 1

    def others(self, node_id: NodeId | None) -> tuple[NodeId, ...]:
        """Every voter but one, ascending; all of them but None."""
        return tuple(voter.node_id for voter in self.voters if voter.node_id != node_id)

    def rank(self, node_id: NodeId, without: NodeId | None = None) -> int:
        """Place of a voter among all, or among those that are left when `without` is gone; 0 first."""
        return self.others(without).index(node_id)

    def directory_of(self, node_id: NodeId) -> Uuid:
        """What a request to this voter addresses; empty where the set does not say."""
        return self.by_id[node_id].directory_id or b""

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        voter = self.by_id.get(node_id)
        return voter.endpoint if voter else None

    def hints(self, node_id: NodeId | None) -> tuple[NodeEndpoint, ...]:
        """Where a node can be reached, as answers tell it; empty where it is not known."""
        if node_id is None or node_id not in self.by_id:
            return ()
        endpoint = self.by_id[node_id].endpoint
        return (NodeEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port),)
