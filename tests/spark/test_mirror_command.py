"""The command `quorumlog spark mirror`: how it is called; in its own process: killed, started again, ended in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.mirror.job import lag_of, why_failed
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.connecting import connect
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from tests.spark.mirror_world import contents, offsets_of, records

RUN_S = 240.0  # Java and Spark start beside two nodes
GIVEN = ["--from", "a=h:1", "--to", "b=h:2", "--topics", "x", "--checkpoint", "c"]


def without(option: str, *more: str) -> list[str]:
    at = GIVEN.index(option)
    return [*GIVEN[:at], *GIVEN[at + 2 :], *more]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (without("--topics", "--topics", "["), Exit.USAGE, "is not a regular expression"),
        (without("--from", "--from", "a.b=h:1"), Exit.USAGE, "is no alias of a cluster"),
        (without("--to", "--to", "nowhere"), Exit.NOT_FOUND, "there is no profile 'nowhere'"),
        ([*GIVEN, "-X", "request.timeout=7"], Exit.USAGE, "did you mean 'request_timeout_ms'"),
        (without("--to"), Exit.USAGE, "--to"),
        ([*GIVEN, "--every", "soon"], Exit.USAGE, "--every must be a time such as"),
        ([*GIVEN, "--name", "a/b"], Exit.USAGE, "--name 'a/b'"),
        ([*GIVEN, "--delivery", "perhaps"], Exit.USAGE, "perhaps"),
        ([*GIVEN, "-X", "request.timeout.ms=soon"], Exit.USAGE, "whole number"),
    ],
)
def test_bad_usage(
    words: list[str], code: Exit, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from quorumlog_cli.commands.spark_jobs import spark_mirror

    monkeypatch.setattr(connect, "reach", lambda target: None)
    monkeypatch.setattr(spark_mirror, "spark_for", lambda app, master: pytest.fail("Spark starts"))
    assert main(["spark", "mirror", *words]) == code
    assert says in capsys.readouterr().err


def test_a_silent_cluster_is_told_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    words = without("--from", "--from", "a=127.0.0.1:1")
    assert main(["spark", "mirror", *words]) == Exit.UNREACHABLE
    assert "cannot reach the cluster" in capsys.readouterr().err


def test_what_a_progress_report_says() -> None:
    end = {"v": 1, "o": {"a": {"0": 5, "1": 7}}}
    latest = {"v": 1, "o": {"a": {"0": 5, "1": 9}, "new": {"0": 3}}}
    assert lag_of({"endOffset": json.dumps(end), "latestOffset": json.dumps(latest)}) == {"a": 2, "new": 3}
    assert lag_of({"endOffset": end, "latestOffset": None}) == {}


def test_the_line_that_says_why() -> None:
    text = 'job aborted\n  File "x.py"\nquorumlog.spark.read.planning.DataLoss: offsets 3 to 7\n  File "y"\n'
    assert why_failed(text) == "quorumlog.spark.read.planning.DataLoss: offsets 3 to 7"
    assert why_failed("first\nsecond") == "first" and why_failed("") == "it said nothing"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    folder = tmp_path_factory.mktemp("mirrors")
    with LocalCluster(folder / "a", nodes=1) as one, LocalCluster(folder / "b", nodes=1) as other:
        yield one, other


@contextmanager
def running(clusters: tuple[LocalCluster, LocalCluster], checkpoint: Path, *more: str) -> Iterator[Any]:
    """The command in a process group of its own, as JSON; it is killed at the end if it still runs."""
    try:
        java = use_java()
    except NoJava as error:
        pytest.skip(str(error))
    one, other = (cluster.bootstrap_servers for cluster in clusters)
    words = ["--from", f"a={one}", "--to", f"b={other}", "--checkpoint", str(checkpoint), "-o", "json", *more]
    log = (checkpoint.parent / "stderr").open("a+")
    process = subprocess.Popen(
        [sys.executable, "-m", "quorumlog_cli.main", "spark", "mirror", *words],
        env={**os.environ, "JAVA_HOME": str(java.home), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


@pytest.mark.timeout(2 * RUN_S + 60)
def test_killed_in_the_middle_started_again_and_ended_in_order(
    clusters: tuple[LocalCluster, LocalCluster], tmp_path: Path
) -> None:
    """Each record is there once; a topic that comes while it runs, too; a group is set while it runs."""
    one, other = clusters
    one.client.admin.create_topic("orders", 2)

    def send(topic: str, first: int, count: int) -> None:
        with one.client.producer() as producer:
            for number in range(first, first + count):
                producer.send(topic, b"%d" % number, key=b"%d" % number, partition=number % 2)

    def there(topic: str) -> set[int]:
        names = {found.name for found in other.client.admin.list_topics()}
        return {int(one.value) for one in records(other.client, topic)} if topic in names else set()

    given = ("--topics", "orders.*", "--max-batch", "500", "--groups-every", "1s")
    send("orders", 0, 5_000)
    with running(clusters, tmp_path / "c", *given) as process:
        wait_until(
            lambda: len(there("a.orders")) >= 1_000, RUN_S, "some batches", lambda: (tmp_path / "stderr").read_text()
        )
        os.killpg(process.pid, signal.SIGKILL)
    send("orders", 5_000, 100)
    with running(clusters, tmp_path / "c", *given) as process:
        wait_until(lambda: len(there("a.orders")) == 5_100, RUN_S, "all", lambda: (tmp_path / "stderr").read_text())
        one.client.admin.create_topic("orders-new", 2)
        send("orders-new", 0, 10)
        with one.client.consumer("orders-new", group="readers", start="earliest") as consumer:
            wait_until(lambda: consumer.poll(timeout_ms=200), RUN_S, "a record")
            consumer.commit()
        wait_until(lambda: there("a.orders-new") == set(range(10)), RUN_S, "the new topic")
        wait_until(lambda: offsets_of(other.client, "readers"), RUN_S, "the group's offsets")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=RUN_S)
        assert process.returncode == 0, (tmp_path / "stderr").read_text()
    assert sorted(int(record.value) for record in records(other.client, "a.orders")) == list(range(5_100))
    assert contents(other.client, "a.orders-new") == contents(one.client, "orders-new")
    events = [json.loads(line) for line in said.splitlines()]
    assert sum(event["records"] for event in events if event["event"] == "batch") >= 100
    assert {"event": "groups", "set": ["readers"], "busy": []} in events
