"""What protects a local cluster: certificates, a first user, and files by which each kind of client logs in.

    <root>/tls/                           the folder of `quorumlog tls`: the authority, and a certificate for each node
    <root>/admin.password                 of the first user, who is a super user
    <root>/client.properties              for Java and the tools of Apache Kafka
    <root>/client.librdkafka.properties   for librdkafka
    <root>/client.toml                    for quorumlog's commands

All but `tls/ca.pem` are readable by their owner only. The certificates and the password are made once. Clients' files
hold whole paths and ports, so each start writes them anew.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog.settings.node_auth import NODE_AUTH
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.settings.security import DENIED_CERTIFICATES
from quorumlog.testing.ports import HOST

if TYPE_CHECKING:
    from quorumlog.ids import NodeId
    from quorumlog.testing.layout import Layout

FOLDER, PASSWORD_FILE, USER = "tls", "admin.password", "admin"
MECHANISM, PROTOCOL = "SCRAM-SHA-512", "SASL_SSL"
JAVA_FILE, LIBRDKAFKA_FILE, OUR_FILE = "client.properties", "client.librdkafka.properties", "client.toml"
FAMILIES = ("quorumlog", "librdkafka", "java", "kafka-python", "aiokafka")
LOGIN_KEYS = ("security_protocol", "sasl_mechanism", "sasl_username", "sasl_password", "ssl_truststore_location")
_PASSWORD_BYTES = 24
_TRUST, _DENIED = "ca.pem", "revoked.txt"


def protect(root: Path, cluster_id: str, node_ids: list[NodeId]) -> None:
    """Make the certificates and the first user's password in `root`. Raises OSError; `unprotect` removes what is there
    then."""
    from quorumlog.security.tls.issuing.certificates import MAX_LEAF_DAYS
    from quorumlog.security.tls.issuing.folder import Folder
    from quorumlog.security.tls.issuing.subjects import parse_node

    folder = Folder(root / FOLDER, datetime.now(UTC))
    folder.create(cluster_id)
    folder.issue([parse_node(f"{node_id}={HOST}") for node_id in node_ids], MAX_LEAF_DAYS, replace=False)
    _write_private(root / PASSWORD_FILE, f"{secrets.token_urlsafe(_PASSWORD_BYTES)}\n")


def unprotect(root: Path) -> None:
    """Remove the authority, all keys, the password and the files that hold it."""
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    for name in (PASSWORD_FILE, JAVA_FILE, LIBRDKAFKA_FILE, OUR_FILE):
        (root / name).unlink(missing_ok=True)


def node_keys(node_id: NodeId) -> dict[str, str]:
    """Of a node's file in `<root>/nID/`, where relative paths begin."""
    up = f"../{FOLDER}"
    return {
        "listener.security.protocol.map": f"CLIENT:{PROTOCOL},GRPC:{PROTOCOL},INTERNAL:SSL,REPLICATION:SSL",
        "ssl.keystore.location": f"{up}/node-{node_id}.keystore.pem",
        "ssl.truststore.location": f"{up}/{_TRUST}",
        "sasl.enabled.mechanisms": f"{MECHANISM},SCRAM-SHA-256",
        NODE_AUTH: "mtls",
        DENIED_CERTIFICATES: f"{up}/{_DENIED}",
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{USER}",
        "rpc.reflection": "false",
    }


def first_user(layout: Layout) -> str:
    """For `--add-scram`, with the place of the password."""
    return f"{MECHANISM}=[name={layout.user},password=@{layout.root / PASSWORD_FILE}]"


@dataclass(frozen=True, slots=True)
class Access:
    """How clients log in at a cluster that is protected."""

    layout: Layout

    @property
    def trust(self) -> Path:
        return self.layout.root / FOLDER / _TRUST

    @property
    def password_file(self) -> Path:
        return self.layout.root / PASSWORD_FILE

    def password(self) -> str:
        """Raises OSError."""
        return self.password_file.read_text().strip()

    def profile(self) -> dict[str, str]:
        """Options of quorumlog's clients; the password is named by its place."""
        return self._ours(f"file:{self.password_file}")

    def login(self) -> dict[str, str]:
        """As `profile`, with the password itself. Raises OSError."""
        return self._ours(self.password())

    def options(self, family: str = "quorumlog") -> dict[str, Any]:
        """Options of one of FAMILIES, with the password. Raises OSError."""
        if family == "quorumlog":
            return {"bootstrap_servers": self.layout.bootstrap_servers, **self.login()}
        if family == "librdkafka":
            return self._librdkafka()
        return self._java() if family == "java" else self._python(family)

    def write_client_files(self) -> None:
        """Raises OSError."""
        from quorumlog.security.tls.issuing.client_files import login_files

        ours = {"bootstrap_servers": self.layout.bootstrap_servers, **self.profile()}
        texts = login_files(java=self._java(), librdkafka=self._librdkafka(), ours=ours)
        for name, text in zip((JAVA_FILE, LIBRDKAFKA_FILE, OUR_FILE), texts, strict=True):
            _write_private(self.layout.root / name, text)

    def _ours(self, password: str) -> dict[str, str]:
        return dict(zip(LOGIN_KEYS, (PROTOCOL, MECHANISM, self.layout.user, password, str(self.trust)), strict=True))

    def _librdkafka(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.layout.bootstrap_servers,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.layout.user,
            "sasl.password": self.password(),
            "ssl.ca.location": str(self.trust),
        }

    def _java(self) -> dict[str, str]:
        from quorumlog.security.sasl.jaas import Module, write_jaas

        user = {"username": self.layout.user, "password": self.password()}
        return {
            "bootstrap.servers": self.layout.bootstrap_servers,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": write_jaas(Module.SCRAM, user),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }

    def _python(self, family: str) -> dict[str, Any]:
        options: dict[str, Any] = {
            "bootstrap_servers": self.layout.bootstrap_servers,
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.layout.user,
            "sasl_plain_password": self.password(),
        }
        if family == "kafka-python":
            return {**options, "ssl_cafile": str(self.trust)}
        import ssl

        return {**options, "ssl_context": ssl.create_default_context(cafile=str(self.trust))}


def login_options(layout: Layout) -> Mapping[str, str]:
    """Of quorumlog's clients, beside the servers; empty where the cluster is not protected."""
    return Access(layout).login() if layout.user else {}


def client_options(layout: Layout, family: str = "quorumlog") -> Mapping[str, Any]:
    """As `Access.options`; without a login where the cluster is not protected. Raises ValueError for a family that is
    not known."""
    if family not in FAMILIES:
        raise ValueError(f"{family!r} is no family of clients; there are {', '.join(FAMILIES)}")
    if layout.user:
        return Access(layout).options(family)
    name = "bootstrap.servers" if family in ("librdkafka", "java") else "bootstrap_servers"
    return {name: layout.bootstrap_servers}


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, for its owner only."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
