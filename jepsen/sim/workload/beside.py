"""What runs beside the producers and readers of every run: a consumer group, transactional clients, joint batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from jepsen.sim.cluster import GROUP_HOST, JOINT_HOST, TRANSACTIONS_HOST, SimCluster
from jepsen.sim.profiles.plan import Plan
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.workload.aging import age
from jepsen.sim.workload.groups import Groups
from jepsen.sim.workload.joint import Joint
from jepsen.sim.workload.transactions import Transactions
from quorumlog.client.admin import AsyncAdmin
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.transport import Transport


class Beside:
    """groups, transactions, joint: None where the plan has none."""

    def __init__(
        self,
        cluster: SimCluster,
        plan: Plan,
        *,
        make_loop: Callable[[str], SimLoop],
        transport: Callable[[SimLoop], Transport],
        trusted: Callable[[SimLoop], Transport],
        admin: Callable[[str, SimLoop], AsyncAdmin],
        rng: Callable[[str], random.Random],
        crashed: OnCrash,
    ) -> None:
        self.groups: Groups | None = None
        self.transactions: Transactions | None = None
        self.joint: Joint | None = None
        self.loops: dict[str, SimLoop] = {}  # by host
        self._members, self._clients, self._drivers = Nursery(crashed), Nursery(crashed), Nursery(crashed)
        now_ns = lambda: cluster.scheduler.now_ns  # noqa: E731
        if plan.groups:
            loop = self.loops[GROUP_HOST] = make_loop(GROUP_HOST)
            clock = SimClock(cluster.scheduler)
            self.groups = Groups(rng("groups"), partial(transport, loop), partial(admin, "groups", loop), clock, now_ns)
        if plan.transactions:
            loop = self.loops[TRANSACTIONS_HOST] = make_loop(TRANSACTIONS_HOST)
            self.transactions = Transactions(
                rng,
                partial(transport, loop),
                partial(trusted, loop),
                partial(admin, "transactions", loop),
                SimClock(cluster.scheduler),
                now_ns,
                partial(age, cluster),
                late_requests=plan.delays_requests,
            )
        if plan.joint:
            loop = self.loops[JOINT_HOST] = make_loop(JOINT_HOST)
            self.joint = Joint(
                lambda name: rng(f"joint/{name}"),
                partial(transport, loop),
                partial(admin, "joint", loop),
                SimClock(cluster.scheduler),
                now_ns,
            )

    def start(self) -> None:
        if self.groups is not None:
            self.loops[GROUP_HOST].create_task(self._start_members(self.groups))
        if self.transactions is not None:
            self.loops[TRANSACTIONS_HOST].create_task(self._start_clients(self.transactions))
        if self.joint is not None:
            self.loops[JOINT_HOST].create_task(self._start_drivers(self.joint))

    async def _start_members(self, groups: Groups) -> None:
        self._members.start(groups.run(self._members), "groups")

    async def _start_clients(self, transactions: Transactions) -> None:
        self._clients.start(transactions.run(self._clients), "transactions")

    async def _start_drivers(self, joint: Joint) -> None:
        self._drivers.start(joint.run(self._drivers), "joint transactions")

    @property
    def idle(self) -> bool:
        return len(self._members) == len(self._clients) == len(self._drivers) == 0

    def stop(self) -> None:
        if self.groups is not None:
            self.groups.stop()
        if self.transactions is not None:
            self.transactions.stop()
        if self.joint is not None:
            self.joint.stop()

    @property
    def counts(self) -> dict[str, int]:
        """For the report."""
        everyone = (self.groups, self.transactions, self.joint)
        return {name: count for one in everyone if one is not None for name, count in one.counts.items()}
