"""Three nodes of earlier software, replaced one by one under load: forth, back, forth again, then a higher level.

The order is the one of docs/operations.md. What was acknowledged is there at the end, metadata changes all the time,
and a node that is too old for the level that is in force then says so and stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen.live.cluster.versions import NO_HISTORY, OLD_LEVEL, VersionedNodes, has_history, old_tree
from quorumlog.client.blocking import Cluster
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from tests.live.upgrade_load import KEY, PARTITIONS, TOPIC, UpgradeLoad

IN_SYNC_S = 40.0
LONGEST_PAUSE_S = 20.0  # without an acknowledged change of metadata, while a node is replaced


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[VersionedNodes]:
    if not has_history():
        pytest.skip(NO_HISTORY)
    picker = PortPicker()
    with old_tree(tmp_path / "old") as old:
        made = VersionedNodes.of_old_software(tmp_path / "cluster", old, picker)
        try:
            made.start()
            made.wait_ready()
            yield made
        finally:
            made.stop()
            picker.close()


def in_sync(nodes: VersionedNodes, load: UpgradeLoad) -> None:
    """Wait until every replica is in sync and more was acknowledged: only then the next node is replaced."""
    nodes.wait_ready(timeout_s=IN_SYNC_S)
    records, changes = len(load.acked), len(load.changed_s)

    def behind() -> list[str]:
        with Cluster(nodes.layout.bootstrap_servers) as client:
            topics = client.admin.list_topics()
            quorum = client.admin.describe_quorum()
        slow = [str(voter.replica_id) for voter in quorum.voters if voter.log_end_offset + 100 < quorum.high_watermark]
        return slow + [
            f"{topic.name}-{one.index}: {one.isr}" for topic in topics for one in topic.partitions if len(one.isr) < 3
        ]

    wait_until(
        lambda: not behind() and len(load.acked) > records + 50 and len(load.changed_s) > changes + 5,
        IN_SYNC_S,
        "all replicas to be in sync, and the load to go on",
        lambda: f"{behind()}, {load.errors[-3:]}, {load.broken}",
    )


def feature(*arguments: str, servers: str) -> int:
    return main(["feature", *arguments, "-b", servers])


@pytest.mark.timeout(290)  # fifteen restarts of a node
def test_an_upgrade_node_by_node_forth_and_back_loses_nothing(
    nodes: VersionedNodes, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = nodes.layout.bootstrap_servers
    with UpgradeLoad(servers) as load:
        in_sync(nodes, load)
        for node_id in nodes.ids:
            nodes.upgrade(node_id)
            in_sync(nodes, load)
        for node_id in nodes.ids:
            nodes.roll_back(node_id)
            in_sync(nodes, load)
        for node_id in nodes.ids:
            nodes.upgrade(node_id)
            in_sync(nodes, load)
            if node_id != nodes.ids[-1]:
                assert feature("upgrade", f"metadata.version={LATEST_LEVEL}", servers=servers) == 6
                assert "newer software" in capsys.readouterr().err
        assert feature("upgrade", f"metadata.version={LATEST_LEVEL}", servers=servers) == 0
        assert f"from level {OLD_LEVEL} to {LATEST_LEVEL}" in capsys.readouterr().err
        in_sync(nodes, load)
        check_too_old_a_node_stops(nodes, nodes.ids[0])
        for node_id in nodes.ids:
            nodes.require_proof(node_id)
            in_sync(nodes, load)
        assert feature("upgrade", "--latest", servers=servers) == 0
        said = capsys.readouterr().err
        assert "group.version went from level 0 to 1" in said and "transaction.version went from level 0 to 2" in said
        assert "joint.version went from level 0 to 2" in said
        in_sync(nodes, load)
    assert not load.broken
    check_nothing_is_lost(servers, load)
    check_a_node_that_proves_nothing_is_refused(nodes, nodes.ids[0])


def check_nothing_is_lost(servers: str, load: UpgradeLoad) -> None:
    assert len(load.acked) > 1_000 and len(load.made) > 5
    with Cluster(servers) as client:
        found: dict[bytes, int] = {}
        for record in client.consumer(TOPIC, start="earliest", stop="latest"):
            found[record.value] = found.get(record.value, 0) + 1
        assert [value for value in load.acked if value not in found] == []
        assert [value for value in load.acked if found[value] > 1] == [], "the producer is idempotent"
        topics = {topic.name for topic in client.admin.list_topics()}
        assert [name for name in load.made if name not in topics] == []
        (setting,) = client.admin.describe_configs(TOPIC, names=[KEY]).configs
        assert int(setting.value or 0) >= load.setting
    assert PARTITIONS == 3
    assert load.longest_pause_s() < LONGEST_PAUSE_S


def check_too_old_a_node_stops(nodes: VersionedNodes, node_id: int) -> None:
    """By itself, with the reason in its log; the others go on."""
    nodes.roll_back(node_id)
    wait_until(lambda: nodes.process(node_id) is None, 30.0, "the old node to stop", lambda: nodes.log_tail(node_id))
    log = nodes.layout.node(node_id).log.read_text()
    assert f"metadata.version at level {LATEST_LEVEL}" in log and "Upgrade this node" in log
    nodes.wait_ready([other for other in nodes.ids if other != node_id])


def check_a_node_that_proves_nothing_is_refused(nodes: VersionedNodes, node_id: int) -> None:
    """It never serves, and the others say why and what to do."""
    nodes.roll_back(node_id)
    logs = [nodes.layout.node(other).log for other in nodes.ids if other != node_id]
    wait_until(
        lambda: any("takes no secret in clear; upgrade the caller" in log.read_text() for log in logs),
        30.0,
        "the others to refuse the old node",
    )
    assert not nodes.readiness(node_id).ready
    nodes.require_proof(node_id)
    nodes.wait_ready([node_id])
