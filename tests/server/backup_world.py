"""A backup's folder: two topics with transactions open at the cut, and their coordinator's log."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from jepsen.sim.machine.disk import SimDisk
from quorumlog.backup.manifest import MANIFEST, METADATA, RECORDS, BackedUpPartition, Manifest, OpenAtCut
from quorumlog.ids import Uuid
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from quorumlog.records import Record, encode_batch
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionKey, TransactionValue
from quorumlog.slices import at_once
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.api.handlers.backup import metadata_snapshot
from quorumlog_broker.coordinator.transactions.state.table import COMPLETE_COMMIT, ONGOING
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY, TOPIC_RESOURCE, Image
from quorumlog_storage.files.disk import Disk

DATA, OTHER, STATES = ((n + 1).to_bytes(16, "big") for n in range(3))
FOLDER = "/backup"
OPEN, DONE = 7, 8  # producers
WALL_MS = 1_700_000_000_000
NEXT_PRODUCER_ID = 5_000


def rows(base: int, *values: str, producer: int = -1, epoch: int = 3) -> bytes:
    """Records at `base` and behind; of a transaction where a producer is named."""
    records = [Record(base + n, WALL_MS, f"k{value}".encode(), value.encode(), ()) for n, value in enumerate(values)]
    if producer < 0:
        return encode_batch(records, base_offset=base, leader_epoch=epoch)
    return encode_batch(
        records,
        base_offset=base,
        leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=1,
        base_sequence=0,
        transactional=True,
    )


def marker(base: int, producer: int, *, committed: bool) -> bytes:
    one = EndTxnMarker(committed=committed, coordinator_epoch=0)
    return control_batch(
        [one], base_offset=base, timestamp_ms=WALL_MS, leader_epoch=3, producer_id=producer, producer_epoch=1
    )


def state(base: int, name: str, producer: int, status: int) -> bytes:
    value = TransactionValue(producer, 1, 60_000, status, () if status == ONGOING else None, WALL_MS, WALL_MS)
    record = Record(base, WALL_MS, encode_key(TransactionKey(name)), TRANSACTION.encode(value, 1), ())
    return encode_batch([record], base_offset=base, leader_epoch=3)


# The third one is a transaction of both topics, committed in both; the last one of each is open.
CONTENT: dict[tuple[str, int], tuple[bytes, ...]] = {
    (TRANSACTION_STATE, 0): (state(0, "hangs", OPEN, ONGOING), state(1, "ends", DONE, COMPLETE_COMMIT)),
    ("data", 0): (
        rows(0, "a", "b"),
        rows(2, "c", producer=DONE),
        marker(3, DONE, committed=True),
        rows(4, "never", producer=OPEN),
    ),
    ("data", 1): (rows(0, "d"),),
    ("other", 0): (rows(0, "e", producer=DONE), marker(1, DONE, committed=True), rows(2, "nor", producer=OPEN)),
}
ENDS = {(TRANSACTION_STATE, 0): 2, ("data", 0): 5, ("data", 1): 1, ("other", 0): 3}
TOPICS: dict[str, Uuid] = {"data": DATA, "other": OTHER, TRANSACTION_STATE: STATES}
SETTINGS = (
    (TOPIC_RESOURCE, "data", "retention.ms", "1"),
    (TOPIC_RESOURCE, "data", "retention.paused", "false"),
    (BROKER_RESOURCE, CLUSTER_DEFAULT, "retention.paused", "false"),
    (BROKER_RESOURCE, CLUSTER_DEFAULT, "log.cleaner.paused.until.ms", "1"),
    (BROKER_RESOURCE, CLUSTER_DEFAULT, "rolls.under.way", "a-roll"),
)


def image() -> Image:
    records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id) for name, topic_id in TOPICS.items()]
    for name, index in CONTENT:
        records.append(
            PartitionRecord(
                partition=index,
                topic_id=TOPICS[name],
                replicas=(11, 12, 13),
                isr=(11,),
                leader=11,
                leader_epoch=3,
                directories=(bytes(15) + b"\x65",) * 3,
            )
        )
    for kind, resource, name, value in SETTINGS:
        records.append(ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value))
    records.append(ProducerIdsRecord(broker_id=11, broker_epoch=1, next_producer_id=NEXT_PRODUCER_ID))
    delta = Delta(EMPTY)
    for record in records:
        delta.replay(record)
    return delta.apply(len(records), 1)


def manifest(snapshot: bytes, **changes: Any) -> Manifest:
    partitions = []
    for (topic, index), batches in sorted(CONTENT.items()):
        data = b"".join(batches)
        is_open = (topic, index) in (("data", 0), ("other", 0))
        one = BackedUpPartition(
            topic=topic,
            index=index,
            start=0,
            end=ENDS[topic, index],
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            last_epoch=3,
            max_producer_id=DONE,
            open=(OpenAtCut(transactional_id="hangs", producer_id=OPEN, first_offset=ENDS[topic, index] - 1),)
            if is_open
            else (),
        )
        partitions.append(one)
    found = Manifest(
        cluster_id="old",
        metadata_offset=image().offset,
        metadata_sha256=hashlib.sha256(snapshot).hexdigest(),
        began_ms=WALL_MS,
        cut_ms=WALL_MS + 10,
        ended_ms=WALL_MS + 1_000,
        held_ms=10,
        made_by="quorumlog test",
        topics=TOPICS,
        partitions=tuple(partitions),
        left_out={},
    )
    return replace(found, **changes)


def made() -> SimDisk:
    """A disk with the whole folder."""
    disk = SimDisk()
    put_all(disk, FOLDER)
    return disk


def put_all(disk: Disk, folder: str) -> None:
    snapshot: bytes = at_once(metadata_snapshot(image()))
    files = {MANIFEST: manifest(snapshot).to_json().encode(), METADATA: snapshot}
    files |= {f"{RECORDS}/{topic}-{index}": b"".join(batches) for (topic, index), batches in CONTENT.items()}
    for path in (folder, f"{folder}/{RECORDS}"):
        disk.make_directory(path)
    for name, content in files.items():
        put(disk, f"{folder}/{name}", content)


def put(disk: Disk, path: str, content: bytes) -> None:
    """Over what is there."""
    if disk.exists(path):
        disk.unlink(path)
    file = disk.open(path, create=True)
    file.pwritev([content], 0)
    file.sync()
    file.close()


def change_manifest(disk: SimDisk, key: str, value: object) -> None:
    """Without the checksum that would fit it."""
    path = f"{FOLDER}/{MANIFEST}"
    content = json.loads(disk.read_bytes(path))
    put(disk, path, json.dumps({**content, key: value}).encode())
