"""Joint transactions in the simulation (jepsen.joint): two drivers at once of each group, and tasks that outlive them.

- joint-left-at-once: joint.version falls from 2 to 0 in one step.

After the faults:
- joint-goes-on: a fresh driver of each group decides a next batch, whatever dead drivers have left open;
- joint-ends: then every child ends within its time-out, and all partitions can be read to their ends.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from jepsen.checkers.findings import Finding
from jepsen.checkers.joint.events import Attempt, Poll
from jepsen.checkers.joint.logs import JointLogs, LogRecord
from jepsen.joint.driver import Driver, Habits, Run
from jepsen.joint.levels import change_levels
from jepsen.joint.recorder import JOINT, PARTITIONS, SINGLE, VERSIONED, Group, JointRecorder
from jepsen.joint.task import Failed, Over, Task
from jepsen.sim.settings import BOOTSTRAP
from jepsen.transactions.calls import TRANSACTION, WAIT_S, Calls, Unknown
from jepsen.transactions.reading import read_bytes
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import ListJointRequest, ListJointResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError, Transport
from quorumlog_broker.coordinator.transactions.joint import preparing
from quorumlog_quorum.metadata.features import JOINT_BEGINS

SETTINGS = {
    "log.cleaner.enable": "false",  # the other invariants compare bytes; compacted_replay.py compacts
    "transaction.state.log.num.partitions": "3",
    "transactional.id.expiration.ms": "3000",  # slots are idle for longer, now and then
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
TOPIC_CONFIGS = {"retention.ms": "-1"}
REPLICAS = 3
STREAMS, DRIVERS = ("spark/a", "spark/b"), 2  # of each stream
VERSIONED_ID, SINGLE_ID = "write/versions", "write/{}"
SINGLE_REPLAYS = 0.4  # of the runs of single batches
LEFT_OPEN = "joint children left open by the dead"
GOES_ON_S = 30  # a fresh driver's next decision
_LOOKS_MAX = 500
_MIN_PER_S = {"joint decisions": 0.5, "joint reads": 0.5, "joint records committed": 1.0}
CALM = Habits(dies=0, twice=0, aborts=0, stalls=0, confused=0, replays=0, timeouts_ms=(5_000,))


@contextmanager
def small_steps() -> Iterator[None]:
    """Coordinators write one Prepare record a turn: a failover may part a decision from those of small batches, too."""
    former = preparing.PREPARES_A_TURN
    preparing.PREPARES_A_TURN = 1
    try:
        yield
    finally:
        preparing.PREPARES_A_TURN = former


class Joint:
    """name of a finding: in `Finding`."""

    def __init__(
        self,
        rng: Callable[[str], random.Random],
        transport: Callable[[], Transport],
        admin: Callable[[], AsyncAdmin],
        clock: Clock,
        now_ns: Callable[[], int],
    ) -> None:
        self.recorder = JointRecorder(now_ns, rng("tokens"))
        self._rng, self._transport, self._admin, self._clock = rng, transport, admin, clock
        self.groups = [Group(name, location=f"file:/checkpoint/{name}") for name in STREAMS]
        self.groups.append(Group(VERSIONED_ID, kind=VERSIONED))
        self.recorder.history.versioned.add(VERSIONED_ID)
        self._singles: list[Group] = []

    @property
    def counts(self) -> dict[str, int]:
        return dict(sorted(self.recorder.counts.items()))

    def stop(self) -> None:
        self.recorder.stopping = True

    async def run(self, nursery: Nursery) -> None:
        """Make the topic, then start the drivers."""
        while not self.recorder.stopping:
            async with self._admin() as admin:
                try:
                    await admin.create_topic(JOINT, PARTITIONS, REPLICAS, TOPIC_CONFIGS, exist_ok=True)
                    break
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)
        stopped = lambda: self.recorder.stopping  # noqa: E731
        levels = change_levels(self._calls("levels"), self._rng("levels"), stopped, self.recorder.counts)
        nursery.start(levels, "levels of joint.version")
        for group in self.groups:
            for number in range(DRIVERS):
                self._drive(f"{group.name}/{number}", lambda group=group: group, nursery)  # type: ignore[misc]
        singles = self._rng("singles")
        self._drive("singles", lambda: self._single(singles), nursery)
        for partition in range(PARTITIONS):
            nursery.start(self._follow(partition), f"reader {partition}")

    def _drive(self, name: str, group_of: Callable[[], Group], nursery: Nursery) -> None:
        driver = Driver(name, group_of, self.recorder, Habits(), self._calls, self._rng(name), nursery)
        nursery.start(driver.run(), name)

    def _single(self, rng: random.Random) -> Group:
        """A new one, or one that its job writes again."""
        if not self._singles or rng.random() >= SINGLE_REPLAYS:
            self._singles.append(Group(SINGLE_ID.format(len(self._singles)), kind=SINGLE))
            return self._singles[-1]
        group = rng.choice(self._singles)
        group.committed = -1
        return group

    def _calls(self, name: str) -> Calls:
        rng = self._rng(f"calls/{name}")
        return Calls(self._transport(), bootstrap=BOOTSTRAP, clock=self._clock, rng=rng, name=name)

    # --- reading ---

    async def _follow(self, partition: int) -> None:
        """From the start on, now and then from an earlier place."""
        rng, position = self._rng(f"reader/{partition}"), 0
        calls = self._calls(f"reader/{partition}")
        while not self.recorder.stopping:
            position = await self._read(calls, partition, position, final=False) or position
            await asyncio.sleep(rng.uniform(0, 0.4))
            if rng.random() < 0.1:
                position = rng.randint(0, position)
        await calls.close()

    async def _read(self, calls: Calls, partition: int, position: int, *, final: bool) -> int | None:
        """The next position; None where nothing was read, or, of the final reads, at the end."""
        found = await read_bytes(calls, JOINT, partition, position)
        if found is None:
            await asyncio.sleep(WAIT_S)
            return position if final else None
        values = [value.decode() for value in found.values]
        self.recorder.history.polls.append(Poll(partition, position, found.next, found.offsets, values, final))
        self.recorder.waiting_for = f"{JOINT}-{partition} at {position}: {found[3:]} (stable, committed)"
        if final and position == found.stable == found.high_watermark:
            return None
        return found.next

    # --- after everything has healed ---

    async def go_on(self) -> None:
        """A fresh driver of each group. Raises TimeoutError."""
        errors: list[str] = []
        nursery = Nursery(lambda name, error: errors.append(f"{name}: {error!r}"))
        self.recorder.stopping = False  # for its run
        for group in self.groups:
            driver = Driver(
                f"fresh/{group.name}", lambda group=group: group, self.recorder, CALM, self._calls,  # type: ignore[misc]
                self._rng(f"fresh/{group.name}"), nursery,
            )  # fmt: skip
            await self._decide_next(driver, group)
        self.recorder.stopping = True
        await nursery.close()
        if errors:
            raise AssertionError(errors[0])

    async def _decide_next(self, driver: Driver, group: Group) -> None:
        """What is decided and was not told is heard as decided, and is not enough."""
        until_ns = self.recorder.now_ns() + GOES_ON_S * 1_000_000_000
        why = ""
        while self.recorder.now_ns() < until_ns:
            run = Run(driver, group)
            try:
                first = group.committed + 1
                await self._leave_open(driver, group, first)
                await run.batch(first)
                await run.batch(first + 1)
                return
            except (Failed, Over, Unknown) as error:
                why = repr(error)
                await asyncio.sleep(WAIT_S)
            finally:
                await run.calls.close()
        raise TimeoutError(f"{group.name} at {group.committed} decides nothing more: {why}")

    async def _leave_open(self, driver: Driver, group: Group, sequence: int) -> None:
        """A child with a row, of a driver that died. It must stop no other one. Raises Failed, Over."""
        dead = Attempt(group.name, sequence, self.recorder.draw(), group.location, self.recorder.draw())
        self.recorder.history.attempts.append(dead)
        rng = self._rng(f"dead/{group.name}")
        task = Task(group, dead, [0], self.recorder, self._calls(f"dead/{group.name}"), rng, CALM.timeouts_ms[0])
        if await task.run() is not None:
            self.recorder.counts[LEFT_OPEN] += 1

    async def read_all(self) -> None:
        """Raises TimeoutError if anything stays open."""
        calls = self._calls("final")
        for group in (*self.groups, *self._singles):
            await self._until_at_rest(calls, group)
        for partition in range(PARTITIONS):
            position: int | None = 0
            while position is not None:
                position = await self._read(calls, partition, position, final=True)
        await calls.close()

    async def _until_at_rest(self, calls: Calls, group: Group) -> None:
        listed = None
        for _ in range(_LOOKS_MAX):
            try:
                response: ListJointResponse = await calls.to_coordinator(TRANSACTION, group.name, ListJointRequest())
            except RpcError:
                continue
            if response.error_code == ErrorCode.NONE:
                listed = next((one for one in response.groups if one.group_id == group.name), None)
                if listed is None or not (listed.open or listed.ending):
                    return
            else:
                calls.forget_coordinator(TRANSACTION, group.name)
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{group.name} does not end: {listed}")

    def check(self, logs: Sequence[Sequence[LogRecord]], levels: Sequence[int]) -> list[Finding]:
        """logs: of the coordinators, by partition. levels: of joint.version, that the metadata had in turn."""
        recorder = self.recorder
        checked = JointLogs(recorder.aborts)
        checked.check(logs)
        if (JOINT_BEGINS, 0) in pairwise(levels):
            recorder.findings.append(Finding("joint-left-at-once", f"joint.version was {levels} in turn"))
        found = [*recorder.findings, *checked.findings, *recorder.history.check(checked.decided)]
        recorder.counts.update(checked.counts)
        recorder.counts.update(recorder.history.count(checked.decided))
        return found

    def exercised_enough(self, seconds: int) -> bool:
        """A run with less proves nothing."""
        return all(self.recorder.counts[name] >= seconds * per_s for name, per_s in _MIN_PER_S.items())
