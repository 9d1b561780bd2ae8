"""docs/guides/operators.md over real processes: each command in its order, and what it is meant to bring about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from tests.live.page_nodes import Reader

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "operators.md"
DRILL = "(cd drill && quorumlog consume orders -e | wc -l)"
RECORDS = "1000"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    picker = PortPicker()
    made = Reader(tmp_path, picker)
    try:
        yield made
    finally:
        made.close()
        if has_cluster(tmp_path / "drill" / ".quorumlog"):
            LocalNodes.open(tmp_path / "drill" / ".quorumlog").stop(timeout_s=0)
        picker.close()


@pytest.mark.timeout(290)
def test_the_page_does_what_it_says(reader: Reader, tmp_path: Path) -> None:
    servers = reader.at_free_ports("127.0.0.1:19092")
    drained: list[int] = []
    for command in reader.do(PAGE.read_text()):
        if command.startswith("quorumlog broker drain 4"):
            drained.append(held_by_4(servers))
    said = reader.said
    assert "valid, 0 warnings" in said["quorumlog server config lint -c node1.properties"]
    assert said["quorumlog consume orders -e | wc -l"].split()[0] == RECORDS == said[DRILL].split()[0]
    assert "QUORUMLOG ALL OK" in said["quorumlog check"]
    assert (tmp_path / "monitoring" / "prometheus.yml").is_file()
    assert len(list((tmp_path / "monitoring" / "dashboards").glob("*.json"))) == 6
    assert "604800000" in said["quorumlog config get orders"]
    assert drained[0] > 0 == held_by_4(servers)
    assert (tmp_path / "evidence.tar.zst").stat().st_mode & 0o77 == 0
    assert not (tmp_path / "drill" / ".quorumlog").exists()


def held_by_4(servers: str) -> int:
    """Replicas of orders."""
    with Cluster(servers) as cluster:
        return sum(4 in partition.replicas for partition in cluster.admin.describe_topic("orders").partitions)
