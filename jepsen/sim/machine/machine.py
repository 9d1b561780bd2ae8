"""One host: a disk that outlives processes, and at most one process, a production node on its own loop.

A kill drops the process: no coroutine resumes and no `finally` runs. A power cut does the same, silences
the network, and loses unsynced data. A start creates a new incarnation on the same disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from jepsen.sim.machine.disk import SimDisk, file_at, names_in
from jepsen.sim.machine.disk_faults import Fault, FaultPlans, Operation, PowerLost, no_faults
from jepsen.sim.machine.exchange import exchange
from jepsen.sim.machine.page_cache import DirectoryNode
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.network.network import Network
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.network.watched_transport import WatchedTransport
from jepsen.sim.settings import CLUSTER_ID, SECRET
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.common import FeatureRange
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import Identity, Transport
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.turn import Turn
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.routing import RoutingTransport
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.cleaning.sliced import SlicedRunner
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.format import format_node
from quorumlog_server.edge.edges import Edges
from quorumlog_server.process.node import Node, build_node
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.writer.worker import Worker, WorkerLimits
from quorumlog_storage.writer.writer import DirectoryWriter

SHORT_QUEUES = WorkerLimits(queued_jobs=3, queued_beside=2)  # so short that they are full now and then
LOSING = "losing"  # told of a disk that is about to lose what is not durable, or all that it holds
_RESERVED_UUIDS = 100
_STOP_NS = 30_000 * NS_PER_MS
_READING_NS, _WRITING_NS = 5_000, 20_000
_SYNC_MIN_NS, _SYNC_EXTRA_NS = 100_000, 400_000

OnTouch = Callable[[], None]
OnDisk = Callable[["Machine", str, str], None]  # machine, kind of operation, path
OnDeath = Callable[["Machine", str], None]  # machine, reason
OnAnswer = Callable[["Machine", Any, Any], None]  # machine, request, response (None for acks=0)
OnAsked = Callable[["Machine", Any], Callable[[Any], None]]  # machine, request -> called with the outcome


class WatchedLoop(SimLoop):
    """Calls `on_touch` after each step of its node. A node changes only in a step of its loop."""

    on_touch: OnTouch

    def _run(self, handle: Any, order: int) -> None:
        super()._run(handle, order)
        self.on_touch()


class Machine:
    """host: its name on the network. `life` counts its processes."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        host: str,
        *,
        lane: bool,
        config: NodeConfig,
        on_touch: Callable[[Machine], None],
        on_disk: OnDisk,
        on_death: OnDeath,
        on_answer: OnAnswer = lambda _machine, _request, _response: None,
        on_asked: OnAsked = lambda _machine, _request: lambda _outcome: None,
        build: Callable[[NodeConfig, Edges, tuple[FeatureRange, ...]], Node] = build_node,
        disk: type[SimDisk] = SimDisk,
    ) -> None:
        """lane: its listeners may speak the lane. build: makes the node of each process. disk: the kind of its disk.

        on_touch: called after each step of the process. on_death: called when it ends itself.
        on_answer: called when the process has answered a produce or fetch request without an ApiError.
        on_asked: see WatchedTransport.
        """
        self.host, self.config, self._build = host, config, build
        self.clock = SimClock(scheduler)
        self.fault_plans = FaultPlans()
        self.struck: set[str] = set()  # log directories with which a fault met this process; never iterated
        rolls = RollSources(self.clock.wall_ms, random.Random(host).random)
        self.disk = disk(faults=self._fault, trace=self._on_disk, latency=self._latency, rolls=rolls)
        self.slow_sync_ns = 0  # added to each sync: a slow disk
        self.life = 0
        self.unclean_life = 0  # the newest one that found no marker of a clean stop; 0: none
        self.resumed_ns = -1  # when the last pause of its process ended
        self.loop: WatchedLoop | None = None
        self.node: Node | None = None
        self.supported: tuple[FeatureRange, ...] = SUPPORTED  # the levels of features that its next process supports
        self.has_power = True
        self.in_service = True  # False: an operator has not put it up yet, or has taken it away for good
        self._doom: Callable[[], None] | None = None  # ends the process or the machine after the current step
        self._scheduler, self._network = scheduler, network
        self._lane = lane
        self._on_touch, self._tell_disk, self._on_death = on_touch, on_disk, on_death
        self._on_answer, self._on_asked = on_answer, on_asked
        self._latency_rng = scheduler.rng(f"latency/{host}")
        self._crash_rng = scheduler.rng(f"crash/{host}")
        self._uuid_rng = scheduler.rng(f"uuid/{host}")

    @property
    def node_id(self) -> NodeId:
        return self.config.node_id

    @property
    def alive(self) -> bool:
        return self.loop is not None and self.loop.alive

    @property
    def paused(self) -> bool:
        return self.loop is not None and self.loop.alive and self.loop.paused

    def format(self, *, again: bool = False) -> None:
        """again: only the directories that are not formatted yet. An operator's process does it: no fault meets it."""
        faults, self.disk.faults = self.disk.faults, no_faults
        format_node(
            self.config,
            cluster_id=CLUSTER_ID,
            secret=SECRET,
            disk=self.disk,
            new_uuid=self._new_uuid,
            protect=lambda _: None,
            ignore_formatted=again,
        )
        self.disk.faults = faults
        self.disk.take_latency_ns()

    def bring_up(self) -> None:
        """Start it, unless it runs."""
        if not self.alive:
            self.start()

    def start(self) -> None:
        assert not self.alive, f"{self.host} runs already"
        if not self.in_service:
            return
        if not self.has_power:
            self.has_power = True
            self._network.power_on(self.host)
        self.life += 1
        markers = [f"{path}/{CLEAN_SHUTDOWN}" for path in self.config.directories]
        if self.life > 1 and any(file_at(self.disk, marker, durable=False) is None for marker in markers):
            self.unclean_life = self.life
        self.struck.clear()
        if self.supported is SUPPORTED:
            self._network.older_software.pop(self.host, None)
        else:
            self._network.older_software[self.host] = None
        self._scheduler.record(self.host, "start")
        loop = WatchedLoop(self._scheduler, self.host, on_error=self._on_loop_error)
        SimSockets(self._network, self.host, loop)
        loop.on_touch = self._after_step
        self.loop = loop
        loop.create_task(self._run(loop), name="node")

    def stop(self) -> None:
        """SIGTERM: a controlled shutdown, then the process ends."""
        if self.alive and not self.paused and self.node is not None:
            assert self.loop is not None
            self.loop.create_task(self._stop(self.loop, self.node), name="stop")

    def kill(self) -> None:
        """kill -9. Idempotent."""
        if self.loop is None or not self.loop.alive:
            return
        self._scheduler.record(self.host, "kill")
        self.loop.kill()
        self.disk.kill()
        self.node = None

    def power_cut(self) -> None:
        """Switch the machine off; `start` switches it on."""
        if not self.has_power:
            return
        self._scheduler.record(self.host, "power-cut")
        self.has_power = False
        self._network.power_off(self.host)
        if self.loop is not None:
            self.loop.kill()
        self.node = None
        self._tell_disk(self, LOSING, "/")
        self.disk.crash(self._crash_rng)
        self._tell_disk(self, "crash", "/")

    def restore(self, path: str, files: Mapping[str, bytes]) -> None:
        """While the machine is off, put older files in the place of a directory's (`SimDisk.copy_of`)."""
        assert not self.alive
        self._scheduler.record(self.host, "restore")
        self._tell_disk(self, LOSING, "/")
        self.disk.put_back(path, files)
        self._tell_disk(self, "crash", "/")

    def replace_disk(self) -> None:
        """While no process runs: an empty disk, formatted as that of a new node."""
        assert not self.alive
        self._scheduler.record(self.host, "new disk")
        self._tell_disk(self, LOSING, "/")
        self.disk.replace()
        self._tell_disk(self, "crash", "/")
        self.format()

    def exchange_directory(self, path: str, other: DirectoryNode | None) -> DirectoryNode | None:
        """Another disk, or none, in the place of one log directory's. Returns what was there."""
        self._scheduler.record(self.host, f"another disk for {path}" if other else f"new disk for {path}")
        names = names_in(self.disk, path)
        before = exchange(self.disk, path, other)
        for name in dict.fromkeys((*names, *names_in(self.disk, path))):
            self._tell_disk(self, "replace", f"{path}/{name}")
        return before

    def pause(self) -> None:
        if self.alive and self.loop is not None:
            self._scheduler.record(self.host, "pause")
            self.loop.pause()

    def resume(self) -> None:
        if self.loop is not None:
            self._scheduler.record(self.host, "resume")
            if self.loop.paused:
                self.resumed_ns = self._scheduler.now_ns
            self.loop.resume()

    @property
    def is_doomed(self) -> bool:
        return self._doom is not None

    def doom(self, end: Callable[[], None]) -> None:
        """A call of the disk does not return (disk_faults.PowerLost); `end` kills the process or cuts the power."""
        self._doom = end

    # --- the process ---

    def _after_step(self) -> None:
        if self._doom is not None:
            end, self._doom = self._doom, None
            end()
            self._tell_disk(self, "crash", "/")  # the last call was not told
        self._on_touch(self)

    async def _run(self, loop: SimLoop) -> None:
        try:
            node = self._build(self.config, self._edges(loop), self.supported)
            self.node = node
            await node.start()
            node.on_fatal(lambda reason: self._stops_itself(loop, node, reason))
        except Exception as error:
            self._ends(loop, f"start: {error!r}")

    def _stops_itself(self, loop: SimLoop, node: Node, reason: str) -> None:
        """As a real process does: it hands over what it can, within a time limit
        (quorumlog_server/process/process.py).
        """
        self._scheduler.record(self.host, "stops itself")
        self._on_death(self, f"cannot go on: {reason}")
        loop.create_task(self._stop(loop, node), name="stop")
        self._scheduler.call_later(_STOP_NS, lambda: self.kill() if loop is self.loop else None)

    async def _stop(self, loop: SimLoop, node: Node) -> None:
        await node.stop()
        if loop.alive:
            self._scheduler.record(self.host, "stopped")
            self.kill()

    def _edges(self, loop: SimLoop) -> Edges:
        life, turn, features, quotas = self.life, Turn(), FeatureNotice(), NodeQuotas()
        time = RequestTime(quotas, _fixed_costs(), loop.time)

        def transport(identity: Identity) -> Transport:
            return WatchedTransport(wires(identity), on_answer, lambda request: self._on_asked(self, request))

        def wires(identity: Identity) -> Transport:
            grpc = SimTransport(self._network, self.host, loop, identity, on_crash=on_crash, time=time)
            if not self._lane:
                return grpc
            names = self.config.advertised
            return RoutingTransport(
                identity,
                on_crash=on_crash,
                grpc=grpc,
                serves=tuple(HANDLERS),
                advertised=names,
                random_bytes=self._network.new_random_bytes(self.host),
                turn=turn,
                features=features,
                time=time,
            )

        def on_answer(request: Any, response: Any) -> None:
            if loop.alive:
                self._on_answer(self, request, response)

        def on_crash(name: str, error: BaseException) -> None:
            self._ends(loop, f"{name}: {error!r}")

        def worker(writer: DirectoryWriter) -> Worker:
            return SimWorker(self.disk, writer, call_later, SHORT_QUEUES)

        def call_later(delay_ns: int, event: Callable[[], None]) -> None:
            self._scheduler.call_later(delay_ns, lambda: loop.deliver(turn.run, event))

        def rng(concern: str) -> random.Random:
            return self._scheduler.rng(f"{self.host}/{life}/{concern}")

        return Edges(
            features=features,
            quotas=quotas,
            clock=self.clock,
            disk=self.disk,
            transport=transport,
            worker=worker,
            rng=rng,
            new_uuid=self._new_uuid,
            protect=lambda _: None,
            turn=turn,
            on_crash=on_crash,
            cleaner=lambda: SlicedRunner(self.disk, self.clock),
        )

    def _ends(self, loop: SimLoop, why: str) -> None:
        """Fail-stop. The rest of the current step runs on a dead loop."""
        if loop is self.loop and loop.alive:
            self._scheduler.record(self.host, "crash")
            self.kill()
            self._on_death(self, why)

    def _on_loop_error(self, context: dict[str, Any]) -> None:
        assert self.loop is not None
        if not isinstance(context.get("exception"), PowerLost):
            self._ends(self.loop, f"{context.get('message')}: {context.get('exception')!r}")

    # --- the edges' sources ---

    def _new_uuid(self) -> Uuid:
        while True:
            value = self._uuid_rng.randbytes(16)
            if int.from_bytes(value, "big") >= _RESERVED_UUIDS and value[0] >> 2 != 62:
                return value

    def _fault(self, operation: Operation) -> Fault | None:
        fault = self.fault_plans(operation)
        if fault is not None:
            self.note_struck(operation.path)
        return fault

    def note_struck(self, path: str) -> None:
        """Something that may take the log directory of this path offline has happened to the process."""
        for directory in self.config.directories:
            if path.startswith(directory):
                self.struck.add(directory)

    def _latency(self, operation: Operation) -> int:
        if operation.kind in ("sync", "sync_directory"):
            return _SYNC_MIN_NS + self._latency_rng.randrange(_SYNC_EXTRA_NS) + self.slow_sync_ns
        return _WRITING_NS if operation.kind == "pwritev" else _READING_NS

    def _on_disk(self, kind: str, path: str, digest: bytes) -> None:
        self._scheduler.record(self.host, f"{kind}:{path}", digest)
        self._tell_disk(self, kind, path)


def ms(value: int) -> int:
    """Milliseconds as the scheduler's nanoseconds."""
    return value * NS_PER_MS


STEP_COSTS_US = 50


def _fixed_costs() -> Callable[[], float]:
    """The processor's time (s), as if each step of a request took as long."""
    steps = count()
    return lambda: next(steps) * STEP_COSTS_US / 1_000_000
