"""Loss 6: a cut keeps a producer's epoch; a segment of another version is cut; high watermarks are dropped."""

from __future__ import annotations

import struct
import zlib

from jepsen.sim.settings import DATA
from quorumlog.errors import ApiError
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, parse_offsets
from quorumlog_storage.files.names import log_name
from quorumlog_storage.producers.producer_state import check
from tests.losses.cluster_world import files_of, world
from tests.losses.partition_on_disk import FIRST_MS, PATH, Partition, batch, new_disk, stored
from tests.losses.promises import promised

PRODUCER = 7
PARTITIONS = 12


def test_a_producer_goes_on_in_its_epoch_after_a_control_batch_of_a_later_one_was_cut() -> None:
    partition = Partition(new_disk())
    partition.append(batch(0, [b"a"], producer=(PRODUCER, 0, 0)))
    marker = control_batch(
        [EndTxnMarker(committed=False, coordinator_epoch=0)],
        base_offset=1, timestamp_ms=FIRST_MS, producer_id=PRODUCER, producer_epoch=1,
    )  # fmt: skip
    partition.append(stored(marker, 1))
    partition.truncate(1)
    following = batch(1, [b"b"], producer=(PRODUCER, 0, 1))
    try:
        check(partition.producer(PRODUCER), following)
        refusal = ""
    except ApiError as error:
        refusal = str(error)
    with promised():
        assert refusal == ""


def test_a_segment_of_a_later_version_is_refused_and_stays_as_it_is() -> None:
    """After a clean stop: what is there was written so, and is no damage."""
    disk = new_disk()
    partition = Partition(disk)
    partition.append(batch(0, [b"0"]))
    partition.kill()
    path = f"{PATH}/{log_name(0)}"
    content = b"".join(message(offset, 3) for offset in range(3))
    file = disk.open(path)
    file.truncate(0)
    file.pwritev([content], 0)
    file.sync()
    try:
        partition.open(clean=True)
        refusal = ""
    except Exception as error:
        refusal = str(error)
    with promised():
        assert disk.read_bytes(path) == content, "the segment was cut"
        assert "magic" in refusal, f"it was opened: {refusal}"


def message(offset: int, magic: int) -> bytes:
    """An entry in the form of Kafka's message sets before 0.11, of a magic that does not exist yet."""
    timestamp = struct.pack(">q", FIRST_MS)
    body = struct.pack(">bb", magic, 0) + timestamp + struct.pack(">i", -1) + struct.pack(">i", 40) + b"v" * 40
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_the_checkpoint_keeps_the_high_watermarks_of_logs_that_are_not_open_yet() -> None:
    with world() as w:
        w.create("t", [11, 12, 13], partitions=PARTITIONS)
        for index in range(PARTITIONS):
            w.produce("t", ["a", "b"], index)
        machine = w.cluster.machines["b2"]
        want = {("t", index): 2 for index in range(PARTITIONS)}
        checkpoint = lambda: parse_offsets("", files_of(machine).get(f"{DATA}/{HIGH_WATERMARKS}", b"0\n0\n"))  # noqa: E731
        w.prepare(lambda: checkpoint() == want, "high watermarks are checkpointed")
        machine.slow_sync_ns = 2_000_000_000  # opening logs that were not closed syncs them; shorter than a stall
        w.restart(machine)
        w.prepare(lambda: machine.node is not None, "it starts")
        w.prepare(lambda: checkpoint() != want or w.is_ready(machine), "it has opened all", 200)
        missing = sorted(want.keys() - checkpoint().keys())
    with promised():
        assert missing == []
