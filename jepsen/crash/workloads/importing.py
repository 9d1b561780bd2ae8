"""The workload of an import: the client's own importer copies a foreign log into a replica, and may be interrupted.

Importer and broker side are the product's. The link between them hands each request over at once. Whatever is stopped,
the next import of the same source goes on where the replica ends. What was sealed before the controller was told of it
is there after every crash, although the topic itself never asks for a sync.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import TypeVar, cast

from jepsen.crash.check import check, require
from jepsen.crash.expected import payload
from jepsen.crash.instant_worker import InstantWorker
from jepsen.crash.process import DATA, LAZY, on_loop
from jepsen.crash.world import BATCH_RECORDS, BROKER_EPOCH, FIRST_MS, META, PRODUCER_ID, World
from quorumlog.client.administration import import_topic
from quorumlog.client.administration.import_topic import OtherSource, TopicImport
from quorumlog.client.cluster.link import Link
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.cluster import ReplicaAssignment
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
    ImportRecordsRequest,
    ImportRecordsResponse,
)
from quorumlog.records import BatchHeader, Record, encode_batch, headers
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_broker.produce.import_path import ImportPath
from quorumlog_broker.replicas.registry import Registry
from quorumlog_quorum.metadata.registration import IMPORTING
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent

NODE: NodeId = 1
FIRST, START = 42, 43  # of the source: base of its first segment, and its log start, inside the first batch
EPOCHS = (2, 2, 2, 3, 3, 5, 5)  # of its batches
END = FIRST + len(EPOCHS) * BATCH_RECORDS
CHUNK_BYTES = 400  # two batches a request

T = TypeVar("T")


class _Foreign:
    """`quorumlog.client.administration.import_topic.Source`, in memory."""

    start_offset, log_start, end_offset = FIRST, START, END
    last_epoch, max_producer_id = max(EPOCHS), PRODUCER_ID

    def __init__(self, tag: str) -> None:
        self._tag = tag

    @property
    def size(self) -> int:
        return sum(len(data) for _, data in self.batches(FIRST))

    def batches(self, from_offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]:
        for number, epoch in enumerate(EPOCHS):
            base = FIRST + number * BATCH_RECORDS
            if base + BATCH_RECORDS > from_offset:
                yield _batch(self._tag, base, epoch)


def _batch(tag: str, base: Offset, epoch: int) -> tuple[BatchHeader, bytes]:
    """The sequences of its producer are its offsets."""
    records = [
        Record(offset, FIRST_MS + offset, None, payload(tag, offset, epoch), ())
        for offset in range(base, base + BATCH_RECORDS)
    ]
    data = encode_batch(
        records, base_offset=base, leader_epoch=epoch, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=base
    )
    return headers(data)[0], data


class _Link:
    """What the importer uses of `quorumlog.client.cluster.link.Link`: its calls reach this node, or the controller."""

    options = SimpleNamespace(request_timeout_ms=1_000, default_api_timeout_ms=1_000)
    cache = SimpleNamespace(brokers={NODE: None})

    def __init__(self, world: World) -> None:
        self._world, self._path = world, _import_path(world)

    async def until(self, ask: Callable[[], Awaitable[T]], _still_ms: int) -> T:
        """A node that is short of descriptors is asked again."""
        try:
            return await ask()
        except Busy:
            return await ask()

    async def call_any(self, request: object) -> object:
        """Of the controller."""
        expected = self._world.expected[LAZY]
        if isinstance(request, BeginImportRequest):
            placed = ReplicaAssignment(partition=0, broker_ids=(NODE,))
            return BeginImportResponse(topic_id=self._world.known[LAZY], assignments=(placed,))
        assert isinstance(request, FinishImportRequest)
        (sealed,) = request.partitions[0].replicas
        assert (sealed.broker_epoch, sealed.end_offset) == (BROKER_EPOCH, END)
        for number, epoch in enumerate(EPOCHS):
            expected.acknowledged(FIRST + number * BATCH_RECORDS, BATCH_RECORDS, epoch)
        expected.start_done(START)
        return FinishImportResponse()

    async def call_node(self, _node: NodeId, request: ImportRecordsRequest) -> ImportRecordsResponse:
        return await self._path.take(request)


def _import_path(world: World) -> ImportPath:
    """Of a broker that has this one replica."""
    process, held = world.process, world.held(LAZY)
    life = DirectoryLife(DATA)
    life.step(LifeEvent.OPENED, life.generation)
    directory = LogDirectory(
        directory_id=META.directory_id,
        life=life,
        generation=life.generation,
        partitions=process.partitions,
        worker=InstantWorker(process.writer),
    )
    queue = DirectoryQueue(directory, _ignore, _ignore)
    replica = SimpleNamespace(
        name=f"{LAZY}-0", log=held.log, is_usable=True, is_frozen=False, queue=queue, partition_log=held
    )
    importing = SimpleNamespace(leader_recovery_state=IMPORTING, leader_epoch=max(EPOCHS))
    image = SimpleNamespace(partition=lambda *_: importing)
    registry = SimpleNamespace(find=lambda *_: replica, image=image)
    return ImportPath(cast(Registry, registry), lambda: BROKER_EPOCH)


def _ignore(*_: object) -> None:
    """The writer's generation has failed already."""


# --- the workload ---


def begin(world: World, _: random.Random) -> None:
    """The topic is made, empty."""
    world.create(LAZY, 5)
    world.expected[LAZY].is_copy = True
    _expect_all(world)
    world.epoch += max(EPOCHS)


def half_done(world: World, rng: random.Random) -> None:
    """An earlier import whose node lost its power at some call."""
    begin(world, rng)
    world.process.disk.watch(rng.randrange(15, 60))
    try:
        copy(world)
    except BaseException as error:
        if world.process.disk.struck is None:
            raise error
    world.end(rng)
    world.open()


def copy(world: World) -> None:
    """`quorumlog log import`, from its first request to the controller's answer."""
    source, link = _Foreign(world.expected[LAZY].tag), _Link(world)
    usual, import_topic.CHUNK_BYTES = import_topic.CHUNK_BYTES, CHUNK_BYTES
    try:
        on_loop(TopicImport(cast(Link, link), LAZY, [source], lambda *_: None).run(1, {}))
    except OtherSource as error:
        require(False, "import", error)
    finally:
        import_topic.CHUNK_BYTES = usual


def go_on(world: World) -> None:
    """The import is run again, then the topic has a leader; its neighbours went on all the time."""
    copy(world)
    log = world.log(LAZY)
    require((log.start_offset, log.end_offset) == (START, END), "import", f"[{log.start_offset}, {log.end_offset})")
    world.append({"t": 1, "u": 1})
    world.append_unsynced(LAZY, 2)


def check_import(world: World) -> None:
    """The promises of every log. An import that was interrupted may go on."""
    check(world)
    _expect_all(world)


def _expect_all(world: World) -> None:
    """Any beginning of the source may be there: its records are known, and an import sends them again and again."""
    expected = world.expected[LAZY]
    for number, epoch in enumerate(EPOCHS):
        for offset in range(FIRST + number * BATCH_RECORDS, FIRST + (number + 1) * BATCH_RECORDS):
            held = expected.may.setdefault(offset, [])
            if not held:
                held.append(epoch)
    expected.start_at_most = max(expected.start_at_most, START)
