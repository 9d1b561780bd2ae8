"""One attempt of a task: it begins its child, and sends its rows. It may outlive its driver, and go on sending."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

from jepsen.checkers.joint.events import NO_OFFSET, Attempt, Row, value_of
from jepsen.joint.asking import Asking, begin_request
from jepsen.joint.recorder import JOINT, Group, JointRecorder
from jepsen.transactions.calls import Calls, Unknown
from jepsen.transactions.producer import TV2, Lost, Producer, Refused
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import BeginJointRequest, JointChildRef

LATE_ROWS = 2  # that an attempt sends after its driver has died
ASKS_AGAIN = 0.15  # of the attempts
BELOW_LEVEL_S = 0.4  # before it is tried again
LATE_REFUSED = "joint late rows refused"


class Failed(Exception):
    """The attempt failed; another one may follow."""


class Over(Exception):
    """The whole run is over: another one has decided, or the sequence is not its own."""


class Child(NamedTuple):
    """producer: of the attempt, for calls that come late."""

    ref: JointChildRef
    producer: Producer


class Task:
    """killed: set from outside; it ends before its next step. orphan: its driver has died."""

    def __init__(
        self, group: Group, attempt: Attempt, partitions: list[int], recorder: JointRecorder, calls: Calls,
        rng: random.Random, timeout_ms: int,
    ) -> None:  # fmt: skip
        self.attempt = attempt
        self.killed = self.orphan = False
        self.ended = False
        self.begin: BeginJointRequest = begin_request(group, attempt, timeout_ms)
        self._group, self._partitions = group, partitions
        self._recorder, self._calls, self._rng, self._timeout_ms = recorder, calls, rng, timeout_ms

    async def run(self) -> Child | None:
        """None: the batch is decided. Raises Failed, Over."""
        try:
            return await self._run()
        finally:
            self.ended = True
            await self._calls.close()

    async def _run(self) -> Child | None:
        asking = Asking(self._group, self._recorder, self._calls)
        await self._pause()
        try:
            begun = await asking.begin(self.attempt, self.begin)
        except Unknown as error:
            raise Failed("the coordinator does not answer") from error
        code = ErrorCode(begun.error_code)
        if code in (ErrorCode.SUPERSEDED, ErrorCode.CHECKPOINT_ROLLED_BACK, ErrorCode.DECISION_MISSING):
            raise Over(code.name)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            await asyncio.sleep(BELOW_LEVEL_S)
        if code != ErrorCode.NONE:
            raise Failed(f"{code.name}: {begun.error_message}")
        if begun.decided:
            return None
        if self._rng.random() < ASKS_AGAIN:
            await self._ask_again(asking)
        producer = Producer(
            self._calls, self._recorder.producers, begun.transactional_id, TV2, self._timeout_ms,
            begun.producer_id, begun.producer_epoch,
        )  # fmt: skip
        for number, partition in enumerate(self._partitions):
            await self._pause()
            await self._send(producer, partition, number)
        if self.orphan:
            await self._go_on(producer)
        ref = JointChildRef(slot=begun.slot, producer_epoch=begun.producer_epoch, token=self.attempt.token.encode())
        return Child(ref, producer)

    async def _ask_again(self, asking: Asking) -> None:
        """As if the answer were lost; the history says whether it is the same child."""
        try:
            await asking.begin(self.attempt, self.begin, attempts=2)
        except Unknown:
            return
        self._recorder.counts["joint tokens told again"] += 1

    async def _pause(self) -> None:
        """Raises Failed if it was killed."""
        await asyncio.sleep(self._rng.choice((0, 0, 0.02, 0.1)))
        if self.killed:
            raise Failed("it was killed")

    async def _send(self, producer: Producer, partition: int, number: int) -> None:
        one = self.attempt
        row = Row(partition, value_of(one.group, one.sequence, one.token, number))
        one.rows.append(row)
        try:
            row.offset = await producer.send(JOINT, partition, row.value.encode())
        except (Refused, Lost) as error:
            self._recorder.counts[LATE_REFUSED] += self.orphan
            raise Failed(str(error)) from error
        row.acked = True
        self._recorder.counts["joint rows without an offset"] += row.offset == NO_OFFSET

    async def _go_on(self, producer: Producer) -> None:
        """Its driver is dead, and another one may have decided."""
        for number in range(LATE_ROWS):
            await asyncio.sleep(self._rng.uniform(0.1, 1.5))
            await self._send(producer, self._rng.choice(self._partitions), len(self._partitions) + number)
            self._recorder.counts["joint late rows taken"] += 1
