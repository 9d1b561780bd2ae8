"""The audit of the logs of transactions accepts what coordinators may write, and names each fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.checkers.transactional.logs import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    DataBatch,
    IdRecord,
    Partition,
    check_logs,
)

P, Q = ("t", 0), ("t", 1)
NONE: frozenset[Partition] = frozenset()
BOTH = frozenset({P, Q})
Logs = tuple[list[IdRecord], dict[Partition, list[DataBatch]]]


def sound() -> Logs:
    """a: TV2, a commit in both partitions and an abort in one. b: TV1, two commits of one epoch in Q."""
    ids = [
        IdRecord("a", 7, 0, EMPTY, NONE),
        IdRecord("b", 8, 3, EMPTY, NONE),
        IdRecord("a", 7, 0, ONGOING, frozenset({P})),
        IdRecord("a", 7, 0, ONGOING, BOTH),
        IdRecord("a", 7, 1, PREPARE_COMMIT, BOTH),
        IdRecord("b", 8, 3, ONGOING, frozenset({Q})),
        IdRecord("b", 8, 3, PREPARE_COMMIT, frozenset({Q})),
        IdRecord("a", 7, 1, COMPLETE_COMMIT, NONE),
        IdRecord("b", 8, 3, COMPLETE_COMMIT, NONE),
        IdRecord("a", 7, 1, ONGOING, frozenset({P})),
        IdRecord("a", 7, 2, PREPARE_ABORT, frozenset({P})),
        IdRecord("b", 8, 3, ONGOING, frozenset({Q})),
        IdRecord("b", 8, 3, PREPARE_COMMIT, frozenset({Q})),
        IdRecord("a", 7, 2, COMPLETE_ABORT, NONE),
        IdRecord("b", 8, 3, COMPLETE_COMMIT, NONE),
    ]
    data = {
        P: [DataBatch(0, 7, 0), DataBatch(1, 7, 1, True), DataBatch(2, 7, 1), DataBatch(3, 7, 2, False)],
        Q: [
            DataBatch(0, 7, 0),
            DataBatch(1, 8, 3),
            DataBatch(2, 7, 1, True),
            DataBatch(3, 8, 3, True),
            DataBatch(4, 8, 3),
            DataBatch(5, 8, 3, True),
        ],
    }
    return ids, data


def names(logs: Logs) -> set[str]:
    findings, _ = check_logs([logs[0]], logs[1])
    return {finding.name for finding in findings}


def test_sound_logs() -> None:
    assert names(sound()) == set()


def resent(logs: Logs) -> None:
    logs[1][P].insert(2, DataBatch(1, 7, 1, True))


def resent_in_one_epoch(logs: Logs) -> None:
    logs[1][Q].insert(4, DataBatch(3, 8, 3, True))


def added_and_nothing_written(logs: Logs) -> None:
    del logs[1][Q][0]


def child_of_a_joint_transaction(logs: Logs) -> None:
    """Its first record opens it."""
    logs[0].append(IdRecord("joint", 9, 0, ONGOING, NONE, is_child=True))


@pytest.mark.parametrize("vary", [resent, resent_in_one_epoch, added_and_nothing_written, child_of_a_joint_transaction])
def test_what_coordinators_may_write(vary: Callable[[Logs], None]) -> None:
    logs = sound()
    vary(logs)
    assert names(logs) == set()


def completed_without_prepare(logs: Logs) -> None:
    del logs[0][4]


def begun_open(logs: Logs) -> None:
    logs[0].append(IdRecord("c", 9, 0, ONGOING, NONE))


def epoch_fell(logs: Logs) -> None:
    logs[0][-1] = logs[0][-1]._replace(epoch=2)


def id_of_two(logs: Logs) -> None:
    logs[0].append(IdRecord("c", 8, 4, EMPTY, NONE))


def committed_instead_of_aborted(logs: Logs) -> None:
    logs[1][P][3] = DataBatch(3, 7, 2, True)


def marker_with_the_epoch_of_the_data(logs: Logs) -> None:
    logs[1][P][1] = DataBatch(1, 7, 0, True)


def marker_of_nobody(logs: Logs) -> None:
    logs[1][P].append(DataBatch(4, 9, 0, True))


def one_marker_missing(logs: Logs) -> None:
    del logs[1][Q][5]


def empty_partition_without_a_marker(logs: Logs) -> None:
    del logs[1][Q][2], logs[1][Q][0]


def late_data(logs: Logs) -> None:
    logs[1][P].insert(2, DataBatch(2, 7, 0))


def hanging(logs: Logs) -> None:
    logs[1][P].append(DataBatch(4, 7, 2))


@pytest.mark.parametrize(
    ("falsify", "name"),
    [
        (completed_without_prepare, "transaction-status"),
        (begun_open, "transaction-status"),
        (epoch_fell, "transaction-status"),
        (id_of_two, "producer-id-of-two-ids"),
        (committed_instead_of_aborted, "marker-undecided"),
        (marker_with_the_epoch_of_the_data, "marker-undecided"),
        (marker_of_nobody, "marker-undecided"),
        (one_marker_missing, "transaction-open"),
        (empty_partition_without_a_marker, "marker-missing"),
        (late_data, "data-behind-its-marker"),
        (hanging, "transaction-open"),
    ],
)
def test_each_fault_has_its_name(falsify: Callable[[Logs], None], name: str) -> None:
    logs = sound()
    falsify(logs)
    assert name in names(logs)
