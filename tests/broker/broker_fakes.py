"""What surrounds a broker's handlers in tests: a controller that answers from a script, rooms that record what they
are asked, and metadata made of real records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.admin import AlterConfigsResource, LogDirDescription, LogDirPartition, LogDirTopic
from quorumlog.messages.common import Endpoint
from quorumlog.messages.fetch import (
    EpochPartitionResult,
    FetchPartitionResponse,
    ListOffsetsPartitionResponse,
)
from quorumlog.messages.metadata_records import PartitionRecord, RegisterBrokerRecord, TopicRecord
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Identity, Listener, Transport
from quorumlog.security.principal import ANONYMOUS, Principal
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.settings.groups import GroupConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.settings.transactions import TransactionConfig, VerificationConfig
from quorumlog.turn import Turn
from quorumlog_broker.api.producer_ids import ProducerIds
from quorumlog_broker.api.quotas import BrokerQuotas
from quorumlog_broker.api.services import Services
from quorumlog_broker.cleaning.explained import ExplainedCompactions
from quorumlog_broker.coordinator.runtime.group_coordinators import GroupCoordinators
from quorumlog_broker.coordinator.runtime.transactions import Transactions
from quorumlog_broker.delayed.operations import DelayedQueue
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams, FetchPath
from quorumlog_broker.fetch.offset_queries import OffsetQueries
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel
from quorumlog_broker.moves.manager import Moves
from quorumlog_broker.produce.delete_records import DeletePath
from quorumlog_broker.produce.import_path import ImportPath
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.produce.pending_append import AppendResult
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.replicas.directory_report import DirectoryReport
from quorumlog_broker.replicas.log_ends import LogEnds
from quorumlog_broker.replicas.producer_report import ProducerReport
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.traffic import Traffic
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.loader import ActiveController, MetadataListener
from quorumlog_storage.rules.isolation import Isolation

CLIENT = Listener(name="CLIENT", address=Address("127.0.0.1", 9092), internal=False)
OUTSIDE = Listener(name="OUTSIDE", address=Address("127.0.0.1", 9192), internal=False)
INTERNAL = Listener(name="INTERNAL", address=Address("127.0.0.1", 9093), internal=True)
CONTROLLER = ActiveController(1, 3, Endpoint(name="INTERNAL", host="127.0.0.1", port=19093))


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


ORDERS = uuid(1000)


def broker_record(node_id: int, fenced: bool = False) -> RegisterBrokerRecord:
    endpoints = tuple(
        Endpoint(name=name, host=f"host{node_id}", port=port)
        for name, port in (("CLIENT", 9092), ("OUTSIDE", 9192), ("INTERNAL", 9093))
    )
    return RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=uuid(node_id),
        broker_epoch=node_id,
        endpoints=endpoints,
        fenced=fenced,
        log_directories=(uuid(500 + node_id),),
    )


def topic_records(name: str, topic_id: bytes, leaders: Sequence[int]) -> list[MetadataRecord]:
    partitions = [
        PartitionRecord(
            partition=index,
            topic_id=topic_id,
            replicas=(1, 2, 3),
            isr=(1, 2),
            leader=leader,
            leader_epoch=7,
            directories=(uuid(501), uuid(502), uuid(503)),
        )
        for index, leader in enumerate(leaders)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *partitions]


def image_of(records: Sequence[MetadataRecord], base: Image = EMPTY) -> Image:
    delta = Delta(base)
    for record in records:
        delta.replay(record)
    return delta.apply(base.offset + len(records), 1)


def usual_image() -> Image:
    """Brokers 1 and 2 live, 3 fenced; topic orders with leaders 1 and 2."""
    brokers = [broker_record(1), broker_record(2), broker_record(3, fenced=True)]
    return image_of([*brokers, *topic_records("orders", ORDERS, [1, 2])])


@dataclass
class FakeSubscription:
    image: Image = field(default_factory=usual_image)
    active_controller: ActiveController | None = CONTROLLER
    high_watermark: Offset = 100
    next_images: list[Image] = field(default_factory=list)
    listeners: list[MetadataListener] = field(default_factory=list)
    callbacks: list[Callable[[], None]] = field(default_factory=list)
    clock: FakeClock = field(default_factory=lambda: FakeClock())

    def subscribe(self, listener: MetadataListener) -> None:
        self.listeners.append(listener)

    def on_controller_change(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def change_controller(self, controller: ActiveController | None) -> None:
        self.active_controller = controller
        for callback in self.callbacks:
            callback()

    async def wait_for_offset(self, offset: Offset, timeout_ms: int) -> bool:
        """The next image comes at once; where there is none the time passes."""
        if self.next_images:
            self.image = self.next_images.pop(0)
        else:
            self.clock.time_ms += timeout_ms
        return self.image.offset >= offset


@dataclass
class FakeController:
    """Answers each call with the next of `answers`: a response, or an error to raise."""

    answers: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    async def call(self, request: Any, timeout_ms: int) -> Any:
        self.calls.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


Appended = tuple[bytes | str, int, bytes]


@dataclass
class FakeReplicas:
    """All that handlers use of the data plane.

    By partition index: `refuse` is what an append raises at once, `fail` what its answer raises.
    """

    appended: list[Appended] = field(default_factory=list)
    refuse: dict[int, ApiError] = field(default_factory=dict)
    fail: dict[int, ApiError] = field(default_factory=dict)
    fetched: list[FetchParams] = field(default_factory=list)
    deleted: list[tuple[Any, int, int, int]] = field(default_factory=list)
    isolations: list[Isolation] = field(default_factory=list)
    listed: list[Any] = field(default_factory=list)  # topics whose offsets were asked for
    refused_settings: ApiError | None = None  # of brokers

    def check_settings(self, asked: AlterConfigsResource) -> None:
        if asked.resource_type == 4 and self.refused_settings is not None:
            raise self.refused_settings

    def append(
        self, topic: bytes | str, index: int, records: Any, *, acks: int, timeout_ms: int
    ) -> Awaitable[AppendResult]:
        if index in self.refuse:
            raise self.refuse[index]
        self.appended.append((topic, index, bytes(records)))
        return self._answer(index, len(self.appended) - 1)

    async def _answer(self, index: int, position: int) -> AppendResult:
        await asyncio.sleep(0)
        if index in self.fail:
            raise self.fail[index]
        return AppendResult(base_offset=100 + position, log_start_offset=0)

    async def fetch(
        self, context: FetchContext, params: FetchParams
    ) -> tuple[list[FetchPartitionResponse], list[bool]]:
        self.fetched.append(params)
        responses = [
            FetchPartitionResponse(index=target.partition.index, records=f"{target.topic!r}".encode())
            for target in context.targets
        ]
        return responses, [True] * len(responses)

    async def list_offset(
        self,
        topic: Any,
        index: int,
        timestamp_ms: int,
        *,
        current_leader_epoch: int,
        isolation: Isolation,
        deadline_ms: int,
    ) -> ListOffsetsPartitionResponse:
        self.isolations.append(isolation)
        self.listed.append(topic)
        return ListOffsetsPartitionResponse(index=index, offset=index * 10)

    def delete(self, topic: Any, index: int, offset: int, timeout_ms: int) -> Awaitable[Offset]:
        if index in self.refuse:
            raise self.refuse[index]
        self.deleted.append((topic, index, offset, timeout_ms))
        return self._low_watermark(index, offset)

    async def _low_watermark(self, index: int, offset: Offset) -> Offset:
        await asyncio.sleep(0)
        if index in self.fail:
            raise self.fail[index]
        return offset

    async def end_of_epoch(
        self, topic: Any, index: int, epoch: int, current_epoch: int, *, deadline_ms: int
    ) -> EpochPartitionResult:
        return EpochPartitionResult(index=index, leader_epoch=epoch, end_offset=index * 10 + current_epoch)

    async def bring_online(self, path: str) -> None:
        if path != "/sick":
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs")

    async def describe(self) -> list[LogDirDescription]:
        partitions = tuple(LogDirPartition(index=index, size_bytes=index, offset_lag=0) for index in range(3))
        topics = (LogDirTopic(name="orders", partitions=partitions), LogDirTopic(name="other", partitions=partitions))
        return [
            LogDirDescription(path="/a", topics=topics, total_bytes=10, usable_bytes=5),
            LogDirDescription(path="/b", error_code=56),
        ]


@dataclass
class FakeClock:
    time_ms: int = 0

    def now_ms(self) -> int:
        return self.time_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.time_ms


@dataclass
class FakeContext:
    listener: Listener = CLIENT
    client_id: str = "test"
    client_host: str = "10.0.0.9"
    peer: Identity | None = None
    principal: Principal = ANONYMOUS
    private: bool = False

    def on_closed(self, callback: Callable[[], None]) -> None:
        """Never closed."""


@dataclass
class Fakes:
    subscription: FakeSubscription = field(default_factory=FakeSubscription)
    controller: FakeController = field(default_factory=FakeController)
    replicas: FakeReplicas = field(default_factory=FakeReplicas)
    auto_create: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    fetch_sessions: FetchSessions = field(default_factory=lambda: FetchSessions(Random(1), slots=2))
    quotas: NodeQuotas = field(default_factory=NodeQuotas)

    def services(self) -> Services:
        self.subscription.clock = self.clock
        turn, nursery = Turn(), Nursery(lambda _name, _error: None)
        own_appends = OwnAppends(lambda _replica: None)
        groups = GroupCoordinators(
            node_id=1,
            config=GroupConfig(),
            image=lambda: self.subscription.image,
            appends=own_appends,
            clock=self.clock,
            turn=turn,
            nursery=nursery,
            rng=Random(1),
        )
        producer_ids = ProducerIds(1, self.controller, lambda: 1)
        return Services(
            node_id=1,
            cluster_id="cluster",
            subscription=self.subscription,
            traffic=Traffic(),
            produce_path=cast(ProducePath, self.replicas),
            fetch_path=cast(FetchPath, self.replicas),
            delete_path=cast(DeletePath, self.replicas),
            import_path=cast(ImportPath, self.replicas),
            offset_queries=cast(OffsetQueries, self.replicas),
            upcoming=UpcomingLeaderships(
                1, Registry(), DelayedQueue(self.clock), self.clock, turn, has_begun=lambda: False
            ),
            directory_report=cast(DirectoryReport, self.replicas),
            producer_report=cast(ProducerReport, self.replicas),
            log_ends=cast(LogEnds, self.replicas),
            compactions=cast(ExplainedCompactions, self.replicas),
            bring_online=self.replicas.bring_online,
            moves=cast(Moves, self.replicas),
            controller=cast(ControllerChannel, self.controller),
            clock=self.clock,
            fetch_sessions=self.fetch_sessions,
            groups=groups,
            transactions=Transactions(
                node_id=1,
                config=TransactionConfig(),
                verification=VerificationConfig(),
                image=lambda: self.subscription.image,
                internal_listener="INTERNAL",
                transport=cast(Transport, None),
                produce_path=cast(ProducePath, self.replicas),
                own_appends=own_appends,
                groups=groups,
                new_producer_id=producer_ids.take_now,
                clock=self.clock,
                turn=turn,
                nursery=nursery,
            ),
            producer_ids=producer_ids,
            auto_create_topics=self.auto_create,
            client_listener="CLIENT",
            internal_listener="INTERNAL",
            topic_defaults={"segment.bytes": "2097152"},
            settings=(),
            quotas=BrokerQuotas(self.quotas, self.clock),
            limits=HandlerLimits(max_topics_per_request=10, max_wait_ms=1_000, max_fetch_bytes=500),
        )
