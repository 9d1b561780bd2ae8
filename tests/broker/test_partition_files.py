"""Making a partition's directory: durable when told, and after a power cut at any step a partition or of no account."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from broker.partition_files import look_through, open_log
from jepsen.sim.disk import SimDisk
from jepsen.sim.disk_faults import Fault, Operation, PowerCut, PowerLost, faults_at
from quorumlog.records import Record, encode_batch
from storage.batch import received_batches
from storage.checkpoint import RecoveryPoints
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_starts import LogStarts
from storage.partition_metadata import read_topic_id

TOPIC_ID = bytes(range(16))
KEY = (TOPIC_ID, 7)
PATH = "/d/orders-7"
BATCHES = received_batches(encode_batch([Record(0, 1_700_000_000_000, None, b"x", ())], leader_epoch=1))


def new_disk() -> SimDisk:
    disk = SimDisk()
    disk.make_directory("/d")
    disk.sync_directory("/")
    return disk


def opened(disk: SimDisk) -> Log:
    points, starts = RecoveryPoints(disk, "/d"), LogStarts(disk, "/d")
    return open_log(disk, "/d", "orders", KEY, LogConfig(), points, starts, clean=False)


def test_both_names_of_a_new_partition_are_synced_once_each() -> None:
    disk, synced = new_disk(), []

    def note(operation: Operation) -> Fault | None:
        if operation.kind.startswith("sync"):
            synced.append((operation.kind, operation.path))
        return None

    disk.faults = note
    opened(disk)
    assert synced == [
        ("sync", f"{PATH}/partition.metadata.tmp"),
        ("sync_directory", PATH),
        ("sync_directory", "/d"),
    ]


@given(seed=st.integers(0, 1_000))
def test_a_partition_that_was_told_as_open_is_there_after_a_power_cut(seed: int) -> None:
    disk = new_disk()
    opened(disk)
    disk.crash(random.Random(seed))
    assert look_through(disk, "/d").partitions == {KEY: "orders"}
    assert disk.exists(f"{PATH}/{0:020}.log")
    assert opened(disk).end_offset == 0


@given(at=st.integers(0, 25), seed=st.integers(0, 1_000))
def test_a_power_cut_at_any_step_leaves_a_partition_or_one_without_a_name(at: int, seed: int) -> None:
    disk = new_disk()
    disk.faults = faults_at({disk.operations + at: PowerCut(written=seed % 60)})
    try:
        opened(disk)
    except PowerLost:
        disk.crash(random.Random(seed))
    disk.faults = lambda _: None
    found = look_through(disk, "/d")
    assert found.partitions in ({}, {KEY: "orders"}) and found.nameless in ((), (("orders", 7),))
    assert opened(disk).end_offset == 0
    assert read_topic_id(disk, PATH) == TOPIC_ID


class Killed(BaseException):
    """The process ends at an operation of the disk; what it did before stays in the page cache."""


@given(at=st.integers(0, 25), seed=st.integers(0, 1_000))
def test_what_the_next_process_writes_to_a_half_made_partition_is_there_after_a_power_cut(at: int, seed: int) -> None:
    disk = new_disk()
    last = disk.operations + at

    def kill(operation: Operation) -> Fault | None:
        if operation.index == last:
            raise Killed
        return None

    disk.faults = kill
    try:
        opened(disk)
    except Killed:
        disk.kill()
    disk.faults = lambda _: None
    if KEY not in look_through(disk, "/d").partitions:
        return  # it has no name yet: to be set aside
    log = opened(disk)
    log.append(BATCHES)
    log.sync()
    disk.crash(random.Random(seed))
    assert look_through(disk, "/d").partitions == {KEY: "orders"}
    assert opened(disk).end_offset == 1
