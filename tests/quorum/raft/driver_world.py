"""Production drivers on the simulated loop, network and disk. The log directory of a node is `/n<id>`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.network.network import Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog.ids import Epoch, NodeId, Offset, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import ProbeRequest, ProbeResponse
from quorumlog.nursery import Nursery
from quorumlog.records import decode_batch, headers
from quorumlog.rpc.transport import Address, Context, Identity, Listener
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog_quorum.disk.metadata_directory import METADATA_LOG
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_quorum.metadata.snapshot_records import WrongState
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.node.driver import Driver
from quorumlog_quorum.raft import Membership, Voter, VoterSet
from quorumlog_quorum.snapshots import SnapshotHeading, values_of
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.writer import DirectoryWriter

MS = 1_000_000  # of virtual nanoseconds


class Recorder:
    """A RaftListener that records what it is told and checks the promises of quorumlog_quorum/metadata/listener.py."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.end_offset: Offset = 0
        self.high_watermark: Offset = -1
        self.leader: tuple[NodeId, Epoch] = (-1, 0)
        self.claimed: Epoch | None = None
        self.handing_over: Epoch | None = None
        self.calls: list[str] = []
        self.unsupported: bytes | None = None  # a value of newer software
        self.refused: tuple[Offset, ...] = ()  # snapshots whose content is wrong

    def on_snapshot(self, heading: SnapshotHeading) -> Load:
        assert heading.id.offset > self.end_offset
        return Load(self, heading)

    def slices(self) -> Iterator[list[bytes]]:
        """Of the values so far."""
        values = tuple(self.values)
        return (list(values[start : start + 3]) for start in range(0, len(values), 3))

    def on_committed(self, batches: bytes, end_offset: Offset) -> None:
        found = headers(batches)
        assert found[0].base_offset == self.end_offset and found[-1].next_offset == end_offset
        assert end_offset <= self.high_watermark
        self.end_offset = end_offset
        for header in found:
            if not header.is_control:
                self._take([record.value or b"" for record in decode_batch(batches, header)])

    def _take(self, values: list[bytes]) -> None:
        for value in values:
            if value == self.unsupported:
                raise UnsupportedMetadata("a record of type 99", "the types below")
            self.values.append(value)

    def on_high_watermark(self, high_watermark: Offset) -> None:
        assert high_watermark > self.high_watermark
        self.high_watermark = high_watermark

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        assert epoch >= self.leader[1] and (leader_id == -1) == (endpoint is None)
        self.leader = (leader_id, epoch)

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        assert self.claimed is None and self.end_offset >= end_offset
        self.claimed, self.handing_over = epoch, None
        self.calls.append(f"claim {epoch}")

    def on_hand_over(self, epoch: Epoch) -> None:
        assert self.claimed == epoch
        self.claimed, self.handing_over = None, epoch
        self.calls.append(f"hand over {epoch}")

    def on_resign(self, epoch: Epoch) -> None:
        assert epoch in (self.claimed, self.handing_over)
        self.claimed = self.handing_over = None
        self.calls.append(f"resign {epoch}")


class Load:
    """A snapshot on its way into a recorder."""

    def __init__(self, recorder: Recorder, heading: SnapshotHeading) -> None:
        self._recorder, self._heading = recorder, heading
        self._values: list[bytes] = []

    def add(self, batches: bytes) -> Iterator[None]:
        for value in values_of(batches):
            self._values.append(value)
            yield

    def finish(self) -> None:
        recorder = self._recorder
        if self._heading.id.offset in recorder.refused:
            raise WrongState("made wrong by the test")
        assert recorder.values == self._values[: len(recorder.values)], "the snapshot is of another history"
        recorder.values, recorder.end_offset = self._values, self._heading.id.offset
        recorder.calls.append(f"snapshot {self._heading.id.offset}")


class LoopClock:
    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms()


