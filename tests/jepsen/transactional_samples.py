"""A small history of transactions, variations of it that a right cluster may show, and faults by their names."""

from __future__ import annotations

from jepsen.checkers.transactional.events import (
    NO_OFFSET,
    OPEN_NS,
    Consumed,
    OffsetShown,
    Outcome,
    Poll,
    Sent,
    Session,
    Transaction,
    value_of,
)
from tests.jepsen.transactional_model import History

V = value_of
COMMITTED, ABORTED, UNKNOWN = Outcome.COMMITTED, Outcome.ABORTED, Outcome.UNKNOWN


def small() -> History:
    """Partition 0: a0 a1 marker b0 marker; partition 1: a2 marker c0(aborted) marker b1 marker. Unit 0: 0..3, 3..5."""
    return History(
        sessions=[Session("x", 7, 0, 1, 2), Session("y", 8, 0, 3, 4)],
        transactions=[
            Transaction(0, 0, COMMITTED, 20, 25, [Sent(0, V(0, 0), 0), Sent(0, V(0, 1)), Sent(1, V(0, 2), 0)],
                        [Consumed(0, 0, 3)], 0),
            Transaction(1, 1, COMMITTED, 40, 45, [Sent(0, V(1, 0), 3), Sent(1, V(1, 1), 4)], [Consumed(0, 3, 5)], 1),
            Transaction(2, 0, ABORTED, 35, 36, [Sent(1, V(2, 0), 2)], [], 0),
        ],
        polls=[
            Poll(0, 0, 3, [0, 1], [V(0, 0), V(0, 1)], 30, 1),
            Poll(0, 0, 5, [0, 1, 3], [V(0, 0), V(0, 1), V(1, 0)], 90, final=True),
            Poll(1, 0, 6, [0, 4], [V(0, 2), V(1, 1)], 91, final=True),
        ],
        shown=[OffsetShown(0, NO_OFFSET, 10, 11), OffsetShown(0, 3, 31, 32), OffsetShown(0, 5, 92, 93, final=True)],
    )  # fmt: skip


def change(history: History, number: int, **fields: object) -> None:
    at = next(at for at, one in enumerate(history.transactions) if one.number == number)
    history.transactions[at] = history.transactions[at]._replace(**fields)  # type: ignore[arg-type]


def unknown_and_there(history: History) -> None:
    change(history, 0, outcome=UNKNOWN, ended_ns=OPEN_NS)


def unknown_and_not_there(history: History) -> None:
    change(history, 2, outcome=UNKNOWN, ended_ns=OPEN_NS)


def stale_read(history: History) -> None:
    history.polls.append(Poll(0, 0, 3, [0, 1], [V(0, 0), V(0, 1)], 80))


def empty_reads(history: History) -> None:
    history.polls += [Poll(0, 2, 3, [], [], 80), Poll(1, 1, 4, [], [], 80), Poll(0, 5, 5, [], [], 99)]


def empty_transaction(history: History) -> None:
    history.transactions.append(Transaction(3, 1, COMMITTED, 60, 61))


def never_ended(history: History) -> None:
    history.transactions.append(Transaction(3, 1, UNKNOWN, OPEN_NS, OPEN_NS, [Sent(1, V(3, 0), NO_OFFSET)]))


def writers_interleave(history: History) -> None:
    """G0: 4 before 5 in partition 2, 5 before 4 in partition 3."""
    history.transactions += [
        Transaction(4, 4, COMMITTED, 60, 61, [Sent(2, V(4, 0), 0), Sent(3, V(4, 1), 1)]),
        Transaction(5, 5, COMMITTED, 60, 61, [Sent(2, V(5, 0), 1), Sent(3, V(5, 1), 0)]),
    ]
    history.polls += [
        Poll(2, 0, 4, [0, 1], [V(4, 0), V(5, 0)], 95, final=True),
        Poll(3, 0, 4, [0, 1], [V(5, 1), V(4, 1)], 96, final=True),
    ]


def offset_of_an_unknown(history: History) -> None:
    """It is committed: its output is there, and the fetch shows its offset."""
    change(history, 1, outcome=UNKNOWN, ended_ns=OPEN_NS)


