"""The quorum's worker beside that of the partitions: two queues, two recovery-point files, one shared state."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest

from cli.server.config import NodeConfig, from_values
from cli.server.directories import open_directories
from cli.server.edges import Edges
from cli.server.format import format_node
from cli.server.replica_directories import DirectoryWorkers
from cli.server.secret import new_secret
from jepsen.sim.disk import SimDisk
from jepsen.sim.disk_faults import Fail, Operation
from jepsen.sim.scheduler import NS_PER_MS, Scheduler
from jepsen.sim.worker import SimWorker
from quorum.metadata_log import METADATA_PARTITION
from quorumlog.records import Record, encode_batch, headers
from storage.batch import stamped_batches
from storage.directory_life import DirectoryOffline
from storage.log import Log
from storage.log_config import LogConfig
from storage.offset_files import RECOVERY_POINTS, OffsetFile
from storage.worker import Worker
from storage.writer import AppendJob, CallJob, DirectoryWriter, Outcome

DATA, OTHER = "/data/a", "/data/b"
METADATA = f"{DATA}/__cluster_metadata-0"


class World:
    """A node's directories, formatted, and its workers on virtual time. Writes and syncs take a millisecond."""

    def __init__(self, roles: str = "broker,controller", points: dict[tuple[str, int], int] | None = None) -> None:
        self.scheduler = Scheduler(1)
        uuids = self.scheduler.rng("uuid")
        self.disk = SimDisk(latency=lambda operation: NS_PER_MS if operation.kind in ("pwritev", "sync") else 0)
        self.config = configured(roles)
        format_node(
            self.config,
            cluster_id="c",
            secret=new_secret(bytes(range(32))),
            disk=self.disk,
            new_uuid=lambda: uuids.randbytes(16),
            protect=lambda _: None,
        )
        if points:
            OffsetFile(self.disk, f"{DATA}/{RECOVERY_POINTS}").update(points)
        self.made: list[str] = []
        edges = cast(Edges, _Edges(self.disk, self._worker))
        directories = open_directories(self.disk, self.config)
        self.lives = directories.lives
        self.workers = DirectoryWorkers(self.config, edges, directories)

    def _worker(self, writer: DirectoryWriter) -> Worker:
        self.made.append(writer.path)
        return SimWorker(
            self.disk, writer, lambda delay_ns, then: cast(None, self.scheduler.call_later(delay_ns, then))
        )

    @property
    def partitions(self) -> Worker:
        return next(entry.worker for entry in self.workers.for_replicas() if entry.path == DATA)

    @property
    def elsewhere(self) -> Worker:
        return next(entry.worker for entry in self.workers.for_replicas() if entry.path == OTHER)

    def log(self, path: str) -> Log:
        return Log.open(self.disk, path, LogConfig(), recovery_point=0, clean=False)

    def run(self) -> None:
        self.scheduler.run_for(10_000 * NS_PER_MS)


class _Edges:
    def __init__(self, disk: SimDisk, worker: Any) -> None:
        self.disk, self.worker = disk, worker


def configured(roles: str = "broker,controller") -> NodeConfig:
    values = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:1", "log.dirs": f"{DATA},{OTHER}"}
    listeners = {"listeners": "INTERNAL://127.0.0.1:1"} if roles == "controller" else {}
    return from_values({**values, **listeners, "process.roles": roles})


def appending(log: Log) -> AppendJob:
    data = encode_batch([Record(0, 0, None, b"v", ())])
    return AppendJob(log, stamped_batches(data, headers(data), log.end_offset, 1))


def test_the_quorum_has_its_own_writer_and_a_controller_has_no_other() -> None:
    assert World().made == [METADATA, DATA, OTHER]
    assert World("controller").made == [METADATA]


def test_the_quorum_does_not_wait_for_partitions() -> None:
    world = World()
    told: list[str] = []
    logs = [world.log(f"{DATA}/t-{index}") for index in range(50)]
    quorum = world.log(METADATA)
    for log in logs:
        world.partitions.submit(appending(log), None, lambda _: told.append("partition"))
    world.workers.quorum.submit(appending(quorum), None, lambda _: told.append("quorum"))
    world.run()
    assert told == ["quorum"] + ["partition"] * 50


FAILURES = [("the quorum's", METADATA), ("a partition's", f"{DATA}/t-0")]


