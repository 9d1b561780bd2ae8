"""The blocking consumer as a member of a group: which thread does what."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from group_cluster import GroupCluster
from test_group_consumer import filled, make

from quorumlog.client import real_edges as edge
from quorumlog.client.blocking import Cluster
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import CalledBack, ClientClosed, ConfigError, WokenUp
from quorumlog.ids import TopicPartition
from quorumlog.messages.groups import LeaveGroupRequest


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupCluster]:
    cluster = filled()

    def consumer(config: dict[str, Any], **options: Any) -> AsyncConsumer:
        return make(cluster, **{**config, **options, "bootstrap_servers": "b2"})

    monkeypatch.setattr(edge, "consumer", consumer)
    yield cluster


def in_thread(work: Any) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def committed(cluster: GroupCluster) -> dict[TopicPartition, int]:
    with Consumer() as consumer:
        return {key: one.offset for key, one in consumer.committed([("t", i) for i in range(3)]).items()}


def test_callbacks_run_in_the_polling_thread_and_may_call_the_consumer(cluster: GroupCluster) -> None:
    threads: list[int] = []
    with Cluster("b2") as client:

        def assigned(partitions: list[TopicPartition]) -> None:
            threads.append(threading.get_ident())
            for key in partitions:
                consumer.seek(*key, 38)
            with pytest.raises(CalledBack):
                consumer.poll()
            with pytest.raises(CalledBack):
                consumer.close()

        def revoked(partitions: list[TopicPartition]) -> None:
            threads.append(threading.get_ident())
            consumer.commit(dict.fromkeys(partitions, 17))

        consumer = client.consumer(group="g", enable_auto_commit=False)
        consumer.subscribe("t", on_assigned=assigned, on_revoked=revoked, stop="latest")
        assert sorted((one.partition, one.offset) for one in consumer) == [(p, o) for p in range(3) for o in (38, 39)]
        assert consumer.assignment == [("t", 0), ("t", 1), ("t", 2)] and consumer.subscription == ["t"]
    assert set(threads) == {threading.get_ident()} and len(threads) == 2
    assert committed(cluster) == {("t", index): 17 for index in range(3)}


def test_a_callback_learns_where_it_begins(cluster: GroupCluster) -> None:
    found: list[int] = []
    with Cluster("b2") as client:

        def assigned(partitions: list[TopicPartition]) -> None:
            found.extend(consumer.position(*key) for key in partitions)

        consumer = client.consumer(group="g", enable_auto_commit=False)
        consumer.commit({("t", 1): 25})
        consumer.subscribe("t", on_assigned=assigned, stop="latest")
        assert len(list(consumer)) == 40 + 15 + 40
    assert found == [0, 25, 0]


def test_an_error_of_a_callback_is_raised_by_the_poll(cluster: GroupCluster) -> None:
    def assigned(partitions: list[TopicPartition]) -> None:
        raise ZeroDivisionError

    with Cluster("b2") as client:
        consumer = client.consumer("t", group="g", on_assigned=assigned)
        with pytest.raises(ZeroDivisionError):
            next(iter(consumer))
        assert next(iter(consumer)).offset == 0


def test_a_broken_loop_commits_what_was_yielded(cluster: GroupCluster) -> None:
    with Cluster("b2") as client:
        for record in client.consumer("t", group="g"):
            if record.offset == 6:
                break
    assert sorted(committed(cluster).values()) == [0, 0, 7]


def test_an_error_in_the_loop_commits_nothing_and_leaves(cluster: GroupCluster) -> None:
    with pytest.raises(ZeroDivisionError), Cluster("b2") as client:
        for _ in client.consumer("t", group="g"):
            raise ZeroDivisionError
    assert committed(cluster) == {}
    assert any(isinstance(request, LeaveGroupRequest) for _, request in cluster.requests)


@pytest.mark.parametrize(("end", "error"), [("wakeup", WokenUp), ("close", ClientClosed)])
def test_another_thread_ends_a_poll_that_waits(cluster: GroupCluster, end: str, error: type[Exception]) -> None:
    client = Cluster("b2")
    consumer = client.consumer("t", group="g", start="latest")
    thread, raised = in_thread(lambda: consumer.poll(timeout_ms=60_000))
    time.sleep(0.2)
    getattr(consumer, end)()
    thread.join(20)
    assert not thread.is_alive() and [type(one) for one in raised] == [error]
    client.close()


def test_commit_async_gives_a_future(cluster: GroupCluster) -> None:
    with Cluster("b2") as client:
        consumer = client.consumer("t", group="g", enable_auto_commit=False)
        while not consumer.poll(5):
            pass
        futures = [consumer.commit_async(), consumer.commit_async({("t", 2): 1}), consumer.commit_async({("t", 2): 2})]
        for future in futures:
            future.result(20)
        assert consumer.committed([("t", 2)])[("t", 2)].offset == 2


def test_pausing_and_positions(cluster: GroupCluster) -> None:
    with Cluster("b2") as client:
        consumer = client.consumer(["t"], group="g")
        while not (records := consumer.poll(5)):
            pass
        key = ("t", records[0].partition)
        assert consumer.position(*key) == 5 and consumer.lag(*key) >= 0
        consumer.pause([key])
        assert consumer.paused == [key]
        consumer.resume([key])
        assert consumer.paused == []
        consumer.unsubscribe()
        assert consumer.assignment == []


@pytest.mark.parametrize("method", ["poll", "next_chunk", "next_arrow"])
def test_what_an_interrupted_poll_found_is_not_committed(
    cluster: GroupCluster, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes when the records are there, and before the caller has them."""
    with Cluster("b2") as client:
        consumer = client.consumer("t", group="g")
        while not consumer.poll(5):
            pass
        run = consumer._run

        def interrupted(call: Any) -> None:
            assert run(call)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(consumer, "_run", interrupted)
            getattr(consumer, method)(timeout_ms=20_000)
    assert sorted(committed(cluster).values()) == [0, 0, 5]


def test_a_group_begins_at_an_end_only(cluster: GroupCluster) -> None:
    with Cluster("b2") as client, pytest.raises(ConfigError, match="auto_offset_reset must be one of"):
        client.consumer("t", group="g", start="@5")
