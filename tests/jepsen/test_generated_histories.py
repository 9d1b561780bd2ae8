"""The log checker on generated histories: 140 good ones with whatever is allowed, and 112 bad ones.

A bad one is a good one with one damage of 14 kinds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from jepsen.checkers.history import Deletion, History, Key, Poll, Send, Status
from jepsen.checkers.log_history import check_history

KEYS: list[Key] = [("t", 0), ("t", 1), ("u", 0)]
ALL, LEADER = -1, 1
GOOD_SEEDS, BAD_SEEDS = range(140), range(8)


class Model:
    """Sequential partitions with producers that are answered, refused or not answered, and readers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.history = History(created=["t", "u"], final_topics=["t", "u"])
        self.history.partitions = {"t": 2, "u": 1}
        self.history.final_partitions = {"t": 2, "u": 1}
        self.history.configs = {"t": {"retention.ms": "-1"}}
        self.history.final_configs = {"t": {"retention.ms": "-1"}, "u": {}}
        self.history.final = {key: {} for key in KEYS}
        self._next = 0

    def run(self) -> History:
        for _ in range(self.rng.randint(40, 80)):
            self._send(self.rng.choice(KEYS))
        for key in KEYS:  # something that each damage can be done to
            for _ in range(3):
                self._store(key, self._new("certain", key, idempotent=True))
        for number in range(self.rng.randint(2, 6)):
            self._read(f"r{number % 2}", number)
        if self.rng.random() < 0.5:
            self._delete(self.rng.choice(KEYS))
        for key in KEYS:
            self.history.final_ends[key] = max(self.history.final[key]) + 1
        return self.history

    def _new(self, process: str, key: Key, *, idempotent: bool, acks: int = ALL) -> Send:
        self._next += 1
        value = f"{process}:{self._next}"
        send = Send(process=process, key=key, value=value, acks=acks, invoked_ns=self._next, idempotent=idempotent)
        send.life = 1
        self.history.sends.append(send)
        return send

    def _end(self, key: Key) -> int:
        return max(self.history.final[key], default=-1) + 1

    def _store(self, key: Key, send: Send, *, copies: int = 1) -> None:
        for _ in range(copies):
            self.history.final[key][self._end(key)] = send.value
        send.ok(self._end(key) - copies, copies > 1, self._next)

    def _send(self, key: Key) -> None:
        kind = self.rng.choice(
            ("ok", "ok", "ok", "twice", "refused", "unknown, there", "unknown, gone", "one ack lost")
        )
        idempotent = kind != "twice" and self.rng.random() < 0.5
        process = "i" if idempotent else "p"
        send = self._new(process, key, idempotent=idempotent, acks=LEADER if kind == "one ack lost" else ALL)
        if kind in ("ok", "twice"):
            self._store(key, send, copies=1 + (kind == "twice"))
        elif kind == "refused":
            send.fail("NOT_ENOUGH_REPLICAS", self._next)
        elif kind == "unknown, there":
            self.history.final[key][self._end(key)] = send.value
        elif kind == "one ack lost":
            send.ok(self._end(key), False, self._next)  # an election removed it; the next record took its place

    def _read(self, process: str, assignment: int) -> None:
        """From any offset on, in polls of any size."""
        for key in KEYS:
            at, end = self.rng.randrange(self._end(key)), self._end(key)
            while at < end and self.rng.random() < 0.9:
                until = min(end, at + self.rng.randint(1, 5))
                records = tuple((offset, self.history.final[key][offset]) for offset in range(at, until))
                self.history.polls.append(
                    Poll(process=process, assignment=assignment, key=key, records=records, at_ns=self._next)
                )
                at = until

    def _delete(self, key: Key) -> None:
        before = self.rng.randint(1, self._end(key) - 2)
        self.history.deletions.append(Deletion(key=key, life=1, before=before, invoked_ns=0, acked_ns=self._next))
        self.history.final_starts[key] = before
        for offset in range(before):
            del self.history.final[key][offset]


def names(history: History) -> set[str]:
    return {finding.name for finding in check_history(history)}


@pytest.mark.parametrize("seed", GOOD_SEEDS)
def test_a_good_history(seed: int) -> None:
    assert check_history(Model(seed).run()) == []


# --- damage: each to a certain record, one of the last three of a partition, which nobody may delete ---


def tail(history: History, rng: random.Random) -> tuple[Key, int]:
    key = rng.choice(KEYS)
    return key, history.final_ends[key] - 2


