"""A real Prometheus scrapes three real nodes, as `quorumlog generate alerts --prometheus` tells it to."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from quorumlog_server.metrics.catalogue import CATALOGUE
from quorumlog_server.monitoring.dashboards import dashboards
from tests.metrics.catalogue import SHOWN_WHEN
from tests.monitoring.promql import by_shown_name, names_in

PROMETHEUS = shutil.which("prometheus")
NO_PROMETHEUS = "it needs Prometheus (apt-get install prometheus)"
pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason=NO_PROMETHEUS)

OF_THE_MACHINE = {"QuorumlogDirectoryNearlyFull", "QuorumlogDirectoryFull", "QuorumlogDiskSlow", "QuorumlogLoopStall"}
"""What a busy machine with a full disk raises, whatever the cluster does."""


class Prometheus:
    def __init__(self, port: int) -> None:
        self._root = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **query: str) -> Any:
        """None until it answers."""
        try:
            url = f"{self._root}/{path}?{urllib.parse.urlencode(query)}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def firing(self) -> set[str]:
        """Without those of the machine."""
        told = self.ask("alerts")
        assert told is not None, "Prometheus does not answer"
        found = told["alerts"]
        return {one["labels"]["alertname"] for one in found if one["state"] == "firing"} - OF_THE_MACHINE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("scraped") / ".quorumlog") as made:
        made.client.admin.create_topic("orders", 3, 3)
        with made.client.producer() as producer:
            producer.send("orders", b"1")
        yield made


@pytest.fixture(scope="module")
def prometheus(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cluster.nodes.layout.root.parent)
        assert main(["generate", "alerts", "--prometheus", "--to", str(folder)]) == 0
    config = folder / "prometheus.yml"
    config.write_text(config.read_text().replace('_interval: "10s"', '_interval: "1s"'))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(PROMETHEUS), f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*words, f"--storage.tsdb.path={folder / 'data'}"], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    found = Prometheus(port)

    def scraped() -> bool:
        told = found.ask("targets")
        return told is not None and [one["health"] for one in told["activeTargets"]] == ["up"] * 3

    try:
        wait_until(scraped, 60, "three nodes to be scraped", lambda: Path(folder / "log").read_text()[-2_000:])
        yield found
    finally:
        process.kill()
        process.wait()


def test_each_rule_and_each_query_of_a_dashboard_is_answered(prometheus: Prometheus) -> None:
    """What a healthy node shows is found by its name and labels, and so is what is drawn of it."""

    def all_known() -> bool:
        (group,) = prometheus.ask("rules")["groups"]
        return all(one["health"] == "ok" for one in group["rules"])

    wait_until(all_known, 60, "each rule to be evaluated")
    often = {name for one in CATALOGUE if one.name not in SHOWN_WHEN for name in by_shown_name([one])}

    def empty() -> list[str]:
        found = []
        for one in (query for dash in dashboards() for _, row in dash.rows for panel in row for query in panel.queries):
            text = one.expression.replace("$job", "quorumlog").replace("$instance", ".+")
            told = prometheus.ask("query", query=text.replace("$__rate_interval", "1m"))
            assert told is not None, one.expression
            if not told["result"] and all(name in often for name, _ in names_in(one.expression).series):
                found.append(one.expression)
        return found

    wait_until(lambda: not empty(), 60, "each query to find something", lambda: "\n".join(empty()))


def test_a_dead_node_is_told_and_a_node_that_is_back_is_not(cluster: LocalCluster, prometheus: Prometheus) -> None:
    assert prometheus.firing() == set()
    cluster.kill(3)
    wait_until(lambda: "QuorumlogBrokerLost" in prometheus.firing(), 30, "the alert of a lost broker")
    cluster.restart(3)
    wait_until(lambda: not prometheus.firing(), 120, "all to resolve", lambda: str(prometheus.firing()))
