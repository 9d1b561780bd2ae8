"""What the clients of the workload do: append, read and append, take input and commit its offset, read all.

A client has lives. A life ends when its producer is fenced or does not know what it has done, or by chance: in the
middle of a transaction, with an open connection, or while calls of it are still on their way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from jepsen.checkers.transactional.events import (
    OPEN_NS,
    VALUES_MAX,
    Consumed,
    Outcome,
    Poll,
    Sent,
    Transaction,
    value_of,
)
from jepsen.transactions.calls import Calls, Unknown
from jepsen.transactions.late import Late
from jepsen.transactions.producer import TV1, TV2, Lost, Producer, Refused
from jepsen.transactions.readers import LEDGER, PIPE, MakeCalls, fetch_offset, read_some
from jepsen.transactions.reading import Found, read
from jepsen.transactions.recorder import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """units: partitions from which a transformer takes; it writes to the other ones, and appenders to all.

    gap_s: the mean time between two transactions of a client. versions: of the producers' protocols, drawn for each
    life. dies, aborts: shares of the transactions.
    """

    partitions: int = 4
    units: int = 2
    gap_s: float = 0.1
    timeout_ms: int = 6_000
    versions: tuple[int, ...] = (TV1, TV2)
    dies: float = 0.03
    aborts: float = 0.2
    late: float = 0.05


class Client:
    """Lives of one transactional id. unit: of a transformer; None: an appender."""

    def __init__(
        self, name: str, transactional_id: str, unit: int | None, recorder: Recorder, load: Load,
        calls: MakeCalls, rng: random.Random,
    ) -> None:  # fmt: skip
        self._name, self._id, self._unit = name, transactional_id, unit
        self._recorder, self._load, self._make_calls, self._rng = recorder, load, calls, rng
        self._late = Late(recorder, rng)

    async def run(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Lives, one after the other, until the recorder is stopping or there is `enough`."""
        while not (self._recorder.stopping or enough()):
            calls = self._make_calls(self._name)
            try:
                await _Life(self._id, self._unit, self._recorder, self._load, calls, self._rng, self._late).run(enough)
            except Lost:
                self._recorder.counts["producers lost"] += 1
            finally:
                await calls.close()
            await asyncio.sleep(self._rng.uniform(0.05, 0.5) * min(1.0, self._load.gap_s * 10))


class _Life:
    def __init__(
        self, transactional_id: str, unit: int | None, recorder: Recorder, load: Load, calls: Calls,
        rng: random.Random, late: Late,
    ) -> None:  # fmt: skip
        self._unit, self._recorder, self._load = unit, recorder, load
        self._calls, self._rng, self._late = calls, rng, late
        self._client = recorder.next_client()
        version = rng.choice(load.versions)
        self._producer = Producer(calls, recorder, transactional_id, version, load.timeout_ms)
        self._position: int | None = None  # of its unit: behind what is committed
        self._input: Found | None = None
        self._sent: list[Sent] = []
        self._consumed: list[Consumed] = []

    async def run(self, enough: Callable[[], bool]) -> None:
        """Raises Lost."""
        await self._producer.begin()
        self._late.begun(self._producer)
        await self._late.repeat_some(self._calls, self._load.late)  # of the life before
        while not (self._recorder.stopping or enough()):
            await asyncio.sleep(self._rng.expovariate(1 / self._load.gap_s))
            if self._unit is None or await self._has_input(self._unit):
                await self._transact()
                await self._late.repeat_some(self._calls, self._load.late)

    # --- one transaction ---

    async def _transact(self) -> None:
        """Raises Lost: by chance, or because the outcome is not known."""
        number = self._recorder.next_transaction()
        self._sent, self._consumed = [], []
        self._producer.start()
        ending_ns, ended_ns, outcome = OPEN_NS, OPEN_NS, Outcome.ABORTED  # nobody has asked to commit it
        try:
            wants = await self._fill(number)
            if wants:
                ending_ns, outcome = self._recorder.now_ns(), Outcome.UNKNOWN
            self._late.remember(self._producer, committed=wants)
            if await self._producer.end(committed=wants):
                ended_ns = self._recorder.now_ns()
                outcome = Outcome.COMMITTED if wants else Outcome.ABORTED
            else:
                outcome = Outcome.ABORTED
                raise Lost("the end of a transaction was refused")
        except Unknown as error:
            raise Lost(str(error)) from error
        finally:
            self._note(number, outcome, ending_ns, ended_ns)
            if outcome is not Outcome.COMMITTED:
                self._position = None

    def _note(self, number: int, outcome: Outcome, ending_ns: int, ended_ns: int) -> None:
        consumed = self._consumed if self._sent else []  # it may have been stopped before it sent anything
        session = self._producer.session
        one = Transaction(number, self._client, outcome, ending_ns, ended_ns, self._sent, consumed, session)
        self._recorder.transaction(one)

    async def _fill(self, number: int) -> bool:
        """What belongs to the transaction; whether to commit it. Raises Lost."""
        try:
            if self._unit is None:
                await self._append(number)
            else:
                await self._transform(number, self._unit)
        except Refused as error:
            self._recorder.counts[f"transactions refused: {error}"] += 0  # named when a run is looked into
            self._recorder.counts["transactions refused"] += 1
            return False
        if self._rng.random() < self._load.dies:
            self._recorder.counts["producers that died"] += 1
            raise Lost("it died")
        return self._rng.random() >= self._load.aborts

    async def _append(self, number: int) -> None:
        for index in range(self._rng.randint(1, 3)):
            if self._rng.random() < 0.3:
                partition = self._rng.randrange(self._load.partitions)
                await read_some(self._calls, self._recorder, self._rng, partition, transaction=number)
            await self._send(number, index, self._rng.randrange(self._load.partitions))

    async def _send(self, number: int, index: int, partition: int) -> None:
        assert index < VALUES_MAX
        value = value_of(number, index)
        try:
            offset = await self._producer.send(LEDGER, partition, value)
        except (Refused, Lost):
            self._sent.append(Sent(partition, value))  # it may be in the log
            raise
        self._sent.append(Sent(partition, value, offset))
        self._late.remember_value(self._producer, LEDGER, partition, value)

    # --- input and its offset ---

    async def _has_input(self, unit: int) -> bool:
        """Read on from what is committed. Raises Lost."""
        if self._position is None:
            shown = await fetch_offset(self._calls, self._recorder, unit)
            if shown is None:
                return False
            self._position = max(shown, 0)
        self._input = await read(self._calls, LEDGER, unit, self._position)
        return self._input is not None and self._input.next > self._position

    async def _transform(self, number: int, unit: int) -> None:
        found, start = self._input, self._position
        assert found is not None and start is not None
        poll = Poll(unit, start, found.next, found.offsets, found.values, self._recorder.now_ns(), number)
        self._recorder.poll(poll)
        outputs = range(self._load.units, self._load.partitions)
        self._consumed.append(Consumed(unit, start, found.next))
        for index in range(self._rng.randint(1, 2)):
            await self._send(number, index, self._rng.choice(outputs))
        await self._producer.commit_offset(PIPE, LEDGER, unit, found.next)
        self._late.remember_offset(self._producer, PIPE, LEDGER, unit, found.next)
        self._position = found.next
