"""`produce` over one real node: a line that is no record ends the input, and the error tells what was written.

And `topic offsets`, which tells offsets from records.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from quorumlog.testing import LocalCluster

COMMAND_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("lines") / "cluster", nodes=1) as cluster:
        yield cluster


def types(cluster: LocalCluster, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quorumlog_cli.main", *arguments, "-b", cluster.bootstrap_servers]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=COMMAND_S, check=False)


CASES = [
    (
        "a third line that is not JSON",
        ["-J"],
        '{"value":"1"}\n{"key":"k","value":"2"}\nnot json\n{"value":"4"}\n',
        9,
        ["line 3", "2 records before it written", "nothing after it"],
        ":1\nk:2\n",
    ),
    (
        "a first line without value",
        ["-J"],
        '{"key":"u1","name":"Alice"}\n{"value":"2"}\n',
        2,
        ["nothing was written"],
        "",
    ),
    (
        "a line without the delimiter",
        ["-K", r"\t"],
        "k1\tv1\nv2\nk3\tv3\n",
        9,
        ["line 2", "1 record before it written"],
        "k1:v1\n",
    ),
    ("options that JSON has no use for", ["-J", "-K", ":"], '{"value":"1"}\n', 2, ["-J takes keys"], ""),
    ("only good lines", ["-K", r"\t"], "k1\tv1\nk2\tv2\n", 0, ["2 records acknowledged"], "k1:v1\nk2:v2\n"),
]


@pytest.mark.parametrize(
    ("options", "stdin", "code", "said", "stored"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_lines_before_a_bad_one_are_written_and_none_after_it(
    cluster: LocalCluster, options: list[str], stdin: str, code: int, said: list[str], stored: str
) -> None:
    with cluster.topic("lines") as topic:
        done = types(cluster, "produce", topic.name, *options, stdin=stdin)
        assert done.returncode == code, done.stderr
        assert all(text in done.stderr for text in said), done.stderr
        assert types(cluster, "consume", topic.name, "-e", "-f", r"%k:%s\n").stdout == stored


def test_markers_are_offsets_and_no_records(cluster: LocalCluster) -> None:
    with cluster.topic("counted") as topic:
        with cluster.client.producer(transactional_id="t") as producer:
            for fails in (False, True):
                with suppress(Aborted), producer.transaction():
                    producer.send(topic.name, b"one")
                    producer.send(topic.name, b"two")
                    producer.flush()
                    if fails:
                        raise Aborted
        rows = json.loads(types(cluster, "topic", "offsets", topic.name, "--count", "-o", "json").stdout)
        assert rows == [{"partition": 0, "first_offset": 0, "end_offset": 6, "offsets": 6, "records": 2}]


class Aborted(Exception):
    pass
