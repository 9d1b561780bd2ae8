"""`consume -f` and -O print what kcat prints of the same records (Debian's package kcat or kafkacat)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
FORMATS = [r"%t %p %o %k %K %s %S %h %T\n", r"%R%s|\x41\t\r\n", r"%k\x9%s\n", r"%%\n", "%K%S"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalCluster(tmp_path_factory.mktemp("kcat") / "cluster", nodes=1) as cluster:
        with Cluster(cluster.bootstrap_servers) as client, client.producer() as producer:
            client.admin.create_topic("t", partitions=1, replication=1)
            producer.send("t", "日本", key="clé", headers=[("a", b"1"), ("b", None), ("c", b"")])
            producer.send("t", None, key=b"\xff\x00")
            producer.send("t", b"", key=None, timestamp_ms=1_700_000_000_000)
        yield cluster.bootstrap_servers


def printed(*words: str) -> bytes:
    return subprocess.run(words, capture_output=True, timeout=60, check=True).stdout


def both(servers: str, kcat: list[str], ours: list[str]) -> tuple[bytes, bytes]:
    assert KCAT is not None
    ours = [sys.executable, "-m", "quorumlog_cli.main", "consume", "t", "-b", servers, "-e", *ours]
    return printed(KCAT, "-q", "-b", servers, "-C", "-t", "t", "-e", *kcat), printed(*ours)


@pytest.mark.parametrize("text", FORMATS)
def test_a_format_prints_the_same(servers: str, text: str) -> None:
    theirs, ours = both(servers, ["-f", text], ["-f", text])
    assert ours == theirs and ours


@pytest.mark.parametrize("place", ["beginning", "1", "-2", "end", "s@1", "e@1"])
def test_a_place_is_the_same(servers: str, place: str) -> None:
    words = ["-p", "0", "-f", r"%o\n"]
    theirs, ours = both(servers, [*words, "-o", place], [*words, "-O", place])
    assert ours == theirs
