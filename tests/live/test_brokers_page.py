"""Brokers that come, are replaced and go as docs/operations.md says, and nodes restarted one by one under load."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest
from operations_world import IDS, Operator, commands_of
from upgrade_load import TOPIC as LOAD
from upgrade_load import UpgradeLoad

from quorumlog.client.admin import NewTopic
from quorumlog.messages.cluster import ClusterBroker
from quorumlog.testing.ports import PortPicker
from quorumlog_quorum.metadata.features import LATEST_LEVEL

TOPIC = "orders"
PLACES = [(4, 1, 2), (1, 4, 3), (2, 3, 4)]
LIST = "quorumlog broker list -b SERVERS"


@pytest.fixture(scope="module")
def picker() -> Iterator[PortPicker]:
    made = PortPicker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory, picker: PortPicker) -> Iterator[Operator]:
    made = Operator.with_three_nodes(tmp_path_factory.mktemp("brokers"), picker)
    try:
        for node in IDS:
            made.wait(lambda node=node: made.is_ready(node), f"node {node} is ready")
        yield made
    finally:
        made.close()


def brokers(operator: Operator) -> dict[int, ClusterBroker]:
    with operator.client() as cluster:
        return {one.node_id: one for one in cluster.admin.describe_cluster(include_partition_counts=True).brokers}


def read(operator: Operator) -> set[bytes | None]:
    with operator.client() as cluster, cluster.consumer(TOPIC, start="earliest", stop="latest") as consumer:
        return {record.value for record in consumer}


def in_sync(operator: Operator, topic: str, places: list[tuple[int, ...]]) -> bool:
    return operator.in_sync(topic) == [sorted(place) for place in places]


def test_a_broker_comes_is_replaced_and_goes(operator: Operator, picker: PortPicker) -> None:
    assert operator.add_broker(picker) == 4
    operator.follow("Add a broker", {})
    assert {node: one.fenced for node, one in brokers(operator).items()} == dict.fromkeys((1, 2, 3, 4), False)
    with operator.client() as cluster:
        cluster.admin.create_topics([NewTopic(name=TOPIC, assignment=PLACES)])
    operator.wait(lambda: in_sync(operator, TOPIC, PLACES), "all replicas are in sync")
    values = {b"%d" % number for number in range(60)}
    with operator.client() as cluster, cluster.producer() as producer:
        for value in sorted(values):
            producer.send(TOPIC, value)
        producer.flush(30)

    operator.kill(4)
    for name in ("data", "meta"):
        shutil.rmtree(operator.root / "node4" / name)
    operator.wait(lambda: brokers(operator)[4].fenced, "broker 4 is fenced")
    epoch = brokers(operator)[4].broker_epoch
    operator.follow("Replace a broker", {LIST: 5})
    operator.wait(lambda: in_sync(operator, TOPIC, PLACES), "node 4 holds its replicas again")
    found = brokers(operator)[4]
    assert (found.fenced, found.replicas) == (False, 3) and found.broker_epoch > epoch
    assert read(operator) == values
    skewed = "quorumlog partition move orders-1=4,1,3 orders-2=4,3,2 --wait -b SERVERS"
    operator.bash(operator.filled_in(skewed))
    operator.follow("Balance the load", {})
    with operator.client() as cluster:
        leaders = [one.leader_id for one in cluster.admin.describe_topic(TOPIC).partitions]
    assert len(set(leaders)) == 3, "no broker leads two of the three"
    assert json.loads((operator.root / "rollback.json").read_text())["version"] == 1
    operator.follow("Drain a broker", {})
    assert brokers(operator)[4].replicas == 0, "drained means empty"
    assert all(len(isr) == 3 and 4 not in isr for isr in operator.in_sync(TOPIC))
    assert read(operator) == values

    refused = operator.filled_in("quorumlog broker unregister 4 --yes -b SERVERS")
    operator.bash(refused, 6)
    assert "stop it" in operator.errors
    for command in commands_of("Remove a broker"):
        if "unregister" in command:
            operator.stop(4)
        operator.bash(operator.filled_in(command))
    assert sorted(brokers(operator)) == [1, 2, 3]
    assert in_sync(operator, TOPIC, [IDS] * 3) and read(operator) == values


def test_nodes_restarted_one_by_one_fail_no_write_and_lose_none(operator: Operator) -> None:
    """Each leads partitions before it stops, and is the active controller once at most."""
    everywhere = [IDS] * 3
    with UpgradeLoad(operator.values["SERVERS"]) as load:
        operator.wait(lambda: in_sync(operator, LOAD, everywhere), "all replicas are in sync")
        for node in IDS:
            before = len(load.acked)
            operator.stop(node)
            operator.wait(lambda before=before: len(load.acked) > before + 50, "writes go on without it")
            operator.start(node)
            operator.wait(lambda node=node: operator.is_ready(node), f"node {node} is ready")
            operator.wait(lambda: in_sync(operator, LOAD, everywhere), f"node {node} is in sync again")
    assert not load.broken and load.errors == []
    with operator.client() as cluster, cluster.consumer(LOAD, start="earliest", stop="latest") as consumer:
        read = Counter(record.value for record in consumer)
    assert [value for value in load.acked if read[value] != 1] == [], "each is there once"
    assert len(load.acked) > 300


def test_nodes_are_upgraded(operator: Operator) -> None:
    operator.stop(1)
    operator.follow("Upgrade", {})
    told = operator.told
    assert "metadata.version" in operator.said["quorumlog feature describe -b SERVERS"]
    assert "already" in told["quorumlog feature upgrade --latest -b SERVERS"], "a new cluster is at the latest level"
    lowered = told["quorumlog feature downgrade metadata.version=3 --dry-run -b SERVERS"]
    assert f"could go from level {LATEST_LEVEL} to 3" in lowered
