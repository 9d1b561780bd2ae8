"""A world with transactions that is right by construction, for tests of the checker.

Clients interleave, read, take input and commit its offset; partitions hold records and markers; a read ends at
the first record of an open transaction. A test may falsify the events of a `History` before the checker sees them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from jepsen.checkers.transactional.events import (
    NO_OFFSET,
    NOT_IN_ONE,
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
from jepsen.checkers.transactional_history import TransactionalHistory, Verdict

MARKER = -1


@dataclass(slots=True)
class History:
    sessions: list[Session] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    shown: list[OffsetShown] = field(default_factory=list)

    def verdict(self) -> Verdict:
        history = TransactionalHistory()
        for session in self.sessions:
            history.add_session(session)
        for one in self.transactions:
            history.add_transaction(one)
        for poll in self.polls:
            history.add_poll(poll)
        for shown in self.shown:
            history.add_shown(shown)
        return history.verdict()

    def names(self) -> set[str]:
        return set(self.verdict().number)


@dataclass(slots=True)
class _Open:
    number: int
    client: int
    session: int
    sent: list[Sent] = field(default_factory=list)
    consumed: list[Consumed] = field(default_factory=list)


class World:
    """partitions: (value or MARKER, transaction) by offset. Unit u takes input of a partition that is not modelled."""

    def __init__(self, rng: random.Random, *, partitions: int = 3, clients: int = 3, units: int = 2) -> None:
        self.rng, self.history = rng, History()
        self.partitions: list[list[tuple[int, int]]] = [[] for _ in range(partitions)]
        self.open: dict[int, _Open] = {}
        self.committed: set[int] = set()
        self.offsets = [0] * units
        self.busy_units: set[int] = set()  # taken by an open transaction
        self.epochs = dict.fromkeys(range(clients), -1)
        self.session_of: dict[int, int] = {}
        self.position = [0] * partitions
        self.clients, self.now, self.numbers = clients, 0, 0
        for client in range(clients):
            self.start_session(client)

    def tick(self) -> int:
        self.now += 1
        return self.now

    def start_session(self, client: int) -> None:
        self.epochs[client] += 1
        producer_id, epoch = 100 + client + 1000 * (self.epochs[client] // 5), self.epochs[client] % 5
        invoked = self.tick()
        self.session_of[client] = len(self.history.sessions)
        self.history.sessions.append(Session(f"id-{client}", producer_id, epoch, invoked, self.tick()))

    def step(self) -> None:
        client = self.rng.randrange(self.clients)
        one = self.open.get(client)
        dice = self.rng.random()
        if one is None:
            if dice < 0.1:
                self.start_session(client)
            else:
                self.open[client] = _Open(self.numbers, client, self.session_of[client])
                self.numbers += 1
        elif len(one.sent) == 0 or (dice < 0.5 and len(one.sent) < 5):
            self.send(one)
        elif dice < 0.6:
            self.poll(self.rng.randrange(len(self.partitions)), transaction=one.number)
        elif dice < 0.7:
            self.take(one)
        else:
            self.end(one)
        if self.rng.random() < 0.2:
            self.poll(self.rng.randrange(len(self.partitions)))
        if self.rng.random() < 0.1:
            self.show(self.rng.randrange(len(self.offsets)))

    def send(self, one: _Open) -> None:
        partition = self.rng.randrange(len(self.partitions))
        log, value = self.partitions[partition], value_of(one.number, len(one.sent))
        told = self.rng.random() < 0.8
        one.sent.append(Sent(partition, value, len(log) if told else NO_OFFSET))
        log.append((value, one.number))

    def take(self, one: _Open) -> None:
        unit = self.rng.randrange(len(self.offsets))
        if unit not in self.busy_units:
            self.busy_units.add(unit)
            start = self.offsets[unit]
            one.consumed.append(Consumed(unit, start, start + self.rng.randint(1, 4)))

    def end(self, one: _Open) -> None:
        commits = self.rng.random() < 0.7
        ending = self.tick()
        ended = self.tick()
        outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        if self.rng.random() < 0.15:
            outcome, ended = Outcome.UNKNOWN, OPEN_NS
        if commits:
            self.committed.add(one.number)
        for unit, _, end in one.consumed:
            self.busy_units.discard(unit)
            if commits:
                self.offsets[unit] = end
        for partition in {sent.partition for sent in one.sent}:
            self.partitions[partition].append((MARKER, one.number))
        del self.open[one.client]
        self.history.transactions.append(
            Transaction(one.number, one.client, outcome, ending, ended, one.sent, one.consumed, one.session)
        )

    def poll(self, partition: int, *, transaction: int = NOT_IN_ONE, final: bool = False) -> None:
        log = self.partitions[partition]
        still_open = {one.number for one in self.open.values()}
        stable = next((at for at, (_, number) in enumerate(log) if number in still_open), len(log))
        start = 0 if final else self.rng.randint(0, stable)
        end = stable if final else self.rng.randint(start, stable)
        found = [
            (at, log[at][0])
            for at in range(start, end)
            if log[at][0] != MARKER and log[at][1] in self.committed
        ]  # fmt: skip
        self.history.polls.append(
            Poll(partition, start, end, [o for o, _ in found], [v for _, v in found], self.tick(), transaction, final)
        )

    def show(self, unit: int, *, final: bool = False) -> None:
        if unit in self.busy_units:
            return  # a fetch of stable offsets waits
        invoked = self.tick()
        offset = self.offsets[unit] or NO_OFFSET
        self.history.shown.append(OffsetShown(unit, offset, invoked, self.tick(), final))

    def finish(self) -> History:
        for one in list(self.open.values()):
            if not one.sent:
                self.send(one)
            self.end(one)
        for partition in range(len(self.partitions)):
            self.poll(partition, final=True)
        for unit in range(len(self.offsets)):
            self.show(unit, final=True)
        return self.history


def good_history(seed: int, steps: int = 200) -> History:
    world = World(random.Random(seed))
    for _ in range(steps):
        world.step()
    return world.finish()