def aborted_input_is_taken_again(history: History) -> None:
    change(history, 2, consumed=[Consumed(0, 3, 5)])


def fetch_beside_a_commit(history: History) -> None:
    history.shown.append(OffsetShown(0, 3, 44, 60))


def session_beside_a_commit(history: History) -> None:
    """It began before the commit was asked for, and ended after it: either may have been first."""
    history.sessions.append(Session("y", 8, 1, 38, 50))


def next_producer_id(history: History) -> None:
    history.sessions += [Session("y", 9, 0, 50, 51), Session("y", 9, 1, 52, 53)]


GOOD = [
    unknown_and_there,
    unknown_and_not_there,
    stale_read,
    empty_reads,
    empty_transaction,
    never_ended,
    writers_interleave,
    offset_of_an_unknown,
    aborted_input_is_taken_again,
    fetch_beside_a_commit,
    session_beside_a_commit,
    next_producer_id,
]


# --- faults: (what is changed, what has to be found) ---


def without(poll: Poll, value: int) -> Poll:
    pairs = [(o, v) for o, v in zip(poll.offsets, poll.values, strict=True) if v != value]
    return poll._replace(offsets=[o for o, _ in pairs], values=[v for _, v in pairs])


def aborted_and_read(history: History) -> None:
    history.polls[2] = Poll(1, 0, 6, [0, 2, 4], [V(0, 2), V(2, 0), V(1, 1)], 91, final=True)


def aborted_seen_for_a_moment(history: History) -> None:
    history.polls.append(Poll(1, 0, 3, [0, 2], [V(0, 2), V(2, 0)], 50))


def torn_committed(history: History) -> None:
    history.polls[1] = without(without(history.polls[1], V(0, 0)), V(0, 1))
    history.polls[0] = history.polls[0]._replace(offsets=[], values=[])


def torn_unknown(history: History) -> None:
    unknown_and_there(history)
    torn_committed(history)


def torn_within_a_partition(history: History) -> None:
    unknown_and_there(history)
    for at in 0, 1:
        history.polls[at] = without(history.polls[at], V(0, 1))


def whole_transaction_lost(history: History) -> None:
    history.transactions.append(Transaction(3, 1, COMMITTED, 60, 61, [Sent(1, V(3, 0), 6)]))


def lost_behind_a_read(history: History) -> None:
    unknown_and_there(history)
    history.transactions[0] = history.transactions[0]._replace(consumed=[])
    history.shown.clear()
    for at in 1, 2:
        for index in range(3):
            history.polls[at] = without(history.polls[at], V(0, index))


def twice_in_a_partition(history: History) -> None:
    history.polls[1] = Poll(0, 0, 6, [0, 1, 3, 5], [V(0, 0), V(0, 1), V(1, 0), V(0, 1)], 90, final=True)


def twice_in_two_partitions(history: History) -> None:
    history.polls[2] = Poll(1, 0, 6, [0, 4, 5], [V(0, 2), V(1, 1), V(1, 0)], 91, final=True)


def value_of_nobody(history: History) -> None:
    history.polls[2] = Poll(1, 0, 6, [0, 4, 5], [V(0, 2), V(1, 1), V(3, 0)], 91, final=True)


def value_far_away(history: History) -> None:
    history.polls[2] = Poll(1, 0, 6, [0, 4, 5], [V(0, 2), V(1, 1), 1 << 50], 91, final=True)


def negative_value(history: History) -> None:
    history.polls[2] = Poll(1, 0, 6, [0, 4, 5], [V(0, 2), V(1, 1), -9], 91, final=True)


def in_another_partition(history: History) -> None:
    change(history, 2, outcome=COMMITTED, sent=[Sent(0, V(2, 0))])
    history.polls[2] = Poll(1, 0, 6, [0, 2, 4], [V(0, 2), V(2, 0), V(1, 1)], 91, final=True)


def another_offset_than_acknowledged(history: History) -> None:
    change(history, 1, sent=[Sent(0, V(1, 0), 1), Sent(1, V(1, 1), 4)])


def two_readers_differ(history: History) -> None:
    history.polls.append(Poll(0, 0, 3, [0, 1], [V(0, 1), V(0, 0)], 80))


