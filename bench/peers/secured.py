"""Clusters of three with a listener of each kind, for clients, beside the plain one between brokers: Kafka's and ours.

Whoever comes without a login is a super user; who logs in is held to the access rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peers.kafka_peer import CLUSTER_ID, KafkaPeer
from bench.peers.kafka_tools import Kafka, properties_text
from bench.peers.peer import NODES, OurPeer, Peer
from quorumlog.security.sasl.jaas import Module, write_jaas
from quorumlog.security.tls.issuing.folder import Folder
from quorumlog.security.tls.issuing.subjects import ClientSubject, NodeSubject
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.testing.ports import HOST, PortPicker

PLAIN, TLS, MUTUAL, LOGIN, SECURE = "PLAIN", "TLS", "MUTUAL", "LOGIN", "SECURE"
KINDS = {TLS: "SSL", MUTUAL: "SSL", LOGIN: "SASL_PLAINTEXT", SECURE: "SASL_SSL"}
USER, PASSWORD = "bench", "bench-password"
MECHANISM = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Certificates:
    """Of P-256. Paths."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        made = Folder(folder, datetime.now(UTC))
        made.create(CLUSTER_ID)
        made.issue([NodeSubject(1, (HOST,)), ClientSubject(USER)], replace=False)
        return cls(folder)

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def node(self) -> Path:
        return self.folder / "node-1.keystore.pem"

    @property
    def client(self) -> Path:
        return self.folder / f"client-{USER}.keystore.pem"


class Secured:
    """peer: a cluster that is formatted and plain. configs: of its nodes. changes: of their settings."""

    def __init__(
        self, peer: Peer, configs: Mapping[int, Path], certificates: Certificates, changes: Mapping[str, str]
    ) -> None:
        self.peer, self.certificates = peer, certificates
        self._picker = PortPicker()
        rows = self._picker.pick(NODES)
        self._servers = {PLAIN: peer.bootstrap_servers}
        for name, ports in zip(KINDS, zip(*(row.all for row in rows), strict=True), strict=False):
            self._servers[name] = ",".join(f"{HOST}:{port}" for port in ports)
        for number, path in enumerate(configs.values()):
            values = dict(line.split("=", 1) for line in path.read_text().splitlines())
            listeners = [f"{name}://{self._servers[name].split(',')[number]}" for name in KINDS]
            path.write_text(
                properties_text({**values, **changes, "listeners": ",".join([values["listeners"], *listeners])})
            )

    def servers(self, listener: str) -> str:
        return self._servers[listener]

    def client(self, listener: str) -> dict[str, Any]:
        """Options of librdkafka."""
        tls = {"ssl.ca.location": str(self.certificates.authority)}
        login = {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
        kind = KINDS.get(listener, "PLAINTEXT")
        return {
            "bootstrap.servers": self.servers(listener),
            "security.protocol": kind.lower(),
            **(tls if kind.endswith("SSL") else {}),
            **(login if kind.startswith("SASL") else {}),
        }

    def close(self) -> None:
        self.peer.close()
        self._picker.close()


def their_secured(kafka: Kafka, root: Path) -> Secured:
    """root: must not exist."""
    certificates = Certificates.make(root / "certs")
    peer = KafkaPeer(kafka, root / "nodes")
    changes = {
        **_common({"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **KINDS}, certificates),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
    }
    for name, kind in KINDS.items():
        if kind.startswith("SASL"):
            prefix = f"listener.name.{name.lower()}.{MECHANISM.lower()}"
            changes[f"{prefix}.sasl.jaas.config"] = write_jaas(Module.SCRAM, {})
    return Secured(peer, peer.configs, certificates, changes)


def our_secured(root: Path) -> Secured:
    """root: must not exist."""
    certificates = Certificates.make(root / "certs")
    peer = OurPeer(root / "nodes")
    changes = {**_common(KINDS, certificates), "allow.anonymous.listeners": f"CLIENT,GRPC,{TLS}"}
    configs = {node.node_id: node.config for node in peer.nodes.layout.nodes}
    return Secured(peer, configs, certificates, changes)


def _common(kinds: Mapping[str, str], certificates: Certificates) -> dict[str, str]:
    return {
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
        "ssl.keystore.location": str(certificates.node),
        "ssl.truststore.location": str(certificates.authority),
        f"listener.name.{MUTUAL.lower()}.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": MECHANISM,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