def lose(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    del history.final[key][offset]


def cut(history: History, rng: random.Random) -> None:
    key, _ = tail(history, rng)
    end = history.final_ends[key] = history.final_ends[key] - 1
    del history.final[key][end]


def overwrite(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    unknown = Send(process="q", key=key, value="q:1", acks=ALL, invoked_ns=0)
    history.sends.append(unknown)
    history.final[key][offset] = unknown.value


def exchange(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    log = history.final[key]
    log[offset], log[offset + 1] = log[offset + 1], log[offset]


def store_again(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    history.final[key][history.final_ends[key]] = history.final[key][offset]
    history.final_ends[key] += 1


def store_in_another_partition(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    other = KEYS[(KEYS.index(key) + 1) % len(KEYS)]
    history.final[other][history.final_ends[other]] = history.final[key][offset]
    history.final_ends[other] += 1


def store_what_was_refused(history: History, rng: random.Random) -> None:
    key, _ = tail(history, rng)
    refused = Send(process="q", key=key, value="q:1", acks=ALL, invoked_ns=0, status=Status.FAIL)
    history.sends.append(refused)
    history.final[key][history.final_ends[key]] = refused.value
    history.final_ends[key] += 1


def read(history: History, key: Key, *offsets: int, value: str = "") -> None:
    records = tuple((offset, value or history.final[key][offset]) for offset in offsets)
    history.polls.append(Poll(process="x", assignment=1, key=key, records=records, at_ns=0))


def skip(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    read(history, key, offset - 1, offset + 1)


def go_back(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    read(history, key, offset, offset + 1)
    read(history, key, offset)


def read_another_value(history: History, rng: random.Random) -> None:
    key, offset = tail(history, rng)
    history.sends.append(Send(process="q", key=key, value="q:1", acks=ALL, invoked_ns=0))
    read(history, key, offset, value="q:1")


def read_what_vanishes(history: History, rng: random.Random) -> None:
    key, _ = tail(history, rng)
    history.sends.append(Send(process="q", key=key, value="q:1", acks=ALL, invoked_ns=0))
    read(history, key, history.final_ends[key], value="q:1")


def acknowledge_out_of_order(history: History, rng: random.Random) -> None:
    key, _ = tail(history, rng)
    mine = [at for at, send in enumerate(history.sends) if send.process == "certain" and send.key == key]
    one, other = history.sends[mine[0]], history.sends[mine[1]]
    history.sends[mine[0]], history.sends[mine[1]] = other, one


def acknowledge_elsewhere(history: History, rng: random.Random) -> None:
    """The producer was told an offset where another record lies."""
    key, offset = tail(history, rng)
    at = next(at for at, send in enumerate(history.sends) if send.value == history.final[key][offset])
    history.sends[at] = replace(history.sends[at], offset=offset + 1)


def begin_too_late(history: History, rng: random.Random) -> None:
    """More is gone than anybody asked to delete."""
    key, offset = tail(history, rng)
    history.final_starts[key] = offset
    history.final[key] = {at: value for at, value in history.final[key].items() if at >= offset}


DAMAGE: list[tuple[Callable[[History, random.Random], None], str]] = [
    (lose, "lost-write"),
    (cut, "lost-write"),
    (overwrite, "inconsistent-offsets"),
    (exchange, "nonmonotonic-send"),
    (store_again, "duplicate"),
    (store_in_another_partition, "phantom-read"),
    (store_what_was_refused, "failed-write-read"),
    (skip, "poll-skip"),
    (go_back, "nonmonotonic-poll"),
    (read_another_value, "inconsistent-offsets"),
    (read_what_vanishes, "vanished-read"),
    (acknowledge_out_of_order, "nonmonotonic-send"),
    (acknowledge_elsewhere, "inconsistent-offsets"),
    (begin_too_late, "lost-write"),
]


@pytest.mark.parametrize("seed", BAD_SEEDS)
@pytest.mark.parametrize(("damage", "finding"), DAMAGE, ids=[damage.__name__ for damage, _ in DAMAGE])
def test_a_damaged_history(damage: Callable[[History, random.Random], None], finding: str, seed: int) -> None:
    history = Model(seed).run()
    damage(history, random.Random(f"{damage.__name__}/{seed}"))
    assert finding in names(history)


def test_there_are_enough() -> None:
    assert len(GOOD_SEEDS) >= 100 and len(BAD_SEEDS) * len(DAMAGE) >= 100
