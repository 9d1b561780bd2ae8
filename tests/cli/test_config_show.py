"""`server config show` and `lint` of a node with TLS and logins: every setting, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorumlog_cli.main import main

CANARY = "canary-4711"
CONFIG = f"""\
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:9093
listeners=CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093
listener.security.protocol.map=CLIENT:SASL_SSL
ssl.keystore.location=node.pem
ssl.key.password={CANARY}
sasl.enabled.mechanisms=SCRAM-SHA-512
log.dirs=data
"""


@pytest.mark.parametrize(
    ("words", "protocol"), [(["show"], "SASL_SSL"), (["show", "-o", "json"], "SASL_SSL"), (["lint"], "valid")]
)
def test_a_protected_listener_is_shown_and_its_password_is_not(
    words: list[str], protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(CONFIG)
    assert main(["server", "config", *words, "-c", str(path)]) == 0
    said = capsys.readouterr()
    assert protocol in said.out and "<SecurityProtocol" not in said.out
    assert CANARY not in said.out + said.err
    if "json" in words:
        listeners = {one["name"]: one["security"] for one in json.loads(said.out)["listeners"]}
        assert listeners == {"CLIENT": "SASL_SSL", "INTERNAL": "PLAINTEXT"}
