"""A simulated cluster that has worked for some seconds, without faults, and rests now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jepsen.sim.cluster import SimCluster
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.workload.workload import Workload

REST_S = 2  # until the clients have ended


@contextmanager
def calm_cluster(seconds: int, **options: Any) -> Iterator[SimCluster]:
    """seconds: virtual, of work. options: of SimCluster."""
    cluster = SimCluster(**options)
    workload = Workload(cluster)
    cluster.start()
    workload.start()
    cluster.scheduler.run_until(seconds * NS_PER_S)
    workload.stop()
    cluster.scheduler.run_until((seconds + REST_S) * NS_PER_S)
    assert not cluster.findings and workload.acked > 20
    yield cluster
    for machine in cluster.machines.values():
        if machine.loop is not None:
            machine.loop.kill()
    workload.loop.kill()
