"""`quorumlog generate`: what it prints and writes, and whom Prometheus is told to scrape."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog_cli.commands.monitoring import http_ports
from quorumlog_cli.commands.monitoring.http_ports import Ports, target_of
from quorumlog_cli.main import main
from quorumlog_server.monitoring.scraping import Target, scrape_file

NODE = Target(node_id=1, host="h", port=9644)


@pytest.mark.parametrize(
    ("broker_host", "port", "host", "protocol", "want"),
    [
        ("h", "9644", "0.0.0.0", "PLAINTEXT", NODE),
        ("h", "9644", "::", "PLAINTEXT", NODE),
        ("h", "9644", "", "", NODE),
        ("10.0.0.1", "9644", "h", "PLAINTEXT", NODE),
        ("h", "9644", "0.0.0.0", "SSL", Target(node_id=1, host="h", port=9644, tls=True)),
        ("127.0.0.1", "9644", "127.0.0.1", "PLAINTEXT", Target(node_id=1, host="127.0.0.1", port=9644)),
        ("h", "9644", "127.0.0.1", "PLAINTEXT", "metrics.host=127.0.0.1 is reached from its own machine only"),
        ("h", "9644", "localhost", "PLAINTEXT", "metrics.host=localhost is reached from its own machine only"),
        ("h", None, "0.0.0.0", "PLAINTEXT", "it has no metrics.port"),
        ("h", "0", "0.0.0.0", "PLAINTEXT", "its metrics.port is 0, another with each start"),
    ],
)
def test_where_a_node_is_scraped(
    broker_host: str, port: str | None, host: str, protocol: str, want: Target | str
) -> None:
    found = target_of(1, broker_host, port, host, protocol)
    assert found == (want if isinstance(want, Target) else f"Node 1 is not scraped: {want}.")


def test_brokers_tell_their_ports_and_the_others_are_named() -> None:
    def told(name: str, **_: Any) -> Any:
        if name == "2":
            raise RequestFailed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "denied")
        return SimpleNamespace(configs=[SimpleNamespace(name="metrics.port", value="9644")])

    admin: Any = SimpleNamespace(
        describe_cluster=lambda: SimpleNamespace(brokers=[SimpleNamespace(node_id=n, host="h") for n in (2, 1)]),
        describe_configs=told,
        describe_quorum=lambda: SimpleNamespace(voters=[SimpleNamespace(replica_id=n) for n in (1, 9)]),
    )
    found = list(http_ports._told(admin))
    assert found[0] == NODE
    assert [str(one)[:22] for one in found[1:]] == ["Node 2 is not scraped:", "Node 9 is not scraped:"]


def test_a_node_with_tls_is_scraped_over_tls_and_in_the_same_cluster() -> None:
    yaml = pytest.importorskip("yaml")
    text = scrape_file([NODE, Target(node_id=2, host="::1", port=9645, tls=True)], job='a"b', missing=("No\nnode 3.",))
    plain, secure = yaml.safe_load(text)["scrape_configs"]
    assert "scheme" not in plain and plain["static_configs"] == [{"targets": ["h:9644"], "labels": {"job": 'a"b'}}]
    assert secure["scheme"] == "https" and secure["tls_config"] and secure["basic_auth"]
    assert secure["static_configs"] == [{"targets": ["[::1]:9645"], "labels": {"job": 'a"b'}}]
    assert plain["job_name"] != secure["job_name"] and "# No node 3.\n" in text


def test_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(http_ports, "find_ports", lambda *_: Ports((NODE,), ()))
    assert main(["generate", "grafana", "--to", str(tmp_path / "new")]) == 0
    assert len(list((tmp_path / "new").glob("quorumlog-*.json"))) == 6
    assert main(["generate", "alerts", "--prometheus", "--to", str(tmp_path), "-o", "json"]) == 0
    paths = [str(tmp_path / name) for name in ("quorumlog-alerts.yml", "prometheus.yml")]
    assert json.loads(capsys.readouterr().out) == {"written": paths}
    assert '"h:9644"' in (tmp_path / "prometheus.yml").read_text()
    assert main(["generate", "grafana", "--to", str(tmp_path / "prometheus.yml")]) == 1


def test_one_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "grafana", "quorum"]) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "quorumlog-quorum"
    assert main(["generate", "grafana"]) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "quorumlog-overview"
    assert main(["generate", "alerts"]) == 0
    assert capsys.readouterr().out.startswith("# Written by `quorumlog generate alerts`.\n")


def test_a_cluster_without_ports_has_nothing_to_scrape(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http_ports, "find_ports", lambda *_: Ports((), ("Node 1 is not scraped: why.",)))
    assert main(["generate", "alerts", "--prometheus"]) == 6
    assert "Node 1 is not scraped: why." in capsys.readouterr().err
