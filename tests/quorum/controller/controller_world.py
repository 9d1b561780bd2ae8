"""A controller core with a pretended log, and the requests that brokers and people send to it."""

from __future__ import annotations

import random
from typing import Any

from quorum.controller.config import ControllerConfig
from quorum.controller.core import Controller, ControllerRequest
from quorum.controller.outcome import Outcome
from quorum.metadata.check import violations
from quorum.metadata.delta import Delta
from quorum.metadata.features import SUPPORTED
from quorum.metadata.frame import MetadataRecord, decode_record, encode_record
from quorum.metadata.image import EMPTY, Image
from quorum.metadata.registration import PartitionRegistration
from quorumlog.errors import ErrorCode
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


class World:
    """The core, its log, and a replay of that log that must always agree with the tip."""

    def __init__(self, seed: int = 0, *, log: tuple[MetadataRecord, ...] = (), **config: Any) -> None:
        """log: what an earlier controller wrote."""
        self.core = Controller(
            cluster_id=CLUSTER,
            config=ControllerConfig(broker_session_timeout_ms=SESSION_MS, **config),
            rng=random.Random(seed),
        )
        self.log: list[MetadataRecord] = list(log)
        delta = Delta(EMPTY)
        for record in log:
            delta.replay(record)
        self.replayed: Image = delta.apply(len(log), 1) if log else EMPTY
        self.now_ms = 1_000
        self.write(self.core.claim(self.replayed, 1, self.now_ms))

    @property
    def tip(self) -> Image:
        return self.core.tip

    def write(self, outcome: Outcome | None) -> Any:
        """Append, replay each record from its bytes, and check every state in between."""
        if outcome is None:
            return None
        for record in outcome.records:
            self.log.append(record)
            delta = Delta(self.replayed)
            delta.replay(decode_record(encode_record(record, self.tip.metadata_version)))
            self.replayed = delta.apply(len(self.log), self.core.epoch or 0)
            assert not (broken := violations(self.replayed)), f"{broken} after {record}"
        if outcome.records:
            self.core.appended(outcome, len(self.log), self.now_ms)
        assert self.replayed.state_hash == self.tip.state_hash and self.replayed == self.tip
        return outcome.response

    def ask(self, request: ControllerRequest) -> Any:
        return self.write(self.core.operate(request, len(self.log), self.now_ms))

    def heartbeat(self, broker_id: int, /, **changes: Any) -> BrokerHeartbeatResponse:
        """By the registered incarnation, caught up, wanting to serve; unless `changes` say otherwise."""
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
        """Register and unfence; the broker epoch."""
        epoch: int = self.ask(registration(broker_id, incarnation, **changes)).broker_epoch
        assert not self.heartbeat(broker_id).is_fenced
        return epoch

    def fence(self, broker_id: int) -> None:
        self.write(self.core.fence_broker(broker_id))

    def create(self, name: str = "t", *, replicas: tuple[int, ...] = (), **fields: Any) -> CreateTopicResult:
        """One topic; `replicas`: one partition by hand; configs: as a dictionary."""
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
        """What a leader with the newest view proposes, unless `changes` say otherwise."""
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

    def alter(self, isr: tuple[int, ...], *, sender: int | None = None, **changes: Any) -> AlterPartitionResult:
        broker_id = self.partition().leader if sender is None else sender
        request = AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=self.tip.brokers[broker_id].broker_epoch,
            partitions=(self.proposal(isr, **changes),),
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
