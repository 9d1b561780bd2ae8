"""Whole simulated nodes whose disk hangs, or gives back some partition's bytes no more."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk_faults import Fail
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DATA
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS
from jepsen.sim.workload.workload import Workload
from quorumlog_quorum.metadata.registration import LOST

STALL_MS = 3_000  # the default of log.dir.stall.ms
MOVED_MS = 1_500  # from the failure until others lead


@pytest.fixture
def cluster() -> Iterator[SimCluster]:
    made = SimCluster(seed=11)
    made.start()
    clients = start_clients(made)
    yield made
    for machine in made.machines.values():
        if machine.loop is not None:
            machine.loop.kill()
    clients.kill()
    killed_coroutines.empty()


def start_clients(cluster: SimCluster) -> SimLoop:
    """Producers and consumers that work until the end of the test."""
    workload = Workload(cluster)
    workload.start()
    assert until(cluster, lambda: cluster.is_healthy() and workload.acked > 50)
    return workload.loop


def until(cluster: SimCluster, reached: Callable[[], bool], within_ms: int = 30_000) -> bool:
    """Whether it came true in time. Every invariant is checked on the way."""
    scheduler = cluster.scheduler
    came = scheduler.run_while(lambda: not reached(), scheduler.now_ns + within_ms * NS_PER_MS)
    assert not cluster.findings, cluster.findings.found
    return came


def led_by(cluster: SimCluster, machine: Machine) -> int:
    return sum(
        partition.leader == machine.node_id
        for topic in cluster.image.sorted_topics()
        for _, partition in topic.sorted_partitions()
    )


def leader(cluster: SimCluster) -> Machine:
    return max(cluster.brokers, key=lambda machine: led_by(cluster, machine))


def hang(cluster: SimCluster, machine: Machine, *, reads: bool = False) -> None:
    cluster.invariants.crashes_expected[machine.host] = None
    machine.disk.hang.begin(DATA, reads=reads)


@pytest.mark.parametrize("reads", [False, True])
def test_the_leader_of_partitions_gives_them_up_although_its_disk_never_answers(
    cluster: SimCluster, reads: bool
) -> None:
    victim = leader(cluster)
    hang(cluster, victim, reads=reads)
    assert not until(cluster, lambda: led_by(cluster, victim) == 0, STALL_MS - 200), "it had not its time"
    assert victim.node is not None and victim.node.broker is not None
    assert not victim.node.broker.lifecycle.fenced, "heartbeats do not wait for the disk"
    assert until(cluster, lambda: led_by(cluster, victim) == 0, STALL_MS // 10 + 200 + MOVED_MS)
    assert all(
        partition.leader >= 0 for topic in cluster.image.sorted_topics() for _, partition in topic.sorted_partitions()
    )


def test_the_leader_of_the_quorum_resigns_although_its_disk_never_answers(cluster: SimCluster) -> None:
    victim = cluster.active_controller()
    assert victim is not None
    hang(cluster, victim)
    assert until(cluster, lambda: cluster.active_controller() not in (None, victim), STALL_MS * 11 // 10 + MOVED_MS)
    assert until(cluster, lambda: not victim.alive), "its process stops by itself, without its disk"


def test_a_hang_shorter_than_the_limit_changes_nothing(cluster: SimCluster) -> None:
    victim = leader(cluster)
    led, lives = led_by(cluster, victim), [machine.life for machine in cluster.machines.values()]
    victim.disk.hang.begin(DATA, reads=True)
    until(cluster, lambda: False, STALL_MS - 500)
    victim.disk.hang.release()
    until(cluster, lambda: False, 2_000)
    assert victim.disk.hang.calls > 0 and led_by(cluster, victim) == led
    assert cluster.is_healthy() and [machine.life for machine in cluster.machines.values()] == lives


def test_a_process_that_was_stopped_does_not_blame_its_disk(cluster: SimCluster) -> None:
    """SIGSTOP in the middle of a call, for longer than the limit; the call returns soon after SIGCONT."""
    victim = leader(cluster)
    victim.disk.hang.begin(DATA, reads=False)
    assert until(cluster, lambda: victim.disk.hang.calls > 0)
    victim.pause()
    until(cluster, lambda: False, 3 * STALL_MS)
    victim.resume()
    until(cluster, lambda: False, STALL_MS // 2)
    victim.disk.hang.release()
    assert until(cluster, cluster.is_healthy)
    assert victim.life == 1, "it went on"


@pytest.mark.parametrize("power_fails", [False, True])
def test_after_the_hang_the_node_comes_back_in_sync(cluster: SimCluster, power_fails: bool) -> None:
    """Its log may hold what it wrote before the hang, in an epoch that is over: that is cut."""
    victim = leader(cluster)
    hang(cluster, victim)
    assert until(cluster, lambda: not victim.alive)
    if power_fails:
        victim.power_cut()
    victim.disk.hang.release()
    cluster.invariants.crashes_expected.pop(victim.host)
    victim.start()
    assert until(cluster, cluster.is_healthy)


def test_a_partition_whose_leader_cannot_read_is_led_by_another_and_comes_back_after_a_restart(
    cluster: SimCluster,
) -> None:
    victim = leader(cluster)
    topic, index = next(
        (topic, index)
        for topic in cluster.image.sorted_topics()
        for index, partition in topic.sorted_partitions()
        if partition.leader == victim.node_id
    )
    led = led_by(cluster, victim)
    path = f"{DATA}/{topic.name}-{index}/"
    repair = victim.fault_plans.add(
        lambda operation: Fail(errno.EIO) if operation.kind == "pread" and operation.path.startswith(path) else None
    )
    assert victim.node is not None and victim.node.broker is not None and victim.loop is not None
    queries = victim.node.broker.data_plane.offset_queries
    victim.loop.create_task(queries.list_offset(topic.name, index, 1))

    def partition():  # type: ignore[no-untyped-def]
        found = cluster.image.topic(topic.name)
        return None if found is None else found.partitions[index]

    assert until(cluster, lambda: partition().leader != victim.node_id, STALL_MS)
    assert partition().leader >= 0 and partition().directory(victim.node_id) == LOST
    assert led_by(cluster, victim) == led - 1 and victim.life == 1, "nothing else moves"
    until(cluster, lambda: False, 2_000)
    assert victim.node_id not in partition().isr
    victim.kill()
    repair()
    victim.start()
    assert until(cluster, cluster.is_healthy)
    assert partition().directory(victim.node_id) != LOST
