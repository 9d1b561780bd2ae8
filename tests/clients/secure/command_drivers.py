"""Clients that are commands: each call is a process and a connection of its own."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

from child_drivers import HERE, grpcurl_program
from logins import Failed, Login
from security_matrix import ANSWER_S, NO_KCAT, OAUTH

from quorumlog.errors import ErrorCode

WAIT_S = int(ANSWER_S - 2)
PROTO = Path(__file__).resolve().parents[3] / "proto"


def run(command: list[str], stdin: str = "") -> str:
    """Raises Failed with what it said."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=ANSWER_S, check=False, errors="replace"
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer within {ANSWER_S:g} s") from None
    if done.returncode:
        raise Failed(done.stdout + done.stderr)
    return done.stdout


def kcat_program() -> str:
    return shutil.which("kcat") or shutil.which("kafkacat") or ""


def kcat_missing() -> str:
    return "" if kcat_program() else NO_KCAT


class Kcat:
    def version(self) -> str:
        words = run([kcat_program(), "-V"]).split()
        return words[words.index("Version") + 1]

    def open(self, login: Login) -> KcatSession:
        return KcatSession(login)

    def close(self) -> None: ...


class KcatSession:
    """A wrong login is an error that it only prints, until the record's time is over."""

    def __init__(self, login: Login) -> None:
        settings = {
            "security.protocol": login.protocol, "message.timeout.ms": str(login.wait_ms),
            "ssl.ca.location": login.ca,
            "ssl.certificate.location": login.pair, "ssl.key.location": login.pair, "sasl.mechanism": login.mechanism,
            "sasl.username": login.user, "sasl.password": login.password,
        }  # fmt: skip
        self._command = [kcat_program(), "-b", login.servers]
        for key, value in settings.items():
            self._command += ["-X", f"{key}={value}"] if value else []

    def send(self, topic: str, size: int) -> None:
        run([*self._command, "-P", "-t", topic, "-p", "0"], "x" * size)

    def read(self, topic: str) -> int:
        return len(
            run([*self._command, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", "1", "-e", "-q"]).strip()
        )

    def close(self) -> None: ...


class Grpcurl:
    """It asks for the topic's metadata where others write a record."""

    def version(self) -> str:
        found = re.search(r"grpcurl v([\d.]+)", (HERE / "grpcurl" / "go.mod").read_text())
        assert found is not None
        return found[1]

    def open(self, login: Login) -> GrpcurlSession:
        return GrpcurlSession(login)

    def close(self) -> None: ...


class GrpcurlSession:
    def __init__(self, login: Login) -> None:
        self._servers = login.servers
        self._options = ["-import-path", str(PROTO), "-proto", "quorumlog/v1/services.proto", "-max-time", str(WAIT_S)]
        self._options += ["-connect-timeout", "5"]
        self._options += ["-cacert", login.ca] if login.ca else ["-plaintext"]
        if login.pair:
            self._options += ["-cert", login.pair, "-key", login.pair]
        if login.mechanism:
            basic = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
            shown = f"Bearer {login.read_token()}" if login.mechanism == OAUTH else f"Basic {basic}"
            self._options += ["-H", f"authorization: {shown}"]

    def send(self, topic: str, size: int) -> None:
        asked = json.dumps({"topics": [{"name": topic}]})
        said = run([grpcurl_program(), *self._options, "-d", asked, self._servers, "quorumlog.v1.Broker/Metadata"])
        for found in json.loads(said).get("topics", []):
            if code := found.get("errorCode", 0):
                raise Failed(ErrorCode(code).name)

    def read(self, topic: str) -> int:
        self.send(topic, 0)
        return 0

    def close(self) -> None: ...
