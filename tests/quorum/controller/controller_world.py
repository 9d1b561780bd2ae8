"""A controller core with a fake log, and the requests that brokers and clients send to it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import CreatableTopic, CreateTopicResult, CreateTopicsRequest, ReplicaAssignment
from quorumlog.messages.common import ConfigEntry, Endpoint
from quorumlog.messages.controller import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    IsrMember,
    RegisterBrokerRequest,
)
from quorumlog.messages.metadata_records import MetadataRecord
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.core import Controller
from quorumlog_quorum.controller.engine.operation import Operation
from quorumlog_quorum.controller.shell.runner import OperationRunner
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.frame import decode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration
from quorumlog_quorum.raft.events import NotLeader

CLUSTER = "cluster"
SESSION_MS = 9_000


def uuid(number: int) -> bytes:
    """A readable identifier; above the reserved ones."""
    return (1000 + number).to_bytes(16, "big")


def registration(broker_id: int, incarnation: int = 0, /, **changes: Any) -> RegisterBrokerRequest:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER,
        "incarnation_id": uuid(10_000 + 100 * broker_id + incarnation),
        "endpoints": (Endpoint(name="INTERNAL", host="127.0.0.1", port=9000 + broker_id),),
        "log_directories": (uuid(broker_id),),
        "features": SUPPORTED,
    }
    return RegisterBrokerRequest(**fields | changes)


class RecordingCaller:
    """A caller that records how its operation went."""

    gone = False

    def __init__(self) -> None:
        self.response: Any = None
        self.error: ApiError | None = None
        self.dropped_after_writing: bool | None = None
        self.accepted_first = False

    @property
    def done(self) -> bool:
        return self.response is not None or self.error is not None or self.dropped_after_writing is not None

    def accepted(self) -> None:
        assert not self.done
        self.accepted_first = True

    def refused(self, error: ApiError) -> None:
        assert not self.done and not self.accepted_first
        self.error = error

    def performed(self, response: Any, tip: Image, wrote: bool) -> None:
        assert not self.done and self.accepted_first
        self.response = response

    def dropped(self, wrote: bool) -> None:
        assert not self.done
        self.dropped_after_writing = wrote


class StillUnderWay(Exception):
    """The request was accepted, or waits; turns bring the answer."""


class LogDriver:
    """A log that accepts every batch, and a replay of it that must be sound after each record."""

    def __init__(self, records: tuple[MetadataRecord, ...]) -> None:
        """records: those that are there at the start."""
        self.records: list[MetadataRecord] = list(records)
        delta = Delta(EMPTY)
        for record in records:
            delta.replay(record)
        self.replayed: Image = delta.apply(len(records), 1) if records else EMPTY
        self.batches: list[int] = []  # records of each
        self.voter_ids: tuple[int, ...] = ()
        self.leads = True

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def high_watermark(self) -> int:
        return len(self.records)

    def append(self, epoch: int, values: Sequence[bytes]) -> int:
        if not self.leads:
            raise NotLeader(epoch, 2, epoch + 1)
        self.batches.append(len(values))
        for value in values:
            record = decode_record(value)
            self.records.append(record)
            delta = Delta(self.replayed)
            delta.replay(record)
            self.replayed = delta.apply(len(self.records), epoch)
            assert not (broken := violations(self.replayed)), f"{broken} after {record}"
        return len(self.records)


class HandRunner(OperationRunner):
    """Runs a turn when the test says so; there is no event loop."""

    def schedule(self) -> None:
        pass

    def turn(self) -> bool:
        more = self._core.queue.has_next
        self._turn()
        return more


class _ClockOf:
    def __init__(self, world: World) -> None:
        self._world = world

    def now_ms(self) -> int:
        return self._world.now_ms

    def wall_ms(self) -> int:
        return self._world.now_ms


class World:
    """The core with its runner, and a log whose replay must always agree with the tip.

    Turns are run by the test: `ask` runs them until nothing is under way, `begin` runs none after the call itself.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        log: tuple[MetadataRecord, ...] = (),
        incarnation: ClusterIncarnation = FIRST,
        **config: Any,
    ) -> None:
        """log: what an earlier controller wrote. incarnation: of the cluster, as the node's directories say."""
        self.core = Controller(
            cluster_id=CLUSTER,
            config=ControllerConfig(broker_session_timeout_ms=SESSION_MS, **config),
            rng=random.Random(seed),
            incarnation=incarnation,
        )
        self.driver = LogDriver(log)
        self.now_ms = 1_000
        self.interleave = False  # leave operations under way; `callers` has their callers
        self.callers: list[RecordingCaller] = []
        self.runner = HandRunner(self.core, _ClockOf(self), on_not_leader=self.core.resign)
        self.runner.driver = self.driver
        self.core.state.voter_ids = lambda: self.driver.voter_ids
        self.runner.submit(self.core.claim(self.driver.replayed, 1, self.now_ms))
        self.finish()

    @property
    def tip(self) -> Image:
        return self.core.tip

    @property
    def log(self) -> list[MetadataRecord]:
        return self.driver.records

    def begin(self, request: Any) -> RecordingCaller:
        """Submit the request; runs its first slice unless another operation is under way in its lane."""
        caller = RecordingCaller()
        self.submit(self.core.operation(request, caller))
        return caller

    def submit(self, operation: Operation | None) -> None:
        if operation is not None:
            self.runner.submit(operation)
        self.check()

    def turn(self) -> bool:
        """Run one slice of an operation under way. False: there is none."""
        more = self.runner.turn()
        self.check()
        return more

    def finish(self) -> None:
        while self.turn():
            pass

    def new_controller(self) -> None:
        """Lose leadership and win it again; everything that was appended is committed."""
        image, epoch = self.tip, self.core.epoch
        assert epoch is not None
        self.core.resign()
        self.submit(self.core.claim(image, epoch + 1, self.now_ms))
        if not self.interleave:
            self.finish()

    def check(self) -> None:
        if self.core.active:
            assert self.driver.replayed.state_hash == self.tip.state_hash and self.driver.replayed == self.tip

    def ask(self, request: Any) -> Any:
        """Run all turns and return the answer. Raises ApiError; StillUnderWay only while `interleave` is set."""
        caller = self.begin(request)
        if self.interleave:
            self.callers.append(caller)
        else:
            self.finish()
        if caller.error is not None:
            raise caller.error
        if not caller.done and self.interleave:
            raise StillUnderWay
        assert caller.done
        return caller.response

    def heartbeat(self, broker_id: int, /, **changes: Any) -> BrokerHeartbeatResponse:
        """A heartbeat of the registered incarnation, caught up, that asks to be unfenced; `changes` replace fields."""
        broker = self.tip.brokers[broker_id]
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": broker.broker_epoch,
            "current_metadata_offset": len(self.log),
            "want_fence": False,
            "want_shutdown": False,
            "incarnation_id": broker.incarnation_id,
        }
        response = self.ask(BrokerHeartbeatRequest(**fields | changes))
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def start(self, broker_id: int, incarnation: int = 0, **changes: Any) -> int:
        """Register and unfence a broker. Returns its epoch."""
        epoch: int = self.ask(registration(broker_id, incarnation, **changes)).broker_epoch
        assert not self.heartbeat(broker_id).is_fenced
        return epoch

    def fence(self, broker_id: int) -> None:
        self.submit(self.core.fencing(broker_id))
        if not self.interleave:
            self.finish()

    def create(self, name: str = "t", *, replicas: tuple[int, ...] = (), **fields: Any) -> CreateTopicResult:
        """One topic; `replicas`: of its one partition; configs: as a dictionary."""
        configs = tuple(ConfigEntry(name=key, value=value) for key, value in fields.pop("configs", {}).items())
        if replicas:
            fields["assignments"] = (ReplicaAssignment(partition=0, broker_ids=replicas),)
        topic = CreatableTopic(name=name, configs=configs, **fields)
        result = self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1_000)).topics[0]
        assert isinstance(result, CreateTopicResult)
        return result

    def partition(self, name: str = "t", index: int = 0) -> PartitionRegistration:
        topic = self.tip.topic(name)
        assert topic is not None
        return topic.partitions[index]

    def proposal(self, isr: tuple[int, ...], name: str = "t", **changes: Any) -> AlterPartition:
        """An ISR proposed by a leader with the newest view; `changes` replace fields."""
        partition = self.partition(name)
        fields: dict[str, Any] = {
            "topic_id": self.tip.topic_ids[name],
            "index": 0,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "new_isr": tuple(IsrMember(broker_id=b, broker_epoch=-1) for b in isr),
            "leader_recovery_state": 0,
        }
        return AlterPartition(**fields | changes)

    def alter(
        self, isr: tuple[int, ...], *, sender: int | None = None, metadata_end: int | None = None, **changes: Any
    ) -> AlterPartitionResult:
        """metadata_end: that the leader has applied; None: all of it."""
        broker_id = self.partition().leader if sender is None else sender
        request = AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=self.tip.brokers[broker_id].broker_epoch,
            partitions=(self.proposal(isr, **changes),),
            metadata_end=self.tip.offset if metadata_end is None else metadata_end,
        )
        result = self.ask(request).partitions[0]
        assert isinstance(result, AlterPartitionResult)
        return result


def code(result: Any) -> ErrorCode:
    return ErrorCode(result.error_code)


def cluster(*broker_ids: int, **config: Any) -> World:
    """These brokers, unfenced."""
    world = World(**config)
    for broker_id in broker_ids:
        world.start(broker_id)
    return world
