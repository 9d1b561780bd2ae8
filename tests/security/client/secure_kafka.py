"""An Apache Kafka of one node with a listener of each kind. Tests are skipped where it cannot run, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Unavailable, get_kafka
from differential.sides import SETTINGS, SMALL_HEAP
from quorumlog.client.blocking import Cluster
from quorumlog.security.sasl.jaas import Module, write_jaas
from quorumlog.testing.ports import HOST, PortPicker
from tests.security.client.issuer_of_certificates import Authority
from tests.security.client.token_endpoint import AUDIENCE, ISSUER, Issuer, serving

USER, PASSWORD = "alice", "a1-secret"
ODD_USER, ODD_PASSWORD = "ops,eu=1", 'p"a\\s;s,w=o%r+d /*'  # what parsers cut
REAUTH_MS = 3_000
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
    "SHORT": "SASL_SSL",  # logins of REAUTH_MS
    "SIGNED": "SASL_SSL",  # tokens of `Issuer` only
    "WRONGHOST": "SSL",  # whose certificate names another host
}
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class SecureKafka:
    """at: the address of each listener, by name. ca: the file of the authority. clients: its other certificates."""

    at: Mapping[str, str]
    ca: Path
    alice_pem: Path
    expired_pem: Path
    foreign_pem: Path
    foreign_ca: Path
    plain: Cluster
    issuer: Issuer


def as_java(text: str) -> str:
    """Form-encoded as by Java's URLEncoder, which Kafka's clients use."""
    return quote_plus(text, safe="*-._")


@contextmanager
def secure_kafka(folder: Path) -> Iterator[SecureKafka]:
    """folder: made by it. Needs Maven once."""
    try:
        kafka = get_kafka()
    except Unavailable as error:
        pytest.skip(str(error))
    folder.mkdir()
    own, foreign = Authority(folder, "authority"), Authority(folder, "foreign")
    broker = own.issue("broker", hosts=("localhost",), addresses=(HOST,))
    elsewhere = own.issue("elsewhere", hosts=("elsewhere.example", HOST))  # a name that looks like the address
    issuer = Issuer(folder / "jwks.json", {"me": "client-secret", as_java(ODD_USER): as_java(ODD_PASSWORD)})
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.jwks.as_uri()}"
    picker = PortPicker()
    numbers = [port for row in picker.pick(2) for port in row.all]
    at = {name: f"{HOST}:{port}" for name, port in zip(LISTENERS, numbers, strict=False)}
    changes = {**SETTINGS, **_listeners(at, numbers[len(LISTENERS)], own, broker, elsewhere), **_signed(issuer)}
    users = [f"SCRAM-SHA-{size}=[name={USER},password={PASSWORD}]" for size in (256, 512)]
    scram = [word for user in users for word in ("--add-scram", user)]
    peer = KafkaPeer(
        kafka, folder / "kafka", nodes=1, changes=changes, options=(*SMALL_HEAP, allowed), format_options=scram
    )
    try:
        peer.start()
        with Cluster(at["PLAINTEXT"], default_api_timeout_ms=120_000) as plain, serving(issuer):
            plain.admin.describe_cluster()
            yield SecureKafka(
                at,
                own.path,
                own.issue(USER),
                own.issue("expired", expired=True),
                foreign.issue("stranger"),
                foreign.path,
                plain,
                issuer,
            )
    finally:
        peer.close()
        picker.close()


def _listeners(at: Mapping[str, str], port: int, own: Authority, broker: Path, elsewhere: Path) -> dict[str, object]:
    values: dict[str, object] = {
        "listeners": ",".join(f"{name}://{address}" for name, address in at.items()) + f",CONTROLLER://{HOST}:{port}",
        "controller.quorum.voters": f"1@{HOST}:{port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": ",".join(
            f"{name}:{kind}" for name, kind in {**LISTENERS, "CONTROLLER": "PLAINTEXT"}.items()
        ),
        "sasl.enabled.mechanisms": MECHANISMS,
    }
    for name, kind in LISTENERS.items():
        prefix = f"listener.name.{name.lower()}."
        if kind.endswith("SSL"):
            values[f"{prefix}ssl.keystore.type"] = "PEM"
            values[f"{prefix}ssl.keystore.location"] = elsewhere if name == "WRONGHOST" else broker
            values[f"{prefix}ssl.truststore.type"] = "PEM"
            values[f"{prefix}ssl.truststore.location"] = own.path
            values[f"{prefix}ssl.client.auth"] = "required" if name == "MUTUAL" else "none"
        if kind.startswith("SASL"):
            values.update(_logins(prefix))
    for mechanism in MECHANISMS.split(","):
        values[f"listener.name.short.{mechanism.lower()}.connections.max.reauth.ms"] = REAUTH_MS
    return values


def _signed(issuer: Issuer) -> dict[str, object]:
    prefix = "listener.name.signed."
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        f"{prefix}oauthbearer.sasl.server.callback.handler.class": handler,
        f"{prefix}sasl.oauthbearer.jwks.endpoint.url": issuer.jwks.as_uri(),
        f"{prefix}sasl.oauthbearer.expected.issuer": ISSUER,
        f"{prefix}sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
    }


def _logins(prefix: str) -> dict[str, str]:
    plain = write_jaas(Module.PLAIN, {f"user_{USER}": PASSWORD, f"user_{ODD_USER}": ODD_PASSWORD})
    scram = write_jaas(Module.SCRAM, {})
    return {
        f"{prefix}plain.sasl.jaas.config": plain.replace("\\", "\\\\"),  # of a properties file
        f"{prefix}scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}scram-sha-512.sasl.jaas.config": scram,
        f"{prefix}oauthbearer.sasl.jaas.config": write_jaas(Module.OAUTHBEARER, {}),
    }
