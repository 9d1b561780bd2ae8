"""docs/tls-and-users.md over real processes: each command in its order, and no password but in its own file."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.live.living_files import contents
from tests.rules import rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tls-and-users.md"
COMMAND_S, START_S, RELOAD_S = 60, 60, 20
DENIED = 8
_START = re.compile(r"quorumlog server start -c (node\d)\.properties")


def steps() -> Iterator[tuple[str, str]]:
    """In the page's order: the name and the text of a file, or "$" and a command."""
    named = ""
    pattern = re.compile(r"^`(\w+\.properties)`|^```(properties|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for found in pattern.finditer(PAGE.read_text()):
        if found[1]:
            named = found[1]
        elif found[2] == "properties":
            yield named, found[3]
        else:
            yield from (("$", line.removeprefix("$ ")) for line in found[3].splitlines())


class Reader:
    """Somebody who does what the page says, in an empty directory, at ports that are free."""

    def __init__(self, root: Path, picker: PortPicker) -> None:
        self._root = root
        picked = dict(enumerate(picker.pick(3), 1))
        self._admin = {f"node{number}": ports.admin for number, ports in picked.items()}
        self.ports = {
            f":{number}909{last}": f":{port}"
            for number, ports in picked.items()
            for last, port in ((2, ports.client), (3, ports.internal), (4, ports.replication))
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.said: dict[str, str] = {}

    def do(self, command: str) -> None:
        if node := _START.fullmatch(command):
            return self._start(node[1])
        if "storage format" in command:  # the files are as the page has them; what is started needs free ports
            for file in self._root.glob("node*.properties"):
                file.write_text(self._at_free_ports(file.read_text()))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", self._at_free_ports(command)],
            cwd=self._root,
            env={"PATH": path, "HOME": str(self._root)},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        self.said[command] = done.stdout + done.stderr
        wanted = DENIED if is_denied(command) else 0
        assert done.returncode == wanted, f"{command}: {done.returncode}\n{self.said[command]}\n{self.logs()}"

    def _at_free_ports(self, text: str) -> str:
        return re.sub(r":[123]909[234]\b", lambda found: self.ports[found[0]], text)

    def _start(self, node: str) -> None:
        with (self._root / f"{node}.log").open("wb") as log:
            more = ("-X", "log.level=debug", "-X", f"metrics.port={self._admin[node]}")
            self.processes[node] = subprocess.Popen(
                [sys.executable, "-P", "-m", "quorumlog_server", "-c", f"{node}.properties", *more],
                cwd=self._root,
                stdout=log,
                stderr=log,
            )
        if len(self.processes) == 3:
            wait_until(lambda: self.logs().count("\nREADY ") == 3, START_S, "three nodes to be ready", self.logs)

    def pages(self) -> bytes:
        """What the HTTP ports tell this machine."""
        found = b""
        for port in self._admin.values():
            for path in ("healthz", "readyz", "node", "metrics"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=COMMAND_S) as answer:
                    found += answer.read()
        return found

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self._root.glob("node*.log")))

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()


def is_denied(command: str) -> bool:
    return "payments" in command or command == "quorumlog user list"  # alice's profile is the current one then


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    picker = PortPicker()
    made = Reader(tmp_path, picker)
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
    for name, text in steps():
        if name != "$":
            (tmp_path / name).write_text(text)
            continue
        if text.startswith("quorumlog tls renew"):
            served = certificate(reader)
        reader.do(text)
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
    pages = reader.pages()
    assert b"quorumlog_authentications_total" in pages and not [one for one in secrets if one.encode() in pages]


PASSWORDS = ("admin.password", "alice.password")


def certificate(reader: Reader) -> str:
    """That node 1 shows to clients."""
    return ssl.get_server_certificate(("127.0.0.1", int(reader.ports[":19092"][1:])))
