"""Histories of owners that are right, and one of each kind that is not."""

from __future__ import annotations

import pytest

from jepsen.checkers.owner_history import Claim, Claims, Committed, OwnerHistory, check_owners

A, B = "a", "b"
GOOD = [
    ("one after the other", [Claim(0, A, 10, 20), Claim(0, B, 20, 30)], []),
    ("two units at a time", [Claim(0, A, 10, 20), Claim(1, B, 10, 20)], []),
    ("the same member twice", [Claim(0, A, 10, 20), Claim(0, A, 15, 30)], []),
    ("an answer that came too late", [Claim(0, A, 10, 20), Claim(0, B, 15, 12)], []),
    ("it commits what it owns", [Claim(0, A, 10, 20), Claim(0, B, 20, 30)], [Committed(0, A, 12), Committed(0, B, 21)]),
    ("it commits behind its session, which nobody noticed", [Claim(0, A, 10, 20)], [Committed(0, A, 25)]),
    ("it commits another unit", [Claim(0, A, 10, 20), Claim(1, B, 10, 20)], [Committed(0, A, 15)]),
    (
        "an answer that comes too late to be a claim gives the unit all the same",
        [Claim(0, A, 10, 20), Claim(0, B, 22, 21)],
        [Committed(0, B, 23)],
    ),
]
BAD = [
    ("group-units-shared", [Claim(0, A, 10, 21), Claim(0, B, 20, 30)], []),
    ("group-units-shared", [Claim(0, A, 10, 99), Claim(0, A, 20, 30), Claim(0, B, 40, 50)], []),
    ("group-owner-fenced", [Claim(0, A, 10, 20), Claim(0, B, 20, 30)], [Committed(0, A, 21)]),
    ("group-owner-fenced", [Claim(0, A, 10, 20), Claim(0, B, 20, 21)], [Committed(0, A, 90)]),
    (
        "group-owner-fenced",
        [Claim(0, A, 10, 20), Claim(0, B, 20, 21), Claim(0, "c", 30, 29)],
        [Committed(0, A, 90)],
    ),
]


@pytest.mark.parametrize(("claims", "committed"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_right(claims: list[Claim], committed: list[Committed]) -> None:
    assert check_owners(OwnerHistory(claims, committed)) == []


@pytest.mark.parametrize(("rule", "claims", "committed"), BAD)
def test_wrong(rule: str, claims: list[Claim], committed: list[Committed]) -> None:
    assert {finding.name for finding in check_owners(OwnerHistory(claims, committed))} == {rule}


def test_what_a_member_takes_for_its_own() -> None:
    """A session of 10: it is extended by answers, and ends at once where something is given up too late."""
    now, history = [0], OwnerHistory()
    claims = Claims(history, lambda: now[0], 10)

    def seen() -> list[tuple[int, int, int]]:
        return [(one.unit, one.from_ns, one.until_ns) for one in history.claims]

    now[0] = 2
    claims.take([0, 1], A, 1)
    assert claims.units == {0, 1} and seen() == [(0, 2, 11), (1, 2, 11)]
    claims.extend(5)
    claims.take([0, 2], A, 5)
    assert seen() == [(0, 2, 15), (1, 2, 15), (2, 2, 15)]
    claims.ends(1, 12)
    claims.extend(7)
    assert seen() == [(0, 2, 12), (1, 2, 12), (2, 2, 12)]
    now[0] = 9
    claims.give_up([1])
    claims.extend(8)
    assert claims.units == {0, 2} and seen() == [(0, 2, 18), (1, 2, 9), (2, 2, 18)]
    now[0] = 30
    claims.give_up_all()
    assert not claims.units and seen() == [(0, 2, 18), (1, 2, 9), (2, 2, 18)]
    claims.committed(1, A, 20)
    assert history.committed == [Committed(1, A, 20)]


def test_an_answer_that_proves_nothing_gives_no_claim_back() -> None:
    """A session of 10. A coordinator that loads says that all is well, also to a member that was removed."""
    now, history = [2], OwnerHistory()
    claims = Claims(history, lambda: now[0], 10)
    claims.take([0], A, 1)
    now[0] = 10
    claims.extend_in_time(8)
    assert history.claims[0].until_ns == 18
    now[0] = 18
    claims.extend_in_time(17)
    assert history.claims[0].until_ns == 18 and claims.units == {0}
