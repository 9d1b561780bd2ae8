"""`quorumlog tls`: what it writes, what it tells people and programs, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12

from quorumlog.security.tls.issuing.certificates import issue, new_authority
from quorumlog.security.tls.issuing.folder import Folder
from quorumlog.security.tls.issuing.subjects import parse_client, parse_node
from quorumlog.settings.security import DENIED_CERTIFICATES
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from quorumlog_server.edge.denied_certificates import parse_denied

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    """The document that a command prints."""
    assert main(["tls", *words, "-o", "json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], code: Exit, *words: str) -> str:
    assert main(["tls", *words]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err


def test_a_first_call_makes_all_that_a_cluster_needs(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "init", "certs", "--node", "1=host1,10.0.0.1", "--node", "2=::1", "--client", "ada")
    assert [one["file"] for one in said["certificates"]] == [
        "ca.pem", "node-1.keystore.pem", "node-2.keystore.pem", "client-ada.keystore.pem",
    ]  # fmt: skip
    node = said["certificates"][1]
    assert (node["node_id"], node["cluster_id"], node["days_left"]) == (1, said["cluster_id"], 90)
    assert node["hosts"] == ["host1", "10.0.0.1", "localhost"] and len(node["sha256"]) == 64
    assert {path.name for path in Path("certs").glob("client*.properties")} >= {
        "client.properties",
        "client-ada.properties",
    }
    verified = told(capsys, "verify", "certs")["certificates"]
    assert len(verified) == 6 and [one["problem"] for one in verified] == [None] * 6


def test_people_are_told_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tls", "init", "certs", "--node", "1=host1", "--cluster-id", CLUSTER]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["FILE", "FOR", "UNTIL", "DAYS"]
    assert "node 1: host1, localhost" in captured.out
    assert (
        f"storage format -t {CLUSTER}" in captured.err
        and "ca.key where no node and no client can read it" in captured.err
    )
    assert f"  ssl.keystore.location={Path.cwd()}/certs/node-1.keystore.pem" in captured.err
    assert "client.properties (Java)" in captured.err and "PRIVATE" not in captured.out + captured.err


def test_a_later_call_adds_and_replaces_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    first = told(capsys, "init", "certs", "--node", "1=a")
    authority = Path("certs/ca.pem").read_bytes()
    more = told(capsys, "init", "certs", "--client", "bob")
    assert [one["file"] for one in more["certificates"]] == ["client-bob.keystore.pem"]
    assert more["cluster_id"] == first["cluster_id"] and Path("certs/ca.pem").read_bytes() == authority
    assert "--force" in refused(capsys, Exit.PRECONDITION, "init", "certs", "--node", "1=b")
    told(capsys, "init", "certs", "--node", "1=b", "--force")
    assert told(capsys, "show", "certs")["certificates"][1]["hosts"] == ["b", "localhost"]


MISTAKES = [
    (Exit.USAGE, ["init", "certs", "--node", "1=a:9092"], "without a port"),
    (Exit.USAGE, ["init", "certs", "--node", "a"], "write ID=HOST"),
    (Exit.USAGE, ["init", "certs", "--node", "1=a", "--node", "1=b"], "named twice"),
    (Exit.USAGE, ["init", "certs", "--client", "a b"], "no name for a client"),
    (Exit.USAGE, ["init", "certs", "--days", "900"], "1 to 825 days"),
    (Exit.USAGE, ["init", "certs", "--cluster-id", "x"], "--cluster-id x"),
    (Exit.NOT_FOUND, ["verify", "certs"], "certs is no folder"),
    (Exit.NOT_FOUND, ["renew", "certs"], "certs is no folder"),
    (Exit.NOT_FOUND, ["renew", "certs", "--authority"], "tls init"),
    (Exit.NOT_FOUND, ["show", "x.pem"], "x.pem"),
    (Exit.NOT_FOUND, ["import", "x.p12"], "x.p12"),
    (Exit.NOT_FOUND, ["revoke", "certs", "ada"], "certs is no folder"),
    (Exit.USAGE, ["renew", "certs", "node-1", "--authority"], "name none with it"),
]


@pytest.mark.parametrize(("code", "words", "said"), MISTAKES, ids=[" ".join(case[1]) for case in MISTAKES])
def test_a_mistake_is_told_and_makes_no_file(
    code: Exit, words: list[str], said: str, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    assert said in refused(capsys, code, *words) and list(here.iterdir()) == []


def test_another_cluster_needs_another_folder(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "init", "certs", "--cluster-id", CLUSTER)
    told(capsys, "init", "certs", "--cluster-id", CLUSTER, "--client", "ada")
    other = "AAAAAAAAAAAAAAAAAAAAAg"
    assert f"is of cluster {CLUSTER}" in refused(capsys, Exit.PRECONDITION, "init", "certs", "--cluster-id", other)


def test_certificates_are_renewed_all_or_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    before = marks(told(capsys, "init", "certs", "--node", "1=a", "--node", "2=b", "--client", "ada"))
    one = told(capsys, "renew", "certs", "node-2", "--days", "7")
    assert [found["file"] for found in one["certificates"]] == ["node-2.keystore.pem"]
    assert one["certificates"][0]["days_left"] == 7
    after = marks(told(capsys, "show", "certs"))
    assert {name for name in before if before[name] != after[name]} == {"node-2.keystore.pem"}
    assert len(told(capsys, "renew", "certs")["certificates"]) == 3
    assert "it has: node-1, node-2, client-ada" in refused(capsys, Exit.NOT_FOUND, "renew", "certs", "node-3")


def marks(document: Any) -> dict[str, str]:
    return {one["file"]: one["sha256"] for one in document["certificates"]}


def test_the_authority_is_renewed_in_three_steps_that_say_what_comes_next(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "init", "certs", "--node", "1=a")
    said = []
    for _ in range(3):
        assert main(["tls", "renew", "certs", "--authority"]) == 0
        said.append(capsys.readouterr().err)
        told(capsys, "verify", "certs")
    assert ["Step 1 of 3" in said[0], "Step 2 of 3" in said[1], "Step 3 of 3" in said[2]] == [True] * 3
    assert "certs --authority` goes on" in said[0] and "complete" in said[2] and "Then" not in said[2]


def test_what_ends_soon_or_does_not_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "init", "certs", "--node", "1=a", "--days", "10")
    assert main(["tls", "verify", "certs"]) == 0
    assert "end within 14 days: node-1" in capsys.readouterr().err
    Folder(Path("old"), NOW - timedelta(days=100)).create(CLUSTER)
    Folder(Path("old"), NOW - timedelta(days=100)).issue([parse_node("1=a")], 50, replace=False)
    assert "node-1: the files do not work" in refused(capsys, Exit.DATA_INVALID, "verify", "old")
    assert main(["tls", "show", "old"]) == 0 and "-50" in capsys.readouterr().out


def test_a_key_that_others_read_is_no_pair_for_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "init", "certs", "--node", "1=a")
    os.chmod("certs/node-1.keystore.pem", 0o644)
    assert main(["tls", "verify", "certs"]) == Exit.DATA_INVALID
    assert "chmod 600" in capsys.readouterr().out


def test_a_revoked_certificate_is_noted_and_where_it_counts_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    shown = marks(told(capsys, "init", "certs", "--client", "ada", "--node", "1=a"))
    said = told(capsys, "revoke", "certs", "ada")
    assert said == {"sha256": shown["client-ada.keystore.pem"], "name": "client-ada", "file": "certs/revoked.txt"}
    assert main(["tls", "revoke", "certs", "node-1"]) == 0
    assert f"{DENIED_CERTIFICATES}={Path.cwd()}/certs/revoked.txt" in capsys.readouterr().err
    assert parse_denied(Path("certs/revoked.txt").read_text()) == {
        shown["client-ada.keystore.pem"], shown["node-1.keystore.pem"],
    }  # fmt: skip


def test_any_certificate_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "init", "certs", "--node", "1=a,::1")
    Path("both.pem").write_text(Path("certs/ca.pem").read_text() + "text\n" + Path("certs/node-1.pem").read_text())
    authority, node = told(capsys, "show", "both.pem")["certificates"]
    assert authority["subject"] == authority["issuer"] == node["issuer"] and node["hosts"] == ["a", "::1", "localhost"]
    Path("bad.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "bad.pem: " in refused(capsys, Exit.DATA_INVALID, "show", "bad.pem")
    Path("none.pem").write_text("nothing")
    assert "has no certificate" in refused(capsys, Exit.DATA_INVALID, "show", "none.pem")


# --- keystores ---

AUTHORITY = new_authority(CLUSTER, NOW)
PAIR = issue(AUTHORITY, parse_client("ada"), NOW)


def keystore(path: str, password: str = "pass word", key: bool = True) -> None:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    chain = [AUTHORITY.certificate]
    if key:
        data = pkcs12.serialize_key_and_certificates(b"a", PAIR.key, PAIR.certificate, chain, encryption)
    else:
        data = pkcs12.serialize_key_and_certificates(None, None, None, chain, encryption)
    Path(path).write_bytes(data)


def test_a_keystore_becomes_pem(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    keystore("ks.p12")
    monkeypatch.setenv("SECRET", "pass word")
    said = told(capsys, "import", "ks.p12", "--password", "env:SECRET")
    assert said == {"file": "ks.pem", "has_key": True, "certificates": 2}
    chain = PAIR.certificate_pem + AUTHORITY.certificate_pem
    assert Path("ks.pem").read_bytes() == PAIR.key_pem + chain and Path("ks.pem").stat().st_mode & 0o777 == 0o600
    assert "ks.pem is there already" in refused(
        capsys, Exit.PRECONDITION, "import", "ks.p12", "--password", "env:SECRET"
    )
    Path("secret").write_text("pass word\n")
    told(capsys, "import", "ks.p12", "--password", "file:secret", "--force", "--out", "ks.pem")


def test_a_truststore_becomes_pem(capsys: pytest.CaptureFixture[str]) -> None:
    keystore("ts.p12", password="", key=False)
    assert told(capsys, "import", "ts.p12", "--out", "ca.pem") == {
        "file": "ca.pem",
        "has_key": False,
        "certificates": 1,
    }
    assert Path("ca.pem").read_bytes() == AUTHORITY.certificate_pem


def test_a_wrong_password_and_a_password_in_the_open_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keystore("ks.p12")
    monkeypatch.setenv("SECRET", "canary")
    said = refused(capsys, Exit.DATA_INVALID, "import", "ks.p12", "--password", "env:SECRET")
    assert "its password is another one" in said and "canary" not in said
    assert "env:NAME or file:PATH" in refused(capsys, Exit.DATA_INVALID, "import", "ks.p12")
    said = refused(capsys, Exit.USAGE, "import", "ks.p12", "--password", "canary")
    assert "can be seen by all" in said and "canary" not in said
    assert "has no NOWHERE" in refused(capsys, Exit.NOT_FOUND, "import", "ks.p12", "--password", "env:NOWHERE")
    assert not Path("ks.pem").exists()


def test_what_cannot_be_imported_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    assert "keytool -importkeystore -srckeystore old.jks" in refused(capsys, Exit.PRECONDITION, "import", "old.jks")
    Path("a.pem").write_bytes(PAIR.key_pem)
    assert "--out" in refused(capsys, Exit.USAGE, "import", "a.pem")
    assert "is PEM already" in refused(capsys, Exit.DATA_INVALID, "import", "a.pem", "--out", "b.pem")
    Path("noise.p12").write_bytes(b"\x30\x82\x01\x00noise")
    assert "this is no PKCS#12" in refused(capsys, Exit.DATA_INVALID, "import", "noise.p12")


@pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no Java")
def test_a_keystore_of_javas_own_tool_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ["keytool", "-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=old", "-keystore", "java.p12"]
    subprocess.run(
        [*made, "-storetype", "PKCS12", "-storepass", "hunter22"], check=True, capture_output=True, timeout=60
    )
    monkeypatch.setenv("SECRET", "hunter22")
    assert told(capsys, "import", "java.p12", "--password", "env:SECRET")["has_key"] is True
    assert told(capsys, "show", "java.pem")["certificates"][0]["subject"] == "CN=old"
