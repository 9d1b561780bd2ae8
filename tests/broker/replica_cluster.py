"""Brokers' replicas on simulated machines, with a metadata authority in place of the quorum.

Everything of the broker's data plane is production code: the data plane, workers' turns, logs, the transport's codec.
The authority holds the image, decides AlterPartition by the fences that matter here, and tells every node what it
committed.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.network.network import Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import AlterPartitionRequest, AlterPartitionResponse, AlterPartitionResult
from quorumlog.messages.fetch import (
    CountRecordsRequest,
    CountRecordsResponse,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NodeList,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.nursery import Nursery
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.rpc.transport import Address, Context, Identity, Listener
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.replicas import RACK_AWARE_SELECTOR, ReplicationConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.slices import Sliced
from quorumlog_broker.api.handlers.count_records import answer_count
from quorumlog_broker.cleaning.sliced import SlicedRunner
from quorumlog_broker.data_plane import DataPlane
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import EMPTY, TOPIC_RESOURCE, Image
from quorumlog_quorum.metadata.image_diff import delta_from_empty
from quorumlog_quorum.metadata.registration import UNASSIGNED
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.log.log import Log
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter

T = TypeVar("T")
TOPIC_ID = bytes([7]) * 16
LAG_MS = 1_000
RETENTION_CHECK_MS = 1_000
INDEX_CHECK_MS = 2_000
STEP_MS = 20  # between two steps of an image; a log is opened in less
PORT = 9093
LIMIT_NS = 60_000 * NS_PER_MS


def batch(*values: str, timestamp_ms: int = 1_700_000_000_000) -> bytes:
    records = [Record(offset, timestamp_ms, None, value.encode(), ()) for offset, value in enumerate(values)]
    return encode_batch(records)


def values_of(data: bytes) -> list[str]:
    return [record.value.decode() for header in headers(data) for record in decode_batch(data, header) if record.value]


class Node:
    """One machine and, while it is up, its process."""

    def __init__(self, cluster: ReplicaCluster, node_id: NodeId, directories: int) -> None:
        self.cluster, self.node_id, self.host = cluster, node_id, f"n{node_id}"
        self.paths = [f"/d{number}" for number in range(directories)]
        self.disk = SimDisk(latency=lambda _: NS_PER_MS // 20)
        for path in self.paths:
            self.disk.make_directory(path)
        self.disk.sync_directory("/")
        self.broker_epoch = -1  # of the newest registration
        self.incarnation_id: Uuid = bytes(16)  # of the newest process
        self.failed: list[Uuid] = []
        self.crashes: list[tuple[str, BaseException]] = []
        self.requests: list[int] = []  # how many partitions each fetch of a follower named

    def directory_id(self, path: str) -> Uuid:
        return bytes([self.node_id, self.paths.index(path) + 100]) * 8

    def start(self, clean: bool = False) -> None:
        scheduler = self.cluster.scheduler
        self.broker_epoch = -1
        self._untold: deque[Sliced[None]] = deque()  # of images, in order
        self.incarnation_id = self.node_id.to_bytes(8, "big") + scheduler.steps.to_bytes(8, "big")
        self.loop = SimLoop(scheduler, self.host)
        self.nursery = Nursery(self._on_crash)
        self.clock = SimClock(scheduler)
        self.sessions = FetchSessions(scheduler.rng(f"fetch sessions/{self.host}"), slots=self.cluster.session_slots)
        own = Identity(cluster_id="c", node_id=self.node_id, incarnation_id=self.incarnation_id, secret=b"s")
        self.transport = SimTransport(self.cluster.network, self.host, self.loop, own, on_crash=self._on_crash)
        self.data_plane = DataPlane(
            node_id=self.node_id,
            incarnation_id=self.incarnation_id,
            directories=[self._directory(path, clean) for path in self.paths],
            clock=self.clock,
            rng=scheduler.rng(f"replicas/{self.host}"),
            nursery=self.nursery,
            transport=self.transport,
            controller=self.cluster,
            broker_epoch=lambda: self.broker_epoch,
            config=ReplicationConfig(
                replica_lag_time_max_ms=LAG_MS,
                high_watermark_checkpoint_interval_ms=500,
                recovery_checkpoint_interval_ms=700,
                tail_bytes=self.cluster.tail_bytes,
                max_slice_work=self.cluster.max_slice_work,
                retention_check_interval_ms=RETENTION_CHECK_MS,
                index_check_interval_ms=INDEX_CHECK_MS,
                replica_selector=None if self.cluster.racks is None else RACK_AWARE_SELECTOR,
            ),
            fetch_sessions=self.sessions,
            on_directory_failed=lambda directory, _: self.failed.append(directory),
            cleaner=self.cluster.cleaner,
            make_cleaner=lambda: SlicedRunner(self.disk, self.clock),
        )
        self.produce_path, self.fetch_path = self.data_plane.produce_path, self.data_plane.fetch_path
        self.run(self._serve())

    @property
    def replicas(self) -> Mapping[PartitionKey, Replica]:
        """Of this process."""
        return self.data_plane.registry.replicas

    def kill(self) -> None:
        """The process ends; what it wrote stays in the page cache."""
        self.loop.kill()
        self.disk.kill()

    def cut_power(self) -> None:
        """The machine ends; what was not synced may be lost."""
        self.loop.kill()
        self.disk.crash(self.cluster.scheduler.rng(f"power/{self.host}/{self.disk.life}"))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        scheduler = self.cluster.scheduler
        result: T = self.loop.run_until_complete(coroutine, scheduler.now_ns + LIMIT_NS)
        return result

    def tell(self, delta: Delta, image: Image) -> None:
        """Apply the image in steps, and a later one after it."""
        self._untold.append(self.data_plane.placements.apply(delta, image))
        if len(self._untold) == 1:
            self.loop.deliver(self._apply)

    def _apply(self) -> None:
        while self._untold:
            if not next(self._untold[0], True):
                self.loop.deliver_later(STEP_MS * NS_PER_MS, self._apply)
                return
            self._untold.popleft()

    def log(self, topic_id: Uuid = TOPIC_ID, index: int = 0) -> Log:
        log = self.replicas[topic_id, index].log
        assert log is not None
        return log

    def log_values(self, topic_id: Uuid = TOPIC_ID, index: int = 0) -> list[str]:
        """What is in this replica's log, committed or not."""
        log = self.log(topic_id, index)
        values, offset = [], log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, 1 << 20, upper_bound=log.end_offset)
            values += values_of(data)
            offset = headers(data)[-1].next_offset
        return values

    async def _serve(self) -> None:
        await self.data_plane.start()
        listener = Listener(name="INTERNAL", address=Address(self.host, PORT), internal=True)
        await self.transport.listen(listener, self._handle)

    async def count(self, request: CountRecordsRequest) -> CountRecordsResponse:
        """As the handler of CountRecords does it."""
        limits = HandlerLimits()
        services: Any = SimpleNamespace(limits=limits, clock=self.clock, offset_queries=self.data_plane.offset_queries)
        return await answer_count(services, request)

    async def _handle(self, _context: Context, request: Any) -> Any:
        return await (self.count(request) if isinstance(request, CountRecordsRequest) else self._fetch(request))

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        """As the handler of Fetch does it; every offset that acknowledges is checked, also those of the session."""
        clock = SimClock(self.cluster.scheduler)
        try:
            context = self.sessions.begin(request, clock.now_ms())
            self.requests.append(sum(len(topic.partitions) for topic in request.topics))
            if request.replica is not None:
                for target in context.targets:
                    self.cluster.check_acknowledgement(request.replica.replica_id, target)
            params = FetchParams(request.max_wait_ms, request.min_bytes, request.max_bytes)
            responses, has_more = await self.fetch_path.fetch(context, params)
            session_id, sent = self.sessions.end(context, responses, has_more, clock.now_ms())
            self.sessions.check_invariants()
        except ApiError as error:
            return FetchResponse(error_code=error.code)
        topics = tuple(
            FetchTopicResponse(topic_id=topic, partitions=(answer,))
            for topic, answer in sent
            if isinstance(topic, bytes)
        )
        return FetchResponse(topics=topics, session_id=session_id)

    def _directory(self, path: str, clean: bool) -> LogDirectory:
        life = DirectoryLife(path)
        life.step(LifeEvent.OPENED, life.generation)
        writer = DirectoryWriter(path, life.generation)
        return LogDirectory(
            directory_id=self.directory_id(path),
            life=life,
            generation=life.generation,
            partitions=PartitionDirectories(self.disk, path, clean),
            worker=SimWorker(self.disk, writer, self.loop.deliver_later),
        )

    def _on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append((name, error))
        raise AssertionError(f"{self.host}: {name} crashed") from error


