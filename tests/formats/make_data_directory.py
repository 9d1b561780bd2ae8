"""Writes a golden data directory with a real node of this tree: `python -m tests.formats.make_data_directory OUT`.

Makes OUT-clean.tar.xz, OUT-killed.tar.xz and OUT.json; OUT is a path without suffix. golden/README.md says what is
in them. One node lives four times: each of the first three lives writes and stops in order, the fourth is killed while
producers write, records are deleted and a topic goes away.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ApiError
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.formats.golden_directory import (
    NODE,
    NODE_CONFIG,
    Content,
    describe_files,
    describe_metadata,
    describe_node,
    node_on,
    text_of,
    unpack,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_MS = 1_700_000_000_000
SMALL = {"internal.segment.bytes": "4096", "index.interval.bytes": "512"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    **{f"codec-{codec}": (1, SMALL) for codec in CODECS},
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "deleted": (2, {"internal.segment.bytes": "2048"}),
    "empty": (3, {}),
    "epochs": (2, SMALL),
    "gone": (1, {"file.delete.delay.ms": "3600000"}),
    "page-cache": (1, {"durability": "replicated"}),
    "plain": (1, SMALL),
}
DELETED_BEFORE = 137  # inside a batch and inside a segment
LIVES = 3  # that end in order
PER_LIFE = 60  # records of each written partition in one life
ACKNOWLEDGED = 400  # in the last life, before the kill
QUICK = {"request_timeout_ms": 2_000, "default_api_timeout_ms": 4_000}
ProducedAt = dict[tuple[str, int], dict[int, bytes | None]]  # value by offset of each partition


class Maker:
    """Fills one node and remembers what was acknowledged."""

    def __init__(self, nodes: LocalNodes) -> None:
        self.nodes = nodes
        self.acknowledged: ProducedAt = {}
        self._lock = threading.Lock()
        self._count = 0

    def lives(self) -> None:
        """Three times: start, write, stop in order."""
        for life in range(LIVES):
            self.nodes.start()
            self.nodes.wait_ready()
            with self._cluster() as cluster:
                if life == 0:
                    for name, (partitions, configs) in TOPICS.items():
                        cluster.admin.create_topic(name, partitions, 1, configs)
                for topic in self._written():
                    self._write(topic, PER_LIFE * (4 if topic == "deleted" else 1), life)
                if life == 1:
                    cluster.admin.delete_records({("deleted", 0): DELETED_BEFORE - 60, ("deleted", 1): -1})
                if life == 2:
                    cluster.admin.delete_records({("deleted", 0): DELETED_BEFORE})
            assert self.nodes.stop() == []

    def last_life(self) -> None:
        """Start, write to all topics at once, delete a topic and records, and kill the node meanwhile."""
        self.nodes.start()
        self.nodes.wait_ready()
        threads = [threading.Thread(target=self._write_until_killed, args=(topic,)) for topic in self._written()]
        before = self._count
        with self._cluster() as cluster:
            for thread in threads:
                thread.start()
            wait_until(lambda: self._count > before + ACKNOWLEDGED // 2, 60, "half of the records")
            cluster.admin.delete_topic("gone")
            cluster.admin.delete_records({("deleted", 0): DELETED_BEFORE + 90})
            cluster.admin.create_topic("late", 1, 1, {"retention.ms": "604800001"})
            wait_until(lambda: self._count > before + ACKNOWLEDGED, 60, "the records")
            self.nodes.kill(NODE)
        for thread in threads:
            thread.join()

    def _written(self) -> list[str]:
        return [name for name in TOPICS if name != "empty"]

    def _cluster(self) -> Cluster:
        return Cluster(self.nodes.layout.bootstrap_servers, **QUICK)

    def _write_until_killed(self, topic: str) -> None:
        life = LIVES
        while True:
            try:
                self._write(topic, PER_LIFE, life)
            except (QuorumlogError, RpcError, ApiError, TimeoutError):
                return
            life += 1

    def _write(self, topic: str, count: int, life: int) -> None:
        """Records in bursts, so that batches differ in size. `plain` is not idempotent, the others are."""
        codec = topic.removeprefix("codec-") if topic.startswith("codec-") else "none"
        idempotent = topic != "plain"
        options: dict[str, Any] = {"compression_type": codec, "enable_idempotence": idempotent, "batch_size": 900}
        with self._cluster() as cluster, cluster.producer(delivery_timeout_ms=4_000, **options) as producer:
            for first in range(0, count, 15):
                numbers = range(first, min(count, first + 15))
                sent = [(number, producer.send(topic, **_record(topic, life, number))) for number in numbers]
                for number, future in sent:
                    at = future.result(5)
                    with self._lock:
                        value = _record(topic, life, number)["value"]
                        self.acknowledged.setdefault((topic, at.partition), {})[at.offset] = value
                        self._count += 1


def _record(topic: str, life: int, number: int) -> dict[str, Any]:
    """Null keys, null values, empty ones, headers with null and non-ASCII, timestamps out of order."""
    value: bytes | None = f"{topic} {life} {number} ".encode() + b"v" * (number * 7 % 50)
    if number % 11 == 3:
        value = None if number % 2 else b""
    headers = [("n", b"%d" % number), ("n", None), ("größe", b"\x00\xff")] if number % 4 == 0 else None
    return {
        "value": value,
        "key": None if number % 3 == 0 else b"k%d" % (number % 5),
        "headers": headers,
        "partition": number % TOPICS[topic][0],
        "timestamp_ms": FIRST_MS + life * 1_000_000 + (number * 37 % 100) * 1_000,
    }


def pack(data: Path, archive: Path) -> None:
    """The same bytes for the same files."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(data.iterdir()):
            if path.name != ".lock":
                packed.add(path, path.name, filter=plain)


