"""Every simulated process ends with its test: its coroutines are dropped without warnings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import replica_cluster

from jepsen.sim.time import killed_coroutines


@pytest.fixture(autouse=True)
def _clusters_end_with_their_test() -> Iterator[None]:
    yield
    while replica_cluster.clusters:
        replica_cluster.clusters.pop().end()


@pytest.fixture(scope="module", autouse=True)
def _graves_are_emptied() -> Iterator[None]:
    yield
    killed_coroutines.empty()
