"""Data directories that earlier commits wrote: this one opens them and finds every record (golden/README.md).

A commit that cannot open one refuses it with the command to run; that command then stands here, before the opening.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from tests.formats.golden_directory import (
    NODE,
    describe_files,
    describe_metadata,
    describe_node,
    node_on,
    text_of,
    unpack,
)

GOLDEN = Path(__file__).parent / "golden"
SETS = sorted(path.stem for path in GOLDEN.glob("directory-*.json"))
KINDS = ("clean", "killed")
ALL = [(name, kind) for name in SETS for kind in KINDS]


def wanted(name: str, kind: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())[kind]


def archive(name: str, kind: str) -> Path:
    return GOLDEN / f"{name}-{kind}.tar.xz"


def test_there_are_directories() -> None:
    assert SETS


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_the_files_hold_every_record(name: str, kind: str, tmp_path: Path) -> None:
    data = unpack(archive(name, kind), tmp_path / "data")
    assert (data / CLEAN_SHUTDOWN).exists() == (kind == "clean")
    found, want = describe_files(data), wanted(name, kind)["files"]
    assert found.keys() == want.keys()
    for partition in want:
        for what in want[partition]:
            assert found[partition][what] == want[partition][what], f"{partition}: {what}"
    assert describe_files(data) == found  # what opening repaired stays so


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_the_metadata_log_says_the_same(name: str, kind: str, tmp_path: Path) -> None:
    found = describe_metadata(unpack(archive(name, kind), tmp_path / "data"))
    want = wanted(name, kind)["metadata"]
    assert len(found) == len(want)
    for ours, theirs in zip(found, want, strict=True):
        assert {key: ours.get(key) for key in theirs} == theirs  # newer fields may have come


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_a_node_serves_every_record_and_goes_on(name: str, kind: str, tmp_path: Path) -> None:
    want = wanted(name, kind)
    data = unpack(archive(name, kind), tmp_path / "cluster" / f"n{NODE}" / "data")
    with node_on(tmp_path / "cluster", data) as nodes:
        serve(nodes)
        compare(describe_node(nodes.layout.bootstrap_servers), want, added=0)
        add_one_record(nodes.layout.bootstrap_servers, want)
        assert nodes.stop() == []
        serve(nodes)
        compare(describe_node(nodes.layout.bootstrap_servers), want, added=1)


def serve(nodes: LocalNodes) -> None:
    nodes.start()
    nodes.wait_ready()


def compare(found: Any, want: Any, added: int) -> None:
    """added: records behind those of the golden directory, in each partition."""
    assert found.keys() == want["topics"].keys()
    for topic, content in want["topics"].items():
        assert {key: found[topic][key] for key in ("topic_id", "configs")} == {
            key: content[key] for key in ("topic_id", "configs")
        }
        assert found[topic]["partitions"].keys() == content["partitions"].keys()
        for partition, offsets in content["partitions"].items():
            one = found[topic]["partitions"][partition]
            assert one["log_start"] == offsets["log_start"], partition
            assert one["high_watermark"] == offsets["high_watermark"] + added, partition
            rows = want["files"][partition]["records"]
            assert one["records"][: len(rows)] == rows, partition
            assert [row[3] for row in one["records"][len(rows) :]] == [text_of(b"new")] * added, partition


def add_one_record(bootstrap_servers: str, want: Any) -> None:
    with Cluster(bootstrap_servers) as cluster, cluster.producer() as producer:
        for topic, content in want["topics"].items():
            for partition, offsets in content["partitions"].items():
                index = int(partition.rpartition("-")[2])
                added = producer.send(topic, b"new", partition=index).result(10)
                assert added.offset == offsets["high_watermark"], partition
