"""Expiry of idempotent producers: periodic work for every log does not delay appends."""

from __future__ import annotations

from typing import Any

import pytest
from replica_cluster import Node, ReplicaCluster

from quorumlog.clock import Clock
from quorumlog.configs.topic import RETENTION_PAUSED
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.logdirs.background_jobs import MAX_UNDER_WAY
from quorumlog_broker.produce.producer_expiry import expire_producers_for_ever
from quorumlog_broker.replicas.registry import Registry
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY, Image
from quorumlog_storage.log.log import Log
from tests.rules import rule

MANY = 40
OTHER_ID = bytes([8]) * 16
CONFIG = ReplicationConfig(producer_id_expiration_check_interval_ms=1_000, producer_id_expiration_ms=5_000)


class Expiry:
    """The logs of one node: which of them expired producers, and how many jobs were in the worker's queue at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = ReplicaCluster(nodes=(1,))
        self.cluster.create_topic((1,), partitions=MANY)
        self.node: Node = self.cluster.nodes[1]
        self.cluster.run_until(lambda: all(one.log is not None for one in self._replicas()) and bool(self._replicas()))
        self.looked_through: list[Log] = []
        self.registry = Registry()
        self.queued = self.most_queued = 0
        self.held: list[tuple[Any, Any, Any]] | None = None  # jobs that do not get their turn
        monkeypatch.setattr(Log, "expire_producers", lambda log, *_: self.looked_through.append(log))
        worker = self._replicas()[0].queue.directory.worker
        self._submit = worker.submit
        monkeypatch.setattr(worker, "submit", self._count)

    def _replicas(self) -> list[Any]:
        return list(self.node.replicas.values())

    def _count(self, job: Any, written: Any, synced: Any) -> None:
        def answered(outcome: Any) -> None:
            self.queued -= 1
            written(outcome)

        self.queued += 1
        self.most_queued = max(self.most_queued, self.queued)
        if self.held is None:
            self._submit(job, answered, synced)
        else:
            self.held.append((job, answered, synced))

    def release(self) -> None:
        held, self.held = self.held or [], None
        for job in held:
            self._submit(*job)

    def start(self, clock: Clock) -> None:
        self.registry.replicas = dict(self.node.replicas)
        registry = self.registry
        self.node.loop.deliver(
            lambda: self.node.nursery.start(expire_producers_for_ever(1, registry, CONFIG, clock), "expiry")
        )


@rule("storage 4.5")
def test_producers_of_all_logs_expire_a_few_logs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = Expiry(monkeypatch)
    expiry.start(expiry.node.clock)
    expiry.cluster.run_for(1_900)
    assert len(expiry.looked_through) == len(set(expiry.looked_through)) == MANY
    assert 0 < expiry.most_queued <= MAX_UNDER_WAY + 1, "beside a checkpoint"


def test_a_restored_cluster_forgets_nobody_until_the_hold_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = Expiry(monkeypatch)
    expiry.registry.image = held(True)
    expiry.start(expiry.node.clock)
    expiry.cluster.run_for(4_900)
    assert not expiry.looked_through
    expiry.registry.image = held(False)
    expiry.cluster.run_for(2_000)
    assert len(set(expiry.looked_through)) == MANY


def held(is_on: bool) -> Image:
    """Metadata with `retention.paused` for all brokers, or without it."""
    delta = Delta(EMPTY)
    value = "true" if is_on else None
    delta.replay(
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=RETENTION_PAUSED, value=value)
    )
    return delta.apply(1, 1)


def test_a_log_whose_turn_has_not_come_is_not_queued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = Expiry(monkeypatch)
    expiry.held = []
    expiry.start(expiry.node.clock)
    expiry.cluster.run_for(3_500)
    expiry.release()
    expiry.cluster.run_for(100)
    assert len(expiry.looked_through) == len(set(expiry.looked_through)) == MANY
    expiry.cluster.run_for(1_000)
    assert len(expiry.looked_through) == 2 * MANY


def test_a_log_to_be_opened_does_not_wait_for_all_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader may just have died."""
    expiry = Expiry(monkeypatch)
    expiry.held = []
    expiry.start(expiry.node.clock)
    expiry.cluster.run_for(1_100)
    expiry.cluster.create_topic((1,), name="new", topic_id=OTHER_ID)
    expiry.cluster.run_for(10)
    expiry.release()
    expiry.cluster.run_until(lambda: expiry.node.replicas[OTHER_ID, 0].log is not None)
    assert 0 < len(expiry.looked_through) <= MAX_UNDER_WAY


def test_a_directory_that_fails_meanwhile_is_done_with(monkeypatch: pytest.MonkeyPatch) -> None:
    expiry = Expiry(monkeypatch)
    expiry.held = []
    expiry.start(expiry.node.clock)
    expiry.cluster.run_for(1_100)
    queue = expiry._replicas()[0].queue
    queue.generation.is_usable = False
    expiry.release()
    expiry.cluster.run_for(100)
    assert len(expiry.looked_through) <= 1
    queue.generation.is_usable = True
    expiry.cluster.run_for(1_000)
    assert len(expiry.looked_through) >= MANY, "the next round is a whole one"
