"""The anomalies of a partition log as its clients see it (RELIABILITY 3.4). Pure: a history in, findings out.

Retention and compaction are off in this workload, so every offset below a final end must exist for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jepsen.checkers.findings import Finding
from jepsen.checkers.history import History, Key, Poll, Send, Status
from quorumlog.ids import Offset

ALL = -1  # acks


def check_history(history: History) -> list[Finding]:
    return [finding for checker in CHECKERS for finding in checker(history)]


def inconsistent_offsets(history: History) -> Iterator[Finding]:
    """One offset has two values, in acknowledgements or in reads."""
    for (key, offset), values in _values_by_offset(history).items():
        if len(values) > 1:
            yield Finding("inconsistent-offsets", f"{_name(key)} at {offset} held {' and '.join(values)}")


def lost_writes(history: History) -> Iterator[Finding]:
    """A record acknowledged with acks=all is not at its offset after healing."""
    for send in history.of_status(Status.OK):
        if send.acks == ALL and send.key in history.final:
            found = history.final[send.key].get(send.offset)
            if found != send.value:
                acknowledged = f"{send.value} was acknowledged at {send.offset} of {_name(send.key)}"
                yield Finding("lost-write", f"{acknowledged}; at the end there is {found or 'nothing'}")


def vanished_reads(history: History) -> Iterator[Finding]:
    """A record that was read, and so was below a high watermark, is not there at the end."""
    for poll in history.polls:
        if poll.key not in history.final:
            continue
        for offset, value in poll.records:
            found = history.final[poll.key].get(offset)
            if found != value:
                read = f"{poll.process} read {value} at {offset} of {_name(poll.key)}"
                yield Finding("vanished-read", f"{read}; at the end there is {found or 'nothing'}")


def duplicates(history: History) -> Iterator[Finding]:
    """Two copies of a record whose producer is idempotent, or was told that there is one copy."""
    sends = {send.value: send for send in history.sends}
    for key, log in history.final.items():
        seen: dict[str, Offset] = {}
        for offset in sorted(log):
            send = sends.get(log[offset])
            if log[offset] in seen and send is not None and _must_be_once(send):
                both = f"{seen[log[offset]]} and {offset}"
                yield Finding("duplicate", f"{_name(key)} holds {log[offset]} at {both}; it was sent once")
            seen.setdefault(log[offset], offset)


def failed_and_phantom_reads(history: History) -> Iterator[Finding]:
    """A reader got a record that was certainly refused, or that no producer sent there."""
    sends = {(send.key, send.value): send for send in history.sends}
    for key, offset, value, reader in _all_reads(history):
        send = sends.get((key, value))
        if send is None:
            yield Finding("phantom-read", f"{reader} read {value} at {offset} of {_name(key)}; nobody sent it there")
        elif send.status is Status.FAIL:
            answer = f"its producer was told that it is not there: {send.error}"
            yield Finding("failed-write-read", f"{reader} read {value} at {offset} of {_name(key)}; {answer}")


def gaps_in_polls(history: History) -> Iterator[Finding]:
    """A reader by assignment must see each offset once, in order: every partition here contains only records."""
    last: dict[tuple[str, int, Key], Offset] = {}
    for poll in history.polls:
        reader = (poll.process, poll.assignment, poll.key)
        for offset, _ in poll.records:
            expected = last.get(reader, offset - 1) + 1
            if offset != expected:
                name = "nonmonotonic-poll" if offset < expected else "poll-skip"
                yield Finding(name, f"{poll.process} read {offset} of {_name(poll.key)} where {expected} was next")
            last[reader] = offset


def gaps_in_the_end(history: History) -> Iterator[Finding]:
    for key, end in history.final_ends.items():
        missing = [offset for offset in range(end) if offset not in history.final[key]]
        if missing:
            yield Finding("offset-gap", f"{_name(key)} ends at {end} and lacks {missing[:5]}")


def send_order(history: History) -> Iterator[Finding]:
    """A producer's later record in a partition must not come before an earlier one."""
    last: dict[tuple[str, Key], Send] = {}
    for send in history.of_status(Status.OK):
        if send.acks != ALL:
            continue
        before = last.get((send.process, send.key))
        if before is not None and send.offset <= before.offset:
            places = f"{send.value} at {send.offset} after {before.value} at {before.offset}"
            yield Finding("nonmonotonic-send", f"{_name(send.key)}: {places}")
        last[send.process, send.key] = send


def numbered_order(history: History) -> Iterator[Finding]:
    """Records of an idempotent producer must be in each log in the order in which they were sent."""
    turn = {send.value: (send, at) for at, send in enumerate(history.sends) if send.idempotent}
    for key, log in history.final.items():
        last: dict[str, tuple[int, Offset]] = {}  # by producer: index of the send, offset
        for offset in sorted(log):
            send, at = turn.get(log[offset], (None, -1))
            if send is None:
                continue
            before, there = last.get(send.process, (-1, -1))
            if at < before:
                places = f"{send.value} at {offset} after {log[there]} at {there}"
                yield Finding("nonmonotonic-send", f"{_name(key)}: {places}, which was sent later")
            last[send.process] = (at, offset)


def lost_topics(history: History) -> Iterator[Finding]:
    for topic in history.created:
        if topic not in history.final_topics:
            yield Finding("lost-topic", f"the creation of {topic} was acknowledged, but it does not exist")


CHECKERS: tuple[Callable[[History], Iterator[Finding]], ...] = (
    inconsistent_offsets,
    lost_writes,
    vanished_reads,
    duplicates,
    failed_and_phantom_reads,
    gaps_in_polls,
    gaps_in_the_end,
    send_order,
    numbered_order,
    lost_topics,
)


def _must_be_once(send: Send) -> bool:
    return send.idempotent or (send.status is Status.OK and not send.retried)


def _values_by_offset(history: History) -> dict[tuple[Key, Offset], dict[str, None]]:
    """Only certain values: records acknowledged with acks=1 may have been removed by an election."""
    values: dict[tuple[Key, Offset], dict[str, None]] = {}
    for send in history.of_status(Status.OK):
        if send.acks == ALL:
            values.setdefault((send.key, send.offset), {})[send.value] = None
    for key, offset, value, _ in _all_reads(history):
        values.setdefault((key, offset), {})[value] = None
    return values


def _all_reads(history: History) -> Iterator[tuple[Key, Offset, str, str]]:
    for poll in history.polls:
        yield from _reads_of(poll)
    for key, log in history.final.items():
        for offset in sorted(log):
            yield key, offset, log[offset], "the final reader"


def _reads_of(poll: Poll) -> Iterator[tuple[Key, Offset, str, str]]:
    for offset, value in poll.records:
        yield poll.key, offset, value, poll.process


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"
