"""Every transition from each role, and the first role for each saved state (KIP-595, Kafka's `QuorumStateTest`)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from raft_samples import candidate, make_raft, role_of, unattached, voter_set

from quorumlog_quorum.raft.effects import PersistQuorumState
from quorumlog_quorum.raft.events import Started
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.roles import RaftRole, Resigned, Unattached, is_legal
from quorumlog_quorum.raft.voters import VoterHistory, VoterKey, VoterSet
from quorumlog_storage.rules.epochs import EpochStart
from tests.rules import rule

U, P, C, L, F, R = (
    RaftRole.UNATTACHED,
    RaftRole.PROSPECTIVE,
    RaftRole.CANDIDATE,
    RaftRole.LEADER,
    RaftRole.FOLLOWER,
    RaftRole.RESIGNED,
)

# Written out by hand: which roles follow a role in its epoch, in the next one, in a later one.
TABLE = {
    U: ("UPF", "UF", "UF"),
    P: ("PUF", "UFC", "UF"),
    C: ("LPF", "UF", "UF"),
    L: ("R", "UF", "UF"),
    F: ("PU", "UF", "UF"),
    R: ("", "UF", "UF"),
}
LETTER = {U: "U", P: "P", C: "C", L: "L", F: "F", R: "R"}


@rule("kraft 1.1")
@pytest.mark.parametrize(("old", "new", "step"), list(product(RaftRole, RaftRole, (0, 1, 2))))
def test_voter(old: RaftRole, new: RaftRole, step: int) -> None:
    assert is_legal(old, 5, new, 5 + step, can_elect=True) == (LETTER[new] in TABLE[old][step])


@rule("kraft 1.2")
@pytest.mark.parametrize(("old", "new", "step"), list(product((U, F), RaftRole, (0, 1, 2))))
def test_observer_only_looks_and_follows(old: RaftRole, new: RaftRole, step: int) -> None:
    expected = LETTER[new] in TABLE[old][step] and new in (U, F)
    assert is_legal(old, 5, new, 5 + step, can_elect=False) == expected


@rule("kraft 1.3")
@pytest.mark.parametrize(("old", "new"), list(product(RaftRole, RaftRole)))
def test_no_epoch_goes_back(old: RaftRole, new: RaftRole) -> None:
    assert not is_legal(old, 5, new, 4, can_elect=True)


OWN, OTHER = VoterKey(0, bytes(16)), VoterKey(2, bytes([2]) * 16)
STARTS = [
    ("nothing", QuorumState(), (), U, 0),
    ("epoch only", QuorumState(epoch=3), (), U, 3),
    ("voted for another", QuorumState(epoch=3, voted=OTHER), (), U, 3),
    ("voted for itself", QuorumState(epoch=3, voted=OWN), (), C, 3),
    ("was leader", QuorumState(epoch=3, leader_id=0, voted=OWN), (), R, 3),
    ("followed", QuorumState(epoch=3, leader_id=1), (), F, 3),
    ("followed whom it had voted for", QuorumState(epoch=3, leader_id=2, voted=OTHER), (), F, 3),
    ("followed a stranger", QuorumState(epoch=3, leader_id=9), (), U, 3),
    ("log is ahead", QuorumState(epoch=3, leader_id=0, voted=OWN), (EpochStart(4, 0),), U, 4),
]


@rule("kraft 1.7", "kraft 1.8", "kraft 1.9", "kraft 1.10")
@pytest.mark.parametrize(("saved", "epochs", "role", "epoch"), [c[1:] for c in STARTS], ids=[c[0] for c in STARTS])
def test_start(saved: QuorumState, epochs: tuple[EpochStart, ...], role: RaftRole, epoch: int) -> None:
    raft = make_raft(saved=saved, epochs=epochs, end=5 if epochs else 0)
    raft.step(Started(), 0)
    assert (role_of(raft), raft.core.epoch) == (role, epoch)


# How long a voter that starts unattached waits for its election: by rank at the very first start, else the time-out.
NEVER_LED = [(node_id, QuorumState(), (), (node_id * 75, node_id * 75 + 25)) for node_id in range(3)]
MAY_BE_LED = [
    (0, QuorumState(epoch=1), (), (500, 1_000)),
    (0, QuorumState(epoch=1, voted=OTHER), (), (500, 1_000)),
    (0, QuorumState(), (EpochStart(4, 0),), (500, 1_000)),
]


@pytest.mark.parametrize(("node_id", "saved", "epochs", "within_ms"), [*NEVER_LED, *MAY_BE_LED])
def test_first_election(
    node_id: int, saved: QuorumState, epochs: tuple[EpochStart, ...], within_ms: tuple[int, int]
) -> None:
    """A voter that has never known an epoch does not wait for a leader."""
    raft = make_raft(node_id, saved=saved, epochs=epochs, end=5 if epochs else 0)
    raft.step(Started(), 7_000)
    assert isinstance(raft.core.role, Unattached) and raft.core.role.election_at_ms is not None
    assert within_ms[0] <= raft.core.role.election_at_ms - 7_000 <= within_ms[1]


def test_an_observer_starts_no_candidacy_whatever_was_saved() -> None:
    for saved in (QuorumState(epoch=3, voted=VoterKey(7, bytes([7]) * 16)), QuorumState(epoch=3, leader_id=7)):
        raft = make_raft(7, saved=saved)
        raft.step(Started(), 0)
        assert role_of(raft) is U


@rule("kraft 1.16", "kraft 6.1")
def test_a_voter_on_another_disk_is_an_observer() -> None:
    """A voter that lost its directory does not know its promises, so it must not vote."""
    raft = make_raft()
    others = VoterSet(replace(voter, directory_id=bytes([9]) * 16) for voter in voter_set().voters)
    raft.core.history = VoterHistory(others)
    raft.step(Started(), 0)
    assert isinstance(raft.core.role, Unattached) and raft.core.role.election_at_ms is None


@rule("kraft 1.6", "kraft 1.11")
def test_a_single_voter_leads_within_its_first_step() -> None:
    raft = make_raft(voters=1)
    effects = raft.step(Started(), 0)
    states = [effect.state for effect in effects if isinstance(effect, PersistQuorumState)]
    assert role_of(raft) is L
    assert states == [QuorumState(epoch=1, leader_id=0, voted=OWN)]


@rule("kraft 1.8")
def test_a_single_voter_never_leads_an_epoch_twice() -> None:
    raft = make_raft(voters=1, saved=QuorumState(epoch=4, leader_id=0, voted=OWN))
    raft.step(Started(), 0)
    assert role_of(raft) is L and raft.core.epoch > 4


@rule("kraft 1.1")
@pytest.mark.parametrize("role", ["unattached", "candidate"])
def test_an_illegal_change_stops_the_process(role: str) -> None:

    raft = unattached() if role == "unattached" else candidate()
    with pytest.raises(AssertionError):
        raft.core.become(Resigned(None, (), {}), epoch=raft.core.epoch)
