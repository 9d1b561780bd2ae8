"""Groups of the consumer protocol (KIP-848) of librdkafka over real processes: kills, and members of both protocols."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from group_members import GROUP, PARTITIONS, Member, are_shared, described, poll_until, produce_to_all, read

from quorumlog.testing import LocalCluster

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
SLACK_S = 10.0  # of a busy machine, over a session's length

LONE_MEMBER = f"""
import sys
from confluent_kafka import Consumer
made = Consumer({{"bootstrap.servers": sys.argv[1], "group.id": {GROUP!r}, "group.protocol": "consumer"}})
made.subscribe([sys.argv[2]])
told = False
while True:
    made.poll(0.1)
    if made.assignment() and not told:
        print("joined", flush=True)
        told = True
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", config=CONFIG) as made:
        yield made


def modern(cluster: LocalCluster, topic: str) -> Member:
    return Member(cluster, topic, group_protocol="consumer")


@pytest.mark.timeout(180)
def test_a_group_lives_on_when_its_coordinator_is_killed(cluster: LocalCluster) -> None:
    with cluster.topic("bills", PARTITIONS) as topic:
        members = [modern(cluster, topic.name), modern(cluster, topic.name)]
        poll_until(members, lambda: are_shared(members), "assignment")
        produce_to_all(cluster, topic.name, "before", 30)
        poll_until(members, lambda: len(read(members)) >= 30, "record of before the kill")
        group = described(cluster)
        assert (group.type, group.state) == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE)
        assert {member.host for member in group.members} == {"/127.0.0.1"}
        owned = [member.partitions for member in members]
        cluster.kill(group.coordinator.id)
        produce_to_all(cluster, topic.name, "after", 30)
        poll_until(members, lambda: len(set(read(members))) >= 60, "record of after the kill")
        assert described(cluster).coordinator.id != group.coordinator.id
        assert [member.partitions for member in members] == owned, "a new coordinator takes nothing from its members"
        for member in members:
            member.close()
        cluster.restart(group.coordinator.id)
        produce_to_all(cluster, topic.name, "later", 30)
        late = modern(cluster, topic.name)
        poll_until([late], lambda: sum(one.startswith("later") for one in late.values) >= 30, "record of later")
        again = [one for one in late.values if not one.startswith("later")]
        assert len(again) <= 2, f"committed, and read again: {again}"
        assert late.committed(topic.name) == dict.fromkeys(range(PARTITIONS), 30)
        late.close()


@pytest.mark.timeout(120)
def test_the_partitions_of_a_killed_member_go_to_the_others(cluster: LocalCluster) -> None:
    with cluster.topic("bills", PARTITIONS) as topic:
        stays = modern(cluster, topic.name)
        poll_until([stays], lambda: len(stays.partitions) == PARTITIONS, "assignment")
        command = [sys.executable, "-c", LONE_MEMBER, cluster.bootstrap_servers, topic.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            poll_until([stays], lambda: 0 < len(stays.partitions) < PARTITIONS, "partition given up")
            assert other.stdout is not None and other.stdout.readline() == "joined\n"
            other.kill()
        produce_to_all(cluster, topic.name, "bill", 30)
        took_s = poll_until([stays], lambda: len(set(stays.values)) == 30, "record of the other's partitions")
        assert took_s < int(CONFIG["group.consumer.session.timeout.ms"]) / 1_000 + SLACK_S
        assert len(described(cluster).members) == 1
        stays.close()


@pytest.mark.timeout(180)
def test_members_change_their_protocol_one_by_one_and_back(cluster: LocalCluster) -> None:
    """Rolling restarts from the classic to the consumer protocol, and back. Nothing is lost, and all is committed."""
    with cluster.topic("bills", PARTITIONS) as topic:

        def classic() -> Member:
            return Member(cluster, topic.name, session_timeout_ms=6_000, heartbeat_interval_ms=500)

        def new() -> Member:
            return modern(cluster, topic.name)

        members, gone = [classic(), classic()], []
        poll_until(members, lambda: are_shared(members), "assignment of the first members")
        steps = [
            (new, ConsumerGroupType.CONSUMER),
            (new, ConsumerGroupType.CONSUMER),
            (classic, ConsumerGroupType.CONSUMER),
            (classic, ConsumerGroupType.CLASSIC),
        ]
        for number, (make, group_type) in enumerate(steps):
            produce_to_all(cluster, topic.name, f"step{number}", 30)
            members.append(make())
            poll_until(members, lambda: are_shared(members), f"assignment of three members in step {number}")
            gone.append(members.pop(0))
            gone[-1].close()
            poll_until(members, lambda: are_shared(members), f"assignment of two members in step {number}")
            everything = [*members, *gone]
            wanted = 30 * (number + 1)
            poll_until(members, lambda: len(set(read(everything))) == wanted, f"record of step {number}")  # noqa: B023
            assert described(cluster).type == group_type
        assert members[0].committed(topic.name) == dict.fromkeys(range(PARTITIONS), 40)
        for member in members:
            member.close()
