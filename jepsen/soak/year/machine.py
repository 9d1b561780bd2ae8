"""One machine with three log directories, and the broker's data plane on it, process after process.

What a node does around its data plane is done here in the same order: directories are locked and their markers taken,
logs closed, markers left; a directory that failed is locked again in a new generation and verified.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from jepsen.sim.machine.disk import SimFile
from jepsen.sim.machine.disk_faults import FaultPlans, Operation
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.network.network import Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from jepsen.soak.counting_disk import CountingDisk
from jepsen.soak.year.authority import BROKER, Authority
from jepsen.soak.year.mortal_cleaner import CleanerFate, MortalRunner
from jepsen.soak.year.topics import CLEANER_BACKOFF_MS, HOUR_MS, RETENTION_CHECK_MS
from quorumlog.ids import Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Identity
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.slices import Sliced
from quorumlog_broker.data_plane import DataPlane
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.lifecycle.directory_assigner import DirectoryAssigner
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.image_diff import delta_from_empty
from quorumlog_storage.directory.directory import LockedDirectory, format_directory
from quorumlog_storage.directory.meta_properties import MetaProperties
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.names import DELETED_SUFFIX, LOG_SUFFIX
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter

T = TypeVar("T")
PATHS = ("/d0", "/d1", "/d2")
HOST = "n1"
CALL_NS = NS_PER_MS // 50  # of the disk
START_LIMIT_NS = 600_000 * NS_PER_MS
OPEN_FILES_MAX, INDEX_BYTES_MAX = 16, 64 << 10  # log.open.files.max, log.index.bytes.max
PRODUCER_EXPIRY_MS = 6 * HOUR_MS
PRODUCER_CHECK_MS = HOUR_MS
CONFIG = ReplicationConfig(
    replica_lag_time_max_ms=48 * HOUR_MS,  # nobody follows
    high_watermark_checkpoint_interval_ms=HOUR_MS // 2,
    recovery_checkpoint_interval_ms=2 * HOUR_MS,
    retention_check_interval_ms=RETENTION_CHECK_MS,
    producer_id_expiration_ms=PRODUCER_EXPIRY_MS,
    producer_id_expiration_check_interval_ms=PRODUCER_CHECK_MS,
    free_space_check_interval_ms=2 * HOUR_MS,
    index_check_interval_ms=12 * HOUR_MS,
    free_space_reserve_bytes=0,
)
CLEANER = CleanerConfig(dedupe_buffer_bytes=1 << 16, io_buffer_bytes=1 << 16, backoff_ms=CLEANER_BACKOFF_MS)


class YearDisk(CountingDisk):
    """Counts segments, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.bounds = OPEN_FILES_MAX, INDEX_BYTES_MAX
        self.kill()  # the first process has these bounds
        self.counts: Counter[str] = Counter()  # segments that were made ("rolled") and that are gone ("left")

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.counts["left"] += path.endswith((LOG_SUFFIX, LOG_SUFFIX + DELETED_SUFFIX))

    def open(self, path: str, create: bool = False) -> SimFile:
        self.counts["rolled"] += create and path.endswith(LOG_SUFFIX)
        return super().open(path, create)


class Machine:
    """process: None while none runs. failures: directories that failed, by path, while the process runs."""

    def __init__(self, scheduler: Scheduler, authority: Authority) -> None:
        self.scheduler, self.authority = scheduler, authority
        self.clock = SimClock(scheduler)
        self.plans = FaultPlans()
        rolls = RollSources(self.clock.wall_ms, scheduler.rng("rolls").random)
        self.disk = YearDisk(faults=self.plans, latency=_latency, rolls=rolls)
        self.network = Network(scheduler)
        self.fate = CleanerFate()
        self.process: Process | None = None
        self.lives = 0
        self.crashes: list[str] = []
        for number, path in enumerate(PATHS):
            format_directory(self.disk, path, MetaProperties("soak", BROKER, directory_id(number)))

    @property
    def running(self) -> Process:
        assert self.process is not None, "no process runs"
        return self.process

    def start(self) -> None:
        """Returns once every log that can be opened leads."""
        assert self.process is None
        self.lives += 1
        self.process = Process(self)
        self.process.begin()

    def stop(self) -> bool:
        """As told by SIGTERM. True if it left every directory in order."""
        in_order = self.running.stop()
        self.disk.kill()
        self._over()
        return in_order == set(PATHS)

    def kill(self) -> None:
        """What it wrote stays in the page cache."""
        self.running.loop.kill()
        self.disk.kill()
        self._over()

    def cut_power(self, rng: random.Random) -> None:
        self.running.loop.kill()
        self.disk.crash(rng)
        self._over()

    def _over(self) -> None:
        self.process = None
        self.authority.ended()
        killed_coroutines.empty()


