"""A log directory with every kind of file that the auditor reads, in the simulated disk, as a clean stop leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch
from quorumlog.records import Codec, Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog_storage.audit.audit import AuditReport, audit
from quorumlog_storage.audit.directory_audit import Options
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN, format_directory
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.segment.batch import received_batches, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

ROOT = "/data"
TOPIC_ID = bytes([5]) * 16
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, remembers_producers=True)
TIME_MS = 1_700_000_000_000
PRODUCER = 7


@dataclass(frozen=True, slots=True)
class Damage:
    """A change of one file. position: of the byte that is changed, or the size that is left."""

    path: str
    position: int
    content: bytes

    def __str__(self) -> str:
        return f"{self.path} at {self.position}"


def small_directory(node: int = 1) -> SimDisk:
    """Two partitions: `t-0` with several segments, epochs, codecs and a producer, and `empty-0`."""
    disk = SimDisk()
    format_directory(disk, ROOT, MetaProperties("audit", node, bytes([node]) * 16))
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = [PartitionLog.create(directories, (topic, 0), TOPIC_ID, CONFIG) for topic in ("t", "empty")]
    fill(held[0])
    for one in held:
        one.close()
    checkpoint_logs(directories, held)
    checkpoint_high_watermarks(directories, {held[0]: held[0].log.end_offset})
    write(disk, f"{ROOT}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":5}')
    return disk


def fill(held: PartitionLog, batches: int = 14, epoch: Epoch = 1) -> None:
    """Of three records; every fourth batch begins an epoch."""
    for number in range(batches):
        at = held.log.end_offset
        records = [
            Record(n, TIME_MS + at + n, b"k%d" % n, b"value %d" % (at + n), (("h", None),) * (n % 2)) for n in range(3)
        ]
        codec = Codec.ZSTD if number % 5 == 4 else Codec.NONE
        data = encode_batch(records, codec=codec, producer_id=PRODUCER, producer_epoch=0, base_sequence=at)
        held.log.append(stamped_batches(data, headers(data), at, epoch + number // 4))


def transaction(held: PartitionLog, producer_id: int, *, committed: bool, epoch: Epoch = 9) -> None:
    """Two records and their marker."""
    at = held.log.end_offset
    records = [Record(n, TIME_MS + at + n, None, b"t") for n in range(2)]
    data = encode_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=at, transactional=True)
    held.log.append(stamped_batches(data, headers(data), at, epoch))
    marker = control_batch(
        [EndTxnMarker(committed, 3)],
        base_offset=held.log.end_offset, timestamp_ms=TIME_MS, leader_epoch=epoch, producer_id=producer_id,
        producer_epoch=0,
    )  # fmt: skip
    held.log.append(received_batches(marker))


def transactional_directory() -> SimDisk:
    """`t-0` holds committed and aborted transactions in several segments, and one that is open all the while."""
    disk = SimDisk()
    format_directory(disk, ROOT, MetaProperties("audit", 1, bytes([1]) * 16))
    directories = PartitionDirectories(disk, ROOT, clean=True)
    held = PartitionLog.create(directories, ("t", 0), TOPIC_ID, CONFIG)
    fill(held, 2)
    for number in range(12):
        transaction(held, 11 + number % 3, committed=number % 2 == 1, epoch=9 + number // 5)
    at = held.log.end_offset
    data = encode_batch([Record(0, TIME_MS + at, None, b"o")], producer_id=40, producer_epoch=0, base_sequence=0,
                        transactional=True)  # fmt: skip
    held.log.append(stamped_batches(data, headers(data), at, 20))
    transaction(held, 11, committed=False, epoch=20)
    held.close()
    checkpoint_logs(directories, [held])
    checkpoint_high_watermarks(directories, {held: held.log.end_offset})
    write(disk, f"{ROOT}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":5}')
    return disk


def audited(disk: SimDisk, *paths: str, options: Options | None = None, to_end: bool = False) -> AuditReport:
    return audit(disk, list(paths) or [ROOT], options, to_end=to_end)


def checks(disk: SimDisk) -> set[str]:
    """The names of the faults."""
    return {fault.check for fault in audited(disk).faults}


def files_of(disk: SimDisk, path: str = ROOT) -> Iterator[str]:
    for name in disk.list(path):
        below = f"{path}/{name}"
        if disk.is_directory(below):
            yield from files_of(disk, below)
        else:
            yield below


def write(disk: SimDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.pwritev([content], 0)
    file.close()


def changed_bytes(path: str, content: bytes) -> Iterator[Damage]:
    """Each byte changed in one bit, one after the other."""
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        yield Damage(path, position, bytes(damaged))


def cut_files(path: str, content: bytes) -> Iterator[Damage]:
    for size in range(len(content)):
        yield Damage(path, size, content[:size])
