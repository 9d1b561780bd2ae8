"""Loss 6: a cut keeps a producer's epoch; a segment of another version is cut; high watermarks are dropped."""

from __future__ import annotations

import pytest

from jepsen.sim.settings import DATA
from quorumlog.errors import ApiError
from quorumlog.records.control import EndTxnMarker, control_batch
from storage.checkpoint import HIGH_WATERMARKS, parse_offsets
from storage.names import log_name
from storage.producer_state import check
from tests.scenarios.losses.cluster_world import files_of, world
from tests.scenarios.losses.partition_on_disk import FIRST_MS, PATH, Partition, batch, new_disk, stored
from tests.scenarios.losses.promises import expected_loss, promised

PRODUCER = 7
MAGIC_AT = 16  # bytes from the start of a batch, in all versions
PARTITIONS = 12


@expected_loss("only a cut data batch makes the log read its producers again, not a cut control batch")
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


@pytest.mark.parametrize("magic", [0, 1, 3])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@expected_loss("a batch of another version counts as damage, and opening the log cuts it")
def test_a_segment_of_another_version_is_refused_and_stays_as_it_is(magic: int, clean: bool) -> None:
    disk = new_disk()
    partition = Partition(disk)
    for offset in range(3):
        partition.append(batch(offset, [b"%d" % offset]))
    partition.kill()
    path = f"{PATH}/{log_name(0)}"
    content = bytearray(disk.read_bytes(path))
    content[MAGIC_AT] = magic
    file = disk.open(path)
    file.pwritev([bytes(content)], 0)
    file.sync()
    try:
        partition.open(clean=clean)
    except Exception as error:
        refusal = str(error)
    else:
        refusal = ""
    with promised():
        assert disk.read_bytes(path) == bytes(content), "the segment was cut"
        assert "magic" in refusal, f"it was opened: {refusal}"


@expected_loss("the checkpoint of high watermarks is written anew from the logs that are open, without the others")
def test_the_checkpoint_keeps_the_high_watermarks_of_logs_that_are_not_open_yet() -> None:
    with world() as w:
        w.create("t", [11, 12, 13], partitions=PARTITIONS)
        for index in range(PARTITIONS):
            w.produce("t", ["a", "b"], index)
        machine = w.cluster.machines["b2"]
        want = {("t", index): 2 for index in range(PARTITIONS)}
        checkpoint = lambda: parse_offsets("", files_of(machine).get(f"{DATA}/{HIGH_WATERMARKS}", b"0\n0\n"))  # noqa: E731
        w.prepare(lambda: checkpoint() == want, "high watermarks are checkpointed")
        machine.slow_sync_ns = 4_000_000_000  # opening a log that was not closed syncs it
        w.restart(machine)
        w.prepare(lambda: machine.node is not None, "it starts")
        w.prepare(lambda: checkpoint() != want or w.is_ready(machine), "it has opened all", 200)
        missing = sorted(want.keys() - checkpoint().keys())
    with promised():
        assert missing == []
