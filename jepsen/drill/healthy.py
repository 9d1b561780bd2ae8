"""Minutes in which nothing is wrong: load, a rolling restart, a reassignment, rebalances. Nobody may be alarmed.

A node that is restarted in order is told as a notice, and so are replicas that are away with it and a reassignment
that runs: notices are no alarm, `check` exits with 0, and no rule fires.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

from jepsen.drill.load import GROUP, PAYMENTS, TOPIC, Load
from jepsen.drill.run import POLL_S, Drill
from jepsen.drill.sights import Sights
from jepsen.drill.world import DrillCluster
from quorumlog.client.blocking import Cluster
from quorumlog.testing.waiting import wait_until

OF_THE_MACHINE = frozenset({
    "directory.nearly-full", "QuorumlogDirectoryNearlyFull", "node.stalled", "QuorumlogLoopStall", "disk.slow",
    "QuorumlogDiskSlow", "replica.slow-disk",
})  # fmt: skip
"""What a machine that others use raises, too; it is told apart in the report, and fails nothing."""
IN_SYNC_S = 60.0
BETWEEN_S = 10.0
WORK = ("a rolling restart", "a reassignment", "rebalances")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """alarms, of_machine: how many looks told a warning, by watcher and name. done: work, by name."""

    minutes: float
    looks: Counter[str]
    alarms: Counter[str]
    of_machine: Counter[str]
    done: Counter[str]
    first: tuple[str, ...]

    def failures(self) -> list[str]:
        found = [f"healthy: {name} in {count} looks" for name, count in sorted(self.alarms.items())]
        return found + [f"healthy: there was not one of {name}" for name in WORK if not self.done[name]]


def healthy(drill: Drill, cluster: DrillCluster, load: Load, minutes: float, now_s: Callable[[], float]) -> Health:
    """Raises what a step raises that does not end: then the cluster was not healthy."""
    began_s, done = now_s(), Counter[str]()
    until_s = began_s + 60 * minutes
    for name, step in cycle(zip(WORK, (_roll, _reassign, _rebalance), strict=True)):
        if now_s() >= until_s and all(done[one] for one in WORK):
            break
        step(cluster, load)
        done[name] += 1
        alarms = health_of(drill.sights, began_s, now_s(), done).alarms
        drill.say(f"{now_s():7.1f} s  {name}; alarms: {', '.join(sorted(alarms)) or 'none'}")
        _pause(min(now_s() + BETWEEN_S, max(until_s, now_s() + POLL_S)), now_s)
    return health_of(drill.sights, began_s, now_s(), done)


def health_of(sights: Sights, began_s: float, ended_s: float, done: Counter[str]) -> Health:
    looks, alarms, of_machine = Counter[str](), Counter[str](), Counter[str]()
    first: dict[str, str] = {}
    for look in sights.looks:
        if look.began_s < began_s or look.ended_s > ended_s:
            continue
        looks[look.watcher] += 1
        names = {one.name for one in look.told if not one.calm} | (
            {f"trouble: {look.trouble}"} if look.trouble else set()
        )
        for name in names:
            (of_machine if name in OF_THE_MACHINE else alarms)[f"{look.watcher} {name}"] += 1
            subjects = sorted(one.subject for one in look.told if one.name == name)
            first.setdefault(f"{look.watcher} {name}", f"{look.ended_s:.1f} s  {look.watcher} {name} {subjects[:3]}")
    return Health(
        minutes=(ended_s - began_s) / 60, looks=looks, alarms=alarms, of_machine=of_machine, done=done,
        first=tuple(first.values()),
    )  # fmt: skip


def _pause(until_s: float, now_s: Callable[[], float]) -> None:
    while now_s() < until_s:
        time.sleep(POLL_S)


def _roll(cluster: DrillCluster, _load: Load) -> None:
    """Each node is stopped in order and started, and the next one waits until all replicas are in sync."""
    for node in cluster.nodes.ids:
        cluster.restart(node, IN_SYNC_S)
        cluster.wait_healthy(IN_SYNC_S)
        for topic in (TOPIC, PAYMENTS):
            cluster.wait_in_sync(topic, IN_SYNC_S)


def _reassign(cluster: DrillCluster, _load: Load) -> None:
    """A partition leaves a broker, and comes back."""
    admin = cluster.client.admin
    replicas = admin.describe_topic(TOPIC).partitions[0].replicas
    for target in (replicas[:2], replicas):
        admin.alter_partition_reassignments({(TOPIC, 0): target})
        wait_until(lambda: not admin.list_partition_reassignments(), IN_SYNC_S, "the reassignment to end")
    cluster.wait_in_sync(TOPIC, IN_SYNC_S)


def _rebalance(_cluster: DrillCluster, load: Load) -> None:
    """A third member joins the group, reads for a while, and leaves."""

    def read(client: Cluster, is_over: Callable[[], bool], note: Callable[[], None]) -> None:
        with client.consumer([TOPIC, PAYMENTS], group=GROUP, enable_auto_commit=False) as consumer:
            while not is_over():
                if consumer.poll(timeout_ms=500):
                    consumer.commit()
                    note()

    end = load.work("read more", read)
    time.sleep(BETWEEN_S)
    end()
