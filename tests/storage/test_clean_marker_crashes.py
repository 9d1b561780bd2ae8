"""A stop of a node with two log directories, ended at every call of its disks: a marker never covers what was lost."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from storage_samples import batch

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog_server.config.config import from_values
from quorumlog_server.directories.directories import open_directories
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_storage.directory.directory import LockedDirectory
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

PATHS = ("/data/a", "/data/b")
EPOCH = 7
BATCHES = 10
CONFIG = LogConfig(durable=False, segment_bytes=580)
NODE = from_values(
    {
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:1",
        "log.dirs": ",".join(PATHS),
        "metadata.log.dir": PATHS[0],
    }
)


def formatted() -> SimDisk:
    disk = SimDisk()
    ids = iter([bytes([number]) * 16 for number in (1, 2)])
    format_node(
        NODE,
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=disk,
        new_uuid=lambda: next(ids),
        protect=lambda _: None,
    )
    return disk


def stop(struck: StruckDisk, at: int, strike: Strike) -> int:
    """A node with one unsynced log in each directory stops, and is struck. Returns how many calls that took."""
    directories = open_directories(struck, NODE)
    held: list[tuple[PartitionDirectories, PartitionLog]] = []
    for path in PATHS:
        partitions = PartitionDirectories(struck, path)
        log = PartitionLog.create(partitions, ("t", 0), bytes([9]) * 16, CONFIG)
        log.log.append([batch(offset, [b"value"]) for offset in range(BATCHES)])
        held.append((partitions, log))
    struck.watch(at, strike)
    try:
        for partitions, log in held:
            log.close()
            checkpoint_logs(partitions, [log])
        directories.close(PATHS, EPOCH)
    except ProcessEnded:
        pass
    struck.end()
    return len(struck.calls)


@rule("log 2.1")
@pytest.mark.parametrize("survives", ["none", "subset"])
@pytest.mark.parametrize("done", [0.0, 0.5, 1.0])
def test_what_a_marked_directory_holds_is_whole_after_a_power_cut_at_any_call(done: float, survives: str) -> None:
    calls = stop(StruckDisk(formatted()), -1, Strike(Fault.KILL))
    assert calls > 20, "the disk's calls are watched"
    markers: Counter[int] = Counter()
    for at in range(calls):
        disk = formatted()
        stop(StruckDisk(disk), at, Strike(Fault.POWER_CUT, done))
        disk.crash(random.Random(at), survives)
        marked = [entry for entry in (LockedDirectory.open(disk, path) for path in PATHS) if entry.clean_shutdown]
        markers[len(marked)] += 1
        for entry in marked:
            log = Log.open(disk, f"{entry.path}/t-0", CONFIG, clean=True)
            assert log.end_offset == BATCHES, f"call {at}: {entry.path} is marked clean and lacks records"
            assert len(log.read(0, 1 << 20, upper_bound=BATCHES)) > 0
            assert entry.clean_shutdown is not None and entry.clean_shutdown.broker_epoch in (EPOCH, -1)
    assert markers[0] and markers[1], f"a sweep meets stops with no marker and with one: {markers}"
