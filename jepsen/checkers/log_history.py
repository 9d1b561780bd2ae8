"""The anomalies of a partition log as its clients see it. Pure: a history in, findings out.

Compaction is off in this workload. So every offset from a log's start to its end must exist for ever, and a start
moves only where someone asked to delete records (deleted_history.py), or where a policy lets them go. The records of a
topic that is deleted may vanish; those of its next life have nothing to do with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jepsen.checkers.deleted_history import DELETED_CHECKERS
from jepsen.checkers.findings import Finding
from jepsen.checkers.history import History, Key, Poll, Send, Status
from jepsen.checkers.page_cache_history import as_promised, as_read
from quorumlog.ids import Offset

ALL = -1  # acks


def check_history(history: History) -> list[Finding]:
    promised = as_promised(history)
    found = [finding for checker in (*CHECKERS, *DELETED_CHECKERS) for finding in checker(promised)]
    return [*found, *gaps_in_polls(as_read(history))]


def inconsistent_offsets(history: History) -> Iterator[Finding]:
    """One offset has two values, in acknowledgements or in reads."""
    for (key, _, offset), values in _values_by_offset(history).items():
        if len(values) > 1:
            yield Finding("inconsistent-offsets", f"{_name(key)} at {offset} held {' and '.join(values)}")


def lost_writes(history: History) -> Iterator[Finding]:
    """A record acknowledged with acks=all is not at its offset after healing."""
    for send in history.of_status(Status.OK):
        if send.acks == ALL and send.key in history.final and must_stay(history, send.key, send.life, send.offset):
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
            if found != value and must_stay(history, poll.key, poll.life, offset):
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
    """A reader by assignment sees each offset once, in order, unless it was deleted: partitions hold only records."""
    last: dict[tuple[str, int, Key, int], Offset] = {}
    for poll in history.polls:
        reader = (poll.process, poll.assignment, poll.key, poll.life)
        for offset, _ in poll.records if poll.life else ():
            expected = last.get(reader, offset - 1) + 1
            if expected < offset <= history.may_begin_at(poll.key, poll.life):
                expected = offset  # the records between were deleted
            if offset != expected:
                name = "nonmonotonic-poll" if offset < expected else "poll-skip"
                yield Finding(name, f"{poll.process} read {offset} of {_name(poll.key)} where {expected} was next")
            last[reader] = offset


def gaps_in_the_end(history: History) -> Iterator[Finding]:
    for key, end in history.final_ends.items():
        retained = history.retained.get((key, history.last_life(key)), 0)  # perhaps while the last reader read
        start = max(history.final_starts.get(key, 0), retained)
        missing = [offset for offset in range(start, end) if offset not in history.final[key]]
        if missing:
            yield Finding("offset-gap", f"{_name(key)} ends at {end} and lacks {missing[:5]}")


def send_order(history: History) -> Iterator[Finding]:
    """A producer's later record in a partition must not come before an earlier one."""
    last: dict[tuple[str, Key, int], Send] = {}
    for send in history.of_status(Status.OK):
        if send.acks != ALL or not send.life:
            continue
        before = last.get((send.process, send.key, send.life))
        if before is not None and send.offset <= before.offset:
            places = f"{send.value} at {send.offset} after {before.value} at {before.offset}"
            yield Finding("nonmonotonic-send", f"{_name(send.key)}: {places}")
        last[send.process, send.key, send.life] = send


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
    for topic in history.deleted:
        if topic in history.final_topics:
            yield Finding("topic-came-back", f"the deletion of {topic} was acknowledged, but it exists")


def lost_changes(history: History) -> Iterator[Finding]:
    """An acknowledged setting, or a number of partitions, is another at the end."""
    for topic in history.created:
        for name, value in history.configs.get(topic, {}).items():
            found = history.final_configs.get(topic, {}).get(name)
            if found != value:
                yield Finding("lost-setting", f"{name}={value} of {topic} was acknowledged; it is {found}")
        count = history.partitions.get(topic, 0)
        if history.final_partitions.get(topic, count) < count:
            what = f"{count} partitions of {topic} were acknowledged"
            yield Finding("lost-partitions", f"{what}; it has {history.final_partitions[topic]}")


CHECKERS: tuple[Callable[[History], Iterator[Finding]], ...] = (
    inconsistent_offsets,
    lost_writes,
    vanished_reads,
    duplicates,
    failed_and_phantom_reads,
    gaps_in_the_end,
    send_order,
    numbered_order,
    lost_topics,
    lost_changes,
)


def _must_be_once(send: Send) -> bool:
    return send.idempotent or (send.status is Status.OK and not send.retried)


def must_stay(history: History, key: Key, life: int, offset: Offset) -> bool:
    """Whether a record of this life of the topic must be in the log for ever."""
    return life == history.last_life(key) and offset >= history.may_begin_at(key, life)


def _values_by_offset(history: History) -> dict[tuple[Key, int, Offset], dict[str, None]]:
    """By partition, life and offset. Only certain values: an election may have removed those with acks=1."""
    values: dict[tuple[Key, int, Offset], dict[str, None]] = {}
    for send in history.of_status(Status.OK):
        if send.acks == ALL and send.life:
            values.setdefault((send.key, send.life, send.offset), {})[send.value] = None
    for poll in history.polls:
        for offset, value in poll.records if poll.life else ():
            values.setdefault((poll.key, poll.life, offset), {})[value] = None
    for key, log in history.final.items():
        for offset, value in log.items():
            values.setdefault((key, history.last_life(key), offset), {})[value] = None
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
