"""What a mirror says of records that retention took before they were copied."""

from __future__ import annotations

import pytest

from quorumlog.ids import Offset
from quorumlog.spark.mirror.lost import BATCHES, OWN_HINT, Losses, with_own_hint
from quorumlog.spark.read.planning import DataLoss

STARTS = {"t": {0: Offset(50), 1: Offset(0)}}


def told(first: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> list[str]:
    losses = Losses()
    losses.reads(3, STARTS)
    return losses.of(3, first, end)


def test_what_lies_below_the_log_is_told_with_its_offsets() -> None:
    (text,) = told({"t": {"0": 20, "1": 5}}, {"t": {"0": 90, "1": 9}})
    assert text.startswith("t-0: 30 offsets from 20 to 50 (exclusive) are not in the log: the log began at 50")


@pytest.mark.parametrize(
    ("first", "end", "lost"),
    [
        ({"t": {"0": 50}}, {"t": {"0": 90}}, 0),
        ({"t": {"0": 20}}, {"t": {"0": 30}}, 10),  # all of the batch
        ({"t": {"0": 20}}, {"t": {"0": 20}}, 0),  # nothing of the partition is in the batch
        ({"u": {"0": 1}}, {"t": {"0": 60}}, 50),  # a topic that came while it ran is read from 0
        ({}, {"t": {"0": 90}}, 0),  # the first batch of all begins where the log does
    ],
)
def test_how_many_are_lost(first: dict[str, dict[str, int]], end: dict[str, dict[str, int]], lost: int) -> None:
    texts = told(first, end)
    assert [text.partition(": ")[2].split()[0] for text in texts] == ([str(lost)] if lost else [])


def test_few_batches_are_remembered_and_others_say_nothing() -> None:
    losses = Losses()
    for batch in range(2 * BATCHES):
        losses.reads(batch, STARTS)
    begun, end = {"t": {"0": 20}}, {"t": {"0": 90}}
    assert not losses.of(BATCHES - 1, begun, end), "too long ago"
    assert losses.of(BATCHES, begun, end) and not losses.of(BATCHES, begun, end), "told once"


def test_an_error_names_the_option_of_the_command() -> None:
    loss = DataLoss("t", 0, Offset(3), Offset(7), "the log starts at 7, older records were deleted")
    assert with_own_hint(f"quorumlog.spark.read.planning.DataLoss: {loss}") == (
        "t-0: 4 offsets from 3 to 7 (exclusive) are not in the log: the log starts at 7, older records were deleted; "
        + OWN_HINT
    )
    assert with_own_hint("quorumlog.client.errors.TimedOut: no answer") is None