def offset_reused_after_failover(history: History) -> None:
    history.polls.append(Poll(1, 4, 5, [4], [V(0, 2)], 50))


def read_backwards(history: History) -> None:
    history.polls.append(Poll(0, 0, 3, [1, 0], [V(0, 1), V(0, 0)], 80))


def read_below_its_start(history: History) -> None:
    history.polls.append(Poll(0, 1, 3, [0, 1], [V(0, 0), V(0, 1)], 80))


def read_beyond_its_end(history: History) -> None:
    history.polls.append(Poll(0, 0, 1, [0, 1], [V(0, 0), V(0, 1)], 80))


def reads_itself(history: History) -> None:
    history.polls.append(Poll(1, 4, 5, [4], [V(1, 1)], 90, 1))


def read_before_its_commit(history: History) -> None:
    history.polls.append(Poll(1, 4, 5, [4], [V(1, 1)], 39))


def read_without_a_commit(history: History) -> None:
    history.transactions.append(Transaction(3, 1, UNKNOWN, OPEN_NS, OPEN_NS, [Sent(1, V(3, 0))]))
    history.polls[2] = Poll(1, 0, 7, [0, 4, 6], [V(0, 2), V(1, 1), V(3, 0)], 91, final=True)


def jumped_over(history: History) -> None:
    """A reader that passed an open transaction, as if its end were no longer awaited."""
    history.polls.append(Poll(0, 0, 5, [0, 1], [V(0, 0), V(0, 1)], 80))


def jumped_over_alone(history: History) -> None:
    history.polls.append(Poll(1, 4, 6, [], [], 80))


def in_another_order(history: History) -> None:
    history.transactions.append(
        Transaction(3, 3, COMMITTED, 60, 61, [Sent(4, V(3, 0)), Sent(4, V(3, 1))]),
    )
    history.polls.append(Poll(4, 0, 3, [0, 1], [V(3, 1), V(3, 0)], 95, final=True))


def transactions_in_another_order(history: History) -> None:
    history.transactions += [
        Transaction(3, 3, COMMITTED, 60, 61, [Sent(4, V(3, 0))]),
        Transaction(4, 3, COMMITTED, 62, 63, [Sent(4, V(4, 0))]),
    ]
    history.polls.append(Poll(4, 0, 4, [0, 2], [V(4, 0), V(3, 0)], 95, final=True))


def two_read_each_other(history: History) -> None:
    history.polls.append(Poll(0, 3, 5, [3], [V(1, 0)], 85, 0))


def three_read_in_a_circle(history: History) -> None:
    history.transactions.append(Transaction(3, 3, COMMITTED, 60, 61, [Sent(4, V(3, 0))]))
    history.polls += [
        Poll(4, 0, 2, [0], [V(3, 0)], 95, final=True),
        Poll(0, 3, 5, [3], [V(1, 0)], 85, 3),
        Poll(4, 0, 2, [0], [V(3, 0)], 85, 0),
    ]


def reads_its_own_future(history: History) -> None:
    """Client 0: its transaction 0 reads what 1 wrote, which read what its later transaction 3 wrote."""
    history.polls[0] = history.polls[0]._replace(transaction=-1)
    history.transactions.append(Transaction(3, 0, COMMITTED, 26, 27, [Sent(4, V(3, 0))]))
    history.polls += [
        Poll(4, 0, 2, [0], [V(3, 0)], 95, final=True),
        Poll(4, 0, 2, [0], [V(3, 0)], 85, 1),
        Poll(0, 3, 5, [3], [V(1, 0)], 85, 0),
    ]


def offset_of_nobody(history: History) -> None:
    history.shown.append(OffsetShown(0, 4, 50, 51))


def offset_of_the_aborted(history: History) -> None:
    change(history, 2, consumed=[Consumed(0, 3, 4)])
    history.shown.append(OffsetShown(0, 4, 38, 39))


def offset_before_its_commit(history: History) -> None:
    history.shown.append(OffsetShown(0, 5, 37, 38))


def commit_of_an_offset_lost(history: History) -> None:
    history.shown.append(OffsetShown(0, 3, 50, 51))


