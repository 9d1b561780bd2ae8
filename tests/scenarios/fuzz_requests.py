"""Valid requests for a fuzz test of a whole node to damage, of every API and version.

They read existing data; or make changes that are refused even when damaged, because they name things that do not exist
or already exist; or change a topic on which nothing depends.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from quorumlog.messages.admin import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    LogDirsTopic,
    PartitionCursor,
)
from quorumlog.messages.produce import ProduceRequest
from quorumlog.records.format.batch import CRC_POSITION, CRC_START
from quorumlog.records.rowwise.plain import encode_batch
from quorumlog.wire.format.frame_writer import LENGTH_BYTES, FrameWriter
from quorumlog.wire.protocol.apis import APIS
from tests.scenarios import asking
from tests.wire.frames import BATCH, RECORDS, Bodies
from tests.wire.fuzz import SEEDS
from tests.wire.places import Body

TOPIC, SCRATCH, NOT_THERE = "fuzz", "scratch", "nope"
BRIEFLY_MS = 5
CRC = slice(CRC_POSITION, CRC_START)
DAMAGED = BATCH[: CRC.start] + bytes(byte ^ 0x5A for byte in BATCH[CRC]) + BATCH[CRC.stop :]  # chance cannot repair it
OF_A_PRODUCER = encode_batch(RECORDS, producer_id=7, producer_epoch=0, base_sequence=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Ids of the two topics, 16 bytes each."""

    topic: bytes
    scratch: bytes


def bodies_of(ids: Ids) -> Bodies:
    """Bodies to damage, of every API and version: almost empty, full, and meaningful ones."""
    found = {key: list(bodies) for key, bodies in SEEDS.items()}
    for request in requests(ids):
        for api in (api for api in APIS if api.method.request is type(request)):
            for version in range(api.oldest, api.version_for(request, api.newest) + 1):
                writer, shape = FrameWriter(), api.request_shape(version)
                shape.write(writer, api.write_request(request, version))
                found[api.key, version].append(Body(b"".join(writer.frame())[LENGTH_BYTES:], shape))
    return found


def requests(ids: Ids) -> list[Any]:
    return [*_reads(TOPIC, ids.topic), *_reads(SCRATCH, ids.scratch), *_refused(ids), *_changes(ids)]


def _reads(name: str, topic_id: bytes) -> list[Any]:
    fetch = asking.fetch(name, topic_id, max_bytes=4096, min_bytes=1, max_wait_ms=1)
    return [
        fetch,
        dataclasses.replace(fetch, session_id=0, session_epoch=0),
        asking.offsets(name),
        asking.offsets(name, 1_700_000_000_000),
        asking.configs(name),
        asking.epoch_end(name),
        asking.metadata(name, may_create=True),
        DescribeTopicPartitionsRequest(topics=(name,), cursor=PartitionCursor(topic_name=name, partition_index=0)),
        AlterReplicaLogDirsRequest(
            dirs=(AlterReplicaLogDir(path="/none", topics=(AlterReplicaLogDirTopic(name=name, partitions=(0,)),)),)
        ),
        DescribeLogDirsRequest(all_topics=False, topics=(LogDirsTopic(name=name, partitions=(0,)),)),
    ]


def _refused(ids: Ids) -> list[Any]:
    return [
        *_produce(TOPIC, ids.topic, DAMAGED),
        asking.create(TOPIC, timeout_ms=BRIEFLY_MS, validate_only=True),
        asking.delete(NOT_THERE, timeout_ms=BRIEFLY_MS),
        asking.grow(NOT_THERE, 2, timeout_ms=BRIEFLY_MS),
        asking.alter(NOT_THERE, "retention.ms", "1"),
        asking.delete_records(NOT_THERE, -1, timeout_ms=BRIEFLY_MS),
    ]


def _changes(ids: Ids) -> list[Any]:
    return [
        *_produce(SCRATCH, ids.scratch, BATCH),
        *_produce(SCRATCH, ids.scratch, OF_A_PRODUCER),
        asking.alter(SCRATCH, "max.message.bytes", "1000000"),
        asking.alter(SCRATCH, "min.insync.replicas", "1"),
        asking.delete_records(SCRATCH, -1, timeout_ms=BRIEFLY_MS),
    ]


def _produce(name: str, topic_id: bytes, records: bytes) -> list[ProduceRequest]:
    """By name, and by name and id."""
    return [asking.produce(name, records, topic_id=found, timeout_ms=BRIEFLY_MS) for found in (b"", topic_id)]