class Process:
    """One process of one node, from its start to its end."""

    def __init__(self, world: World, node_id: NodeId, life: int) -> None:
        name = f"n{node_id}"
        self.loop = SimLoop(world.scheduler, name)
        self.crashes: list[BaseException] = []
        self.fatal: list[str] = []
        self.incarnation_id = bytes([node_id, life]) * 8
        identity = Identity(cluster_id="c", node_id=node_id, incarnation_id=self.incarnation_id, secret=b"s" * 32)
        on_crash = lambda _, error: self.crashes.append(error)  # noqa: E731
        self.transport = SimTransport(world.network, name, self.loop, identity, on_crash=on_crash)
        self.disk = world.disks[node_id]
        path = log_path(node_id)
        self.worker = SimWorker(self.disk, DirectoryWriter(path), self.loop.deliver_later)
        self.recorder = Recorder()
        self.driver = Driver(
            node_id=node_id,
            directory_id=world.directory_of(node_id),
            cluster_id="c",
            voters=world.voters,
            membership=world.membership_of(node_id),
            transport=self.transport,
            worker=self.worker,
            disk=self.disk,
            clock=LoopClock(self.loop),
            rng=world.scheduler.rng(f"driver/{node_id}/{life}"),
            nursery=Nursery(on_crash),
            on_fatal=self.fatal.append,
            listeners=[self.recorder],
            log_config=world.log_config,
            snapshots=world.snapshots,
            slices=self.recorder.slices if world.snapshots is not None else None,
        )
        self.address = Address(name, 9000)
        self.directory_id = world.directory_of(node_id)

    def start(self) -> None:
        self.do(self._start())

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.loop.deliver(lambda: self.loop.create_task(coroutine))

    def append(self, *values: bytes) -> None:
        self.loop.deliver(lambda: self.driver.append(self.driver.announcements.epoch, values))

    async def _start(self) -> None:
        await self.transport.listen(Listener(name="INTERNAL", address=self.address, internal=True), self._handle)
        await self.driver.start()

    async def _handle(self, context: Context, request: Any) -> Any:
        if isinstance(request, ProbeRequest):
            return ProbeResponse(
                node_id=self.driver.node_id,
                incarnation_id=self.incarnation_id,
                directory_id=self.directory_id,
                is_controller=True,
                max_kraft_version=1,
            )
        return await self.driver.handle(context, request)


class World:
    def __init__(
        self,
        seed: int = 1,
        voters: int = 3,
        observers: int = 0,
        log_config: LogConfig = METADATA_LOG,
        snapshots: SnapshotConfig | None = None,
    ) -> None:
        """snapshots: None: none are taken."""
        WORLDS.append(self)
        self.snapshots = snapshots
        self.log_config = log_config
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.voters = VoterSet(
            Voter(node_id=i, endpoint=Endpoint(name="INTERNAL", host=f"n{i}", port=9000)) for i in range(voters)
        )
        count = voters + observers
        self.disks = [SimDisk(latency=lambda _: MS) for _ in range(count)]
        for node_id, disk in enumerate(self.disks):
            disk.make_directory(f"/n{node_id}")
            disk.sync_directory("/")
        self.lives = [0] * count
        self.running: dict[NodeId, Process] = {}
        self.format()
        for node_id in range(count):
            self.start(node_id)

    def format(self) -> None:
        """Before the first start; for a world whose nodes find something on their disks."""

    def directory_of(self, node_id: NodeId) -> Uuid:
        return bytes([node_id + 1]) * 16

    def membership_of(self, node_id: NodeId) -> Membership | None:
        return None

    def start(self, node_id: NodeId, *, begin: bool = True) -> Process:
        self.lives[node_id] += 1
        process = self.running[node_id] = Process(self, node_id, self.lives[node_id])
        if begin:
            process.start()
        return process

    def kill(self, node_id: NodeId, *, power_cut: bool = False) -> None:
        process = self.running.pop(node_id)
        process.loop.kill()
        process.worker.kill()
        if power_cut:
            process.disk.crash(self.scheduler.rng(f"cut/{node_id}/{self.lives[node_id]}"))
        else:
            process.disk.kill()

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        if until is None:
            self.scheduler.run_for(duration_ms * MS)
            return True
        reached = self.scheduler.run_while(lambda: not until(), self.scheduler.now_ns + duration_ms * MS)
        for process in self.running.values():
            assert not process.crashes, process.crashes
        return reached

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ns // MS

    @property
    def leader(self) -> Process | None:
        """The process that has claimed the largest epoch; None if there is none."""
        claimed = [process for process in self.running.values() if process.recorder.claimed is not None]
        return max(claimed, key=lambda process: process.recorder.claimed or 0, default=None)

    def has_leader(self) -> bool:
        return self.leader is not None

    def all_have(self, *values: bytes) -> Callable[[], bool]:
        return lambda: all(process.recorder.values == list(values) for process in self.running.values())


def log_path(node_id: NodeId) -> str:
    return f"/n{node_id}/{METADATA_DIRECTORY}"


WORLDS: list[World] = []  # of the running test


def outcome_of(world: World, process: Process, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run the coroutine to its end. Returns its value, or the exception that it raised."""
    results: list[Any] = []

    async def catch() -> None:
        try:
            results.append(await coroutine)
        except Exception as error:
            results.append(error)

    process.do(catch())
    assert world.run(10_000, until=lambda: bool(results))
    return results[0]
