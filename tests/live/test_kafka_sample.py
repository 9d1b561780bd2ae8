"""A node starts from Kafka's own sample of a configuration, unchanged but for its ports, and serves everybody."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from quorumlog.testing.ports import PortPicker

WAIT_S = 30

# What config/server.properties of Kafka 4 sets.
SAMPLE = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:{controller}
listeners=PLAINTEXT://:{client},CONTROLLER://:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={folder}/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
MAIN = [sys.executable, "-P", "-m", "quorumlog_cli.main"]


def quorumlog(folder: Path, *words: str) -> str:
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*MAIN, *words], capture_output=True, text=True, cwd=folder, env=environment, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """HOST:PORT of the listener for clients of a node that serves."""
    picker = PortPicker()
    (ports,) = picker.pick(1)
    config = tmp_path / "server.properties"
    config.write_text(SAMPLE.format(client=ports.client, controller=ports.internal, folder=tmp_path))
    quorumlog(tmp_path, "storage", "format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(config))
    with (tmp_path / "node.log").open("w") as log:
        process = subprocess.Popen(
            [*MAIN, "server", "start", "-c", str(config)], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("LISTENING "), (tmp_path / "node.log").read_text()
        assert process.stdout.readline().startswith("READY "), (tmp_path / "node.log").read_text()
        yield f"localhost:{ports.client}"
    finally:
        process.kill()
        process.communicate()
        picker.close()


def test_clients_of_kafka_write_and_read(server: str) -> None:
    producer = Producer({"bootstrap.servers": server})
    producer.produce("words", b"hello")
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({"bootstrap.servers": server, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["words"])
        message = consumer.poll(WAIT_S)
        assert message is not None and message.value() == b"hello"
    finally:
        consumer.close()


def test_every_command_of_ours_gets_an_answer(server: str, tmp_path: Path) -> None:
    quorumlog(tmp_path, "topic", "create", "words", "-b", server)
    status = json.loads(quorumlog(tmp_path, "quorum", "status", "-b", server, "-o", "json"))
    assert status["leader"] == 1
    assert "metadata.version" in quorumlog(tmp_path, "feature", "describe", "-b", server)
    (broker,) = json.loads(quorumlog(tmp_path, "broker", "list", "-b", server, "-o", "json"))
    assert broker["state"] == "running" and broker["leaders"] == 1
