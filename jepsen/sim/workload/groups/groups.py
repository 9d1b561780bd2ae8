"""Consumer groups in the simulation: one of each protocol, one of both, and committers that belong to none,
of which some commit in transactions.

One member of each group is static. The topic that they share grows meanwhile. Another one is deleted and made again
(reborn_topic.py).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

from jepsen.checkers.findings import Finding
from jepsen.checkers.group_history import Expiry, check_groups, check_offsets
from jepsen.checkers.owner_history import OwnerHistory, check_owners
from jepsen.sim.invariants.coordinators.expiries import Expiries
from jepsen.sim.settings import BOOTSTRAP
from jepsen.sim.workload.groups.classic_members import ClassicMember
from jepsen.sim.workload.groups.consumer_members import ConsumerMember, converge
from jepsen.sim.workload.groups.group_calls import SESSION_MS, UNITS, UNITS_MAX, UNITS_OF, Calls, Group, fetch
from jepsen.sim.workload.groups.reborn_topic import REBORN, RebornTopic
from jepsen.sim.workload.groups.stager import TIMEOUT_MS, Stager
from jepsen.sim.workload.groups.visitor import visit
from jepsen.transactions.calls import Calls as ProducerCalls
from jepsen.transactions.producer import TV2, Producer
from jepsen.transactions.recorder import Recorder
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.clock import Clock
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError, Transport

MEMBERS = 3  # of each group
REPLICAS = 3
GROWS_S = (4, 15)  # until there is one unit more
SETTINGS = {
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "200",
    "log.cleaner.enable": "false",  # the other invariants compare bytes
    "offsets.commit.timeout.ms": "3000",
    "offsets.retention.minutes": "1",  # a clock that jumps lets offsets expire
    "offsets.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": str(UNITS),
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class Groups:
    """findings: of what was seen while members ran."""

    def __init__(
        self,
        rng: random.Random,
        transport: Callable[[], Transport],
        admin: Callable[[], AsyncAdmin],
        clock: Clock,
        now_ns: Callable[[], int],
    ) -> None:
        self._rng, self._transport, self._admin, self._now_ns = rng, transport, admin, now_ns
        self._clock, self._producers = clock, Recorder(now_ns)
        self.classic, self.modern, self.mixed = map(self._new, ("workers", "readers", "movers"))
        self.owners, self.mixed_owners = OwnerHistory(), OwnerHistory()
        self.visitors: list[Group] = []
        self.stopping = False
        self._findings: list[Finding] = []
        self._reborn_counts: dict[str, int] = {}
        self._reborn = RebornTopic(
            rng,
            admin,
            lambda: self._producer_calls(REBORN),
            lambda calls: Producer(calls, self._producers, REBORN, TV2, TIMEOUT_MS),
            self._reborn_counts,
        )

    def _new(self, name: str) -> Group:
        return Group(name, self._rng, self._transport, self._now_ns)

    @property
    def _all(self) -> list[Group]:
        return [self.classic, self.modern, self.mixed, *self.visitors]

    @property
    def counts(self) -> dict[str, int]:
        found = dict(self.classic.counts)
        for kind, groups in (("consumer", [self.modern]), ("mixed", [self.mixed]), ("no", self.visitors)):
            for group in groups:
                for name, count in group.counts.items():
                    one = name.replace("group", f"{kind} group")
                    found[one] = found.get(one, 0) + count
        return {**found, **self._reborn_counts}

    def stop(self) -> None:
        self.stopping = self._reborn.stopping = True
        for group in self._all:
            group.stopping = True

    # --- while there are faults ---

    async def run(self, nursery: Nursery) -> None:
        """Make the topic, then start the members."""
        if not await self._make_topic():
            return
        for number in range(MEMBERS):
            name, instance = f"m{number}", None if number else "still"
            nursery.start(self._run_classic(name, instance), f"classic member {number}")
            nursery.start(self._run_modern(name, instance), f"consumer member {number}")
            nursery.start(self._run_mixed(name, instance), f"mixed member {number}")
        nursery.start(self._run_visitors(), "visitors")
        nursery.start(self._run_stagers(), "stagers")
        nursery.start(self._reborn.run(), "reborn topic")
        nursery.start(self._grow(), "units")

    async def _run_classic(self, name: str, instance: str | None) -> None:
        await self.classic.run(name, lambda calls: ClassicMember(calls, instance=instance).live())

    async def _run_modern(self, name: str, instance: str | None) -> None:
        await self.modern.run(name, lambda calls: ConsumerMember(calls, self.owners, instance).live())

    async def _run_mixed(self, name: str, instance: str | None) -> None:
        """Each life of a member is of one protocol or the other."""

        async def live(calls: Calls) -> None:
            if self._rng.random() < 0.5:
                await ClassicMember(calls, self.mixed_owners, instance).live()
            else:
                await ConsumerMember(calls, self.mixed_owners, instance).live()

        await self.mixed.run(name, live)

    async def _run_visitors(self) -> None:
        while not self.stopping:
            group = self._new(f"visitor-{len(self.visitors)}")
            self.visitors.append(group)
            await group.run_once("visitor", visit)
            await asyncio.sleep(self._rng.uniform(0.05, 1.0))

    async def _run_stagers(self) -> None:
        async def live(calls: Calls) -> None:
            ways = self._producer_calls("stager")
            try:
                await Stager(calls, Producer(ways, self._producers, "stager", TV2, TIMEOUT_MS)).live()
            finally:
                await ways.close()

        while not self.stopping:
            group = self._new(f"stager-{len(self.visitors)}")
            self.visitors.append(group)
            await group.run_once("stager", live)
            await asyncio.sleep(self._rng.uniform(0.05, 1.0))

    def _producer_calls(self, name: str) -> ProducerCalls:
        return ProducerCalls(self._transport(), bootstrap=BOOTSTRAP, clock=self._clock, rng=self._rng, name=name)

    async def _make_topic(self) -> bool:
        while not self.stopping:
            async with self._admin() as admin:
                try:
                    await admin.create_topic(UNITS_OF, UNITS, REPLICAS, exist_ok=True)
                    return True
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)
        return False

    async def _grow(self) -> None:
        for units in range(UNITS + 1, UNITS_MAX + 1):
            await asyncio.sleep(self._rng.uniform(*GROWS_S))
            if self.stopping:
                return
            async with self._admin() as admin:
                try:
                    await admin.create_partitions(UNITS_OF, units)
                except (QuorumlogError, RpcError):
                    continue  # perhaps it is done all the same
            self._know(units)

    def _know(self, units: int) -> None:
        for group in self._all:
            group.units = units

    # --- after everything has healed ---

    async def read_all(self) -> None:
        """Fetch every unit once more, after everything has healed, and see groups come to rest."""
        async with self._admin() as admin:
            self._know(len((await admin.describe_topic(UNITS_OF)).partitions))
        for group in self._all:
            calls = Calls(group, "final")
            await fetch(calls, tuple(range(group.units)), stable=True)
            await calls.close()
        self._findings += await converge(self.modern, self.owners)
        self._findings += await converge(self.mixed, self.mixed_owners)
        self._findings += await self._reborn.check()

    def check(self, expiries: Expiries) -> list[Finding]:
        for group in self._all:
            found = [one for one in expiries.expired if (one.group, one.topic) == (group.group_id, UNITS_OF)]
            group.history.expiries = [Expiry(one.partition, one.at_ns) for one in found]
            group.history.forgotten_ns = [one.at_ns for one in expiries.forgotten if one.group == group.group_id]
        return [*self._findings, *self._check()]

    def _check(self) -> Iterator[Finding]:
        yield from check_groups(self.classic.history)
        for group in (self.modern, self.mixed, *self.visitors):
            yield from check_offsets(group.history)
        yield from check_owners(self.owners)
        yield from check_owners(self.mixed_owners)
