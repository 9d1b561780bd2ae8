"""One partition on a simulated disk, as a broker opens it and writes it: in turns of its directory's writer.

The only file of these tests that knows how a partition's log is opened, written and read.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, decode_batch, encode_batch, headers, verify_crc
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import ProducerEntry
from quorumlog_storage.rules.epochs import LeaderEpochCache
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter, Job, Outcome

DIRECTORY = "/data"
TOPIC, INDEX = "t", 0
PATH = f"{DIRECTORY}/{TOPIC}-{INDEX}"
TOPIC_ID = bytes(range(16))
READ_BYTES = 4096
FIRST_MS = 1_700_000_000_000


def new_disk() -> SimDisk:
    """With sectors that are smaller than a batch, so that a power cut tears batches."""
    disk = SimDisk(sector_bytes=48)
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/")
    return disk


class Partition:
    """Open from the beginning. `kill` and `power_cut` end its process; `open` begins another one."""

    def __init__(self, disk: SimDisk, *, segment_bytes: int = 400) -> None:
        self.disk = disk
        self._config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100, remembers_producers=True)
        self.open()

    def open(self, *, clean: bool = False) -> None:
        """clean: the process before left its marker."""
        self._directories = PartitionDirectories(self.disk, DIRECTORY, clean)
        self._writer = DirectoryWriter(DIRECTORY)
        self._held = PartitionLog.open_or_create(self._directories, (TOPIC, INDEX), TOPIC_ID, self._config)

    @property
    def _log(self) -> Log:
        return self._held.log

    def kill(self) -> None:
        """kill -9: what was written stays."""
        self.disk.kill()

    def power_cut(self, rng: random.Random) -> None:
        """Of what was not synced, `rng` decides what stays."""
        self.disk.crash(rng)

    # --- what a broker does ---

    def append(self, *batches: StoredBatch) -> list[Outcome]:
        """One turn, with its syncs: an outcome for each batch, which is acknowledged if it has no error."""
        return self._turn([AppendJob(self._log, [batch]) for batch in batches])

    def truncate(self, offset: Offset) -> None:
        self._call(lambda: self._held.truncate_to(offset))

    def delete_before(self, offset: Offset) -> None:
        """As DeleteRecords does."""
        self._call(lambda: self._held.raise_start(offset))

    def checkpoint(self) -> None:
        """The recovery point: all that is synced."""
        self._call(lambda: checkpoint_logs(self._directories, [self._held]))

    def _call(self, work: object) -> None:
        (outcome,) = self._turn([CallJob(work, (self._log,))])  # type: ignore[arg-type]
        assert outcome.error is None, outcome.error

    def _turn(self, jobs: Sequence[Job]) -> list[Outcome]:
        self._writer.write_phase(jobs)
        return self._writer.sync_phase()

    # --- what is there ---

    @property
    def start(self) -> Offset:
        return self._log.start_offset

    @property
    def end(self) -> Offset:
        return self._log.end_offset

    @property
    def epochs(self) -> LeaderEpochCache:
        return self._log.epochs

    def producer(self, producer_id: int) -> ProducerEntry | None:
        assert self._log.producers is not None
        return self._log.producers.entry(producer_id)

    def read(self) -> dict[Offset, bytes]:
        """Every record's value. Raises CorruptRecords where a batch is damaged, ValueError where one is missing."""
        found: dict[Offset, bytes] = {}
        offset = self.start
        while offset < self.end:
            data = bytes(self._log.read(offset, READ_BYTES, upper_bound=self.end))
            if not data:
                raise ValueError(f"offset {offset} is missing: nothing is read, and the log ends at {self.end}")
            for header in headers(data):
                if not header.base_offset <= offset < header.next_offset:
                    raise ValueError(f"offset {offset} is missing: the next batch begins at {header.base_offset}")
                verify_crc(data, header)
                found.update({r.offset: r.value or b"" for r in decode_batch(data, header) if r.offset >= self.start})
                offset = header.next_offset
        return found


def batch(
    base_offset: Offset, values: Sequence[bytes], epoch: Epoch = 1, *, producer: tuple[int, int, int] | None = None
) -> StoredBatch:
    """A batch as a leader stores it. producer: (id, epoch, first sequence)."""
    records = [Record(number, FIRST_MS + number, None, value, ()) for number, value in enumerate(values)]
    numbered = {} if producer is None else dict(zip(_PRODUCER, producer, strict=True))
    return stored(encode_batch(records, **numbered), base_offset, epoch)


def stored(data: bytes, base_offset: Offset, epoch: Epoch = 1) -> StoredBatch:
    (made,) = stamped_batches(data, headers(data), base_offset, epoch)
    return made


_PRODUCER = ("producer_id", "producer_epoch", "base_sequence")
