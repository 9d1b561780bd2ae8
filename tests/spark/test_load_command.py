"""The command `quorumlog spark load`: what it prints, and its exit codes. One run is by Spark, in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from quorumlog.spark.load import job
from quorumlog.spark.load.job import LoadFailed, Request, in_this_process, run_load
from quorumlog.spark.load.protocol import Ended, Outcome
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog_cli.commands.spark_jobs import spark_load
from quorumlog_cli.connecting import connect
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError, Exit

RUN_S = 240.0  # Java and Spark start beside a node


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", 2, 1)
        with made.client.producer() as producer:
            for i in range(20):
                producer.send("orders", b"%d" % i, partition=i % 2)
        yield made


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own session would end the one of the other tests."""
    monkeypatch.setattr(spark_load, "_spark", lambda master: Nothing())
    monkeypatch.setattr(spark_load, "_runner", lambda spark, progress: in_this_process)


class Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.mark.timeout(RUN_S + 60)
def test_a_load_by_spark_in_a_process_of_its_own(cluster: LocalCluster, tmp_path: Path) -> None:
    try:
        java = use_java()
    except NoJava as error:
        pytest.skip(str(error))
    words = ["spark", "load", "orders", "--to", str(tmp_path / "lake"), "-b", cluster.bootstrap_servers, "-o", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "quorumlog_cli.main", *words],
        env={**os.environ, "JAVA_HOME": str(java.home), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (only,) = json.loads(done.stdout)["loads"]
    assert (only["ended"], only["load"], only["rows"], len(only["files"])) == ("committed", 1, 20, 2)
    assert only["offsets"] == {"orders": {"0": 10, "1": 10}}
    assert ds.dataset(tmp_path / "lake").count_rows() == 20


def test_tables_for_people(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], without_spark: None
) -> None:
    words = ["spark", "load", "orders", "--to", str(tmp_path), "-b", cluster.bootstrap_servers, "--rows-per-file", "5"]
    assert main([*words, "--verify"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "LOAD  TOPIC   PARTITION  FROM  UNTIL  ROWS  FILES",
        "   1  orders          0     0     10    10      2",
        "   1  orders          1     0     10    10      2",
        "COMMITS  FILES  ROWS  LOST  FAULTS",
        "      1      4    20     0       0",
    ]
    assert "load 1 is committed: 20 rows in 4 files" in said.err
    assert main(words) == 0
    assert "nothing is new since load 1" in capsys.readouterr().err


def test_a_fault_is_an_exit_code(cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_load(
        Request(topics=("orders",), client={"bootstrap_servers": cluster.bootstrap_servers}),
        DirectoryStore(str(tmp_path)), in_this_process,
    )  # fmt: skip
    next(tmp_path.rglob("*.parquet")).unlink()
    assert main(["spark", "load", "--to", str(tmp_path), "--verify", "-o", "json"]) == Exit.DATA_INVALID
    said = capsys.readouterr()
    assert "is missing" in json.loads(said.out)["faults"][0] and "1 fault in the folder" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["orders"], "--to is missing"),
        (["--to", "x"], "no topic is named"),
        (["orders", "--to", "x", "--every", "15m", "--from", "7"], "--every goes on from load to load"),
        (["orders", "--to", "x", "--every", "soon"], "--every must be a time such as"),
        (["orders", "--to", "x", "--every", "0s"], "--every 0s: it is a time above 0"),
        (["orders", "--to", "x", "--from", "10", "--until", "5"], "nothing is between them"),
        (["orders", "--to", "x", "--from", "5", "--until", "5"], "nothing is between them"),
        (["orders", "--to", "x", "--from", "2026-11-21", "--until", "2026-11-20"], "nothing is between them"),
        (["orders", "--to", "x", "--rows-per-file", "5G"], "--rows-per-file 5G: it is a number such as"),
        (["orders", "--to", "ftp://x"], "ftp:// is not known"),
    ],
)
def test_bad_usage(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "reach", lambda target: None)
    assert main(["spark", "load", *words, "-b", "127.0.0.1:1"]) == Exit.USAGE
    assert says in capsys.readouterr().err


def test_a_folder_without_a_load_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "load", "--to", str(tmp_path / "typo"), "--verify"]) == Exit.NOT_FOUND
    assert "nothing was ever loaded into this folder" in capsys.readouterr().err


def test_no_broker_is_told_before_spark_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "load", "orders", "--to", str(tmp_path), "-b", "127.0.0.1:1"]) == Exit.UNREACHABLE
    assert "cannot reach the cluster" in capsys.readouterr().err


def test_a_repeated_load_outlives_a_load_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says what failed; it ends with an interrupt."""
    ends = iter(
        [LoadFailed("load 1: no leader"), [Outcome(Ended.LOST, 1)], [Outcome(Ended.NOTHING, 1)], KeyboardInterrupt()]
    )

    def fake(*given: Any) -> Any:
        end = next(ends)
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(job, "run_load", fake)
    monkeypatch.setattr(connect, "reach", lambda target: None)
    words = ["spark", "load", "orders", "--to", str(tmp_path), "-b", "127.0.0.1:1", "--every", "1ms"]
    assert main(words) == Exit.INTERRUPTED
    said = capsys.readouterr().err
    assert [text in said for text in ("load 1: no leader", "another loader works", "nothing is new")] == [True] * 3


def test_another_loader_is_an_exit_code() -> None:
    with pytest.raises(CliError, match="this one has written nothing") as found:
        spark_load._tell([Outcome(Ended.LOST, 3)], is_repeated=False)
    assert found.value.code is Exit.PRECONDITION


def test_the_options_of_the_target_reach_the_clients() -> None:
    from quorumlog.spark.load.job import read_options

    target = connect.find_target("h:1", None, ["request.timeout.ms=7000"])
    request = Request(topics=("t",), client={**target.options, "bootstrap_servers": target.bootstrap_servers})
    options = read_options(request, "read_committed", ("t",))
    assert options.client["bootstrap_servers"] == "h:1" and str(options.client["request_timeout_ms"]) == "7000"
