"""Members of a group that keep their place by an instance id (KIP-345), over real processes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from group_members import PARTITIONS, WAIT_S, Member, are_shared, poll_until, produce_to_all, read

from quorumlog.testing import LocalCluster

SESSION_MS = 6_000


class Static(Member):
    """rebalances: that librdkafka has counted."""

    def __init__(self, cluster: LocalCluster, topic: str, instance: str) -> None:
        self.rebalances = 0
        super().__init__(
            cluster,
            topic,
            group_instance_id=instance,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            statistics_interval_ms=200,
            stats_cb=self._count,
        )

    def _count(self, statistics: str) -> None:
        group: dict[str, Any] = json.loads(statistics).get("cgrp", {})
        self.rebalances = max(self.rebalances, group.get("rebalance_cnt", 0))


@pytest.mark.timeout(120)
def test_a_static_member_returns_without_a_rebalance_and_is_fenced_by_its_double(tmp_path: Path) -> None:
    config = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with LocalCluster(tmp_path / "cluster", config=config) as cluster, cluster.topic("bills", PARTITIONS) as topic:
        stays, leaves = Static(cluster, topic.name, "stays"), Static(cluster, topic.name, "leaves")
        poll_until([stays, leaves], lambda: are_shared([stays, leaves]), "rebalance")
        produce_to_all(cluster, topic.name, "before", 30)
        poll_until([stays, leaves], lambda: len(read([stays, leaves])) >= 30, "record of before")
        poll_until([stays, leaves], lambda: stays.rebalances > 0, "statistics")
        held, had, rebalances = stays.partitions, leaves.partitions, stays.rebalances

        leaves.close()  # a static member does not tell the group that it leaves
        back = Static(cluster, topic.name, "leaves")
        poll_until([stays, back], lambda: back.partitions == had, "return of the member")
        produce_to_all(cluster, topic.name, "after", 30)
        found = [stays, leaves, back]
        poll_until([stays, back], lambda: len(set(read(found))) >= 60, "record of after")
        assert (stays.partitions, stays.rebalances) == (held, rebalances)

        double = Static(cluster, topic.name, "leaves")
        deadline, error = time.monotonic() + WAIT_S, ""
        while "FENCED" not in error.upper() and time.monotonic() < deadline:
            stays.poll()
            double.poll()
            error = back.error() or error
        assert "FENCED" in error.upper(), f"the first of two with one instance id goes on: {error}"
        poll_until([stays, double], lambda: double.partitions == had, "assignment of the double")
        assert (stays.partitions, stays.rebalances) == (held, rebalances)

        back.close()
        double.close()
        poll_until([stays], lambda: stays.partitions == set(range(PARTITIONS)), "end of the session")
        stays.close()
