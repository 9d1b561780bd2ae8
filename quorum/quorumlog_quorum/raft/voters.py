"""The voters of the quorum: one set of them.

With kraft.version 0 the set is static (`controller.quorum.voters`). With 1 it is in the metadata log (voter_history).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from quorumlog.ids import ZERO_UUID, NodeId, Offset, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.records import control
from quorumlog.records.control import KRaftVersion, Voters


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


_NOWHERE = Endpoint(name="", host="", port=0)  # of a voter whose record names no listener; no call reaches it


def record_of(voters: VoterSet) -> control.Voters:
    """Every voter must have a directory id."""
    return control.Voters(tuple(_record_of(voter) for voter in voters.voters))


def set_of(record: control.Voters) -> VoterSet:
    return VoterSet(_voter_of(voter) for voter in record.voters)


def have_overlapping_majorities(one: VoterSet, other: VoterSet) -> bool:
    """Whether every majority of one set shares a voter with every majority of the other.

    Only then can no two leaders be elected in one epoch, one by each set. The smallest overlap is that of two
    majorities which take first the voters that the other set lacks. (KIP-853 allows one voter added and one removed
    at once; from three voters on, that alone does not make majorities overlap.)
    """
    common = sum(_is_in(voter, other) for voter in one.voters)
    needed = max(0, one.majority - (len(one) - common)) + max(0, other.majority - (len(other) - common))
    return needed > common


def with_voter(voters: VoterSet, voter: Voter) -> VoterSet:
    """The set with this voter added, or in the place of the one with its id."""
    return VoterSet([*(other for other in voters.voters if other.node_id != voter.node_id), voter])


def without_voter(voters: VoterSet, key: VoterKey) -> VoterSet:
    return VoterSet(voter for voter in voters.voters if voter.key != key)


def _is_in(voter: Voter, voters: VoterSet) -> bool:
    """A set that names no directory ids means the nodes on whatever directory."""
    other = voters.by_id.get(voter.node_id)
    return other is not None and (None in (voter.directory_id, other.directory_id) or voter.key == other.key)


def _record_of(voter: Voter) -> control.Voter:
    assert voter.directory_id not in (None, ZERO_UUID), f"voter {voter.node_id} has no directory id"
    endpoints = (voter.endpoint, *voter.more_endpoints)
    return control.Voter(
        voter.node_id,
        voter.directory_id or ZERO_UUID,
        tuple(control.VoterEndpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in endpoints),
        voter.min_version,
        voter.max_version,
    )


def _voter_of(voter: control.Voter) -> Voter:
    endpoints = [Endpoint(name=found.name, host=found.host, port=found.port) for found in voter.endpoints]
    return Voter(
        node_id=voter.id,
        directory_id=voter.directory_id,
        endpoint=endpoints[0] if endpoints else _NOWHERE,
        more_endpoints=tuple(endpoints[1:]),
        min_version=voter.min_version,
        max_version=voter.max_version,
    )


BOOTSTRAP: Offset = -1  # the offset of the records in the bootstrap checkpoint
_AFTER_ALL: Offset = 2**63 - 1
STATIC_LEVEL = 0  # of kraft.version: the voters are in the configuration
DYNAMIC_LEVEL = 1  # the voters are in the log


class MembershipRecord(NamedTuple):
    """A control record about the voters, and where it stands in the log."""

    offset: Offset
    record: KRaftVersion | Voters


class VoterHistory:
    def __init__(self, static: VoterSet, records: Iterable[MembershipRecord] = ()) -> None:
        """static: the set of the configuration; it may be empty. records: ascending by offset."""
        self._static = static
        self._records: list[MembershipRecord] = []
        self.voters, self.level = static, STATIC_LEVEL  # in force
        for record in records:
            self.add(record)

    @property
    def offset(self) -> Offset | None:
        """Of the record that made the set in force; None: it is the static one."""
        return next((found.offset for found in reversed(self._records) if isinstance(found.record, Voters)), None)

    @property
    def last_offset(self) -> Offset | None:
        """Of the last record of either kind; None: there is none."""
        return self._records[-1].offset if self._records else None

    @property
    def needs_writing(self) -> bool:
        """Whether the voters are known from the bootstrap checkpoint alone: the first leader writes them to the log."""
        return self.last_offset == BOOTSTRAP

    @property
    def held(self) -> tuple[KRaftVersion | Voters, ...]:
        """The records in force."""
        return tuple(record for record in self.at(_AFTER_ALL) if record is not None)

    def is_leaving(self, key: VoterKey, high_watermark: Offset) -> bool:
        """Whether the last set removes this voter, as far as is known without a commit. high_watermark: exclusive."""
        offset = self.offset
        if offset is None or offset < high_watermark or self.voters.names(key):
            return False
        before = self.at(offset)[1]
        return (self._static if before is None else set_of(before)).names(key)

    def at(self, end_offset: Offset) -> tuple[KRaftVersion | None, Voters | None]:
        """The records in force below end_offset (exclusive), as a snapshot that ends there holds them."""
        version: KRaftVersion | None = None
        voters: Voters | None = None
        for found in self._records:
            if found.offset >= end_offset:
                break
            if isinstance(found.record, KRaftVersion):
                version = found.record
            else:
                voters = found.record
        return version, voters

    def add(self, record: MembershipRecord) -> None:
        last = self.last_offset
        assert last is None or record.offset > last or record.offset == BOOTSTRAP == last, f"{record} after {last}"
        self._records.append(record)
        self._find_latest()

    def truncate(self, end_offset: Offset) -> None:
        """Forget the records at and after end_offset."""
        self._records = [found for found in self._records if found.offset < end_offset]
        self._find_latest()

    def trim(self, start_offset: Offset) -> None:
        """The log starts here now, and a snapshot holds what is below: keep of that the newest of each kind."""
        below = [found for found in self._records if found.offset < start_offset]
        kept = {type(found.record): found for found in below}
        self._records = sorted(kept.values(), key=lambda found: found.offset) + self._records[len(below) :]

    def restart(self, end_offset: Offset, version: KRaftVersion | None, voters: Voters | None) -> None:
        """A snapshot that ends at end_offset has replaced the log. None: it holds no such record."""
        held = [record for record in (version, voters) if record is not None]
        first = end_offset - len(held)
        self._records = [MembershipRecord(first + index, record) for index, record in enumerate(held)]
        self._find_latest()

    def _find_latest(self) -> None:
        self.voters, self.level = self._static, STATIC_LEVEL
        for _, record in self._records:
            if isinstance(record, KRaftVersion):
                self.level = record.level
            else:
                self.voters = set_of(record)
