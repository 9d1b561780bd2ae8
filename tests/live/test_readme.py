"""What the README shows, run as it stands there: the commands of the first minutes, and the Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.live.page_code import DOCS, block, blocks, follow, run_python, section

README = (DOCS.parent / "README.md").read_text()
SPARK_S = 240.0  # to start Java and Spark's processes, and for a batch
UNHEALTHY = 5
CODES = {"quorumlog status": UNHEALTHY, "quorumlog explain broker 2": UNHEALTHY}  # a node was just killed


@pytest.mark.timeout(240)
def test_the_commands_of_the_first_minutes(folder: Path) -> None:
    said = follow(section(README, "First minutes"), folder, CODES)
    assert len(said) > 8
    assert said["quorumlog consume hello -e"] == "hi\n"
    assert any("payload: hi" in told for command, told in said.items() if command.startswith("quorumlog log dump"))
    assert "TopicRecord" in said["quorumlog metadata dump"]


def test_the_python(folder: Path) -> None:
    with LocalCluster(folder / "cluster") as cluster:
        said = run_python(block(README, "From Python", "python"), cluster.bootstrap_servers, folder)
    sent, read = said.splitlines()
    assert read == f"{sent} b'u-1' b'{{}}'"


@pytest.mark.timeout(2 * SPARK_S)
def test_the_stream(folder: Path) -> None:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    code = block(README, "From Spark", "python")
    assert '"/data/order-counts"' in code
    with LocalCluster(folder / "cluster", nodes=1) as cluster:
        for name in ("orders", "order-counts"):
            cluster.client.admin.create_topic(name, 3)
        with cluster.client.producer() as producer:
            for number in range(50):
                producer.send("orders", b"{}", key=f"u-{number % 4}")
        code = code.replace('"/data/order-counts"', repr(str(folder / "checkpoint")))
        said = run_python(code, cluster.bootstrap_servers, folder, SPARK_S)
    assert sorted(said.splitlines()) == [f"b'u-{number}' b'{13 - number // 2}'" for number in range(4)]


def test_no_other_code_stands_there() -> None:
    """`./dev demo` and `./dev test` are the two commands; CI runs both."""
    rest = README
    for heading in ("Two commands", "First minutes", "From Python", "From Spark"):
        rest = rest.replace(section(README, heading), "")
    assert blocks(rest) == []
