"""`quorumlog transaction`: the rows that it shows, and what it refuses before anything is asked."""

from __future__ import annotations

import pytest

from quorumlog.client.administration.hanging import HangingTransaction
from quorumlog.client.administration.transactions import TransactionDescription, TransactionListing
from quorumlog.messages.transactions import ActiveProducer, DescribedTransaction, ListedTransaction, TransactionTopic
from quorumlog_cli.commands.transactions.transaction_view import (
    description_row,
    hanging_row,
    listing_row,
    partition_text,
    producer_row,
    utc_text,
)
from quorumlog_cli.main import main

START_MS = 1_700_000_000_123


def test_an_open_transaction_has_a_start_and_a_duration() -> None:
    described = DescribedTransaction(
        transactional_id="a",
        state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=START_MS,
        producer_id=7,
        producer_epoch=3,
        topics=(TransactionTopic(name="u", partitions=(2, 0)), TransactionTopic(name="t", partitions=(1,))),
    )
    row = description_row(TransactionDescription(2, described), START_MS + 4_500)
    assert row[:8] == (2, "a", 7, 3, "Ongoing", 60_000, START_MS, 4_500)
    assert partition_text(row.partitions) == "t-1,u-0,u-2"
    assert description_row(TransactionDescription(2, described), START_MS - 5).duration_ms == 0, "clocks differ"


def test_an_id_without_a_transaction_has_neither() -> None:
    row = description_row(TransactionDescription(1, DescribedTransaction(transactional_id="a", state="Empty")), 5)
    assert (row.start_time_ms, row.duration_ms, row.partitions) == (None, None, ())
    assert (utc_text(row.start_time_ms), partition_text(row.partitions)) == (None, "")


def test_a_child_is_shown_with_its_group() -> None:
    listed = ListedTransaction(transactional_id="joint:g:0:a", producer_id=7, state="Ongoing", joint_group="g")
    assert listing_row(TransactionListing(3, listed)).joint_group == "g"
    described = DescribedTransaction(transactional_id="joint:g:0:a", state="Ongoing", joint_group="g")
    assert description_row(TransactionDescription(2, described), START_MS).joint_group == "g"


def test_ids_and_producers_are_shown_as_they_are() -> None:
    listed = ListedTransaction(transactional_id="a", producer_id=7, state="CompleteCommit")
    assert listing_row(TransactionListing(3, listed)) == ("a", 3, 7, "CompleteCommit", None)
    idle = ActiveProducer(producer_id=7, producer_epoch=3)
    assert producer_row(idle) == (7, 3, None, None, None, None), "a dash for each -1"
    producer = ActiveProducer(
        producer_id=7,
        producer_epoch=3,
        last_sequence=0,
        last_timestamp_ms=START_MS,
        coordinator_epoch=0,
        current_transaction_start_offset=0,
    )
    assert producer_row(producer) == (7, 3, 0, 0, START_MS, 0)
    assert utc_text(START_MS) == "2023-11-14T22:13:20.123Z"
    row = hanging_row(HangingTransaction(("t", 1), producer, None), START_MS + 1_000)
    assert row == ("t", 1, 7, 3, 0, 0, START_MS, 1_000, None)


ABORT = "give --topic and --partition with --start-offset"
REFUSED = [
    (["abort"], ABORT),
    (["abort", "--topic", "t"], ABORT),
    (["abort", "--topic", "t", "--partition", "0"], ABORT),
    (["abort", "--topic", "t", "--start-offset", "5"], ABORT),
    (["abort", "--topic", "t", "--partition", "0", "--producer-id", "1", "--producer-epoch", "0"], ABORT),
    (["abort", "--topic", "t", "--partition", "0", "--start-offset", "5", "--producer-id", "1"], ABORT),
    (["abort", "--transactional-id", "a", "--start-offset", "5"], ABORT),
    (["abort", "--transactional-id", "a", "--topic", "t", "--partition", "0"], ABORT),
    (["find-hanging"], "--broker-id, --topic, or both"),
    (["find-hanging", "--broker-id", "1", "--partition", "0"], "--partition needs --topic"),
    (["describe-producers", "--topic", "t"], "--partition"),
    (["describe"], "TRANSACTIONAL_ID"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED, ids=[" ".join(one[0]) for one in REFUSED])
@pytest.mark.parametrize("verb", ["transaction", "txn"])
def test_bad_usage_is_refused_before_anything_is_asked(
    verb: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, *arguments, "-b", "127.0.0.1:1"]) == 2
    assert says in capsys.readouterr().err
