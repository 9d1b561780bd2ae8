"""A consumer group of librdkafka over real processes, while the broker that coordinates it is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from group_members import PARTITIONS, Member, are_shared, described, poll_until, produce_to_all, read

from quorumlog.testing import LocalCluster


@pytest.mark.timeout(180)
def test_a_group_lives_on_when_its_coordinator_is_killed(tmp_path: Path) -> None:
    config = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with LocalCluster(tmp_path / "cluster", config=config) as cluster, cluster.topic("bills", PARTITIONS) as topic:
        members = [
            Member(cluster, topic.name, session_timeout_ms=6_000),
            Member(cluster, topic.name, session_timeout_ms=6_000),
        ]
        poll_until(members, lambda: are_shared(members), "rebalance")
        produce_to_all(cluster, topic.name, "before", 30)
        poll_until(members, lambda: len(read(members)) >= 30, "record of before the kill")
        group = described(cluster)
        assert len(group.members) == 2
        assert {member.host for member in group.members} == {"/127.0.0.1"}
        cluster.kill(group.coordinator.id)
        produce_to_all(cluster, topic.name, "after", 30)
        poll_until(members, lambda: len(set(read(members))) >= 60, "record of after the kill")
        assert described(cluster).coordinator.id != group.coordinator.id
        for member in members:
            member.close()
        cluster.restart(group.coordinator.id)
        produce_to_all(cluster, topic.name, "later", 30)
        late = Member(cluster, topic.name, session_timeout_ms=6_000)
        poll_until([late], lambda: sum(one.startswith("later") for one in late.values) >= 30, "record of later")
        ends = dict.fromkeys(range(PARTITIONS), 30)
        again = [one for one in late.values if not one.startswith("later")]
        assert len(again) <= 2, f"committed, and read again: {again}"
        assert late.committed(topic.name) == ends
        assert {value.split("-")[0] for value in read(members)} == {"before", "after"}
        late.close()
