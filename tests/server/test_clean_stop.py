"""When a stop leaves a clean-shutdown marker: whole simulated nodes, stopped at awkward moments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk_faults import Fail
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DATA, METADATA_LOG
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from tests.rules import rule

MARKER = f"{DATA}/{CLEAN_SHUTDOWN}"


@pytest.fixture
def cluster() -> Iterator[SimCluster]:
    made = SimCluster(seed=5)
    made.start()
    assert until(made, made.is_healthy)
    yield made
    for machine in made.machines.values():
        if machine.loop is not None:
            machine.loop.kill()
    killed_coroutines.empty()


def until(cluster: SimCluster, reached: Callable[[], bool], within_ms: int = 30_000) -> bool:
    until_ns = cluster.scheduler.now_ns + within_ms * NS_PER_MS
    return cluster.scheduler.run_while(lambda: not reached(), until_ns)


def stopped(cluster: SimCluster, machine: Machine) -> bool:
    machine.stop()
    return until(cluster, lambda: not machine.alive)


def marker(machine: Machine) -> int | None:
    """The broker epoch in the last stop's marker; None if there is no marker."""
    if not machine.disk.exists(MARKER):
        return None
    return int(json.loads(machine.disk.read_bytes(MARKER))["brokerEpoch"])


@pytest.mark.parametrize("host", ["b1", "c1"])
def test_a_clean_stop_leaves_a_marker_and_the_quorums_recovery_point(cluster: SimCluster, host: str) -> None:
    machine = cluster.machines[host]
    assert machine.node is not None
    broker, driver = machine.node.broker, machine.node.driver
    assert driver is not None and stopped(cluster, machine)
    assert marker(machine) == (-1 if broker is None else broker.lifecycle.broker_epoch)
    points = OffsetFile(machine.disk, f"{METADATA_LOG}/{RECOVERY_POINTS}").offsets
    assert points == {METADATA_PARTITION: driver.end_offset}
    assert METADATA_PARTITION not in OffsetFile(machine.disk, f"{DATA}/{RECOVERY_POINTS}").offsets


@pytest.mark.parametrize("host", ["b1", "c1"])
def test_no_marker_if_the_quorum_could_not_close_its_log(cluster: SimCluster, host: str) -> None:
    machine = cluster.machines[host]
    machine.disk.faults = lambda operation: Fail() if operation.path.startswith(f"{METADATA_LOG}/recovery") else None
    assert stopped(cluster, machine)
    assert marker(machine) is None


def opening(machine: Machine) -> bool:
    return machine.node is not None and machine.node.broker is not None and machine.node.driver is not None


@rule("storage 3.1", "log 8.2")
def test_no_marker_if_logs_were_left_unrecovered(cluster: SimCluster) -> None:
    """A stop right after an unclean start: logs that were not opened yet may be torn."""
    machine = cluster.machines["b1"]
    machine.power_cut()
    machine.start()
    assert until(cluster, lambda: opening(machine))
    assert machine.node is not None and machine.node.broker is not None
    assert not machine.node.broker.data_plane.logs_to_open.done
    assert stopped(cluster, machine)
    assert marker(machine) is None


def test_the_marker_stays_if_the_start_after_a_clean_stop_is_aborted(cluster: SimCluster) -> None:
    machine = cluster.machines["b1"]
    assert stopped(cluster, machine)
    epoch = marker(machine)
    machine.start()
    assert until(cluster, lambda: opening(machine) and machine.node.driver.end_offset > 0)  # type: ignore[union-attr]
    assert machine.node is not None and machine.node.broker is not None
    assert machine.node.broker.lifecycle.broker_epoch < 0
    assert stopped(cluster, machine)
    assert epoch is not None and marker(machine) == epoch
