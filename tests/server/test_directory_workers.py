"""The quorum's worker beside that of the partitions: two queues, two recovery-point files, one shared state."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any, cast

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Operation
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.records import Record, encode_batch, headers
from quorumlog_quorum.disk.metadata_directory import MetadataDirectory
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.directories import open_directories
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.replica_directories import DirectoryWorkers
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.edges import Edges
from quorumlog_storage.directory.directory import LOCK_NAME, PROBE_NAME
from quorumlog_storage.directory.offset_files import RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.file_handle import FileHandle
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.worker import Worker
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter, Outcome

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

    def open_quorum(self) -> Outcome:
        """The metadata log's writer performs its first job."""
        told: list[Outcome] = []
        older = self.workers.older_points
        directory = MetadataDirectory(
            worker=self.workers.quorum, disk=self.disk, log_config=LogConfig(), older_points=older
        )
        self.workers.quorum.submit(CallJob(directory._open), None, told.append)
        self.run()
        return told[0]

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
    assert [path for path in World().made if not path.endswith(PROBE_NAME)] == [METADATA, DATA, OTHER]
    assert [path for path in World("controller").made if not path.endswith(PROBE_NAME)] == [METADATA]


def test_the_quorum_does_not_wait_for_partitions() -> None:
    world = World()
    answers: list[str] = []
    logs = [world.log(f"{DATA}/t-{index}") for index in range(50)]
    quorum = world.log(METADATA)
    for log in logs:
        world.partitions.submit(appending(log), None, lambda _: answers.append("partition"))
    world.workers.quorum.submit(appending(quorum), None, lambda _: answers.append("quorum"))
    world.run()
    assert answers == ["quorum"] + ["partition"] * 50


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
    answers: list[Outcome] = []
    first.submit(appending(quorum if sick == METADATA else partition), None, answers.append)
    world.run()
    world.disk.faults = lambda _: None
    second.submit(appending(partition if sick == METADATA else quorum), None, answers.append)
    second.submit(CallJob(lambda: "never"), None, answers.append)
    world.run()
    assert [type(outcome.error) for outcome in answers] == [DirectoryOffline] * 3
    failure = world.lives[DATA].failure
    assert str(failure) == str(answers[0].error) == str(answers[2].error)
    assert DATA in str(failure) and METADATA not in str(failure).partition(":")[0]
    assert world.lives[OTHER].failure is None
    world.elsewhere.submit(appending(far), None, answers.append)
    world.run()
    assert answers[-1].value == 1 and not world.workers.close()


def test_an_unsynced_write_is_not_reported_durable_when_the_other_worker_fails() -> None:
    world = World()
    quorum, partition = world.log(METADATA), world.log(f"{DATA}/t-0")
    world.disk.faults = lambda operation: (
        Fail() if operation.kind == "pwritev" and operation.path.startswith(METADATA) else None
    )
    answers: list[Outcome] = []
    written: list[Outcome] = []

    def then_the_quorum_fails(outcome: Outcome) -> None:
        written.append(outcome)
        world.workers.quorum.submit(appending(quorum), None, answers.append)

    world.partitions.submit(appending(partition), then_the_quorum_fails, answers.append)
    world.scheduler.run_while(lambda: not written, 10_000 * NS_PER_MS)
    assert written[0].error is None
    world.run()
    assert [type(outcome.error) for outcome in answers] == [DirectoryOffline] * 2
    assert partition.synced_end == 0


def test_the_recovery_point_that_an_earlier_release_kept_among_the_partitions_is_removed() -> None:
    """It would not change while the log is truncated, so it would be too high for an earlier release."""
    world = World(points={("t", 0): 7, METADATA_PARTITION: 90})
    world.log(METADATA)
    older = OffsetFile(world.disk, f"{DATA}/{RECOVERY_POINTS}").offsets
    assert METADATA_PARTITION in older, "nothing is written before the writer's first turn"
    told = world.open_quorum()
    assert told.error is None
    assert told.value.log.recovery.scanned_bytes == 0 and not told.value.log.recovery.lost_below_recovery_point
    assert OffsetFile(world.disk, f"{DATA}/{RECOVERY_POINTS}").offsets == {("t", 0): 7}


def test_a_disk_error_at_the_older_recovery_points_fails_the_directory() -> None:
    world = World(points={METADATA_PARTITION: 90})
    world.disk.faults = lambda operation: Fail() if operation.path.startswith(f"{DATA}/{RECOVERY_POINTS}") else None
    assert isinstance(world.open_quorum().error, DirectoryOffline)
    assert world.lives[DATA].generation.failure is not None


def test_a_directory_with_unreadable_recovery_points_is_offline_alone() -> None:
    """If they were ignored, they would never be lowered, and would return when the disk has recovered."""
    world = World()
    OffsetFile(world.disk, f"{OTHER}/{RECOVERY_POINTS}").update({("t", 0): 5})
    world.disk.faults = lambda operation: Fail() if operation.path == f"{OTHER}/{RECOVERY_POINTS}" else None
    answers: dict[str, Outcome] = {}
    for entry in world.workers.for_replicas():
        job = CallJob(partial(entry.partitions.recovery_points.update, {("t", 0): 3}))
        entry.worker.submit(job, None, partial(answers.__setitem__, entry.path))
    world.run()
    assert answers[DATA].error is None and isinstance(answers[OTHER].error, DirectoryOffline)
    assert world.lives[DATA].failure is None and world.lives[OTHER].failure is not None


def test_a_directory_that_has_failed_is_let_go_so_that_it_can_be_unmounted() -> None:
    """Its lock and the descriptors of its logs, also with bytes not yet synced; the other directory keeps its."""
    world = World()
    logs = [world.log(f"{path}/t-0") for path in (DATA, OTHER)]
    for worker, log in zip((world.partitions, world.elsewhere), logs, strict=True):
        worker.submit(appending(log), None, lambda _: None)
    world.run()
    logs[1].append_checked(appending(logs[1]).batches)
    open_files = world.disk.resources.open_files
    held = [one.path for one in open_files.residents() if isinstance(one, FileHandle)]
    assert any(path.startswith(OTHER) for path in held) and any(path.startswith(DATA) for path in held)
    life = world.lives[OTHER]
    life.fail(DiskError(OTHER, "write", errno.EROFS, "read-only"), life.generation)
    world.run()
    left = [one.path for one in open_files.residents() if isinstance(one, FileHandle)]
    assert left == [path for path in held if path.startswith(DATA)]
    assert f"{OTHER}/{LOCK_NAME}" not in world.disk.locked and f"{DATA}/{LOCK_NAME}" in world.disk.locked
