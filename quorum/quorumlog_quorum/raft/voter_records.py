"""Voter sets as the control records of the metadata log hold them, and which sets may follow one another.

Of the endpoints of a voter the first one is its internal listener.
"""

from __future__ import annotations

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.common import Endpoint
from quorumlog.records import control
from quorumlog_quorum.raft.voters import Voter, VoterKey, VoterSet

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
