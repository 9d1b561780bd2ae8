"""`quorumlog spark sink list`: the rows that it shows of groups and of what is open."""

from __future__ import annotations

import pytest

from quorumlog.messages.joint import JointFact, ListedJointGroup, OpenJointChild
from quorumlog_cli.commands.spark_jobs.spark_sink_view import GroupRow, group_document, group_row, open_row

NOW = 1_700_000_010_000


def child(started_at_ms: int) -> OpenJointChild:
    return OpenJointChild(
        transactional_id="joint:g:0:x",
        run="r2",
        sequence=8,
        started_at_ms=started_at_ms,
        timeout_ms=60_000,
        location="file:/c",
    )


DECIDED = ListedJointGroup(
    group_id="spark/q",
    sequence=7,
    run="r1",
    location="file:/c",
    decided_at_ms=NOW - 5_000,
    facts=(JointFact(name="rows", value=12),),
    open=(child(NOW - 300), child(NOW - 900)),
    ending=2,
)
ROWS = [
    ("decided, and open", DECIDED, GroupRow("spark/q", "stream", 7, NOW - 5_000, "r1", 2, 900, 2)),
    (
        "nothing is decided",
        ListedJointGroup(group_id="g", open=(child(NOW + 50),)),
        GroupRow("g", None, None, None, None, 1, 0, 0),
    ),
    (
        "of newer software",
        ListedJointGroup(group_id="g", sequence=0, kind=9, run="r", decided_at_ms=5),
        GroupRow("g", "9", 0, 5, "r", 0, None, 0),
    ),
]


@pytest.mark.parametrize(("group", "row"), [one[1:] for one in ROWS], ids=[one[0] for one in ROWS])
def test_a_group_is_shown_with_its_last_batch_and_what_is_open(group: ListedJointGroup, row: GroupRow) -> None:
    assert group_row(group, NOW) == row


def test_a_document_has_the_totals_and_the_place_of_the_checkpoint() -> None:
    document = group_document(DECIDED, group_row(DECIDED, NOW))
    assert (document["totals"], document["location"], document["open_ms"]) == ({"rows": 12}, "file:/c", 900)
    empty = ListedJointGroup(group_id="g")
    assert group_document(empty, group_row(empty, NOW))["location"] is None


def test_an_open_transaction_says_whose_readers_wait() -> None:
    row = open_row("spark/q", child(NOW - 300), [("t", 1)], NOW)
    assert row == ("spark/q", 8, "r2", "joint:g:0:x", 300, 60_000, (("t", 1),))
