"""Clients of others log in at a real node: users of the metadata, certificates from files."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from authority import Authority, client_context
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from secured_node import WAIT_S, make_user, secured_node, writes_and_reads

PASSWORD = 'p"\\;,=%+ w'  # signs that some clients escape
USER = "ops,eu=1"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


class Secured:
    def __init__(self, address: str, ca: Path) -> None:
        self.address, self.ca = address, ca

    def settings(self, mechanism: str, name: str = USER, password: str = PASSWORD) -> dict[str, str]:
        """librdkafka's."""
        return {
            "bootstrap.servers": self.address, "security.protocol": "SASL_SSL", "ssl.ca.location": str(self.ca),
            "sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password,
        }  # fmt: skip


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("node")
    authority = Authority(folder)
    more = f"ssl.keystore.location={authority.issue('node').pem}\nsasl.enabled.mechanisms={','.join(MECHANISMS)}\n"
    with secured_node(folder, "SASL_SSL", more) as (node, address):
        make_user(node.address, USER, PASSWORD)
        yield Secured(address, authority.ca)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(secured: Secured, mechanism: str) -> None:
    assert writes_and_reads(secured.settings(mechanism), f"rd-{mechanism}") == b"hello"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(secured: Secured, mechanism: str) -> None:
    """It sends the name of SCRAM as it stands, so who uses it escapes it."""
    name = USER if mechanism == "PLAIN" else USER.replace("=", "=3D").replace(",", "=2C")
    settings = {
        "bootstrap_servers": secured.address, "security_protocol": "SASL_SSL", "ssl_cafile": str(secured.ca),
        "sasl_mechanism": mechanism, "sasl_plain_username": name, "sasl_plain_password": PASSWORD,
    }  # fmt: skip
    topic = f"python-{mechanism}"
    producer = KafkaProducer(**settings)
    producer.send(topic, b"hello").get(WAIT_S)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000, **settings)
    assert next(consumer).value == b"hello"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(secured: Secured, mechanism: str) -> None:
    async def scenario() -> int:
        producer = AIOKafkaProducer(
            bootstrap_servers=secured.address, security_protocol="SASL_SSL", ssl_context=client_context(secured.ca),
            sasl_mechanism=mechanism, sasl_plain_username=USER, sasl_plain_password=PASSWORD,
        )  # fmt: skip
        await producer.start()
        try:
            written = await producer.send_and_wait(f"aio-{mechanism}", b"hello")
            return int(written.offset)
        finally:
            await producer.stop()

    assert asyncio.run(scenario()) == 0


def _error_of(settings: dict[str, str], code: int) -> KafkaError:
    """What the application is told, within 10 s."""
    errors: list[KafkaError] = []
    client = Producer({**settings, "error_cb": errors.append, "log_level": 0})
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        client.poll(0.1)
        for error in errors:
            if error.code() == code:
                return error
    raise AssertionError(f"no such error among {errors}")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [(USER, "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_login_is_a_clear_error(secured: Secured, mechanism: str, name: str, password: str) -> None:
    error = _error_of(secured.settings(mechanism, name, password), KafkaError._AUTHENTICATION)
    assert f"invalid credentials with SASL mechanism {mechanism}" in error.str()


def test_a_foreign_authority_is_refused_before_a_password_is_sent(secured: Secured, tmp_path: Path) -> None:
    settings = {**secured.settings("PLAIN"), "ssl.ca.location": str(Authority(tmp_path).ca)}
    assert "certificate verify failed" in _error_of(settings, KafkaError._SSL).str()


def test_without_sasl_nobody_is_served(secured: Secured) -> None:
    settings = {"bootstrap.servers": secured.address, "security.protocol": "SSL", "ssl.ca.location": str(secured.ca)}
    with pytest.raises(KafkaException):
        AdminClient(settings).list_topics(timeout=3)


def _served_name(port: int, context: ssl.SSLContext, wanted: str) -> str:
    """Of the certificate that new connections get, once it is `wanted`, or after some seconds."""
    until_s = time.monotonic() + 8  # less than the node's own looks at its files are apart
    while True:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            shown = connection.getpeercert() or {}
        (((_, name),),) = shown["subject"]  # type: ignore[misc, index]
        if name == wanted or time.monotonic() > until_s:
            return str(name)


def test_mutual_tls_and_a_renewed_certificate(tmp_path: Path) -> None:
    """A client shows its certificate; the node's own one is replaced while it runs."""
    authority = Authority(tmp_path)
    pair = authority.issue("node")
    more = (
        f"ssl.keystore.location={pair.pem}\nssl.truststore.location={authority.ca}\nssl.client.auth=required\n"
        "ssl.allow.dn.changes=true\n"
    )
    with secured_node(tmp_path, "SSL", more) as (node, address):
        shown = authority.issue("ada")
        settings = {
            "bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.location": str(authority.ca),
            "ssl.certificate.location": str(shown.pem), "ssl.key.location": str(shown.pem),
        }  # fmt: skip
        assert writes_and_reads(settings, "mutual") == b"hello"
        port = int(address.rpartition(":")[2])
        context = client_context(authority.ca, shown)
        assert _served_name(port, context, "node") == "node"
        pair.pem.write_bytes(authority.issue("renewed").pem.read_bytes())
        node.hang_up()
        assert _served_name(port, context, "renewed") == "renewed", node.log()
        assert "SECURE: new connections get certificate generation 2" in node.log()
