"""What a client says, and what it does not send, where whoever reads the network could read it."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import pytest

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import ConfigError
from quorumlog.client.options import CommonOptions
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, ScramDeletion, ScramUpsertion
from quorumlog.rpc.transport import Address
from quorumlog.security.host import is_near

PASSWORD = "canary-7731"
FAR, NEAR = "10.0.0.1:9092", "127.0.0.1:9092,[::1]:9092,localhost:9092"
UPSERT = ScramUpsertion(name="ada", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"p" * 64)
SET = AlterUserScramCredentialsRequest(upsertions=(UPSERT,))
DELETE = AlterUserScramCredentialsRequest(deletions=(ScramDeletion(name="ada", mechanism=2),))


class Clock:
    def now_ms(self) -> int:
        return 0


class Sent(Exception):
    """The request left."""


class Transport:
    def connect(self, address: Address, **_more: Any) -> Any:
        self.address = address
        return self

    async def call(self, _request: Any, _timeout_ms: int) -> Any:
        raise Sent


def link(servers: str, protocol: str, mechanism: str = "") -> Link:
    login = {"sasl_mechanism": mechanism, "sasl_username": "ada", "sasl_password": PASSWORD} if mechanism else {}
    options = CommonOptions(bootstrap_servers=servers, security_protocol=protocol, **login)
    return Link(Transport(), options, clock=Clock(), rng=random.Random(1))  # type: ignore[arg-type]


WARNED = [
    ("SASL_PLAINTEXT", "PLAIN", FAR, True),
    ("SASL_PLAINTEXT", "PLAIN", f"{NEAR},{FAR}", True),
    ("SASL_PLAINTEXT", "PLAIN", NEAR, False),
    ("SASL_SSL", "PLAIN", FAR, False),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512", FAR, False),
    ("PLAINTEXT", "", FAR, False),
]


@pytest.mark.parametrize(("protocol", "mechanism", "servers", "warned"), WARNED)
def test_a_password_in_clear_is_warned_of(
    protocol: str, mechanism: str, servers: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        link(servers, protocol, mechanism)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == warned and PASSWORD not in caplog.text
    assert not warned or ("10.0.0.1:9092" in lines[0] and "security_protocol=SASL_SSL" in lines[0])


SENT = [
    ("clear", "PLAINTEXT", FAR, SET, False),
    ("clear with SCRAM", "SASL_PLAINTEXT", FAR, SET, False),
    ("TLS", "SASL_SSL", FAR, SET, True),
    ("TLS without a login", "SSL", FAR, SET, True),
    ("loopback", "PLAINTEXT", NEAR, SET, True),
    ("a deletion", "PLAINTEXT", FAR, DELETE, True),
]


@pytest.mark.parametrize(("protocol", "servers", "request_", "sent"), [c[1:] for c in SENT], ids=[c[0] for c in SENT])
def test_a_salted_password_goes_only_where_nobody_reads_it(
    protocol: str, servers: str, request_: Any, sent: bool
) -> None:
    one = link(servers, protocol, "SCRAM-SHA-512" if protocol.startswith("SASL") else "")
    with pytest.raises(Sent if sent else ConfigError) as found:
        asyncio.run(one.call_any(request_, 1_000))
    assert sent or ("10.0.0.1:9092 in clear, and nothing was sent" in str(found.value))


HOSTS = ["127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "localhost", "LOCALHOST"]


@pytest.mark.parametrize("host", HOSTS)
def test_loopback(host: str) -> None:
    assert is_near(host)
    assert not is_near(f"{host}.example.org") and not is_near("10.0.0.1") and not is_near("")
