"""What must hold after every start: nothing acknowledged is lost, nothing is invented, and no note says too much."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from jepsen.crash.expected import Expected, payload
from jepsen.crash.process import DATA, Process
from jepsen.crash.world import PRODUCER_ID, World, partition_of
from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.page_cache import FileNode, Node
from quorumlog.ids import Epoch, Offset
from quorumlog.records import CorruptRecords, decode_batch, headers, verify_crc
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_file import CorruptBatch

READ_BYTES = 300


class Violation(AssertionError):
    """A promise that does not hold. name: of the promise, for the report."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


def require(holds: bool, name: str, text: object = "") -> None:
    if not holds:
        raise Violation(name, str(text))


def check(world: World) -> None:
    """Of a process that has just opened everything; what it holds is expected of the next one. Raises Violation."""
    process = world.process
    for topic, log in process.all_logs().items():
        records = check_log(log, world.expected[topic])
        _check_caches(log, records, is_numbered=not world.expected[topic].steps)
        _check_notes(process, topic, log)
        world.expected[topic].seen(log.start_offset, records)
    state = process.quorum_state
    require(state in world.quorum_states, "quorum-state", f"{state} is none of {world.quorum_states}")
    world.quorum_states = [state]


def check_while_changing(log: Log, expected: Expected) -> None:
    """What a reader may see while a change hangs.

    For that while a log may start too low if it is empty, or if it is a follower's copy, which nobody reads: that one
    holds its first batch before it hides the records of it that were deleted.
    """
    _check_records(log, expected)
    start, end, low = log.start_offset, log.end_offset, expected.start_at_least
    require(
        start >= low or start == end or expected.is_copy,
        "deleted record",
        f"{log.path} [{start}, {end}) serves records before {low}",
    )


def check_log(log: Log, expected: Expected) -> dict[Offset, Epoch]:
    """The epochs of all records, by offset; those that were not acknowledged may be among them."""
    records = _check_records(log, expected)
    start, low, high = log.start_offset, expected.start_at_least, expected.start_at_most
    is_new = log.end_offset == 0  # a copy that begins anew serves no deleted record
    require(low <= start <= high or is_new, "log start", f"{log.path} starts at {start}, not in [{low}, {high}]")
    return records


def _check_records(log: Log, expected: Expected) -> dict[Offset, Epoch]:
    start, end = log.start_offset, log.end_offset
    records = dict(read_all(log, expected))
    require(list(records) == list(range(start, end)), "hole", f"{log.path} [{start}, {end}) holds {list(records)}")
    for offset, epoch in records.items():
        held = expected.may.get(offset, ())
        require(epoch in held, "invented record", f"{log.path} offset {offset} epoch {epoch}, sent were {held}")
    for offset, epoch in expected.must.items():
        found = records.get(offset)
        require(found == epoch, "lost record", f"{log.path} [{start}, {end}) offset {offset} of epoch {epoch}: {found}")
    return records


def read_all(log: Log, expected: Expected) -> Iterator[tuple[Offset, Epoch]]:
    """Every record from the log's start, as a fetcher reads it. Raises Violation."""
    offset, start, end = log.start_offset, log.start_offset, log.end_offset
    while offset < end:
        data = _read_whole(log, offset, end)
        require(bool(data), "hole", f"{log.path} offset {offset}: nothing is read, and the log ends at {end}")
        for header in headers(data):
            require(header.base_offset <= offset < header.next_offset, "hole", f"{log.path} offset {offset}: {header}")
            epoch = header.leader_epoch
            for record in decode_batch(data, header):
                wanted = payload(expected.tag, record.offset, epoch)
                is_ours = header.is_control or record.value == wanted
                require(is_ours, "invented record", f"{log.path} offset {record.offset}: {record.value!r}")
                if record.offset >= start:
                    yield record.offset, epoch
            offset = header.next_offset


def _read_whole(log: Log, offset: Offset, end: Offset) -> bytes:
    """Batches whose checksums are right. Raises Violation."""
    try:
        data = log.read(offset, READ_BYTES, upper_bound=end)
        for header in headers(data):
            verify_crc(data, header)
    except (CorruptBatch, CorruptRecords) as error:
        raise Violation("damaged record", f"{log.path} [{log.start_offset}, {end}) offset {offset}: {error}") from error
    return data


def _check_caches(log: Log, records: dict[Offset, Epoch], *, is_numbered: bool) -> None:
    """Epochs and producers agree with the records, also where they were read from files of their own.

    is_numbered: the one producer's sequences are the offsets.
    """
    start, end = log.start_offset, log.end_offset
    last_entry = max(start, end - 1)  # a log whose records were all deleted keeps the epoch of the last one
    for entry in log.epochs.entries:
        require(start <= entry.start_offset <= last_entry, "epoch", f"{log.path} [{start}, {end}): {entry}")
    for offset, epoch in records.items():
        cached = log.epochs.epoch_for(offset)
        require(cached == epoch, "epoch", f"{log.path} offset {offset} of {epoch}: {log.epochs.entries}")
    if is_numbered and log.producers is not None and records:
        producer = log.producers.entry(PRODUCER_ID)
        found = None if producer is None else producer.last_sequence
        require(found == end - 1, "producer", f"{log.path} ends at {end}, the last sequence is {found}")


def _check_notes(process: Process, topic: str, log: Log) -> None:
    start, end, synced = log.start_offset, log.end_offset, log.synced_end
    require(synced == end, "synced end", f"{log.path} ends at {end}, synced is {synced}")
    noted = process.noted.get(topic, 0)
    require(noted <= end, "recovery point", f"{log.path} ends at {end}; on disk is {noted}")
    if topic == METADATA_DIRECTORY:
        points = OffsetFile(process.disk, f"{DATA}/{METADATA_DIRECTORY}/{RECOVERY_POINTS}")
        require(points.get(METADATA_PARTITION) <= end, "recovery point", f"{log.path} ends at {end}")
        return
    files = process.partitions
    line = partition_of(topic)
    require(files.recovery_points.get(line) <= end, "recovery point", f"{log.path} ends at {end}")
    require(files.high_watermarks.get(line) <= end, "high watermark", f"{log.path} ends at {end}")
    require(files.log_starts.get(line) <= start, "log start", f"{log.path} starts at {start}")
    require(process.logs[topic].high_watermark <= end, "high watermark", f"{log.path} ends at {end}")


def image_hash(disk: SimDisk) -> bytes:
    """Of all names and bytes that the next process is given."""
    digest = hashlib.sha256()
    _add(disk.root, "", digest)
    return digest.digest()[:16]


def _add(node: Node, path: str, digest: hashlib._Hash) -> None:
    if isinstance(node, FileNode):
        digest.update(f"{path} {len(node.current)}\n".encode())
        digest.update(node.current)
        return
    digest.update(f"{path}/\n".encode())
    for name in sorted(node.current):
        _add(node.current[name], f"{path}/{name}", digest)
