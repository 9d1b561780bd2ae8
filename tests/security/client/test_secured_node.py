"""Our clients log in at a node of ours, whose users are those of the metadata, and its logins end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import AuthenticationFailed
from quorumlog.testing.waiting import wait_until
from tests.security.client.issuer_of_certificates import Authority
from tests.security.serving.secured_node import make_user, secured_node

USER, PASSWORD = "ops,eu=1", 'p"\\;,=%+ w'  # signs that some clients escape
REAUTH_MS = 4_000
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """The address, and the options of TLS."""
    folder = tmp_path_factory.mktemp("node")
    own = Authority(folder, "own")
    more = (
        f"ssl.keystore.location={own.issue('node', hosts=('localhost',))}\n"
        f"sasl.enabled.mechanisms={','.join(MECHANISMS)}\n"
        f"connections.max.reauth.ms={REAUTH_MS}\n"
    )
    with secured_node(folder, "SASL_SSL", more) as (node, address):
        make_user(node.address, USER, PASSWORD)
        yield address, {"security_protocol": "SASL_SSL", "ssl_truststore_location": str(own.path)}


def login(mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": password}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_go_round(secured: tuple[str, dict[str, Any]], mechanism: str) -> None:
    address, tls = secured
    topic = f"round-{mechanism}"
    with Cluster(address, **tls, **login(mechanism)) as cluster:
        cluster.admin.create_topic(topic, partitions=2, replication=1)
        with cluster.producer() as producer:
            sent = [producer.send(topic, b"%d" % number) for number in range(200)]
            assert all(one.result(10).offset >= 0 for one in sent)
        with cluster.consumer(topic, group=topic, stop="latest") as consumer:
            read = [record.value for record in consumer]
        assert sorted(read) == sorted(b"%d" % number for number in range(200))
        with cluster.consumer(topic, group=topic, stop="latest") as consumer:
            assert not list(consumer), "the offsets were not committed"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused(secured: tuple[str, dict[str, Any]], mechanism: str) -> None:
    address, tls = secured
    began_s = time.monotonic()
    with Cluster(address, **tls, **login(mechanism, "wrong")) as cluster:
        with pytest.raises(AuthenticationFailed, match="sasl_password"):
            cluster.admin.list_topics()
    assert time.monotonic() - began_s < 10


def test_a_login_outlives_its_end(secured: tuple[str, dict[str, Any]]) -> None:
    """The node closes a connection whose login was not renewed at the next request."""
    address, tls = secured
    with Cluster(address, **tls, **login("SCRAM-SHA-512")) as cluster:
        cluster.admin.list_topics()
        lanes = [connection._lane for connection in cluster.admin._client._link._connections.values()]
        sockets = [one for lane in lanes for one in (lane._ordered, *lane._pool) if one is not None]
        began_s = time.monotonic()
        wait_until(lambda: time.monotonic() - began_s > 2.5 * REAUTH_MS / 1000, 30.0, "two lifetimes")
        cluster.admin.list_topics()
        assert sockets and all(one._lifetime_ms > 0 and not one.ended for one in sockets)
