"""`explain`, `check` and `diagnose` at an Apache Kafka: what it tells is judged, what it does not tell is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorumlog_cli.main import main
from tests.spark.kafka_server import client_of, kafka_server


def test_what_an_apache_kafka_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with kafka_server(tmp_path / "kafka") as servers, client_of(servers) as client:
        client.admin.create_topic("orders", 3)
        at = ("-b", servers, "-o", "json")
        assert main(["check", "--free-percent", "0", *at]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["findings"] == [] and "events" in found["unknown"] and found["figures"]["partitions"] == 3
        for subject in ("orders", "orders-0", "quorum", "broker/1"):
            assert main(["explain", subject, *at]) == 0
            assert "keeps none" in json.loads(capsys.readouterr().out)["unknown"]["events"]
        assert main(["diagnose", "--to", "kafka.tar.zst", *at]) == 0
        parts = json.loads(capsys.readouterr().out)["parts"]
        assert {"cluster/topics.json", "config/broker-1.json", "check.json"} <= set(parts)
