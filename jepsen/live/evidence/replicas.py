"""The logs as they lie in the nodes' directories after a clean stop, read by our own code and not through a node.

At the end all replicas are in sync, so they hold the same bytes, and these hold the records that the consumer read.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen.checkers.findings import Finding
from jepsen.live.cluster.nodes import TOPIC
from jepsen.live.evidence.readers import Decode
from jepsen.live.evidence.values import FOREIGN
from quorumlog.ids import NodeId, Offset
from quorumlog_cli.offline.batches import Damage, read_batches

Directories = Sequence[Path]  # the log directories of one node


@dataclass(frozen=True, slots=True)
class Number:
    """What an idempotent producer called a record: with the same number a broker must store it once."""

    producer_id: int
    producer_epoch: int
    sequence: int


def number_at(nodes: Sequence[tuple[NodeId, Directories]], partition: int, offset: Offset) -> Number | None:
    """As the batch on disk has it, in the first replica that is found; None if no batch has the offset."""
    for _, directories in nodes:
        folder = _folder(directories, partition)
        for segment in [] if folder is None else _segments(folder):
            for batch in read_batches(segment):
                if not isinstance(batch, Damage) and batch.header.base_offset <= offset < batch.header.next_offset:
                    header = batch.header
                    return Number(
                        header.producer_id, header.producer_epoch, header.base_sequence + offset - header.base_offset
                    )
    return None


def check_replicas(
    nodes: Sequence[tuple[NodeId, Directories]], read: Sequence[array[int]], decode: Decode
) -> list[Finding]:
    """read: by partition, what the final consumer read."""
    return [
        finding for partition in range(len(read)) for finding in _check_one(nodes, partition, read[partition], decode)
    ]


def _check_one(
    nodes: Sequence[tuple[NodeId, Directories]], partition: int, read: array[int], decode: Decode
) -> Iterator[Finding]:
    folders = [(node_id, _folder(directories, partition)) for node_id, directories in nodes]
    held = [(node_id, folder) for node_id, folder in folders if folder is not None]
    digests = {node_id: _digest(folder) for node_id, folder in held}
    if len(set(digests.values())) != 1:
        yield Finding("replicas-differ", f"partition {partition}: bytes of the replicas: {digests}")
    for node_id, folder in held:
        on_disk, damage = _records(folder, partition, decode)
        if damage:
            yield Finding("damaged-log", f"partition {partition} on node {node_id}: {damage}")
        elif on_disk != read:
            first = next((at for at, pair in enumerate(zip(on_disk, read, strict=False)) if pair[0] != pair[1]), -1)
            sizes = f"{len(on_disk)} records on disk, {len(read)} read"
            yield Finding(
                "disk-and-reader-differ", f"partition {partition} on node {node_id}: {sizes}, first at {first}"
            )
        if len(set(digests.values())) == 1:
            return  # the others hold the same bytes


def _folder(directories: Directories, partition: int) -> Path | None:
    folders = [directory / f"{TOPIC}-{partition}" for directory in directories]
    return next((folder for folder in folders if folder.is_dir()), None)


def _segments(folder: Path) -> list[Path]:
    """In the order of their first offsets."""
    return sorted(folder.glob("*.log"))


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for segment in _segments(folder):
        digest.update(segment.read_bytes())
    return digest.hexdigest()[:12]


def _records(folder: Path, partition: int, decode: Decode) -> tuple[array[int], str]:
    """Ids by offset, and the first damage."""
    found = array("q")
    for segment in _segments(folder):
        for batch in read_batches(segment):
            if isinstance(batch, Damage):
                return found, f"{segment.name} at byte {batch.position}: {batch.reason}"
            if not batch.crc_ok:
                return found, f"{segment.name} at byte {batch.position}: the CRC is wrong"
            for record in batch.records():
                if record.offset < len(found):
                    return found, f"{segment.name} holds offset {record.offset} again"
                found.extend([FOREIGN] * (record.offset - len(found)))
                found.append(decode(partition, record.value))
    return found, ""
