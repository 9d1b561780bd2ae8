"""Scripted faults: the disk of a leader hangs, or does not give back a partition; others must lead soon.

Each waits until the cluster is healthy. If no other kind of fault strikes in this run (`alone`), the leadership must
move in time while the disk stays sick, without waiting for the end of the faults:

- leader-leaves-a-hung-disk: no partition that has another replica in sync is led by the broker, and the quorum is led
  by another node, HANG_LIMIT_MS after its disk began to hang.
- leader-leaves-unreadable-log: the partition is led by another broker READ_LIMIT_MS after a read met the error.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DATA, DIRECTORIES
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, let_pass, run_script
from jepsen.sim.strikes.stage import Stage, Strike
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.ids import NO_NODE

STALL_MS = 3_000  # the default of log.dir.stall.ms
HANG_LIMIT_MS = STALL_MS + 3_000
READ_LIMIT_MS = 3_000
_HEALTHY_MS = 15_000
_ANY_TIME = 1  # every record is younger: the search reads the log from its start


def sick_leader_strikes(stage: Stage[SimCluster], *, alone: bool) -> Mapping[str, Strike]:
    """alone: nothing else strikes in this run."""
    cluster, rng = stage.cluster, stage.rng
    return {
        "hung-leader": lambda: run_script(cluster, hung_leader(cluster, rng, alone)),
        "unreadable-leader": lambda: run_script(cluster, unreadable_leader(cluster, rng, alone)),
    }


def hung_leader(cluster: SimCluster, rng: random.Random, alone: bool) -> Script:
    """The disk of a broker, or of the active controller, hangs and never answers again."""
    yield cluster.is_healthy, _HEALTHY_MS
    controller = cluster.active_controller()
    assert controller is not None, "healthy"
    of_quorum = rng.random() < 0.4
    victim = controller if of_quorum else rng.choice(cluster.brokers)
    try:
        _expect_crash(cluster, victim)
        victim.disk.hang.begin(DATA, reads=rng.random() < 0.5)
        moved = (lambda: _leads_quorum(cluster, victim)) if of_quorum else (lambda: _leads_any(cluster, victim))
        yield from _must_move(cluster, victim, moved, HANG_LIMIT_MS, "leader-leaves-a-hung-disk", alone=alone)
        yield from let_pass(cluster, rng.randint(0, 2_000))
    finally:
        victim.kill()
        victim.disk.hang.release()
        cluster.invariants.crashes_expected.pop(victim.host, None)
        bring_back(victim)


def unreadable_leader(cluster: SimCluster, rng: random.Random, alone: bool) -> Script:
    """Reads of one partition fail at its leader, and a reader asks for its first record."""
    yield cluster.is_healthy, _HEALTHY_MS
    led = [
        (topic.name, index)
        for topic in cluster.image.sorted_topics()
        for index, partition in topic.sorted_partitions()
        if partition.leader != NO_NODE
    ]
    if not led:
        return
    topic, index = rng.choice(led)
    victim = cluster.leader_of(topic, index)
    if victim is None or victim.node is None or victim.node.broker is None or victim.loop is None:
        return
    paths, met = tuple(f"{directory}/{topic}-{index}/" for directory in DIRECTORIES), list[bool]()

    def fault(operation: Operation) -> Fault | None:
        if operation.kind == "pread" and operation.path.startswith(paths):
            met.append(True)
            return Fail(errno.EIO)
        return None

    remove = victim.fault_plans.add(fault)
    queries = victim.node.broker.data_plane.offset_queries
    try:
        _expect_crash(cluster, victim)
        victim.loop.create_task(queries.list_offset(topic, index, _ANY_TIME))
        yield lambda: bool(met), READ_LIMIT_MS
        leads = lambda: cluster.leader_of(topic, index) in (victim, None)  # noqa: E731
        yield from _must_move(cluster, victim, leads, READ_LIMIT_MS, "leader-leaves-unreadable-log", alone=alone)
        yield from let_pass(cluster, rng.randint(0, 2_000))
    finally:
        victim.kill()
        remove()
        cluster.invariants.crashes_expected.pop(victim.host, None)
        bring_back(victim)


def _must_move(
    cluster: SimCluster, victim: Machine, leads: Callable[[], bool], limit_ms: int, name: str, *, alone: bool
) -> Script:
    """leads: the victim still does, or nobody."""
    until_ns = cluster.scheduler.now_ns + limit_ms * NS_PER_MS
    yield lambda: not leads() or cluster.scheduler.now_ns >= until_ns, limit_ms + 1_000
    if leads() and alone:
        cluster.findings.broken(name, f"{victim.host} still leads after {limit_ms} ms; {cluster.problems()}")


def _leads_quorum(cluster: SimCluster, victim: Machine) -> bool:
    return cluster.active_controller() in (victim, None)


def _leads_any(cluster: SimCluster, victim: Machine) -> bool:
    """Whether it leads a partition that has another replica in sync, or such a partition has no leader."""
    return any(
        partition.leader in (victim.node_id, NO_NODE) and set(partition.isr) - {victim.node_id}
        for topic in cluster.image.sorted_topics()
        for _, partition in topic.sorted_partitions()
    )


def _expect_crash(cluster: SimCluster, victim: Machine) -> None:
    cluster.invariants.crashes_expected[victim.host] = None
