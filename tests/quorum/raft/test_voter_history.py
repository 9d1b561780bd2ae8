"""Voter sets by offset: in force when appended, reverted on truncation, trimmed at snapshots; and which may follow."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.messages.common import Endpoint
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_quorum.raft.voters import (
    BOOTSTRAP,
    MembershipRecord,
    Voter,
    VoterHistory,
    VoterKey,
    VoterSet,
    have_overlapping_majorities,
    record_of,
    set_of,
    with_voter,
    without_voter,
)
from tests.rules import rule

LEVEL_1 = KRaftVersion(1)


def voter(name: str) -> Voter:
    """ "1a": node 1 on directory a; "1": node 1 on any directory."""
    directory = name[1].encode() * 16 if len(name) > 1 else None
    node_id = int(name[0])
    return Voter(node_id=node_id, directory_id=directory, endpoint=Endpoint(name="I", host="h", port=9000 + node_id))


def voters(names: str) -> VoterSet:
    return VoterSet(voter(name) for name in names.split())


def record(names: str) -> Voters:
    return record_of(voters(names))


STATIC = voters("1 2 3")


@rule("kraft 6.1")
def test_without_records_the_static_set_is_in_force() -> None:
    history = VoterHistory(STATIC)
    assert (history.voters, history.level, history.offset, history.at(100)) == (STATIC, 0, None, (None, None))


@rule("kraft 6.2")
def test_a_set_is_in_force_when_it_is_appended_and_reverted_when_it_is_cut() -> None:
    history = VoterHistory(STATIC)
    history.add(MembershipRecord(10, LEVEL_1))
    history.add(MembershipRecord(11, record("1a 2a 3a")))
    history.add(MembershipRecord(20, record("1a 2a 3a 4a")))
    assert (history.voters, history.level, history.offset) == (voters("1a 2a 3a 4a"), 1, 20)
    history.truncate(20)
    assert (history.voters, history.level, history.offset) == (voters("1a 2a 3a"), 1, 11)
    history.truncate(11)
    assert (history.voters, history.level, history.offset) == (STATIC, 1, None)
    history.truncate(10)
    assert (history.voters, history.level) == (STATIC, 0)


@rule("kraft 5.8")
def test_what_a_snapshot_holds_is_what_was_in_force_below_its_end() -> None:
    history = VoterHistory(
        VoterSet(()), [MembershipRecord(BOOTSTRAP, LEVEL_1), MembershipRecord(BOOTSTRAP, record("1a"))]
    )
    assert history.needs_writing
    history.add(MembershipRecord(7, record("1a 2a")))
    assert not history.needs_writing
    assert history.at(7) == (LEVEL_1, record("1a"))
    assert history.at(8) == (LEVEL_1, record("1a 2a"))
    history.trim(8)
    assert history.at(8) == (LEVEL_1, record("1a 2a")) and history.offset == 7


@rule("kraft 5.8")
def test_a_snapshot_replaces_the_history() -> None:
    history = VoterHistory(STATIC, [MembershipRecord(3, LEVEL_1), MembershipRecord(4, record("1a"))])
    history.restart(100, LEVEL_1, record("2a 3a"))
    assert (history.voters, history.level) == (voters("2a 3a"), 1)
    assert history.at(100) == (LEVEL_1, record("2a 3a"))
    history.restart(200, None, None)
    assert (history.voters, history.level) == (STATIC, 0)


def test_the_record_of_a_set_keeps_every_field() -> None:
    one = Voter(
        node_id=4,
        directory_id=b"d" * 16,
        endpoint=Endpoint(name="INTERNAL", host="one", port=1),
        more_endpoints=(Endpoint(name="OTHER", host="two", port=2),),
        min_version=0,
        max_version=1,
    )
    assert set_of(record_of(VoterSet([one]))) == VoterSet([one])


def test_a_voter_is_added_replaced_and_removed_by_its_key() -> None:
    assert with_voter(voters("1a 2a"), voter("3a")) == voters("1a 2a 3a")
    assert with_voter(voters("1a 2a"), voter("2b")) == voters("1a 2b")
    assert without_voter(voters("1a 2a"), VoterKey(2, b"a" * 16)) == voters("1a")
    assert without_voter(voters("1a 2a"), VoterKey(2, b"b" * 16)) == voters("1a 2a")


OVERLAPS = [
    ("the same set", "1a 2a 3a", "1a 2a 3a", True),
    ("one added", "1a 2a 3a", "1a 2a 3a 4a", True),
    ("one added to one", "1a", "1a 2a", True),
    ("one removed", "1a 2a 3a", "1a 2a", True),
    ("two added to one", "1a", "1a 2a 3a", False),
    ("two added to three", "1a 2a 3a", "1a 2a 3a 4a 5a", False),
    ("two removed of five", "1a 2a 3a 4a 5a", "1a 2a 3a", False),
    ("one replaced of one", "1a", "2a", False),
    ("one replaced of three", "1a 2a 3a", "1a 2a 4a", False),
    ("another directory of one of three", "1a 2a 3a", "1a 2a 3b", False),
    ("two replaced of three", "1a 2a 3a", "1a 4a 5a", False),
    ("directories become known", "1 2 3", "1a 2a 3a", True),
    ("directories become known and one is added", "1 2 3", "1a 2a 3a 4a", True),
    ("nothing in common", "1a 2a", "3a 4a", False),
]


@rule("kraft 6.5")
@pytest.mark.parametrize(("one", "other", "want"), [case[1:] for case in OVERLAPS], ids=[case[0] for case in OVERLAPS])
def test_overlapping_majorities(one: str, other: str, want: bool) -> None:
    assert have_overlapping_majorities(voters(one), voters(other)) is want
    assert have_overlapping_majorities(voters(other), voters(one)) is want


@rule("kraft 6.5")
@given(st.sets(st.integers(1, 8), min_size=1, max_size=6), st.sets(st.integers(1, 8), min_size=1, max_size=6))
def test_overlap_agrees_with_trying_all_majorities(one: set[int], other: set[int]) -> None:
    def majorities(nodes: set[int]) -> list[set[int]]:
        return [set(group) for group in combinations(sorted(nodes), len(nodes) // 2 + 1)]

    want = all(first & second for first in majorities(one) for second in majorities(other))
    sets = [voters(" ".join(f"{node}a" for node in sorted(nodes))) for nodes in (one, other)]
    assert have_overlapping_majorities(*sets) is want


@rule("kraft 6.2")
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "cut", "trim"]), st.integers(1, 5), st.sets(st.integers(1, 5), min_size=1))
    )
)
def test_the_history_agrees_with_a_list_of_all_records(steps: list[tuple[str, int, set[int]]]) -> None:
    """The second answer keeps every record and looks for the last one below each offset."""
    history, log, start = VoterHistory(STATIC), list[tuple[int, VoterSet]](), 0
    end = 0
    for what, count, nodes in steps:
        if what == "add":
            added = voters(" ".join(f"{node}a" for node in sorted(nodes)))
            end += count
            history.add(MembershipRecord(end - 1, record_of(added)))
            log.append((end - 1, added))
        elif what == "cut":
            end = max(start, end - count)
            history.truncate(end)
            log = [entry for entry in log if entry[0] < end]
        else:
            start = min(end, start + count)
            history.trim(start)
        for upper in range(start, end + 1):
            below = [found for offset, found in log if offset < upper]
            held = history.at(upper)[1]
            assert (set_of(held) if held else STATIC) == (below[-1] if below else STATIC)
        assert history.voters == (log[-1][1] if log else STATIC)
