"""The content of a data directory of ours, read twice: by storage from its files, and from a node that runs on it.

Both give plain values that go into a JSON file as they are (golden/README.md lists them).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quorumlog.client.blocking import Cluster
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.ids import format_uuid
from quorumlog.records import Codec, Record, decode_batch, headers
from quorumlog.testing.layout import Layout, NodeFiles, node_folder
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import check
from quorumlog_storage.segment.log_config import LogConfig

NODE = 1
READ_BYTES = 1 << 20
COMMAND_S = 60.0
SET_ON_TOPIC = 1  # source of a setting
NODE_CONFIG = {"auto.create.topics.enable": "false"}

Content = dict[str, Any]


def unpack(archive: Path, data: Path) -> Path:
    """The data directory, in `data`, which is made."""
    data.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed.extractall(data, filter="data")
    return data


# --- by storage ---


def describe_files(data: Path) -> Content:
    """Open every partition as a node does at its start, after a clean or an unclean end, and return its content."""
    disk = RealDisk()
    clean = (data / CLEAN_SHUTDOWN).exists()
    directories = PartitionDirectories(disk, str(data), clean)
    content: Content = {}
    for (topic_id, index), topic in sorted(directories.find().partitions.items()):
        config = LogConfig(segment_bytes=1 << 20, remembers_producers=True)
        log = PartitionLog.open(directories, (topic, index), topic_id, config).log
        content[f"{topic}-{index}"] = {"topic_id": format_uuid(topic_id), **_describe_log(log)}
        log.close()
    return dict(sorted(content.items()))


def _describe_log(log: Log) -> Content:
    assert log.producers is not None
    chunks = list(_chunks(log))
    found = [(header, data) for data in chunks for header in headers(data)]
    records = [record for header, data in found for record in decode_batch(data, header)]
    last = {header.producer_id: header for header, _ in found if header.producer_id >= 0}
    for producer_id, header in last.items():  # what a producer sent last is known again if it comes once more
        repeated = check(log.producers.entry(producer_id), header)
        assert repeated is not None and repeated.last_offset == header.last_offset, (log.path, header)
    return {
        "log_start": log.start_offset,
        "end": log.end_offset,
        "segments": len(log.segment_bases),
        "epochs": [[entry.epoch, entry.start_offset] for entry in log.epochs.entries],
        "producers": {
            str(producer_id): [entry.epoch, entry.last_sequence, entry.last_offset]
            for producer_id, entry in sorted(log.producers.states.entries.items())
        },
        "batches": [
            [header.base_offset, header.last_offset, header.leader_epoch, Codec(header.codec).name.lower(),
             header.producer_id, header.producer_epoch, header.base_sequence]
            for header, _ in found
        ],
        "records": [row_of(record) for record in records if record.offset >= log.start_offset],
    }  # fmt: skip


def _chunks(log: Log) -> Iterator[bytes]:
    offset = log.start_offset
    while offset < log.end_offset:
        data = bytes(log.read(offset, READ_BYTES, upper_bound=log.end_offset))
        yield data
        offset = headers(data)[-1].next_offset


def row_of(record: Record | ConsumedRecord) -> list[Any]:
    """[offset, timestamp in ms, key, value, headers]; bytes as the characters of the same numbers, None as null."""
    named = [[name, text_of(value)] for name, value in record.headers]
    return [record.offset, record.timestamp_ms, text_of(record.key), text_of(record.value), named]


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


# --- by a node ---


@contextmanager
def node_on(root: Path, data: Path) -> Iterator[LocalNodes]:
    """A cluster of one real node on this data directory, which belongs in its place below `root`. Starts nothing."""
    picker = PortPicker()
    try:
        (ports,) = picker.pick(1)
        node = NodeFiles(NODE, node_folder(root, NODE), ports)
        assert data == node.data
        meta = MetaProperties.parse(META_PROPERTIES, (data / META_PROPERTIES).read_bytes())
        layout = Layout(root, meta.cluster_id, (node,))
        node.config.write_text(properties_of(node, [node], NODE_CONFIG))
        layout.write_marker()
        nodes = LocalNodes(layout, picker)
        try:
            yield nodes
        finally:
            nodes.stop()
    finally:
        picker.close()


def describe_node(bootstrap_servers: str) -> Content:
    """Topics, their settings, and every partition's offsets and records, as clients see them.

    "records" are those that `describe_files` has under the partition's name.
    """
    content: Content = {}
    with Cluster(bootstrap_servers) as cluster:
        for topic in sorted(cluster.admin.list_topics(), key=lambda topic: topic.name):
            name = topic.name
            keys = [(name, partition.index) for partition in topic.partitions]
            first = cluster.admin.list_offsets(dict.fromkeys(keys, EARLIEST))
            last = cluster.admin.list_offsets(dict.fromkeys(keys, LATEST))
            records = sorted(
                cluster.consumer(name, start="earliest", stop="latest"), key=lambda r: (r.partition, r.offset)
            )
            content[name] = {
                "topic_id": format_uuid(topic.topic_id),
                "configs": settings_of(cluster, name),
                "partitions": {
                    f"{name}-{index}": {
                        "log_start": first[name, index].offset,
                        "high_watermark": last[name, index].offset,
                        "records": [row_of(record) for record in records if record.partition == index],
                    }
                    for _, index in sorted(keys)
                },
            }
    return content


def settings_of(cluster: Cluster, topic: str) -> dict[str, str]:
    """What was set for the topic itself."""
    described = cluster.admin.describe_configs(topic).configs
    own = {config.name: config.value or "" for config in described if config.source == SET_ON_TOPIC}
    return dict(sorted(own.items()))


# --- metadata ---


def describe_metadata(data: Path) -> list[Content]:
    """The records of the metadata log as `quorumlog metadata dump` reads them; no-op records left out."""
    done = subprocess.run(
        [sys.executable, "-m", "quorumlog_cli.main", "metadata", "dump", "--from", str(data), "-o", "json"],
        capture_output=True, text=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
