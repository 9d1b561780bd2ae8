"""What the checker of cuts finds (jepsen.checkers.backup_cuts): each bad cut by its name, and nothing in sound ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jepsen.checkers.backup_cuts import CutTaken, Evidence, GroupCommit, GroupOffset, Record, Value, check_cuts
from jepsen.checkers.transactional.events import value_of
from jepsen.checkers.transactional.logs import DataBatch
from quorumlog.ids import Offset

LEFT, RIGHT, PLAIN, GROUPS = ("ledger", 0), ("ledger", 1), ("plain", 0), ("__consumer_offsets", 0)
PIPE, READER = ("pipe", "ledger", 0), ("reader", "plain", 0)
ENDS = {LEFT: 4, RIGHT: 4, PLAIN: 10, GROUPS: 6}
WITHOUT_PLAIN = {key: end for key, end in ENDS.items() if key != PLAIN}

# Transaction 0 (producer 7) has a value in each partition at offset 0, its markers are at 1; it commits offset 2 of the
# pipe. Transaction 1 (producer 8) has values at 2 and its markers at 3; of its offset, 4, the marker is at 5.
SEEN = Evidence(
    values={
        LEFT: [Value(value_of(0, 0), 2), Value(value_of(1, 0), 4)],
        RIGHT: [Value(value_of(0, 1), 2), Value(value_of(1, 1), 4)],
    },
    offsets={GROUPS: [GroupOffset(PIPE, 2, 2), GroupOffset(READER, 9, 3), GroupOffset(PIPE, 4, 6)]},
    batches={
        LEFT: [
            DataBatch(0, 7, 0),
            DataBatch(1, 7, 0, commits=True),
            DataBatch(2, 8, 0),
            DataBatch(3, 8, 0, commits=True),
        ]
    },
    records=[Record(PLAIN, 8, acked_ns=100), Record(PLAIN, 12, acked_ns=300)],
    commits=[GroupCommit(READER, 9, acked_ns=150)],
    committed={0: 100, 1: 300},
    taken=[(PIPE, 0, 2), (PIPE, 1, 4)],
)
CASES: list[tuple[str, Mapping[tuple[str, int], Offset], dict[int, str], set[str]]] = [
    ("all before it", ENDS, {}, set()),
    ("the second one open everywhere", {**ENDS, LEFT: 3, RIGHT: 3, GROUPS: 5}, {8: "id"}, set()),
    ("open, and nobody knows its id", {**ENDS, LEFT: 3, RIGHT: 3, GROUPS: 5}, {}, {"open-unnamed"}),
    ("before the second one", {**ENDS, LEFT: 2, RIGHT: 2, GROUPS: 3}, {}, set()),
    ("a marker in one partition only", {**ENDS, RIGHT: 3}, {8: "id"}, {"splits-a-transaction"}),
    ("offsets without their output", {**ENDS, LEFT: 2, RIGHT: 2}, {}, {"offsets-apart", "group-beyond-data"}),
    ("output without its offsets", {**ENDS, GROUPS: 5}, {}, {"offsets-apart"}),
    ("a record is missed", {**ENDS, PLAIN: 8}, {}, {"misses-acknowledged", "group-beyond-data"}),
    ("a group's offset is missed", {**ENDS, GROUPS: 2}, {}, {"misses-acknowledged", "offsets-apart"}),
    ("a transaction is missed", {**ENDS, LEFT: 0, RIGHT: 0, GROUPS: 0}, {}, {"misses-acknowledged"}),
    ("a topic is missed", WITHOUT_PLAIN, {}, {"misses-acknowledged", "group-beyond-data"}),
]  # fmt: skip


@pytest.mark.parametrize(("ends", "producers", "names"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_findings(ends: Mapping[Any, Offset], producers: dict[int, str], names: set[str]) -> None:
    found, counts = check_cuts([CutTaken(200, ends, producers)], SEEN)
    assert {one.name for one in found} == {f"backup-{name}" for name in names}
    assert counts["backup cuts"] == 1


def test_a_backup_that_began_earlier_need_not_have_what_came_later() -> None:
    found, _ = check_cuts([CutTaken(0, {**ENDS, LEFT: 0, RIGHT: 0, GROUPS: 0, PLAIN: 0}, {})], SEEN)
    assert not found
