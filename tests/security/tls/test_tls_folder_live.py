"""What `quorumlog tls` writes, as it stands: a real node at numbers, clients of others, and renewals while they run."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from bench.peers import kafka_tools
from bench.peers.kafka_tools import Unavailable, get_kafka
from quorumlog.security.tls.contexts import client_context
from quorumlog.security.tls.peer import fingerprint
from quorumlog.security.tls.settings import client_tls
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from tests.live.one_process import OneProcess, format_alone
from tests.security.serving.secured_node import WAIT_S, writes_and_reads

HOSTS = ("127.0.0.1", "::1")


class Served:
    """A node that takes clients with certificates of the folder only. at: HOST:PORT by host."""

    def __init__(self, folder: Path, node: OneProcess, at: dict[str, str]) -> None:
        self.folder, self.node, self.at = folder, node, at

    def librdkafka(self, host: str, name: str = "client-ada") -> dict[str, str]:
        """The file as it stands, and where."""
        lines = (self.folder / f"{name}.librdkafka.properties").read_text().splitlines()
        said = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        return {**said, "bootstrap.servers": self.at[host]}

    def context(self) -> ssl.SSLContext:
        """Ours, of the files as they are now."""
        return client_context(
            client_tls(
                {
                    "ssl.truststore.location": str(self.folder / "ca.pem"),
                    "ssl.keystore.location": str(self.folder / "client-ada.keystore.pem"),
                }
            )
        )

    def shown(self) -> str:
        """Fingerprint of the certificate that a new connection is shown."""
        return asyncio.run(self._shown())

    async def _shown(self) -> str:
        host, port = self.at[HOSTS[0]].rsplit(":", 1)
        context = self.context()
        async with asyncio.timeout(WAIT_S):
            _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return fingerprint(der)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    certs = tmp_path / "certs"
    assert main(["tls", "init", str(certs), "--node", f"1={','.join(HOSTS)}", "--client", "ada", "-o", "json"]) == 0
    picker = PortPicker()
    first, second, third = picker.pick(3)
    at = {"127.0.0.1": f"127.0.0.1:{second.client}", "::1": f"[::1]:{third.client}"}
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a\nmetrics.port=0\nallow.anonymous.listeners=CLIENT\n"
        f"listeners=CLIENT://127.0.0.1:0,FOUR://{at['127.0.0.1']},SIX://{at['::1']},"
        f"INTERNAL://127.0.0.1:{first.internal}\nlistener.security.protocol.map=FOUR:SSL,SIX:SSL\n"
        f"controller.quorum.voters=1@127.0.0.1:{first.internal}\noffsets.topic.replication.factor=1\n"
        f"ssl.keystore.location={certs}/node-1.keystore.pem\nssl.truststore.location={certs}/ca.pem\n"
        "ssl.client.auth=required\nssl.verify.strict=true\n"
    )
    format_alone(path)
    try:
        with OneProcess(path) as node:
            yield Served(certs, node, at)
    finally:
        picker.close()


def test_clients_connect_to_numbers_with_the_files_as_they_stand(served: Served) -> None:
    """strimzi/strimzi-kafka-operator#873, confluentinc/librdkafka#3801: people turned verification off."""
    for number, host in enumerate(HOSTS):
        assert writes_and_reads(served.librdkafka(host), f"rd-{number}") == b"hello"
        python = KafkaProducer(
            bootstrap_servers=served.at[host], security_protocol="SSL", ssl_cafile=str(served.folder / "ca.pem"),
            ssl_certfile=str(served.folder / "client-ada.pem"), ssl_keyfile=str(served.folder / "client-ada.key"),
        )  # fmt: skip
        python.send(f"python-{number}", b"hello").get(WAIT_S)
        python.close()
        asyncio.run(_by_aiokafka(served, host))


async def _by_aiokafka(served: Served, host: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=served.at[host], security_protocol="SSL", ssl_context=served.context()
    )
    await producer.start()
    try:
        await producer.send_and_wait("aio", b"hello")
    finally:
        await producer.stop()


def test_javas_tools_take_the_file_as_it_stands(served: Served) -> None:
    try:
        kafka = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    config = str(served.folder / "client-ada.properties")
    for number, host in enumerate(HOSTS):
        words = ("--bootstrap-server", served.at[host], "--command-config", config)
        kafka.run(kafka_tools.TOPICS, *words, "--create", "--topic", f"java-{number}")
        assert f"java-{number}" in kafka.run(kafka_tools.TOPICS, *words, "--list")


def renewed(served: Served, *words: str) -> None:
    assert main(["tls", "renew", str(served.folder), *words, "-o", "json"]) == 0
    served.node.hang_up()


def shows(served: Served, name: str = "node-1") -> Callable[[], bool]:
    """The node shows the certificate that the folder has."""
    pem = (served.folder / f"{name}.pem").read_text()
    want = fingerprint(ssl.PEM_cert_to_DER_cert(pem))
    return lambda: served.shown() == want


def test_certificates_and_authority_are_renewed_while_a_client_writes(served: Served) -> None:
    """One client keeps its connection and its old certificate through all; new ones always get in with the files of
    the folder; in the end the first authority counts no more."""
    assert shows(served)()
    old = served.context()
    lost: list[object] = []
    producer = Producer(served.librdkafka(HOSTS[0]))

    def write() -> None:
        producer.produce("kept", b"x", on_delivery=lambda error, _: lost.append(error) if error else None)
        assert producer.flush(WAIT_S) == 0

    write()
    renewed(served, "node-1")
    wait_until(shows(served), WAIT_S, "the node to show its new certificate")
    write()
    for step in (1, 2, 3):
        renewed(served, "--authority")
        wait_until(shows(served), WAIT_S, f"the node to show the certificate of step {step}")
        write()
        assert writes_and_reads(served.librdkafka(HOSTS[0]), f"step-{step}") == b"hello"
    wait_until(lambda: not _gets_in(served, old), WAIT_S, "the first authority to count no more")
    assert lost == []


def _gets_in(served: Served, context: ssl.SSLContext) -> bool:
    """With the certificate of the first authority, whichever the server has."""
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return asyncio.run(_answers(served, context))


async def _answers(served: Served, context: ssl.SSLContext) -> bool:
    host, port = served.at[HOSTS[0]].rsplit(":", 1)
    request = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"  # ApiVersions 0
    try:
        async with asyncio.timeout(WAIT_S):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(request)
            return bool(await reader.read(4))
    except (ssl.SSLError, ConnectionError):
        return False


def test_files_that_do_not_fit_change_nothing_and_are_told(served: Served) -> None:
    before = served.shown()
    path = served.folder / "node-1.keystore.pem"
    good = path.read_text()
    path.write_text(good[:-60])
    served.node.hang_up()
    wait_until(lambda: "the certificates in use stay" in served.node.log(), WAIT_S, "the node to say why")
    assert served.shown() == before and "a part of the text is missing" in served.node.log()
    assert "PRIVATE" not in served.node.log() and good.splitlines()[1] not in served.node.log()
    path.write_text(good)
    renewed(served)
    wait_until(shows(served), WAIT_S, "the node to take the mended file")
