"""Making a partition's directory: durable when opened; after a power cut at any step, a partition or ignored."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from broker.logdirs.partition_files import look_through, open_log
from jepsen.sim.disk import SimDisk
from jepsen.sim.disk_faults import Fault, Operation, PowerCut, PowerLost, faults_at
from storage.checkpoint import RecoveryPoints
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_starts import LogStarts
from storage.partition_metadata import read_topic_id

TOPIC_ID = bytes(range(16))
KEY = (TOPIC_ID, 7)
PATH = "/d/orders-7"


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
def test_a_partition_that_was_opened_is_there_after_a_power_cut(seed: int) -> None:
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
