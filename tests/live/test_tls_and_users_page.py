"""docs/tls-and-users.md over real processes: each command in its order, and no password but in its own file."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.live.living_files import contents
from tests.live.page_nodes import Reader
from tests.rules import rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tls-and-users.md"
COMMAND_S, RELOAD_S = 60, 20
DENIED = 8


def is_denied(command: str) -> bool:
    return "payments" in command or command == "quorumlog user list"  # alice's profile is the current one then


def told_over_http(reader: Reader) -> bytes:
    """What the HTTP ports tell this machine."""
    found = b""
    for node in range(1, len(reader.processes) + 1):
        for path in ("healthz", "readyz", "node", "metrics"):
            url = f"http://127.0.0.1:{reader.ports[node].admin}/{path}"
            with urllib.request.urlopen(url, timeout=COMMAND_S) as answer:
                found += answer.read()
    return found


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    picker = PortPicker()
    made = Reader(
        tmp_path,
        picker,
        more=lambda node: ("-X", "log.level=debug", "-X", f"metrics.port={made.ports[node].admin}"),
        code=lambda command: DENIED if is_denied(command) else 0,
    )
    try:
        yield made
    finally:
        made.close()
        picker.close()


@rule("security 1.19")
@pytest.mark.timeout(290)
def test_the_page_does_what_it_says(reader: Reader, tmp_path: Path) -> None:
    """CVE-2026-33558: the nodes log at DEBUG. CVE-2026-33247: no command line has a password."""
    secrets: set[str] = set()
    served = ""
    for command in reader.do(PAGE.read_text()):
        if command.startswith("quorumlog tls renew"):
            served = certificate(reader)
        secrets |= {path.read_text().strip() for path in tmp_path.glob("alice.new")}
        secrets |= {path.read_text().strip() for path in tmp_path.glob("*.password")}
    said = reader.said
    assert "valid, 0 warnings" in said["quorumlog server config lint -c node1.properties"]
    assert "allowed: User:alice" in said["quorumlog acl test User:alice write topic:orders"]
    assert "hello" in said["quorumlog consume orders --group billing -e"]
    assert "1048576" in said["quorumlog quota list"]
    assert "TOPIC_AUTHORIZATION_FAILED" in said["echo hello | quorumlog produce payments"]
    assert "the configs of orders are not shown" in said["quorumlog topic describe orders"]
    assert "no rule" in said["quorumlog acl test User:alice write topic:payments --profile admin"]
    wait_until(lambda: certificate(reader) != served, RELOAD_S, "node 1 to serve its new certificate", reader.logs)
    assert len(secrets) == 3
    kept = {path: told for path, told in contents(tmp_path).items() if path.name not in PASSWORDS}
    shown = [str(path) for path, told in kept.items() for secret in secrets if secret.encode() in told]
    assert not shown and not [text for text in said.values() for secret in secrets if secret in text]
    pages = told_over_http(reader)
    assert b"quorumlog_authentications_total" in pages and not [one for one in secrets if one.encode() in pages]


PASSWORDS = ("admin.password", "alice.password")


def certificate(reader: Reader) -> str:
    """That node 1 shows to clients."""
    return ssl.get_server_certificate(("127.0.0.1", reader.ports[1].client))
