"""Our clients against an Apache Kafka that asks for TLS and logins: what works, and what is refused in 10 s."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.client.security.tokens import unsecured
from quorumlog.security.sasl.jaas import Module, write_jaas
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.terminal.errors import Exit
from quorumlog_storage.files.properties import render_properties
from tests.security.client.secure_kafka import (
    LISTENERS,
    ODD_PASSWORD,
    ODD_USER,
    PASSWORD,
    REAUTH_MS,
    USER,
    SecureKafka,
    secure_kafka,
)

LIMIT_S = 10.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("secure") / "kafka") as served:
        yield served


def password(mechanism: str, name: str = USER, secret: str = PASSWORD) -> dict[str, Any]:
    return {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": secret}


def jaas(mechanism: str, name: str = USER, secret: str = PASSWORD) -> dict[str, Any]:
    line = write_jaas(Module[mechanism.partition("-SHA-")[0]], {"username": name, "password": secret})
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": line}


TOKEN = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": write_jaas(Module.OAUTHBEARER, {"unsecuredLoginStringClaim_sub": USER}),
}


def options(kafka: SecureKafka, listener: str, given: dict[str, Any]) -> dict[str, Any]:
    """With the truststore where the listener speaks TLS."""
    kind = LISTENERS[listener]
    tls, sasl = kind.endswith("SSL"), kind.startswith("SASL")
    names = {
        (True, True): "SASL_SSL",
        (True, False): "SSL",
        (False, True): "SASL_PLAINTEXT",
        (False, False): "PLAINTEXT",
    }
    trust = {"ssl_truststore_location": str(kafka.ca)} if tls else {}
    return {"security_protocol": names[tls, sasl], **trust, **given}


def goes_round(kafka: SecureKafka, servers: str, topic: str, given: dict[str, Any]) -> None:
    """A topic is made, written, and read by a member of a group."""
    with Cluster(servers, **given) as cluster:
        cluster.admin.create_topic(topic, partitions=2, replication=1)
        with cluster.producer() as producer:
            sent = [producer.send(topic, b"%d" % number) for number in range(200)]
            assert all(one.result(10).offset >= 0 for one in sent)
        with cluster.consumer(topic, group=f"g-{topic}", stop="latest") as consumer:
            read = [record.value for record in consumer]
        assert sorted(read) == sorted(b"%d" % number for number in range(200))
        with cluster.consumer(topic, group=f"g-{topic}", stop="latest") as consumer:
            assert not list(consumer), "the offsets were not committed"
        assert {one.name for one in cluster.admin.list_topics()} >= {topic}


ROUND = [
    ("TLS", {}),
    ("LOGIN", password("PLAIN")),
    ("LOGIN", password("SCRAM-SHA-512")),
    ("SECURE", password("PLAIN")),
    ("SECURE", password("SCRAM-SHA-256")),
    ("SECURE", jaas("SCRAM-SHA-512")),
    ("SECURE", password("PLAIN", ODD_USER, ODD_PASSWORD)),
    ("SECURE", jaas("PLAIN", ODD_USER, ODD_PASSWORD)),
    ("SECURE", TOKEN),
]


@pytest.mark.parametrize(("listener", "given"), ROUND, ids=[f"{one[0]}-{number}" for number, one in enumerate(ROUND)])
def test_records_go_round(
    kafka: SecureKafka, listener: str, given: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    topic = f"round-{request.node.callspec.id.lower()}"
    goes_round(kafka, kafka.at[listener], topic, options(kafka, listener, given))


def test_a_client_shows_its_certificate(kafka: SecureKafka) -> None:
    given = options(kafka, "MUTUAL", {"ssl.keystore.location": str(kafka.alice_pem)})
    goes_round(kafka, kafka.at["MUTUAL"], "mutual", given)


def test_librdkafka_names(kafka: SecureKafka) -> None:
    given = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(kafka.ca),
    }
    with Cluster(kafka.at["SECURE"], **given) as cluster:
        assert cluster.admin.describe_cluster().cluster_id


def stranger(kafka: SecureKafka) -> dict[str, Any]:
    return {"ssl_keystore_location": str(kafka.foreign_pem)}


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("wrong password by PLAIN", "SECURE", password("PLAIN", USER, "wrong"), "sasl_password"),
    ("wrong password by SCRAM", "SECURE", password("SCRAM-SHA-512", USER, "wrong"), "sasl_password"),
    ("wrong user by PLAIN", "SECURE", password("PLAIN", "mallory"), "mallory"),
    ("wrong user by SCRAM", "LOGIN", password("SCRAM-SHA-256", "mallory"), "mallory"),
    ("system authorities", "TLS", {"ssl_truststore_location": ""}, "ssl_truststore_location"),
    ("wrong host", "WRONGHOST", {}, "ssl_endpoint_identification_algorithm"),
    ("no certificate", "MUTUAL", {}, "ssl_keystore_location"),
    ("TLS to a plaintext listener", "PLAINTEXT", {"security_protocol": "SSL"}, "security_protocol"),
    ("plaintext to TLS", "TLS", {"security_protocol": "PLAINTEXT", "ssl_truststore_location": ""}, "security_protocol"),
    (
        "login at a listener without one",
        "PLAINTEXT",
        {"security_protocol": "SASL_PLAINTEXT", **password("PLAIN")},
        "security_protocol",
    ),
    ("no login", "SECURE", {"security_protocol": "SSL"}, "security_protocol"),
    (
        "neither TLS nor login",
        "LOGIN",
        {"security_protocol": "PLAINTEXT"},
        "security_protocol",
    ),
]


@pytest.mark.parametrize(("what", "listener", "given", "says"), REFUSED, ids=[one[0] for one in REFUSED])
def test_a_refusal_is_clear_and_soon(
    kafka: SecureKafka, what: str, listener: str, given: dict[str, Any], says: str
) -> None:
    began_s = time.monotonic()
    with Cluster(kafka.at[listener], **options(kafka, listener, given)) as cluster:
        with pytest.raises(AuthenticationFailed) as refused:
            cluster.admin.describe_cluster()
    assert time.monotonic() - began_s < LIMIT_S
    assert says in str(refused.value)
    assert PASSWORD not in str(refused.value) and "wrong" not in str(refused.value).replace("wrong version", "")


@pytest.mark.parametrize("which", ["foreign_pem", "expired_pem"])
def test_a_certificate_that_is_refused_is_named(kafka: SecureKafka, which: str) -> None:
    given = options(kafka, "MUTUAL", {"ssl_keystore_location": str(getattr(kafka, which))})
    began_s = time.monotonic()
    with pytest.raises(QuorumlogError, match="certificate"), Cluster(kafka.at["MUTUAL"], **given) as cluster:
        cluster.admin.describe_cluster()
    assert time.monotonic() - began_s < LIMIT_S


def test_a_foreign_authority_is_not_trusted(kafka: SecureKafka) -> None:
    given = options(kafka, "TLS", {"ssl_truststore_location": str(kafka.foreign_ca)})
    with Cluster(kafka.at["TLS"], **given) as cluster, pytest.raises(AuthenticationFailed, match="not trusted"):
        cluster.admin.describe_cluster()


def test_producer_and_consumer_hear_of_a_refusal(kafka: SecureKafka) -> None:
    """They do not wait for their deadlines of a minute and more."""
    kafka.plain.admin.create_topic("refused", partitions=1, replication=1)
    given = options(kafka, "SECURE", password("SCRAM-SHA-512", USER, "wrong"))
    began_s = time.monotonic()
    with Cluster(kafka.at["SECURE"], **given) as cluster:
        with cluster.producer() as producer, pytest.raises(AuthenticationFailed):
            producer.send("refused", b"x").result(LIMIT_S)
        with cluster.consumer(group="refused") as consumer:
            consumer.subscribe(["refused"])
            with pytest.raises(AuthenticationFailed):
                while True:
                    consumer.poll(timeout_ms=1_000)
                    assert time.monotonic() - began_s < 2 * LIMIT_S
    assert time.monotonic() - began_s < 2 * LIMIT_S


@pytest.mark.parametrize("given", [password("SCRAM-SHA-256"), password("PLAIN"), {}], ids=["scram", "plain", "token"])
def test_a_login_is_renewed_while_nobody_polls(kafka: SecureKafka, given: dict[str, Any]) -> None:
    """The broker ends a connection at the next request after a session's end."""
    asked: list[float] = []

    def token() -> str:
        asked.append(time.monotonic())
        return unsecured({"sub": USER}).reveal()

    tokens = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token}
    with Cluster(kafka.at["SHORT"], **options(kafka, "SHORT", given or tokens)) as cluster:
        cluster.admin.describe_cluster()
        lanes = [connection._lane for connection in cluster.admin._client._link._connections.values()]
        sockets = [one for lane in lanes for one in (lane._ordered, *lane._pool) if one is not None]
        began, began_s = len(asked), time.monotonic()
        wait_until(lambda: time.monotonic() - began_s > 3 * REAUTH_MS / 1000, 30.0, "three lifetimes")
        cluster.admin.describe_cluster()
        assert sockets and all(one._lifetime_ms > 0 and not one.ended for one in sockets)
        assert given or len(asked) >= 3 * began


ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def of_client(kafka: SecureKafka, name: str, secret: str, **more: Any) -> dict[str, Any]:
    return {
        "sasl.mechanism": "OAUTHBEARER",
        ENDPOINT: kafka.issuer.url,
        "sasl.oauthbearer.client.credentials.client.id": name,
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        **more,
    }