@pytest.mark.parametrize("kind", ["pwritev", "sync"])
@pytest.mark.parametrize("sick", [case[1] for case in FAILURES], ids=[case[0] for case in FAILURES])
def test_a_failure_of_either_takes_both_offline_and_no_other_directory(kind: str, sick: str) -> None:
    world = World()
    quorum, partition, far = world.log(METADATA), world.log(f"{DATA}/t-0"), world.log(f"{OTHER}/t-1")

    def fault(operation: Operation) -> Fail | None:
        return Fail() if operation.kind == kind and operation.path.startswith(f"{sick}/") else None

    world.disk.faults = fault
    first, second = (
        (world.workers.quorum, world.partitions)
        if sick == METADATA
        else (
            world.partitions,
            world.workers.quorum,
        )
    )
    told: list[Outcome] = []
    first.submit(appending(quorum if sick == METADATA else partition), None, told.append)
    world.run()
    world.disk.faults = lambda _: None
    second.submit(appending(partition if sick == METADATA else quorum), None, told.append)
    second.submit(CallJob(lambda: "never"), None, told.append)
    world.run()
    assert [type(outcome.error) for outcome in told] == [DirectoryOffline] * 3
    failure = world.lives[DATA].failure
    assert failure is told[0].error is told[2].error
    assert DATA in str(failure) and METADATA not in str(failure).partition(":")[0]
    assert world.lives[OTHER].failure is None
    world.elsewhere.submit(appending(far), None, told.append)
    world.run()
    assert told[-1].value == 1 and not world.workers.close()


def test_an_unsynced_write_is_not_reported_durable_when_the_other_worker_fails() -> None:
    world = World()
    quorum, partition = world.log(METADATA), world.log(f"{DATA}/t-0")
    world.disk.faults = lambda operation: (
        Fail() if operation.kind == "pwritev" and operation.path.startswith(METADATA) else None
    )
    told: list[Outcome] = []
    written: list[Outcome] = []

    def then_the_quorum_fails(outcome: Outcome) -> None:
        written.append(outcome)
        world.workers.quorum.submit(appending(quorum), None, told.append)

    world.partitions.submit(appending(partition), then_the_quorum_fails, told.append)
    world.scheduler.run_while(lambda: not written, 10_000 * NS_PER_MS)
    assert written[0].error is None
    world.run()
    assert [type(outcome.error) for outcome in told] == [DirectoryOffline] * 2
    assert partition.synced_end == 0


def test_the_recovery_point_that_an_earlier_release_kept_among_the_partitions_is_removed() -> None:
    """It would not change while the log is truncated, so it would be too high for an earlier release."""
    world = World(points={("t", 0): 7, METADATA_PARTITION: 90})
    assert OffsetFile(world.disk, f"{DATA}/{RECOVERY_POINTS}").offsets == {("t", 0): 7}
    assert world.workers.quorum_points.get(METADATA_PARTITION) == 0, "the log is read from its start once, if unclean"
    world.log(METADATA)
    world.workers.quorum_points.update({METADATA_PARTITION: 3})
    assert OffsetFile(world.disk, f"{METADATA}/{RECOVERY_POINTS}").offsets == {METADATA_PARTITION: 3}
    assert OffsetFile(world.disk, f"{DATA}/{RECOVERY_POINTS}").offsets == {("t", 0): 7}


def test_a_directory_with_unreadable_recovery_points_is_offline_alone() -> None:
    """If they were ignored, they would never be lowered, and would return when the disk has recovered."""
    world = World()
    OffsetFile(world.disk, f"{OTHER}/{RECOVERY_POINTS}").update({("t", 0): 5})
    world.disk.faults = lambda operation: Fail() if operation.path == f"{OTHER}/{RECOVERY_POINTS}" else None
    told: dict[str, Outcome] = {}
    for entry in world.workers.for_replicas():
        job = CallJob(partial(entry.partitions.recovery_points.update, {("t", 0): 3}))
        entry.worker.submit(job, None, partial(told.__setitem__, entry.path))
    world.run()
    assert told[DATA].error is None and isinstance(told[OTHER].error, DirectoryOffline)
    assert world.lives[DATA].failure is None and world.lives[OTHER].failure is not None


def test_close_is_clean_only_without_a_failure() -> None:
    assert World().workers.close()
