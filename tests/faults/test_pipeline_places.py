"""Two places of the pipeline are inside of a coordinator: behind the record of a decision, and before its markers.

A batch is held there, its coordinator dies, and the batch is whole all the same. Tasks and driver are calls here,
without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jepsen.pipeline.nodes import Leaders, PipelineNodes, Restarter, pipeline_nodes
from jepsen.pipeline.places import Folder, Place
from quorumlog.client.blocking import Cluster
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.joint_delivery import JointDelivery
from quorumlog.spark.write.options import parse_write_options
from quorumlog.spark.write.sending.delivery import BatchOf
from quorumlog.testing.waiting import wait_until

TOPIC, GROUP = "sink", "spark/held"
TASKS, WAIT_S = 2, 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("places")


@pytest.fixture(scope="module")
def nodes(folder: Path) -> Iterator[PipelineNodes]:
    with pipeline_nodes(folder / "cluster", folder) as made:
        with Cluster(made.layout.bootstrap_servers, default_api_timeout_ms=60_000) as cluster:
            cluster.admin.create_topic(TOPIC, TASKS, 3)
        yield made


def batch_of(sequence: int) -> BatchOf:
    return BatchOf(group=GROUP, kind=JointKind.STREAM, location="/checkpoint", run="run", sequence=sequence)


def write(servers: str, sequence: int) -> None:
    """What two tasks and the driver do with a batch."""
    import pyarrow as pa

    given = {"bootstrap.servers": servers, "topic": TOPIC, "checkpointLocation": "/checkpoint"}
    options = parse_write_options(given, is_stream=True)
    assert options.once is not None
    batch, delivery = batch_of(sequence), JointDelivery(options, options.once)
    try:
        attempts = []
        for task in range(TASKS):
            attempt = delivery.begin(batch, bytes([sequence, task] * 8))
            assert attempt is not None
            with delivery.sender(attempt) as sender:
                assert sender.partition_count(TOPIC) == TASKS
                sender.queue(TOPIC, pa.record_batch({"value": [b"%d/%d" % (sequence, task)]}), task)
                sender.finish()
            attempts.append(attempt)
        delivery.commit(batch, attempts, {TOPIC: TASKS})
    finally:
        delivery.close()


def values(servers: str) -> list[str]:
    with Cluster(servers, default_api_timeout_ms=60_000) as cluster:
        found = cluster.consumer(TOPIC, start="earliest", stop="latest", isolation_level="read_committed")
        return sorted((record.value or b"").decode() for record in found)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("sequence", "place"), [(0, Place.RECORD), (1, Place.MARKERS)], ids=["record", "markers"])
def test_the_coordinator_dies_behind_its_decision(
    folder: Path, nodes: PipelineNodes, sequence: int, place: Place
) -> None:
    servers, places = nodes.layout.bootstrap_servers, Folder(folder)
    before = values(servers)
    places.hold(place)
    with ThreadPoolExecutor(1) as driver:
        written = driver.submit(write, servers, sequence)
        wait_until(lambda: places.is_reached(place) or written.done(), WAIT_S, place.value)
        if written.done():
            written.result()
        assert places.is_reached(place)
        assert values(servers) == before, "decided, and no marker is written"
        restarter = Restarter(nodes)
        restarter.kill(Leaders(nodes).coordinator(GROUP), 0.0)
        places.release(place)
        written.result(WAIT_S)
        restarter.wait()
    assert values(servers) == sorted([*before, *(f"{sequence}/{task}" for task in range(TASKS))])