def test_tokens_of_an_endpoint(kafka: SecureKafka) -> None:
    """Kafka's switch says whether id and secret are form-encoded, as this endpoint wants it of one client."""
    given = of_client(kafka, "me", "client-secret")
    goes_round(kafka, kafka.at["SIGNED"], "endpoint", options(kafka, "SIGNED", given))
    odd = of_client(kafka, ODD_USER, ODD_PASSWORD, **{"sasl.oauthbearer.header.urlencode": "true"})
    with Cluster(kafka.at["SIGNED"], **options(kafka, "SIGNED", odd)) as cluster:
        assert cluster.admin.describe_cluster().cluster_id


def test_tokens_of_a_file(kafka: SecureKafka, tmp_path: Path) -> None:
    """A token that is over is no refusal: somebody writes a new one, and the client goes on."""
    file = tmp_path / "token"
    file.write_text(kafka.issuer.token("ada", lifetime_s=-10))
    given = {"sasl.mechanism": "OAUTHBEARER", ENDPOINT: file.as_uri()}
    with Cluster(kafka.at["SIGNED"], **options(kafka, "SIGNED", given), default_api_timeout_ms=20_000) as cluster:
        timer = threading.Timer(1.5, lambda: file.write_text(kafka.issuer.token("ada") + "\n"))
        timer.start()
        began_s = time.monotonic()
        assert cluster.admin.describe_cluster().cluster_id
        assert time.monotonic() - began_s > 1
        timer.join()


