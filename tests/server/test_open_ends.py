"""What a node says at its start of what is legal and leaves something open, and of lines that it does not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorumlog.settings.rights import AUTHORIZER
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.process.hardening import AS_ROOT, PR_SET_DUMPABLE, harden, shown_to_others

BASE = {
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093",
}
SASL = {"listener.security.protocol.map": "CLIENT:SASL_SSL", "ssl.keystore.location": "/node.pem"}
MTLS = {
    "listener.security.protocol.map": "CLIENT:SSL",
    "ssl.keystore.location": "/node.pem",
    "ssl.truststore.location": "/ca.pem",
    "ssl.client.auth": "required",
}
ON = {"authorizer.class.name": AUTHORIZER, "super.users": "User:admin"}
CANARY = "canary-9184"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'{_PLAIN} username="node" password="{CANARY}" user_bob="{CANARY}" user_ada="{CANARY}";'
MANY = _PLAIN + "".join(f' user_u{number}="{CANARY}"' for number in range(9)) + ";"
OF_CLIENT = "listener.name.client.plain.sasl.jaas.config"


def config(*changes: dict[str, str]) -> NodeConfig:
    return from_values({key: value for one in (BASE, *changes) for key, value in one.items()}, "file")


WARNED = [
    ("nobody is asked", {}, ()),
    ("logins without rules", SASL, ("CLIENT asks its clients who they are, and there are no access rules: whoever",)),
    ("certificates without rules", MTLS, (f"Set authorizer.class.name={AUTHORIZER} and super.users on every node",)),
    ("report only is idle", {**SASL, "quorumlog.authorizer.report.only": "true"}, ("no effect without", "CLIENT asks")),
    ("logins with rules", {**SASL, **ON}, ()),
    ("rules without a super user", {**SASL, "authorizer.class.name": AUTHORIZER}, ("super.users is empty",)),
    ("rules and nobody is asked", ON, ()),
    ("certificates that are requested", {**MTLS, "ssl.client.auth": "requested"}, ()),
    ("users of a line", {**SASL, **ON, OF_CLIENT: USERS}, ("no effect here", f"{OF_CLIENT}: ada, bob cannot log in")),
    ("many users", {**SASL, **ON, OF_CLIENT: MANY}, ("no effect here", "u0, u1, u2, u3, u4 and 4 more cannot log in")),
    ("a line without users", {**ON, "sasl.jaas.config": f'{_PLAIN} username="a";'}, ("no effect here",)),
    ("a line that is none", {**ON, "sasl.jaas.config": "what"}, ("no effect here",)),
]


@pytest.mark.parametrize(("changes", "want"), [case[1:] for case in WARNED], ids=[case[0] for case in WARNED])
def test_what_is_left_open_is_told_and_starts(changes: dict[str, str], want: tuple[str, ...]) -> None:
    warnings = [warning for warning in config(changes).warnings if not warning.startswith("GRPC takes a free port")]
    assert len(warnings) == len(want), warnings
    for text, part in zip(warnings, want, strict=True):
        assert part in text and CANARY not in text


KERBEROS = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/k" principal="k/h@R";'


@pytest.mark.parametrize("key", ["sasl.jaas.config", OF_CLIENT, "listener.name.client.gssapi.sasl.jaas.config"])
def test_a_login_module_of_kerberos_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError) as found:
        config(SASL, {key: KERBEROS})
    assert str(found.value).startswith(f"{key} names a login module of Kerberos (GSSAPI), which is not supported")


# --- the process ---


@pytest.mark.parametrize("user_id", [0, 1000])
def test_a_node_that_asks_its_clients_hides_its_memory(user_id: int) -> None:
    asked: list[tuple[int, int]] = []

    def prctl(option: int, value: int) -> int:
        asked.append((option, value))
        return 0

    assert harden(config(), prctl, user_id) == [] and asked == []
    assert harden(config(SASL), prctl, user_id) == ([AS_ROOT] if user_id == 0 else [])
    assert asked == [(PR_SET_DUMPABLE, 0)]
    (told,) = harden(config(MTLS), lambda _option, _value: -1, 1000)
    assert told.startswith("a crash may dump keys and passwords")


SECRET, LOG = "cluster.secret", "__cluster_metadata-0/00000000000000000000.log"
SHOWN = [
    ("all its own", {}, ""),
    ("a secret that was copied", {SECRET: 0o644, ".": 0o755}, "cluster.secret, by which"),
    ("a secret in a closed directory", {SECRET: 0o644}, ""),
    ("for its group", {SECRET: 0o640, ".": 0o750}, "cluster.secret, by which"),
    ("a log from before", {LOG: 0o644, "__cluster_metadata-0": 0o755, ".": 0o755}, "the metadata log, in which"),
    ("a log in a closed directory", {LOG: 0o644, ".": 0o755}, ""),
    ("both", {SECRET: 0o604, LOG: 0o604, "__cluster_metadata-0": 0o701, ".": 0o701}, "passes for a node and the meta"),
]


@pytest.mark.parametrize(("modes", "want"), [case[1:] for case in SHOWN], ids=[case[0] for case in SHOWN])
def test_what_others_may_read_of_the_metadata_is_told(tmp_path: Path, modes: dict[str, int], want: str) -> None:
    meta = tmp_path / "meta"
    assert shown_to_others(config({"log.dirs": str(meta)})) == [], "it is not there"
    (meta / LOG).parent.mkdir(parents=True)
    for name in (".", Path(LOG).parent, SECRET, LOG):
        if not (meta / name).exists():
            (meta / name).write_text("what it holds")
        os.chmod(meta / name, modes.get(str(name), 0o700))
    told = shown_to_others(config({"log.dirs": str(meta)}))
    assert [(want in text, f"chmod -R go= {meta}" in text) for text in told] == ([(True, True)] if want else [])
