"""Batches and logs for the tests of the log engine."""

from __future__ import annotations

from collections.abc import Sequence

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import StoredBatch, received_batches, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
PATH = "/data/t-0"


def produced(values: Sequence[bytes]) -> bytes:
    """One batch as a producer sends it."""
    return encode_batch([Record(n, 1_700_000_000_000 + n, None, value, ()) for n, value in enumerate(values)])


def batch(base_offset: Offset, values: Sequence[bytes], epoch: Epoch = 1) -> StoredBatch:
    data = produced(values)
    (stored,) = stamped_batches(data, headers(data), base_offset, epoch)
    return stored


def raw(stored: StoredBatch) -> bytes:
    return b"".join(stored.parts)


def disk_with_data() -> SimDisk:
    disk = SimDisk(sector_bytes=48)  # smaller than a batch, so that a power cut tears batches
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


def open_log(disk: SimDisk, config: LogConfig = SMALL, *, recovery_point: Offset = 0, clean: bool = False) -> Log:
    return Log.open(disk, PATH, config, recovery_point=recovery_point, clean=clean)


def append(log: Log, values: Sequence[bytes], epoch: Epoch = 1) -> None:
    log.append([batch(log.end_offset, values, epoch)])


def read_all(log: Log, max_bytes: int = 300, upper_bound: Offset | None = None) -> list[tuple[Offset, Epoch, bytes]]:
    """(offset, epoch, value) of every record, by following reads as a fetcher does."""
    found: list[tuple[Offset, Epoch, bytes]] = []
    offset, bound = log.start_offset, log.end_offset if upper_bound is None else upper_bound
    while True:
        data = log.read(offset, max_bytes, upper_bound=bound)
        if not data:
            return found
        for header in headers(data):
            for record in decode_batch(data, header):
                assert record.value is not None
                if record.offset >= offset:
                    found.append((record.offset, header.leader_epoch, record.value))
            next_offset = header.next_offset
        offset = next_offset


def reappend(log: Log, data: bytes) -> None:
    """Append the batches of a fetch response as a follower does."""
    log.append(received_batches(data), gaps=True)