clusters: list[ReplicaCluster] = []  # those of the running test, to be ended with it (conftest)


class ReplicaCluster:
    def __init__(
        self,
        seed: int = 4711,
        nodes: Sequence[NodeId] = (1, 2, 3),
        directories: int = 1,
        tail_bytes: int = 1 << 20,
        session_slots: int = 100,
        max_slice_work: int = 100,
        cleaner: CleanerConfig | None = None,
        racks: Mapping[NodeId, str] | None = None,
    ) -> None:
        """racks: of the nodes; given, leaders send readers to followers in theirs."""
        self.racks = racks
        self.max_slice_work = max_slice_work
        self.cleaner = cleaner
        self.session_slots = session_slots
        self.tail_bytes = tail_bytes
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.image = EMPTY
        self.alter_answer: ErrorCode | None = None  # given to every AlterPartition in place of a decision
        self.alters = 0
        self.nodes = {node_id: Node(self, node_id, directories) for node_id in nodes}
        clusters.append(self)
        for node_id in nodes:
            self.start(node_id)

    # --- processes ---

    def start(self, node_id: NodeId, clean: bool = False) -> Node:
        node = self.boot(node_id, clean)
        self.register(node_id)
        return node

    def boot(self, node_id: NodeId, clean: bool = False) -> Node:
        """A new process, which knows the metadata as it is now and is not registered."""
        node = self.nodes[node_id]
        node.start(clean)
        if self.image.offset:
            node.tell(delta_from_empty(self.image), self.image)
        return node

    def register(self, node_id: NodeId) -> None:
        """As an unfenced broker. Unlike a controller, this takes an earlier process out of nothing before."""
        node = self.nodes[node_id]
        node.broker_epoch = self.image.offset
        self.commit(
            RegisterBrokerRecord(
                broker_id=node_id,
                incarnation_id=node.incarnation_id,
                broker_epoch=node.broker_epoch,
                endpoints=(Endpoint(name="INTERNAL", host=node.host, port=PORT),),
                rack=(self.racks or {}).get(node_id),
                log_directories=tuple(node.directory_id(path) for path in node.paths),
            )
        )
        self.commit(BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=node.broker_epoch, fenced=False))

    def kill(self, node_id: NodeId) -> None:
        self.nodes[node_id].kill()

    def end(self) -> None:
        """Every process is gone; the disks are as they are."""
        for node in self.nodes.values():
            node.loop.kill()

    def run_for(self, delay_ms: int) -> None:
        self.scheduler.run_for(delay_ms * NS_PER_MS)

    def run_until(self, condition: Callable[[], bool]) -> None:
        assert self.scheduler.run_while(lambda: not condition(), self.scheduler.now_ns + LIMIT_NS), "it never came true"

    def check_acknowledgement(self, follower: NodeId, target: FetchTarget) -> None:
        """A fetch offset is on the follower's disk, if the topic asks for that."""
        node = self.nodes[follower]
        assert isinstance(target.topic, bytes)
        replica = node.replicas.get((target.topic, target.partition.index)) if node.loop.alive else None
        if replica is None or replica.log is None:
            return
        if replica.core.leader_epoch == target.partition.current_leader_epoch:
            unsynced = target.partition.fetch_offset - replica.log.synced_end
            assert unsynced < (1 if replica.config.synced else replica.config.flush_messages), (follower, target)

    # --- metadata ---

    def commit(self, *records: MetadataRecord) -> None:
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + len(records), 1)
        for node in self.nodes.values():
            self.tell(node, delta)

    def tell(self, node: Node, delta: Delta) -> None:
        """Of what was just committed, if it runs."""
        if hasattr(node, "loop") and node.loop.alive:
            node.tell(delta, self.image)

    def create_topic(
        self,
        replicas: tuple[NodeId, ...] = (1, 2, 3),
        *,
        isr: tuple[NodeId, ...] | None = None,
        partitions: int = 1,
        name: str = "t",
        topic_id: Uuid = TOPIC_ID,
        **config: str,
    ) -> None:
        records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
        for key, value in config.items():
            key = key.replace("_", ".")
            records.append(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value))
        for index in range(partitions):
            records.append(
                PartitionRecord(
                    partition=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=isr or replicas,
                    leader=replicas[0],
                    directories=tuple(self._first_directory(node) for node in replicas),
                )
            )
        self.commit(*records)

    def _first_directory(self, node_id: NodeId) -> Uuid:
        node = self.nodes[node_id]
        return node.directory_id(node.paths[0]) if len(node.paths) == 1 else UNASSIGNED

    def delete_topic(self, topic_id: Uuid = TOPIC_ID) -> None:
        self.commit(RemoveTopicRecord(topic_id=topic_id))

    def elect(self, leader: NodeId, isr: tuple[NodeId, ...], index: int = 0) -> None:
        self.commit(PartitionChangeRecord(partition=index, topic_id=TOPIC_ID, leader=leader, isr=NodeList(nodes=isr)))

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """quorumlog_broker.lifecycle.controller_channel.ControllerCalls."""
        assert isinstance(request, AlterPartitionRequest)
        self.alters += 1
        results = []
        for wanted in request.partitions:
            error = self.alter_answer or self._fault(request, wanted)
            isr = tuple(member.broker_id for member in wanted.new_isr)
            if error is ErrorCode.NONE:
                self.commit(
                    PartitionChangeRecord(partition=wanted.index, topic_id=wanted.topic_id, isr=NodeList(nodes=isr))
                )
            now = self.image.partition(wanted.topic_id, wanted.index)
            assert now is not None
            results.append(
                AlterPartitionResult(
                    topic_id=wanted.topic_id,
                    index=wanted.index,
                    error_code=error,
                    leader_id=now.leader,
                    leader_epoch=now.leader_epoch,
                    partition_epoch=now.partition_epoch,
                    isr=now.isr,
                )
            )
        return AlterPartitionResponse(partitions=tuple(results))

    def _fault(self, request: AlterPartitionRequest, wanted: Any) -> ErrorCode:
        now = self.image.partition(wanted.topic_id, wanted.index)
        if now is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if wanted.leader_epoch < now.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if wanted.partition_epoch < now.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for member in wanted.new_isr:
            broker = self.image.brokers[member.broker_id]
            if not broker.active or member.broker_epoch not in (-1, broker.broker_epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    # --- clients ---

    def produce(self, node_id: NodeId, *values: str, **options: Any) -> int:
        """Returns the base offset; raises ApiError."""
        return self.produce_batch(node_id, batch(*values), **options)

    def produce_batch(
        self,
        node_id: NodeId,
        records: bytes,
        *,
        topic_id: Uuid = TOPIC_ID,
        index: int = 0,
        acks: int = -1,
        timeout_ms: int = 5_000,
    ) -> int:
        node = self.nodes[node_id]

        async def append() -> int:
            result = await node.produce_path.append(topic_id, index, records, acks=acks, timeout_ms=timeout_ms)
            return result.base_offset

        return node.run(append())

    def fetch(self, node_id: NodeId, offset: int, *, index: int = 0, **options: Any) -> FetchPartitionResponse:
        node = self.nodes[node_id]
        partition = FetchPartition(
            index=index,
            fetch_offset=offset,
            max_bytes=options.pop("partition_max_bytes", 1 << 20),
            current_leader_epoch=options.pop("current_leader_epoch", -1),
            last_fetched_epoch=options.pop("last_fetched_epoch", -1),
        )
        target = FetchTarget(options.pop("topic", TOPIC_ID), partition)
        context = FetchContext((target,), options.pop("replica", None))
        params = FetchParams(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **options})
        responses, _ = node.run(node.fetch_path.fetch(context, params))
        return responses[0]

    def wait_led(self, node_id: NodeId, index: int = 0) -> None:
        """Until the node has taken up the leadership that the image gives it."""
        registration = self.image.partition(TOPIC_ID, index)
        assert registration is not None and registration.leader == node_id

        def leads() -> bool:
            replica = self.nodes[node_id].replicas.get((TOPIC_ID, index))
            return (
                replica is not None
                and replica.core.is_leader
                and (replica.core.leader_epoch == registration.leader_epoch)
            )

        self.run_until(leads)

    def core(self, node_id: NodeId, index: int = 0) -> Any:
        return self.nodes[node_id].replicas[TOPIC_ID, index].core


def next_generation(node: Node, before: LogDirectory) -> LogDirectory:
    life = before.life
    life.step(LifeEvent.VERIFICATION_BEGAN, life.generation)
    writer = DirectoryWriter(before.path, life.generation)
    return LogDirectory(
        directory_id=before.directory_id,
        life=life,
        generation=life.generation,
        partitions=PartitionDirectories(node.disk, before.path, verifies=True),
        worker=SimWorker(node.disk, writer, node.loop.deliver_later),
    )


def fail_writes_of(node: Node, path: str, number: int = errno.EIO) -> None:
    """From now on every write and sync below `path` fails."""

    def plan(operation: Operation) -> Fault | None:
        return Fail(number) if operation.kind in ("pwritev", "sync") and operation.path.startswith(path) else None

    node.disk.faults = plan
