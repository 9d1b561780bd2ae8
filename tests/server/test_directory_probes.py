"""Whole simulated nodes whose log directory takes no changes any more while nobody writes to it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DATA
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog_server.directories.directory_probes import PROBE_INTERVAL_MS
from quorumlog_storage.directory.directory import PROBE_NAME
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from tests.rules import rule

MOVED_MS = 3_000  # from the fault until others lead


@pytest.fixture
def cluster() -> Iterator[SimCluster]:
    made = SimCluster(seed=11)
    made.start()
    assert until(made, made.is_healthy)
    yield made
    for machine in made.machines.values():
        if machine.loop is not None:
            machine.loop.kill()
    killed_coroutines.empty()


def until(cluster: SimCluster, reached: Callable[[], bool], within_ms: int = 30_000) -> bool:
    scheduler = cluster.scheduler
    came = scheduler.run_while(lambda: not reached(), scheduler.now_ns + within_ms * NS_PER_MS)
    assert not cluster.findings, cluster.findings.found
    return came


def is_offline(machine: Machine) -> bool:
    return machine.node is None or any(life.is_offline for life in machine.node.lives)


def probe_fails(operation: Operation) -> Fault | None:
    return Fail(errno.EROFS) if operation.path == f"{DATA}/{PROBE_NAME}" else None


@rule("storage 7.8")
def test_a_read_only_directory_is_offline_although_nobody_writes_to_it(cluster: SimCluster) -> None:
    victim = cluster.brokers[0]
    cluster.invariants.crashes_expected[victim.host] = None
    victim.fault_plans.add(probe_fails)
    assert until(cluster, lambda: is_offline(victim), PROBE_INTERVAL_MS + 200)
    assert until(cluster, lambda: not cluster.image.brokers[victim.node_id].active, MOVED_MS)


def test_a_directory_whose_files_are_gone_is_offline(cluster: SimCluster) -> None:
    """No call of the node's disk fails by that: only the probe sees it."""
    victim = cluster.brokers[0]
    cluster.invariants.crashes_expected[victim.host] = None
    victim.disk.unlink(f"{DATA}/{META_PROPERTIES}")
    assert until(cluster, lambda: is_offline(victim), PROBE_INTERVAL_MS + 200)


def test_a_sound_directory_is_probed_without_end(cluster: SimCluster) -> None:
    probes: list[str] = []

    def count(operation: Operation) -> None:
        if operation.path.endswith(PROBE_NAME) and operation.kind == "unlink":
            probes.append(operation.path)

    cluster.brokers[0].fault_plans.add(count)
    until(cluster, lambda: False, 5 * PROBE_INTERVAL_MS)
    assert len(probes) in (4, 5) and not is_offline(cluster.brokers[0])


def test_a_probe_that_hangs_is_a_hanging_disk(cluster: SimCluster) -> None:
    victim = cluster.brokers[0]
    cluster.invariants.crashes_expected[victim.host] = None
    victim.disk.hang.begin(f"{DATA}/{PROBE_NAME}", reads=False)
    assert until(cluster, lambda: is_offline(victim), PROBE_INTERVAL_MS + 3_000 + 500)
