"""Faults at three real processes, each named by `check` and `explain` within half a minute. The night runs it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main

WITHIN_S = 30.0
VALUE = b"x" * 1_000  # what makes a partition hot is bytes
LIMITS = ("--free-percent", "0", "--stall-ms", "600000")


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    root = tmp_path_factory.mktemp("faults")
    monkeypatch.chdir(root)
    with LocalCluster(root / ".quorumlog") as made:
        yield made


def causes(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    capsys.readouterr()
    main([*words, "-o", "json"])
    return {one["cause"] for one in json.loads(capsys.readouterr().out)["findings"]}


def named(capsys: pytest.CaptureFixture[str], cause: str, area: str, subject: str, over: str = "1") -> None:
    check = ("check", area, *LIMITS, "--over", over, "--transaction", "1")
    wait_until(lambda: cause in causes(capsys, *check), WITHIN_S, f"{cause} in check {area}")
    assert cause in causes(capsys, "explain", subject, "--over", over)


def test_a_hot_partition(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.client.admin.create_topic("hot", 4, 3)
    with running(cluster, lambda client, stop: send_until(client, stop, partition=1)):
        named(capsys, "partition.hot", "perf", "partition/hot-1")


def test_a_group_that_commits_nothing(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """A member that goes on heartbeating, as one whose processing hangs in a thread of its own."""
    client = cluster.client
    client.admin.create_topic("slow", 1, 3)
    send(client, "slow", 50)
    with client.consumer("slow", group="billing", enable_auto_commit=False) as reader:
        next(iter(reader))
        reader.commit()
        send(client, "slow", 50)
        named(capsys, "group.commits-nothing", "lag", "group/billing", over="10")


def test_a_paused_node_then_one_that_goes_on(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.client.admin.create_topic("orders", 3, 3)
    cluster.nodes.pause(3)
    named(capsys, "broker.lost", "segment", "broker/3")
    named(capsys, "quorum.voter-silent", "quorum", "quorum")
    cluster.nodes.resume(3)
    check = ("check", *LIMITS, "--over", "0")
    wait_until(lambda: not causes(capsys, *check) - {"replica.lagging", "broker.starting"}, WITHIN_S, "no cause")


def test_a_restart_in_order_raises_no_alarm(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.client.admin.create_topic("orders", 3, 3)
    cluster.nodes.stop([3])
    found = causes(capsys, "check", "segment", *LIMITS)
    assert "broker.shut-down" in found and "broker.lost" not in found
    assert main(["check", "segment", *LIMITS]) == 0
    cluster.nodes.start([3])
    cluster.wait_healthy(WITHIN_S)
    assert main(["check", "segment", *LIMITS]) == 0


# --- load


def send(client: Cluster, topic: str, count: int, **how: Any) -> None:
    with client.producer() as producer:
        for _ in range(count):
            producer.send(topic, VALUE, **how)


def send_until(client: Cluster, stop: threading.Event, **how: Any) -> None:
    while not stop.is_set():
        send(client, "hot", 500, **how)


@contextmanager
def running(cluster: LocalCluster, work: Callable[[Cluster, threading.Event], None]) -> Iterator[None]:
    """A thread with a client of its own, for the length of the block."""
    stop = threading.Event()

    def run() -> None:
        with Cluster(cluster.bootstrap_servers) as client:
            work(client, stop)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
