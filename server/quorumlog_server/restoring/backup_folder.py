"""A backup's folder, read and verified: `quorumlog_storage` files only, nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from quorumlog.backup.manifest import (
    MANIFEST,
    METADATA,
    UNFINISHED,
    BackedUpPartition,
    BadBackup,
    Manifest,
    read_manifest,
)
from quorumlog.records import BatchHeader, CorruptRecords
from quorumlog.records.format.batch import BATCH_OVERHEAD, parse_header, verify_crc
from quorumlog.slices import at_once
from quorumlog_quorum.metadata.frame import BadRecord
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, WrongState
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.snapshots import SnapshotCheck, values_of
from quorumlog_storage.files.disk import Disk, File, FileMissing
from quorumlog_storage.rules.fetch_rule import SnapshotId

READ_BYTES = 1 << 20


def image_of(snapshot: bytes, offset: int = 0) -> Image:
    """The metadata that ReadMetadata has told. offset: that it has told with them. Raises BadBackup."""
    try:
        check = SnapshotCheck(SnapshotId(offset, 0))
        check.take(snapshot)
        check.finish(len(snapshot))
        builder = ImageBuilder()
        at_once(builder.add(values_of(snapshot)))
        return builder.finish().apply(offset, 0)
    except (CorruptRecords, BadRecord, WrongState) as error:
        raise BadBackup(f"{METADATA} is damaged ({error}); take another copy of the backup") from error
    except UnsupportedMetadata as error:
        raise BadBackup(f"{METADATA} is of newer software ({error}); upgrade this one") from error


@dataclass(frozen=True, slots=True)
class Backup:
    """path: of the folder. image: the metadata at the cut."""

    disk: Disk
    path: str
    manifest: Manifest
    image: Image

    def batches(self, one: BackedUpPartition) -> Iterator[tuple[BatchHeader, bytes]]:
        """Each batch and its bytes, in order; checksums of batches and, at the end, of the file are verified.

        Raises BadBackup, DiskError."""
        path = f"{self.path}/{one.file}"
        try:
            file = self.disk.open(path)
        except FileMissing as error:
            raise BadBackup(f"{path} is missing; take another copy of the backup") from error
        digest, position, end = hashlib.sha256(), 0, one.start
        try:
            size = file.size()
            while position < size:
                header, data = _batch(file, position, size, path)
                if header.base_offset < end and position:
                    raise BadBackup(f"{path} at byte {position}: offset {header.base_offset} where {end} is next")
                end = header.next_offset
                digest.update(data)
                position += header.size
                yield header, data
        finally:
            file.close()
        if size != one.size or digest.hexdigest() != one.sha256 or end > one.end:
            raise BadBackup(f"{path} is not what {MANIFEST} says; take another copy of the backup")


def _batch(file: File, position: int, size: int, path: str) -> tuple[BatchHeader, bytes]:
    try:
        head = bytes(file.pread(position, BATCH_OVERHEAD))
        header = parse_header(head)
        if header.size > size - position:
            raise CorruptRecords(position, f"a batch of {header.size} bytes, {size - position} are left")
        data = bytes(file.pread(position, header.size))
        alone = parse_header(data)
        verify_crc(data, alone)
    except CorruptRecords as error:
        raise BadBackup(f"{path} at byte {position}: {error.reason}; take another copy of the backup") from error
    return alone, data


def read_backup(disk: Disk, path: str) -> Backup:
    """Its manifest and metadata; `verify` reads the records, too. Raises BadBackup, DiskError."""
    try:
        manifest = read_manifest(disk.read_bytes(f"{path}/{MANIFEST}").decode())
    except (FileMissing, UnicodeDecodeError) as error:
        if disk.exists(f"{path}/{UNFINISHED}"):
            raise BadBackup(
                f"{path} is not whole: its backup was interrupted; finish it with quorumlog backup create --resume"
            ) from error
        raise BadBackup(f"{path} has no readable {MANIFEST}: it is no whole backup") from error
    try:
        snapshot = disk.read_bytes(f"{path}/{METADATA}")
    except FileMissing as error:
        raise BadBackup(f"{path}/{METADATA} is missing; take another copy of the backup") from error
    if hashlib.sha256(snapshot).hexdigest() != manifest.metadata_sha256:
        raise BadBackup(f"{path}/{METADATA} is not what {MANIFEST} says; take another copy of the backup")
    image = image_of(snapshot, manifest.metadata_offset)
    check_partitions(manifest, image)
    return Backup(disk, path, manifest, image)


def check_partitions(manifest: Manifest, image: Image) -> None:
    """Each partition that the metadata has of the manifest's topics has records, and no other. Raises BadBackup."""
    told = {(one.topic, one.index) for one in manifest.partitions}
    known = {
        (name, index)
        for name, topic_id in manifest.topics.items()
        if topic_id in image.topics
        for index in image.topics[topic_id].partitions
    }
    if lacking := sorted(told ^ known):
        topic, index = lacking[0]
        raise BadBackup(f"{MANIFEST} and {METADATA} differ in {topic}-{index}; take another copy of the backup")


def verify(backup: Backup) -> int:
    """Read every record's batch. Returns how many bytes. Raises BadBackup, DiskError."""
    return sum(len(data) for one in backup.manifest.partitions for _, data in backup.batches(one))