class Process:
    """One life of the broker. online: ids of the directories that serve."""

    def __init__(self, machine: Machine) -> None:
        scheduler = machine.scheduler
        self.machine = machine
        self.began_ms = machine.clock.now_ms()  # or when the last directory came back
        self.calls_before = machine.disk.operations
        self.incarnation_id: Uuid = machine.lives.to_bytes(16, "big")
        self.loop = SimLoop(scheduler, HOST)
        self.nursery = Nursery(self._on_crash)
        self._untold: deque[Sliced[None]] = deque()
        self._locked: dict[str, LockedDirectory] = {}
        self.directories: dict[str, LogDirectory] = {}
        for path in PATHS:
            self.directories[path] = self._open(path)
        self.plane = DataPlane(
            node_id=BROKER,
            incarnation_id=self.incarnation_id,
            directories=list(self.directories.values()),
            clock=machine.clock,
            rng=scheduler.rng(f"replicas/{machine.lives}"),
            nursery=self.nursery,
            transport=SimTransport(machine.network, HOST, self.loop, self._identity(), on_crash=self._on_crash),
            controller=machine.authority,
            broker_epoch=lambda: machine.authority.broker_epoch,
            config=CONFIG,
            fetch_sessions=FetchSessions(scheduler.rng(f"sessions/{machine.lives}"), slots=10),
            on_directory_failed=self._on_directory_failed,
            on_assignments_changed=self._wake_assigner,
            cleaner=CLEANER,
            make_cleaner=lambda: MortalRunner(machine.disk, machine.clock, machine.fate),
        )
        self._assigner = DirectoryAssigner(
            node_id=BROKER,
            pending=self.plane.placements.pending_assignments,
            broker_epoch=lambda: machine.authority.broker_epoch,
            channel=machine.authority,
            rng=scheduler.rng(f"assigner/{machine.lives}"),
        )

    def begin(self) -> None:
        authority = self.machine.authority
        self.run(self._start())
        authority.tell = self._tell
        self._tell(delta_from_empty(authority.image), authority.image)
        self._await(lambda: self.plane.logs_to_open.done)
        self.calls_to_open = self.machine.disk.operations - self.calls_before
        authority.register(self.incarnation_id, self.online)
        self._await(self._all_lead)
        self.tasks_at_start = len(self.nursery)

    @property
    def online(self) -> list[Uuid]:
        return [one.directory_id for one in self.directories.values() if one.life.is_online]

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        result: T = self.loop.run_until_complete(coroutine, self.machine.scheduler.now_ns + START_LIMIT_NS)
        return result

    def stop(self) -> frozenset[str]:
        """Paths of the directories that were left in order."""
        in_order = self.run(self.plane.close())
        self.run(self.nursery.close())
        for path, directory in self.directories.items():
            directory.worker.close()
            if path in self._locked:
                self._locked[path].close(self.machine.authority.broker_epoch if path in in_order else None)
            directory.life.step(LifeEvent.CLOSED, directory.life.generation)
        self.loop.kill()
        return in_order

    def bring_back(self, path: str) -> None:
        """A directory that failed: lock it again, verify every log in it, lead them. Raises DiskError."""
        before = self.directories[path]
        before.life.step(LifeEvent.VERIFICATION_BEGAN, before.generation)
        if path in self._locked:
            self._locked.pop(path).close(None)
        try:
            self._locked[path] = LockedDirectory.open(self.machine.disk, path)
        except DiskError as error:
            before.life.fail(error, before.life.generation)
            raise
        directory = self._directory(path, before.life, verifies=True)
        self.directories[path] = directory
        self.run(self._take_back(directory))
        self.began_ms = self.machine.clock.now_ms()
        self.machine.authority.directory_returned(self.online)
        self._await(self._all_lead)

    # --- details ---

    async def _start(self) -> None:
        await self.plane.start()
        self.nursery.start(self._assigner.run(), "directory assigner")

    async def _take_back(self, directory: LogDirectory) -> None:
        await self.plane.returns.take_back(directory)
        self.plane.directory_returned(directory)

    def _open(self, path: str) -> LogDirectory:
        life = DirectoryLife(path)
        try:
            self._locked[path] = LockedDirectory.open(self.machine.disk, path)
        except DiskError as error:
            life.fail(error, life.generation)
        else:
            life.step(LifeEvent.OPENED, life.generation)
        return self._directory(path, life, clean=path in self._locked and self._locked[path].clean_shutdown is not None)

    def _directory(
        self, path: str, life: DirectoryLife, *, clean: bool = False, verifies: bool = False
    ) -> LogDirectory:
        disk = self.machine.disk
        return LogDirectory(
            directory_id=directory_id(PATHS.index(path)),
            life=life,
            generation=life.generation,
            partitions=PartitionDirectories(disk, path, clean, verifies=verifies),
            worker=SimWorker(disk, DirectoryWriter(path, life.generation), self.loop.deliver_later),
        )

    def _identity(self) -> Identity:
        return Identity(cluster_id="soak", node_id=BROKER, incarnation_id=self.incarnation_id, secret=b"s")

    def _tell(self, delta: Delta, image: Image) -> None:
        self._untold.append(self.plane.placements.apply(delta, image))
        if len(self._untold) == 1:
            self.loop.deliver(self._apply)

    def _apply(self) -> None:
        while self._untold:
            if not next(self._untold[0], True):
                self.loop.deliver_later(NS_PER_MS, self._apply)
                return
            self._untold.popleft()

    def _all_lead(self) -> bool:
        if self._untold:
            return False
        online = self.online
        return all(
            replica.core.is_leader and replica.log is not None
            for replica in self.plane.registry.replicas.values()
            if replica.queue is not None and replica.queue.directory_id in online and not replica.core.failed
        )

    def await_leaders(self) -> None:
        self._await(self._all_lead)

    def _await(self, condition: Any) -> None:
        scheduler = self.machine.scheduler
        scheduler.run_while(lambda: not condition(), scheduler.now_ns + START_LIMIT_NS)
        assert condition(), f"it never came true: {condition}"

    def _on_directory_failed(self, failed: Uuid, _error: Exception) -> None:
        self.machine.authority.directory_failed(failed, self.online)

    def _wake_assigner(self) -> None:
        self._assigner.wake()

    def _on_crash(self, name: str, error: BaseException) -> None:
        self.machine.crashes.append(f"{name}: {error!r}")
        raise AssertionError(f"{name} crashed") from error


def directory_id(number: int) -> Uuid:
    return bytes([number + 100]) * 16


def _latency(_operation: Operation) -> int:
    return CALL_NS
