"""A broker counts as ready once the logs that the first image assigns to it are open, or cannot be."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, fail_writes_of

from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.logs_to_open import LogsToOpen
from quorumlog_quorum.metadata.image_diff import delta_from_empty

A, B = (TOPIC_ID, 0), (TOPIC_ID, 1)
CASES: list[tuple[str, list[PartitionKey], list[PartitionKey], bool]] = [
    ("nothing is assigned", [], [], True),
    ("none is open", [A, B], [], False),
    ("one of two", [A, B], [A], False),
    ("the same one twice", [A, B], [A, A], False),
    ("both", [A, B], [B, A], True),
    ("others do not count", [A], [B], False),
]


@pytest.mark.parametrize(("expected", "settled", "done"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_done_when_all_are_settled(expected: list[PartitionKey], settled: list[PartitionKey], done: bool) -> None:
    calls: list[bool] = []
    opening = LogsToOpen(lambda: calls.append(opening.done))
    opening.settled(A)  # before anything is known
    assert not opening.done
    opening.expect(expected)
    for key in settled:
        opening.settled(key)
    assert (opening.done, calls) == (done, [True] if done else [])
    assert (opening.left == 0) == done


def restarted_without_power(partitions: int, max_slice_work: int = 100) -> tuple[ReplicaCluster, Node]:
    cluster = ReplicaCluster(max_slice_work=max_slice_work)
    cluster.create_topic(partitions=partitions)
    for index in range(partitions):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", "b", index=index)
    cluster.nodes[2].cut_power()
    return cluster, cluster.start(2)


def test_a_restarted_broker_is_not_done_before_its_logs_are_open() -> None:
    cluster, node = restarted_without_power(partitions=3)
    seen: list[tuple[bool, int]] = []

    def opened() -> bool:
        logs = sum(replica.log is not None for replica in node.replicas.values())
        seen.append((node.data_plane.logs_to_open.done, logs))
        return node.data_plane.logs_to_open.done

    cluster.run_until(opened)
    assert seen[0] == (False, 0)
    assert all(done == (logs == 3) for done, logs in seen)


def test_a_topic_that_comes_later_is_not_waited_for() -> None:
    cluster = ReplicaCluster()
    cluster.run_for(100)
    assert cluster.nodes[1].data_plane.logs_to_open.done
    cluster.create_topic()
    cluster.run_until(lambda: bool(cluster.nodes[1].replicas))
    assert cluster.nodes[1].data_plane.logs_to_open.done


def test_a_log_that_cannot_be_opened_is_not_waited_for() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.nodes[2].cut_power()
    fail_writes_of(cluster.nodes[2], "/d0")
    node = cluster.start(2)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert node.failed


def test_a_partition_without_a_leader_is_opened_too() -> None:
    cluster, node = restarted_without_power(partitions=1)
    registration = cluster.image.partition(TOPIC_ID, 0)
    assert registration is not None
    node.kill()
    cluster.elect(-1, registration.isr)
    node = cluster.start(2)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert node.log_values() == ["a", "b"]


def test_logs_that_are_opened_between_two_steps_of_the_first_image_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that is open before the last step must not be waited for again. Here the broker was registered while it
    loaded the metadata, so its first image has the registration, and it opens the logs at once.
    """
    cluster, node = restarted_without_power(partitions=5, max_slice_work=1)
    node.kill()
    node.start()
    with monkeypatch.context() as patched:
        patched.setattr(node, "tell", lambda *_: None)
        cluster.register(2)
    node.tell(delta_from_empty(cluster.image), cluster.image)
    cluster.run_for(1_000)
    assert all(replica.log is not None for replica in node.replicas.values())
    assert node.data_plane.logs_to_open.done


def test_an_image_in_steps_leads_to_the_same_replicas() -> None:
    cluster = ReplicaCluster(max_slice_work=1)
    cluster.create_topic(partitions=4)
    for index in range(4):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", index=index)
    cluster.run_until(lambda: all(cluster.nodes[3].log_values(index=index) == ["a"] for index in range(4)))
