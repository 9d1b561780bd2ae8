"""What deletions promise (KIP-107, KIP-516). Pure: a history in, findings out.

- A record that was acknowledged by one life of a topic never appears in a later one.
- A log begins at or after every acknowledged deletion, and never beyond what someone asked for.
- A reader that set its positions after a deletion was acknowledged never gets a record below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jepsen.checkers.findings import Finding
from jepsen.checkers.history import Deletion, History, Key, Status
from quorumlog.ids import Offset

_ALL = -1  # acks


def dead_records(history: History) -> Iterator[Finding]:
    """A record of an earlier life of its topic is read in a later one."""
    taken = {send.value: send for send in history.of_status(Status.OK) if send.life and send.acks == _ALL}
    for key, life, offset, value, reader in _reads(history):
        send = taken.get(value)
        if send is not None and send.key == key and 0 < send.life < life:
            what = f"{reader} read {value} at {offset} in life {life} of {key[0]}-{key[1]}"
            yield Finding("dead-record-read", f"{what}; it was acknowledged by life {send.life}")


def starts(history: History) -> Iterator[Finding]:
    """The log's start at the end."""
    for key, start in history.final_starts.items():
        life = history.last_life(key)
        if start > history.may_begin_at(key, life):
            asked = history.may_begin_at(key, life)
            yield Finding("start-too-high", f"{key[0]}-{key[1]} begins at {start}; nobody deleted beyond {asked}")
        for deletion in _acknowledged(history, key, life):
            if start < deletion.before:
                what = f"{key[0]}-{key[1]} begins at {start}"
                yield Finding("start-went-back", f"{what}; deletion before {deletion.before} was acknowledged")


def deleted_reads(history: History) -> Iterator[Finding]:
    """A record is read whose deletion had been acknowledged before the reader set its positions."""
    for poll in history.polls:
        for deletion in _acknowledged(history, poll.key, poll.life):
            if deletion.acked_ns >= poll.assigned_ns:
                continue
            below = [offset for offset, _ in poll.records if offset < deletion.before]
            if below:
                what = f"{poll.process} read {below[0]} of {poll.key[0]}-{poll.key[1]}"
                yield Finding("deleted-record-read", f"{what}; deletion before {deletion.before} was acknowledged")


DELETED_CHECKERS: tuple[Callable[[History], Iterator[Finding]], ...] = (dead_records, starts, deleted_reads)


def _acknowledged(history: History, key: Key, life: int) -> list[Deletion]:
    return [asked for asked in history.deletions if (asked.key, asked.life) == (key, life) and asked.acked_ns >= 0]


def _reads(history: History) -> Iterator[tuple[Key, int, Offset, str, str]]:
    for poll in history.polls:
        for offset, value in poll.records:
            yield poll.key, poll.life, offset, value, poll.process
    for key, log in history.final.items():
        for offset in sorted(log):
            yield key, history.last_life(key), offset, log[offset], "the final reader"
