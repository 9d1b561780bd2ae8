"""`explain`, `check` and `diagnose` at three real processes with TLS, users and rules."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.commands.explaining import diagnose
from quorumlog_cli.main import main

CANARY = "canary-7f3a-content-of-a-record"
CHECK = ("check", "--free-percent", "0", "--stall-ms", "600000", "--over", "0.1")  # of a busy machine with a full disk


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("explained") / ".quorumlog", tls=True) as made:
        made.client.admin.create_topic("orders", 3, 3)
        with made.client.producer() as producer:
            for number in range(50):
                producer.send("orders", CANARY.encode(), key=f"{CANARY}-{number}".encode())
        yield made


@pytest.fixture(autouse=True)
def _here(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cluster.nodes.layout.root.parent)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> Any:
    assert main([*words, "-o", "json"]) == code, capsys.readouterr()
    return json.loads(capsys.readouterr().out)


def test_a_healthy_cluster_says_what_it_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(CHECK)) == 0
    line, *more = capsys.readouterr().out.splitlines()
    assert line.startswith("QUORUMLOG ALL OK - looked at") and "3 brokers, 3 partitions" in line and not more
    assert "| findings=0 partitions=3 offline=0" in line
    found = said(capsys, "explain", "orders-1", code=0)
    assert found["findings"] == [] and found["read"][0]["source"] == "Metadata"


def test_a_bundle_has_what_helps_and_no_secret(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster.nodes.layout.root
    monkeypatch.setattr(diagnose, "BETWEEN_S", 0.1)
    found = said(capsys, "diagnose", "--all", "--to", str(root.parent / "bundle.tar.zst"), code=0)
    path = Path(found["file"])
    assert path.stat().st_mode & 0o777 == 0o600 and found["missing"] == {}
    data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        parts = {one.name.partition("/")[2]: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    assert {"manifest.json", "cluster/quorum.json", "cluster/events.json", "config/broker-1.json"} <= set(parts)
    assert {"metrics-1.txt", "metrics-2.txt", "log.jsonl", "process.json"} <= {one.rpartition("/")[2] for one in parts}
    assert b"orders" in parts["cluster/topics.json"]
    config = {one["name"]: one for one in json.loads(parts["config/broker-1.json"])}
    assert config["node.id"]["origin"] == "file" and config["node.id"]["value"] == "1"
    secrets = {CANARY, *secrets_below(root)}
    assert len(secrets) > 5
    for name, content in parts.items():
        assert [one for one in secrets if one.encode() in content] == [], name


def secrets_below(root: Path) -> set[str]:
    """Passwords, the cluster's secret, and lines of private keys, as the cluster's own files have them."""
    found = set((root / "admin.password").read_text().split())
    for path in root.rglob("*"):
        if path.is_file() and path.stat().st_size < 100_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if "PRIVATE KEY" in text:
                found |= {line for line in text.splitlines() if len(line) > 40 and not line.startswith("-----")}
            found |= {
                value.strip()
                for line in text.splitlines()
                if (value := line.partition("=")[2]) and "password" in line.partition("=")[0] and len(value) > 6
            }
            if "secret" in path.name:
                found |= {one for one in text.split() if len(one) > 8}
    return found


def test_a_node_that_dies_is_named_with_the_record_that_says_so(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last test: it kills."""
    cluster.kill(3)

    def named() -> bool:
        main(["explain", "orders-0", "-o", "json", "--over", "0"])
        return "replica.broker-away" in capsys.readouterr().out

    wait_until(named, 20, "broker 3 to be named")
    found = said(capsys, "explain", "partition/orders-0", code=5)["findings"][0]
    assert found["cause"] == "replica.broker-away" and "broker 3" in found["state"]
    records = {one.get("record") for one in found["why"]}
    assert {"PartitionChangeRecord", "BrokerRegistrationChangeRecord"} <= records
    assert found["do"] == "quorumlog restart 3"
    checked = said(capsys, *CHECK, "--format", "json", code=1)
    assert {"broker.lost", "replica.broker-away"} <= {one["cause"] for one in checked["findings"]}
    assert main([*CHECK, "segment", "--format", "prometheus"]) == 1
    assert 'cause="broker.lost",severity="warning"} 1' in capsys.readouterr().out
    assert main(["explain", "payments"]) == 7
