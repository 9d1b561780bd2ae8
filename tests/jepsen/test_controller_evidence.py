"""The checks of the controller loop find each kind of broken promise, and nothing in a good history."""

from __future__ import annotations

import pytest

from jepsen.live.controllers.changes import Change, Outcome
from jepsen.live.controllers.evidence import Log, Strike, check_changes, check_logs, check_strikes

OK, UNKNOWN = Outcome.ACKNOWLEDGED, Outcome.UNKNOWN


def log(values: list[int], created: tuple[str, ...] = ("t",)) -> Log:
    return Log("node 1", values={"t": values}, created=list(created))


def sent(*changes: tuple[int, Outcome]) -> list[Change]:
    return [Change("t", None, OK), *(Change("t", value, outcome) for value, outcome in changes)]


def names(findings: list[object]) -> list[str]:
    return [finding.name for finding in findings]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "kept", "want"),
    [
        (sent((1, OK), (2, OK)), [1, 2], []),
        (sent((1, OK), (2, UNKNOWN), (3, OK)), [1, 3], []),
        (sent((1, OK), (2, UNKNOWN), (3, OK)), [1, 3, 2], []),  # carried out late, and nobody was told
        (sent((1, OK), (2, OK)), [1], ["lost-change"]),
        (sent((1, OK), (2, OK)), [2, 1], ["changes-in-order"]),
        (sent((1, OK), (2, OK)), [1, 2, 1], ["change-twice", "changes-in-order"]),
        (sent((1, UNKNOWN)), [1, 1], ["change-twice"]),
    ],
)
def test_changes(changes: list[Change], kept: list[int], want: list[str]) -> None:
    assert names(check_changes(log(kept), changes)) == want  # type: ignore[arg-type]


def test_a_lost_topic_is_found() -> None:
    assert names(check_changes(log([], created=()), sent())) == ["lost-change"]  # type: ignore[arg-type]
    assert names(check_changes(log([], created=("t", "t")), sent())) == ["change-twice"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "epochs", "want"),
    [
        ([(1, 1, 0), (2, 3, 9)], [(1, 1, 0), (2, 3, 9)], [1, 1, 2], []),
        ([(1, 1, 0), (2, 3, 9)], [(1, 1, 0), (2, 2, 9)], [1, 2], ["one-leader"]),
        ([(1, 1, 0)], [(1, 1, 0)], [1, 2, 1], ["epochs-rise", "epochs-rise"]),
        ([(1, 1, 0), (1, 1, 5)], [], [1, 1], ["epochs-rise"]),
    ],
)
def test_leaders(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]], epochs: list[int], want: list[str]
) -> None:
    logs = [Log("node 1", epochs=epochs, leaders=one), Log("node 2", epochs=epochs, leaders=other)]
    assert names(check_logs(logs)) == want  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "epoch", "at_s", "before", "after", "want"),
    [
        (1, 4, 1.0, 10, 10, []),
        (2, 4, 1.0, 10, 10, ["struck-the-leader"]),  # it did not lead that epoch
        (1, 4, 3.0, 10, 10, ["struck-the-leader"]),  # another one led already
        (3, 5, 1.0, 10, 10, ["struck-the-leader"]),  # nobody followed
        (1, 4, 1.0, 9, 10, ["enough-changes"]),
        (1, 4, 1.0, 10, 9, ["enough-changes"]),
    ],
)
def test_strikes(node: int, epoch: int, at_s: float, before: int, after: int, want: list[str]) -> None:
    strike = Strike(kind="kill -9", node_id=node, epoch=epoch, at_s=at_s, before=before, after=after)
    found = check_strikes(Log("node 1", leaders=[(4, 1, 0), (5, 3, 2_000)]), [strike], 10)
    assert names(found) == want  # type: ignore[arg-type]
