"""`flush.messages` and `flush.ms` of a topic with `durability=replicated`, from its configuration to the disk."""

from __future__ import annotations

from typing import Any

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.logdirs.flush_timers import FLUSH_RETRY_MS
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE
from quorumlog_storage.log.log import Log
from quorumlog_storage.writer.worker import Answer, WorkerFull
from quorumlog_storage.writer.writer import CallJob, Job
from tests.rules import rule

NODES = (1, 2, 3)


def led(**config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(durability="replicated", **config)  # type: ignore[arg-type]
    cluster.wait_led(1)
    return cluster


def change(cluster: ReplicaCluster, name: str, value: str) -> None:
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=name, value=value))
    cluster.run_for(100)


def log_of(cluster: ReplicaCluster, node: int) -> Log:
    log = cluster.nodes[node].replicas[TOPIC_ID, 0].log
    assert log is not None
    return log


def synced(cluster: ReplicaCluster) -> list[int]:
    return [log_of(cluster, node).synced_end for node in NODES]


@rule("storage 1.21")
def test_nothing_is_synced_by_default() -> None:
    cluster = led()
    cluster.produce(1, *"abcde")
    cluster.run_for(10_000)
    assert synced(cluster) == [0, 0, 0]


def test_an_acknowledgement_waits_for_the_sync_of_every_replica() -> None:
    cluster = led(flush_messages="1")
    for number in range(3):
        cluster.produce(1, f"{number}")
        assert synced(cluster) == [number + 1] * 3


def test_every_replica_counts_for_itself() -> None:
    cluster = led(flush_messages="3")
    cluster.produce(1, "a", "b")
    assert synced(cluster) == [0, 0, 0]
    cluster.produce(1, "c")
    assert synced(cluster) == [3, 3, 3]


def test_an_acknowledged_record_outlives_all_machines() -> None:
    cluster = led(flush_messages="2")
    cluster.produce(1, "a", "b")
    for node in NODES:
        cluster.nodes[node].cut_power()
    for node in NODES:
        cluster.start(node)
    cluster.elect(2, (2,))
    cluster.wait_led(2)
    assert cluster.nodes[2].log_values() == ["a", "b"]


@rule("storage 1.21", "log 8.4")
@pytest.mark.parametrize("flush_ms", [0, 500, 2_000])
def test_an_append_is_synced_in_the_background_in_time(flush_ms: int) -> None:
    cluster = led(flush_ms=str(flush_ms))
    for value in "ab":  # the second one finds the timer of the first, or that it has gone off
        cluster.produce(1, value)
        if flush_ms:
            assert log_of(cluster, 1).synced_end == 0
    cluster.run_for(flush_ms + 100)
    assert synced(cluster) == [2, 2, 2]
    cluster.produce(1, "c")
    cluster.run_for(flush_ms + 100)
    assert synced(cluster) == [3, 3, 3]


def test_what_was_appended_before_a_stricter_setting_is_synced_with_it() -> None:
    cluster = led()
    cluster.produce(1, "a", "b")
    change(cluster, "flush.messages", "1")
    assert synced(cluster) == [2, 2, 2]
    assert cluster.core(1).counted_end == 2  # without another append
    change(cluster, "flush.messages", "100")
    cluster.produce(1, "c")
    assert synced(cluster) == [2, 2, 2]
    change(cluster, "flush.ms", "1000")
    assert synced(cluster) == [3, 3, 3]


@rule("log 1.12")
def test_a_deleted_topic_is_not_synced_any_more() -> None:
    cluster = led(flush_ms="1000")
    cluster.produce(1, "a")
    cluster.delete_topic()
    cluster.run_for(5_000)
    assert [node.failed for node in cluster.nodes.values()] == [[], [], []]


def test_a_stopped_directory_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = led(flush_ms="20")
    asked = _syncs_asked_for(cluster, monkeypatch)
    cluster.produce(1, "a")
    _worker(cluster).close()
    cluster.run_for(5_000)
    assert len(asked) == 1


def test_a_full_queue_is_asked_again_but_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = led(flush_ms="0")
    asked = _syncs_asked_for(cluster, monkeypatch, refused=3)
    cluster.produce(1, "a")
    cluster.run_for(2 * FLUSH_RETRY_MS + 50)
    assert (len(asked), synced(cluster)[0]) == (3, 0)
    cluster.run_for(FLUSH_RETRY_MS)
    assert (len(asked), synced(cluster)[0]) == (4, 1)


def _worker(cluster: ReplicaCluster) -> Any:
    queue = cluster.nodes[1].replicas[TOPIC_ID, 0].queue
    assert queue is not None
    return queue.directory.worker


def _syncs_asked_for(cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch, refused: int = 0) -> list[Job]:
    """The syncs that the leader's worker does from now on. refused: so many of the first find a full queue."""
    worker = _worker(cluster)
    asked: list[Job] = []
    submit = worker.submit

    def counted(job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        if isinstance(job, CallJob) and job.logs:
            asked.append(job)
            if len(asked) <= refused:
                raise WorkerFull(worker.path, "jobs", 1)
        submit(job, on_written, on_synced)

    monkeypatch.setattr(worker, "submit", counted)
    return asked
