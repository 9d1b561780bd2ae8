"""A broker with 20,000 replicas is killed: three real controllers fence it, and none of them is taken for dead.

`./dev bench fencing` shows it with 100,000 and with the figures. Here nothing depends on the machine's speed but the
time in which the quorum's followers must hear from the leader, which is therefore longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.quorum.fencing import BROKERS, CONTROLLERS, PARTITIONS_PER_TOPIC, Fencing, run
from quorumlog.records import headers
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_RECORD

REPLICAS = 20_000
FETCH_TIMEOUT_MS = 3_000
LONGEST_S = 60.0  # for the fence; it is some seconds even on a busy machine
MAX_RECORDS_PER_SLICE = ControllerConfig().max_slice_work // WORK_OF_A_RECORD + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fencing") / "cluster"


@pytest.fixture(scope="module")
def fencing(folder: Path) -> Iterator[Fencing]:
    yield run(folder, REPLICAS, {"controller.quorum.fetch.timeout.ms": str(FETCH_TIMEOUT_MS)})


def test_the_broker_is_fenced_without_an_election(fencing: Fencing) -> None:
    assert fencing.fencing.elections == 0
    assert fencing.fencing.seconds < LONGEST_S


def test_its_partitions_were_created_by_ordinary_requests_without_an_election(fencing: Fencing) -> None:
    assert fencing.creating.elections == 0
    assert set(fencing.turns) == {*CONTROLLERS, *BROKERS[:-1]}, "each survivor counted its turns"
    assert all(creating.longest_ms > 0 and fenced.longest_ms > 0 for creating, fenced in fencing.turns.values())


def test_a_topic_is_one_batch_and_the_fence_is_many_small_ones(fencing: Fencing, folder: Path) -> None:
    for node_id in CONTROLLERS:
        logs = sorted((folder / f"n{node_id}" / "data" / "__cluster_metadata-0").glob("*.log"))
        counts = [header.count for log in logs for header in headers(log.read_bytes())]
        large = [count for count in counts if count > MAX_RECORDS_PER_SLICE]
        assert large == [PARTITIONS_PER_TOPIC + 1] * (REPLICAS // PARTITIONS_PER_TOPIC), node_id
        assert sum(counts) > 2 * REPLICAS, "every partition was created and changed"
