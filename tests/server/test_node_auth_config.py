"""How nodes prove themselves, as a node's file says it: mistakes are named before a port opens."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.files import FileState
from quorumlog.security.tls.settings import ClientAuth
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.edge.denied_certificates import DeniedCertificates, parse_denied

MAP = "listener.security.protocol.map"
AUTH = "quorumlog.inter.node.auth"
ALL = "quorumlog.denied.certificates"
DENIED = "quorumlog.inter.node.denied.certificates"
MINIMAL = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}
TLS = {
    MAP: "INTERNAL:SSL,REPLICATION:SSL",
    "ssl.keystore.location": "node-1.keystore.pem",
    "ssl.truststore.location": "ca.pem",
}


def config(changes: dict[str, str]) -> NodeConfig:
    return from_values({**MINIMAL, **changes})


def test_without_a_word_nodes_prove_that_they_know_the_secret_in_clear() -> None:
    assert config({}).nodes.auth is NodeAuth.SECRET
    assert config({}).listener_security["INTERNAL"].tls is None


@pytest.mark.parametrize(
    ("auth", "asked"),
    [("secret", ClientAuth.NONE), ("both", ClientAuth.REQUIRED), ("mtls", ClientAuth.REQUIRED)],
)
def test_internal_listeners_ask_for_certificates_where_nodes_show_them(auth: str, asked: ClientAuth) -> None:
    made = config({**TLS, AUTH: auth})
    assert made.nodes.auth.value == auth
    for name in ("INTERNAL", "REPLICATION"):
        tls = made.listener_security[name].tls
        assert tls is not None and tls.client_auth is asked
    assert [one.name for one in made.listeners] == ["CLIENT", "GRPC", "REPLICATION", "INTERNAL"]


def test_a_list_that_is_empty_is_none() -> None:
    assert config({**TLS, ALL: ""}).denied.path is None
    assert config({**TLS, AUTH: "mtls", ALL: "revoked.txt"}).denied.path == "revoked.txt"


BY_NAME = {"listeners": "CLIENT://h:1,GRPC://h:2,INTERNAL://h:9093"}
ERRORS = [
    ("unknown word", {AUTH: "tls"}, "quorumlog.inter.node.auth"),
    ("clear", {AUTH: "mtls"}, f"over TLS, and REPLICATION is PLAINTEXT: write {MAP}=REPLICATION:SSL"),
    ("half of it", {**TLS, MAP: "INTERNAL:SSL", AUTH: "both"}, "and REPLICATION is PLAINTEXT"),
    ("nobody trusted", {**TLS, "ssl.truststore.location": ""}, "ssl.truststore.location is not set, and nodes verify"),
    ("the secret in clear", {**TLS, AUTH: "both", "cluster.secret.in.clear": "true"}, "remove cluster.secret.in.clear"),
    ("denied for nothing", {**TLS, DENIED: "revoked.txt"}, f"{DENIED} is set, but with {AUTH}=secret nodes show no"),
    ("denied, and nobody shows one", {**TLS, ALL: "x"}, f"{ALL} is set, but no listener asks for certificates: set"),
    ("SASL between nodes", {**TLS, MAP: "INTERNAL:SASL_SSL,REPLICATION:SSL"}, "nodes prove themselves by"),
    ("gRPC without TLS", {MAP: "GRPC:SASL_PLAINTEXT", **BY_NAME}, "write GRPC:SASL_SSL"),
    (
        "gRPC asks some",
        {**TLS, MAP: "GRPC:SSL", **BY_NAME, "ssl.client.auth": "requested"},
        "ssl.client.auth=requested: gRPC of GRPC",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_mistakes_are_named(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(changes)
    assert message in str(caught.value)


MARK, OTHER = "ab" * 32, "cd" * 32


class Disk(NamedTuple):
    """`Files` of one file, which a test writes."""

    path: Path

    def read(self, path: str, most_bytes: int) -> bytes:
        return self.path.read_bytes()[:most_bytes]

    def state(self, path: str) -> FileState:
        found = self.path.stat()
        return FileState(found.st_mtime_ns, found.st_size, found.st_ino, "")

    def others_read(self, path: str) -> bool:
        return False


def test_denied_certificates_are_read_again_and_stay_where_the_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "revoked.txt"
    path.write_text(f"{MARK} node-2 2026-11-30\n")
    denied = DeniedCertificates(DENIED, str(path), Disk(path))
    assert MARK in denied and OTHER not in denied and not denied.look()
    path.write_text(f"# lost\n\n{MARK}\n{OTHER.upper()} node-3\n")
    assert denied.look() and OTHER in denied
    path.write_text(f"{MARK}\nnot a mark\n")
    assert not denied.look() and OTHER in denied and "line 2" in str(denied.trouble)
    path.unlink()
    assert not denied.look() and OTHER in denied and "cannot be read" in str(denied.trouble)
    path.write_text(f"{MARK}\n")
    assert denied.look() and OTHER not in denied and denied.trouble is None


def test_a_list_that_cannot_be_read_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"denied\.certificates: .*cannot be read: .*; an empty one denies nobody"):
        DeniedCertificates(DENIED, str(tmp_path / "none"), Disk(tmp_path / "none"))


def test_a_fingerprint_may_have_colons() -> None:
    assert parse_denied(":".join([MARK[:2]] * 32) + " as openssl prints it\n") == {MARK}


@given(st.text())
def test_any_text_is_a_list_or_is_refused(text: str) -> None:
    try:
        found = parse_denied(text)
    except ValueError as error:
        assert "line" in str(error)
    else:
        assert all(len(mark) == 64 for mark in found)
