"""`quorumlog spark doctor` and `shell` with a real cluster and Spark's own shell on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

SPARK_S = 240.0  # for Spark to start on a machine that is busy
QUORUMLOG = (sys.executable, "-m", "quorumlog_cli.main")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=1) as cluster:
        yield cluster


@pytest.mark.timeout(SPARK_S)
def test_the_doctor_finds_nothing_wrong_and_leaves_no_topic(cluster: LocalCluster) -> None:
    done = subprocess.run(
        [*QUORUMLOG, "spark", "doctor", "-b", cluster.bootstrap_servers, "-o", "json"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=SPARK_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    states = {one["check"]: one["state"] for one in json.loads(done.stdout)}
    assert states.pop("pandas") in ("ok", "warning")
    assert list(states) == [
        "python", "java", "pyspark", "pyarrow", "numpy", "compiled code", "session", "format", "pushdown",
        "round trip",
    ]  # fmt: skip
    assert set(states.values()) == {"ok"}
    assert not [topic.name for topic in cluster.client.admin.list_topics()]


@pytest.mark.timeout(SPARK_S)
def test_the_shell_has_topics_as_data_frames(cluster: LocalCluster) -> None:
    cluster.client.admin.create_topic("orders", partitions=2, exist_ok=True)
    with cluster.client.producer() as producer:
        for number in range(50):
            producer.send("orders", b"%d" % number)
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        [*QUORUMLOG, "spark", "shell", "-b", cluster.bootstrap_servers, "--conf", "spark.ui.enabled=false"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said = bytearray()
    os.set_blocking(ours, False)

    def hears(text: bytes) -> bool:
        with contextlib.suppress(BlockingIOError, OSError):
            said.extend(os.read(ours, 65_536))
        return text in said

    try:
        wait_until(lambda: hears(b'topic("NAME") is a DataFrame'), SPARK_S, "the shell to be ready")
        os.write(ours, b'print("ROWS", topic("orders").count() + 7)\n')
        wait_until(lambda: hears(b"ROWS 57"), SPARK_S, "the answer of Spark")
        os.write(ours, b"exit()\n")
        wait_until(lambda: hears(b"\0") or shell.poll() is not None, SPARK_S, "the shell to end")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
    assert shell.returncode == 0, said[-2_000:]


def test_a_program_hears_what_the_shell_would_start() -> None:
    done = subprocess.run(
        [*QUORUMLOG, "spark", "shell", "-b", "127.0.0.1:9", "-o", "json"],
        capture_output=True, text=True, timeout=SPARK_S, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["command"][1:3] == ["--master", "local[2]"] and Path(told["command"][0]).name == "pyspark"
    assert told["environment"]["PYSPARK_PYTHON"] == sys.executable
    assert Path(told["environment"]["PYTHONSTARTUP"]).is_file()


def test_a_shell_without_pyspark_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.executable = sys.argv.pop(1); from quorumlog_cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "python"), "spark", "shell", "-b", "127.0.0.1:9"],
        env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=SPARK_S, check=False,
    )  # fmt: skip
    assert done.returncode == 6 and "pip install 'quorumlog[spark]'" in done.stderr
