"""What the README shows, run as it stands there: the commands of the first minutes, the Python, and the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
COMMAND_S = 60.0
SPARK_S = 240.0  # to start Java and Spark's processes, and for a batch
INSTALLS = "pip install"  # the one line that is done already


def block(heading: str, language: str) -> str:
    """The first block of code in this language below a heading."""
    found = re.search(rf"^## {heading}\n.*?^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found is not None, f"README has no {language} below {heading!r}"
    return found[1]


def run(command: list[str], folder: Path, limit_s: float = COMMAND_S) -> subprocess.CompletedProcess[str]:
    """In a folder of its own, with this environment's commands first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, "QUORUMLOG_HOME": str(folder / "home")},
        capture_output=True, text=True, timeout=limit_s, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if has_cluster(tmp_path / ".quorumlog"):
        LocalNodes.open(tmp_path / ".quorumlog").stop(timeout_s=0)


def test_the_commands_of_the_first_minutes(folder: Path) -> None:
    lines = [line.removeprefix("$ ") for line in block("First minutes", "console").splitlines()]
    commands = [line for line in lines if not line.startswith(INSTALLS)]
    assert len(commands) > 8
    said: dict[str, str] = {}
    for command in commands:
        done = run(["bash", "-o", "pipefail", "-c", command], folder)
        degraded = command.startswith(("quorumlog status", "quorumlog explain"))  # a node was just killed: exit code 5
        assert done.returncode == (5 if degraded else 0), f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        said[" ".join(command.split()[:3])] = done.stdout
    assert said["quorumlog consume hello"] == "hi\n"
    assert "payload: hi" in said["quorumlog log dump"]
    assert "TopicRecord" in said["quorumlog metadata dump"]


def test_the_python(folder: Path) -> None:
    code = block("From Python", "python")
    assert '"localhost:9092"' in code
    with LocalCluster(folder / "cluster") as cluster:
        code = code.replace('"localhost:9092"', repr(cluster.bootstrap_servers))
        done = run([sys.executable, "-c", code], folder)
    assert done.returncode == 0, done.stderr
    sent, read = done.stdout.splitlines()
    assert read == f"{sent} b'u-1' b'{{}}'"


def test_the_transactions(folder: Path) -> None:
    code = block("In transactions", "python")
    assert '"localhost:9092"' in code
    with LocalCluster(folder / "cluster") as cluster, cluster.client.producer() as producer:
        for name in ("orders", "invoices"):
            cluster.client.admin.create_topic(name, 3)
        orders = [f"order {number}".encode() for number in range(50)]
        for order in orders:
            producer.send("orders", order)
        producer.flush()
        code = code.replace('"localhost:9092"', repr(cluster.bootstrap_servers))
        for turn in range(2):  # the second process begins behind the offsets of the first one
            done = run([sys.executable, "-c", code], folder)
            assert done.returncode == 0, f"{turn}: {done.stderr}"
        billed: list[bytes | None] = []
        with cluster.client.consumer("invoices", isolation_level="read_committed") as invoices:
            while len(billed) < len(orders):
                billed += [record.value for record in invoices.poll(timeout_ms=5_000)]
            billed += [record.value for record in invoices.poll(timeout_ms=500)]
        assert sorted(value or b"" for value in billed) == sorted(orders)


@pytest.mark.timeout(2 * SPARK_S)
def test_the_stream(folder: Path) -> None:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    code = block("From Spark", "python")
    assert '"localhost:9092"' in code and '"/data/order-counts"' in code
    with LocalCluster(folder / "cluster", nodes=1) as cluster:
        for name in ("orders", "order-counts"):
            cluster.client.admin.create_topic(name, 3)
        with cluster.client.producer() as producer:
            for number in range(50):
                producer.send("orders", b"{}", key=f"u-{number % 4}")
        code = code.replace('"localhost:9092"', repr(cluster.bootstrap_servers))
        code = code.replace('"/data/order-counts"', repr(str(folder / "checkpoint")))
        done = run([sys.executable, "-c", code], folder, SPARK_S)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"b'u-{number}' b'{13 - number // 2}'" for number in range(4)]


def test_the_test(folder: Path) -> None:
    (folder / "test_application.py").write_text(block("In your tests", "python"))
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_application.py"], folder)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
