"""The checker of group histories accepts a good history, and names each fault of a bad one."""

from __future__ import annotations

import pytest

from jepsen.checkers.group_history import (
    Assigned,
    Commit,
    Deletion,
    Expiry,
    Fetched,
    GroupHistory,
    Sent,
    check_groups,
)


def good() -> GroupHistory:
    """Two generations of unit 0: the second owner goes on where the first one was cut off."""
    return GroupHistory(
        sent=[Sent(1, {"a": (0,), "b": (1,)}), Sent(2, {"b": (0, 1)})],
        assigned=[Assigned(1, "a", (0,), 10), Assigned(1, "b", (1,), 11), Assigned(2, "b", (0, 1), 50)],
        fetches=[Fetched(0, -1, 12, 13), Fetched(0, 2, 52, 53)],
        commits=[
            Commit(0, 1, 1, 20, 21, acked=True),
            Commit(0, 2, 1, 30),  # the answer was lost
            Commit(0, 3, 2, 60, 61, acked=True),
        ],
    )


def names(history: GroupHistory) -> list[str]:
    return [finding.name for finding in check_groups(history)]


def test_a_good_history() -> None:
    assert names(good()) == []


def test_an_open_commit_may_be_missing() -> None:
    history = good()
    history.fetches[1] = Fetched(0, 1, 52, 53)
    assert names(history) == []


def test_a_commit_that_is_acknowledged_during_a_fetch_may_be_missing() -> None:
    history = good()
    history.commits[0] = Commit(0, 1, 1, 20, 54, acked=True)
    history.fetches[1] = Fetched(0, -1, 52, 55)
    assert names(history) == []


@pytest.mark.parametrize(
    ("at_ns", "expected"), [(52, []), (25, []), (54, ["group-commit-lost"]), (19, ["group-commit-lost"])]
)
def test_an_offset_that_expired_may_be_missing(at_ns: int, expected: list[str]) -> None:
    history = good()
    history.fetches[1] = Fetched(0, -1, 52, 53)
    history.expiries = [Expiry(1, 52), Expiry(0, at_ns)]
    assert names(history) == expected


@pytest.mark.parametrize(
    ("commits", "returned"),
    [
        ([Commit(0, 7, -1, 20, 60, acked=True, staged_ns=22)], True),
        ([Commit(0, 7, -1, 20, 24, acked=True)], True),
        ([Commit(0, 7, -1, 20, 60, acked=True)], False),
        ([Commit(0, 7, -1, 20, 60, acked=True, staged_ns=31)], False),
        ([Commit(0, 7, -1, 20, 24, acked=True), Commit(0, 7, -1, 41, 45)], False),
        ([Commit(1, 7, -1, 20, 24, acked=True), Commit(0, 7, -1, 41, 45)], False),
    ],
    ids=["a transaction held it", "committed", "nobody knows when", "meanwhile", "again", "of another unit"],
)
def test_an_offset_that_was_deleted_returns_by_a_later_commit_only(commits: list[Commit], returned: bool) -> None:
    history = GroupHistory(
        commits=commits, deletions=[Deletion(0, 30, 40)], expiries=[Expiry(0, 35)], fetches=[Fetched(0, 7, 70, 71)]
    )
    assert names(history) == ["group-deleted-offset-returns"] * returned
    history.fetches = [Fetched(0, 7, 39, 71)]
    assert names(history) == []


def test_a_static_member_that_came_back_has_what_it_had() -> None:
    history = good()
    history.assigned.append(Assigned(2, "b2", (0, 1), 60))
    assert names(history) == ["group-two-owners", "group-two-owners", "group-assignment-changed"]
    history.instances = {"b": "i", "b2": "i"}
    assert names(history) == []


def test_a_group_that_was_forgotten_begins_again() -> None:
    history = good()
    history.sent.append(Sent(1, {"c": (0, 1)}))
    history.assigned.append(Assigned(1, "c", (0, 1), 80))
    history.commits.append(Commit(0, 4, 1, 81, 82, acked=True))
    assert set(names(history)) == {"group-two-owners", "group-commit-fenced"}
    history.forgotten_ns = [70]
    assert names(history) == []


def lost(history: GroupHistory) -> None:
    history.fetches[1] = Fetched(0, -1, 52, 53)


def undone(history: GroupHistory) -> None:
    history.fetches.append(Fetched(0, 1, 55, 56))


def invented(history: GroupHistory) -> None:
    history.fetches[1] = Fetched(0, 9, 52, 53)


def fenced(history: GroupHistory) -> None:
    history.commits.append(Commit(0, 4, 1, 51, 70, acked=True))


def owned_twice(history: GroupHistory) -> None:
    history.assigned.append(Assigned(2, "c", (1,), 51))
    history.sent.append(Sent(2, {"c": (1,)}))


def changed(history: GroupHistory) -> None:
    history.assigned[2] = Assigned(2, "b", (0,), 50)


def led_twice(history: GroupHistory) -> None:
    history.assigned[1] = history.assigned[1]._replace(leader="b")


def other_protocol(history: GroupHistory) -> None:
    history.assigned[1] = history.assigned[1]._replace(protocol="range")


@pytest.mark.parametrize(
    ("break_it", "name"),
    [
        (lost, "group-commit-lost"),
        (undone, "group-offset-undone"),
        (invented, "group-offset-invented"),
        (fenced, "group-commit-fenced"),
        (owned_twice, "group-two-owners"),
        (changed, "group-assignment-changed"),
        (led_twice, "group-two-leaders"),
        (other_protocol, "group-two-leaders"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_fault_has_its_name(break_it: object, name: str) -> None:
    history = good()
    assert callable(break_it)
    break_it(history)
    assert names(history) == [name]
