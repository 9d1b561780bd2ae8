"""Real processes, killed repeatedly under a default producer: each record is stored once, and in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.client.blocking import Producer, SendFuture
from quorumlog.testing import LocalCluster
from quorumlog.testing.topic import LocalTopic

KILLS = 5
PARTITIONS = 3
RECORDS_BETWEEN = 600
UNDER_WAY = 200  # unacknowledged records, so that a kill hits some
SEND_TIMEOUT_S = 60.0


@pytest.mark.timeout(240)
def test_five_kills_leave_one_copy_of_each_record_in_order(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster, cluster.topic("numbers", partitions=PARTITIONS) as topic:
        sent: list[SendFuture] = []
        with cluster.client.producer(batch_size=2_000) as producer:
            send_some(producer, topic, sent)
            for kill in range(KILLS):
                victim = cluster.leader_of(topic, kill % PARTITIONS)
                send_some(producer, topic, sent)
                cluster.kill(victim)
                send_some(producer, topic, sent)
                cluster.restart(victim)
                cluster.wait_in_sync(topic)
            acknowledged = [future.result(SEND_TIMEOUT_S) for future in sent]
        stats = producer.stats
        assert (stats.acknowledged, stats.failed, stats.duplicates_possible) == (len(sent), 0, 0)
        assert not any(metadata.may_be_duplicated for metadata in acknowledged)
        records = topic.records()
        for partition in range(PARTITIONS):
            stored = [record for record in records if record.partition == partition]
            numbers = [int(record.value or b"") for record in stored]
            assert numbers == list(range(partition, len(sent), PARTITIONS))
            for record, number in zip(stored, numbers, strict=True):
                assert acknowledged[number].offset == record.offset


def send_some(producer: Producer, topic: LocalTopic, sent: list[SendFuture]) -> None:
    """Sends further numbers; number n goes to partition n modulo the partition count."""
    for _ in range(RECORDS_BETWEEN):
        number = len(sent)
        sent.append(producer.send(topic.name, str(number), partition=number % PARTITIONS))
        if number >= UNDER_WAY:
            sent[number - UNDER_WAY].result(SEND_TIMEOUT_S)