def test_a_token_of_another_audience_is_refused(kafka: SecureKafka) -> None:
    given = {"sasl.mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": lambda: kafka.issuer.token("ada", aud="other")}
    with Cluster(kafka.at["SIGNED"], **options(kafka, "SIGNED", given)) as cluster:
        with pytest.raises(AuthenticationFailed, match="audience"):
            cluster.admin.describe_cluster()


def test_an_endpoint_that_refuses_the_client_is_named(kafka: SecureKafka) -> None:
    given = options(kafka, "SIGNED", of_client(kafka, "me", "wrong-one"))
    with (
        Cluster(kafka.at["SIGNED"], **given) as cluster,
        pytest.raises(AuthenticationFailed, match="answered 401") as refused,
    ):
        cluster.admin.describe_cluster()
    assert "client_secret" not in str(refused.value) and "wrong-one" not in str(refused.value)


OF_SPARK = [
    ("SECURE", jaas("SCRAM-SHA-512", secret="${env:PW}")),
    ("SECURE", password("PLAIN", ODD_USER, "env:ODD_PW")),
    ("SIGNED", {}),
]


@pytest.mark.parametrize(("listener", "given"), OF_SPARK, ids=["line", "names", "token"])
def test_tasks_of_spark_write_once_and_read(
    kafka: SecureKafka,
    listener: str,
    given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """A writer and a reader are planned here, and their copies run where the environment says nothing."""
    pytest.importorskip("pyspark")
    import pyarrow
    from pyspark.sql.types import BinaryType, StructField, StructType

    from quorumlog.spark.format.source import DefaultSource

    secrets = {"PW": PASSWORD, "ODD_PW": ODD_PASSWORD, "CLIENT": "client-secret"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    named = options(kafka, listener, given or of_client(kafka, "me", "env:CLIENT"))
    of_spark = {"kafka.bootstrap.servers": kafka.at[listener]}
    of_spark |= {f"kafka.{name.replace('_', '.')}": str(value) for name, value in named.items()}
    topic = f"spark-{request.node.callspec.id}"
    kafka.plain.admin.create_topic(topic, partitions=1, replication=1)
    schema = StructType([StructField("value", BinaryType())])
    writer = DefaultSource({**of_spark, "topic": topic}).writer(schema, overwrite=False)
    task = pickle.dumps(writer)
    for name in secrets:
        monkeypatch.delenv(name)
    rows = pyarrow.record_batch({"value": pyarrow.array([b"1", b"2"], pyarrow.binary())})
    writer.commit([pickle.loads(task).write(iter([rows]))])
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    reader = DefaultSource({**of_spark, "subscribe": topic}).reader(schema)
    task = pickle.dumps((reader, reader.partitions()))
    for name in secrets:
        monkeypatch.delenv(name)
    copy, parts = pickle.loads(task)
    assert [row for part in parts for batch in copy.read(part) for row in batch.column(0).to_pylist()] == [b"1", b"2"]


def test_commands_log_in(kafka: SecureKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the file of Kafka's tools, and by a profile whose password is in the environment."""
    line = write_jaas(Module.SCRAM, {"username": USER, "password": PASSWORD})
    values = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": line}
    file = tmp_path / "client.properties"
    file.write_bytes(render_properties({**values, "ssl.truststore.location": str(kafka.ca)}))
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text(
        f'[profiles.managed]\nbootstrap_servers = ["{kafka.at["SECURE"]}"]\nsecurity_protocol = "SASL_SSL"\n'
        f'[profiles.managed.sasl]\nmechanism = "SCRAM-SHA-256"\nusername = "{USER}"\npassword = "env:PW"\n'
        f'[profiles.managed.tls]\nca = "{kafka.ca}"\n'
    )
    by_file = ["-b", kafka.at["SECURE"], "--command-config", str(file)]
    quorumlog("topic", "create", "commands", "--partitions", "1", "--replication-factor", "1", *by_file)
    quorumlog("produce", "commands", *by_file, stdin="hello\n")
    monkeypatch.setenv("PW", PASSWORD)
    assert "commands" in quorumlog("topic", "list", "--profile", "managed").stdout
    assert "hello" in quorumlog("consume", "commands", "-e", "--profile", "managed").stdout
    shown = quorumlog("profile", "show", "managed").stdout
    assert "env:PW" in shown and PASSWORD not in shown
    monkeypatch.setenv("PW", "wrong-one")
    refused = quorumlog("topic", "list", "--profile", "managed", code=Exit.NOT_AUTHORISED)
    assert "sasl_password" in refused.stderr and "wrong-one" not in refused.stderr


def quorumlog(*arguments: str, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from quorumlog_cli.main import main; sys.exit(main())", *arguments],
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == code, done.stderr
    return done
