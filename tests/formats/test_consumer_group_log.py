"""What a broker writes of a group of the consumer protocol: Kafka's dump tool and `log dump` say the same of it."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from quorumlog.records import decode_batch, headers
from quorumlog.testing import LocalCluster
from quorumlog_cli.main import main
from tests.formats.kafka_dump import dump, kafka
from tests.formats.test_kafka_coordinator_records import shown

CONFIG = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
OF_CONSUMER_GROUPS = {3, 5, 6, 7, 8, 16}  # types of records
OFFSET = 1
WAIT_S = 30.0


def member(cluster: LocalCluster, **more: str) -> Any:
    settings = {"group.id": "g", "group.protocol": "consumer", "auto.offset.reset": "earliest", "log_level": 0}
    return Consumer({"bootstrap.servers": cluster.bootstrap_servers, **settings, **more})


def assigned(one: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not one.assignment():
        assert time.monotonic() < deadline, "no assignment"
        one.poll(0.1)


def group_comes_and_goes(cluster: LocalCluster, topic: str) -> None:
    """The static one last: its partition is kept for it after it has left."""
    with cluster.client.producer() as producer:
        producer.send(topic, b"value")
    expression, static = ({"group.remote.assignor": "range"}, {"group.instance.id": "i1"})
    for topics, more in (([f"^{topic}.*"], expression), ([topic], static)):
        one = member(cluster, **more)
        one.subscribe(topics)
        assigned(one)
        one.close()


@pytest.mark.timeout(180)
def test_both_tools_read_the_log_of_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = kafka()
    with LocalCluster(tmp_path / "cluster", nodes=1, config=CONFIG, keep_data=True) as cluster:
        with cluster.topic("t", 1) as topic:
            group_comes_and_goes(cluster, topic.name)
    (path,) = (tmp_path / "cluster").rglob(f"__consumer_offsets-0/{0:020d}.log")
    data = path.read_bytes()
    keys = [record.key for header in headers(data) for record in decode_batch(data, header)]
    found = {struct.unpack_from(">h", key)[0] for key in keys if key is not None}
    assert found >= OF_CONSUMER_GROUPS, sorted(found)
    theirs = shown(dump(tool, [path], "--print-data-log", "--offsets-decoder"))
    assert len(theirs) == len(keys)
    assert main(["log", "dump", "--print-data-log", "--offsets-decoder", str(path)]) == 0
    assert shown(capsys.readouterr().out) == theirs
