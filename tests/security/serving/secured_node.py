"""A real node whose listener SECURE is protected, beside a plain one, CLIENT, by which a test sets users up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from quorumlog.testing.ports import PortPicker
from tests.live.one_process import OneProcess, format_alone

WAIT_S = 30


@contextmanager
def secured_node(
    folder: Path, protocol: str, more: str, *, grpc: bool = False, cluster_id: str = "c"
) -> Iterator[tuple[OneProcess, str]]:
    """The node, and HOST:PORT of SECURE. more: lines of its configuration. grpc: with GRPC_SECURE, protected alike."""
    picker = PortPicker()
    first, second = picker.pick(2)
    path = folder / "server.properties"
    by_grpc = (",GRPC_SECURE://localhost:0", f",GRPC_SECURE:{protocol}") if grpc else ("", "")
    path.write_text(
        f"node.id=1\nlog.dirs={folder}/a\nmetrics.port=0\n"
        f"listeners=CLIENT://127.0.0.1:0,SECURE://localhost:{second.client},INTERNAL://127.0.0.1:{first.internal}"
        f"{by_grpc[0]}\nlistener.security.protocol.map=SECURE:{protocol}{by_grpc[1]}\nallow.anonymous.listeners=CLIENT\n"
        f"controller.quorum.voters=1@127.0.0.1:{first.internal}\noffsets.topic.replication.factor=1\n{more}"
    )
    format_alone(path, cluster_id)
    try:
        with OneProcess(path) as node:
            yield node, f"localhost:{second.client}"
    finally:
        picker.close()


def make_user(address: str, name: str, password: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        wanted = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), password.encode())
        for future in admin.alter_user_scram_credentials([wanted]).values():
            future.result(WAIT_S)


def writes_and_reads(settings: dict[str, str], topic: str) -> bytes | None:
    """Of one record, by librdkafka."""
    producer = Producer(settings)
    producer.produce(topic, b"hello")
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({**settings, "group.id": f"of {topic}", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(WAIT_S)
        assert message is not None and message.error() is None, message and message.error()
        value: bytes | None = message.value()
        return value
    finally:
        consumer.close()