def describe(archive: Path, scratch: Path) -> Content:
    """What today's code finds in an archive: in the files, and as a node. Both must find the same records."""
    files = describe_files(unpack(archive, scratch / "files"))
    metadata = describe_metadata(unpack(archive, scratch / "metadata"))
    data = unpack(archive, scratch / "cluster" / f"n{NODE}" / "data")
    with node_on(scratch / "cluster", data) as nodes:
        nodes.start()
        nodes.wait_ready()
        topics = describe_node(nodes.layout.bootstrap_servers)
    for topic in topics.values():
        for name, partition in topic["partitions"].items():
            assert partition.pop("records") == files[name]["records"], name
    return {"files": files, "topics": topics, "metadata": metadata}


def check_acknowledged(content: Content, acknowledged: ProducedAt) -> None:
    """Every acknowledged record that was not deleted is there, where it was acknowledged."""
    for (topic, index), values in acknowledged.items():
        if topic not in content["topics"]:
            assert topic == "gone", topic
            continue
        partition = content["files"][f"{topic}-{index}"]
        found = {row[0]: row[3] for row in partition["records"]}
        for offset, value in values.items():
            if offset >= partition["log_start"]:
                assert found[offset] == text_of(value), (topic, index, offset)


def main(arguments: Sequence[str]) -> int:
    (out,) = map(Path, arguments)
    archives = {kind: out.with_name(f"{out.name}-{kind}.tar.xz") for kind in ("clean", "killed")}
    content: Content = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        picker = PortPicker()
        nodes = LocalNodes.create(scratch / "cluster", 1, NODE_CONFIG, picker)
        data = nodes.layout.node(NODE).data
        maker = Maker(nodes)
        try:
            maker.lives()
            pack(data, archives["clean"])
            content["clean"] = describe(archives["clean"], scratch / "clean")
            check_acknowledged(content["clean"], maker.acknowledged)
            maker.last_life()
            shutil.copytree(data, scratch / "copy")
            pack(scratch / "copy", archives["killed"])
            content["killed"] = describe(archives["killed"], scratch / "killed")
            check_acknowledged(content["killed"], maker.acknowledged)
        finally:
            nodes.stop()
            picker.close()
    out.with_name(f"{out.name}.json").write_text(_lines(content))
    return 0


def _lines(content: Any, depth: int = 0) -> str:
    """JSON with a line for each row of the deepest lists, so that a change can be read."""
    if depth < 5 and isinstance(content, dict) and content:
        inner = ",\n".join(f"{json.dumps(key)}: {_lines(value, depth + 1)}" for key, value in content.items())
        return "{\n" + inner + "\n}" + ("\n" if depth == 0 else "")
    if isinstance(content, list) and content and isinstance(content[0], list | dict):
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in content) + "\n]"
    return json.dumps(content, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