def offset_goes_back(history: History) -> None:
    unknown_and_there(history)
    history.polls[0] = history.polls[0]._replace(ended_ns=70)
    history.shown.append(OffsetShown(0, NO_OFFSET, 35, 36))


def offset_later_than_output(history: History) -> None:
    offset_of_an_unknown(history)
    history.polls.append(Poll(1, 4, 6, [4], [V(1, 1)], 50))
    history.shown.append(OffsetShown(0, 3, 60, 61))


def taken_twice(history: History) -> None:
    change(history, 1, consumed=[Consumed(0, 2, 5)])


def output_without_its_offsets(history: History) -> None:
    offset_of_an_unknown(history)
    history.shown[2] = OffsetShown(0, 3, 85, 86, final=True)
    for at in 1, 2:
        history.polls[at] = history.polls[at]._replace(ended_ns=99)


def offsets_without_their_output(history: History) -> None:
    history.transactions.append(Transaction(3, 1, UNKNOWN, 60, OPEN_NS, [Sent(1, V(3, 0))], [Consumed(0, 5, 7)]))
    history.shown[2] = OffsetShown(0, 7, 92, 93, final=True)


def input_left_out(history: History) -> None:
    change(history, 1, consumed=[Consumed(0, 4, 5)])


def producer_of_two_ids(history: History) -> None:
    history.sessions.append(Session("z", 8, 1, 50, 51))


def epoch_again(history: History) -> None:
    history.sessions.append(Session("y", 8, 0, 50, 51))


def epoch_below(history: History) -> None:
    history.sessions += [Session("y", 8, 5, 50, 51), Session("y", 8, 4, 52, 53)]


def former_producer_id(history: History) -> None:
    history.sessions += [Session("y", 9, 0, 50, 51), Session("y", 8, 1, 52, 53)]


def committed_by_a_zombie(history: History) -> None:
    history.sessions.append(Session("y", 8, 1, 36, 37))


BAD = [
    (aborted_and_read, "aborted-read"),
    (aborted_seen_for_a_moment, "aborted-read"),
    (torn_committed, "torn-transaction"),
    (torn_unknown, "torn-transaction"),
    (torn_within_a_partition, "torn-transaction"),
    (torn_committed, "lost-write"),
    (whole_transaction_lost, "lost-write"),
    (lost_behind_a_read, "lost-after-read"),
    (lost_behind_a_read, "skipped-read"),
    (twice_in_a_partition, "duplicate"),
    (twice_in_two_partitions, "duplicate"),
    (value_of_nobody, "unknown-value"),
    (value_far_away, "unknown-value"),
    (negative_value, "unknown-value"),
    (in_another_partition, "unknown-value"),
    (another_offset_than_acknowledged, "inconsistent-offsets"),
    (two_readers_differ, "inconsistent-offsets"),
    (offset_reused_after_failover, "inconsistent-offsets"),
    (read_backwards, "unordered-read"),
    (read_below_its_start, "unordered-read"),
    (read_beyond_its_end, "unordered-read"),
    (reads_itself, "precommitted-read"),
    (read_before_its_commit, "precommitted-read"),
    (read_without_a_commit, "precommitted-read"),
    (jumped_over, "skipped-read"),
    (jumped_over_alone, "skipped-read"),
    (in_another_order, "unordered-sends"),
    (transactions_in_another_order, "unordered-sends"),
    (two_read_each_other, "g1c"),
    (three_read_in_a_circle, "g1c"),
    (reads_its_own_future, "g1c-process"),
    (offset_of_nobody, "offset-invented"),
    (offset_of_the_aborted, "offset-of-aborted"),
    (offset_before_its_commit, "offset-precommitted"),
    (commit_of_an_offset_lost, "offset-lost"),
    (offset_goes_back, "offset-undone"),
    (offset_later_than_output, "offset-behind-output"),
    (taken_twice, "input-twice"),
    (output_without_its_offsets, "output-without-offsets"),
    (offsets_without_their_output, "offsets-without-output"),
    (input_left_out, "offsets-without-output"),
    (producer_of_two_ids, "producer-id-shared"),
    (epoch_again, "epoch-fell"),
    (epoch_below, "epoch-fell"),
    (former_producer_id, "producer-id-returned"),
    (committed_by_a_zombie, "zombie-commit"),
]
