"""The controller's decisions: what each request and each passing of time adds to the metadata log.

An operation looks at the tip image (committed or not: everything this controller appended) and at sessions, and gives
an Outcome. The shell appends its records at once, before anything else happens, and says so (`appended`); only that
moves the tip. Losing the quorum's leadership forgets the tip; what is committed is found in the log again (KRAFT 2.6).
A core: no I/O, no clock; randomness is `rng` (placement, topic ids).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quorum.controller.activation import activate
from quorum.controller.alter_configs import alter_configs
from quorum.controller.alter_partition import alter_partitions
from quorum.controller.assign_directories import assign_directories
from quorum.controller.config import ControllerConfig
from quorum.controller.create_partitions import create_partitions
from quorum.controller.create_topics import create_topics
from quorum.controller.delete_topics import delete_topics
from quorum.controller.fencing import fence
from quorum.controller.heartbeat import hear, heartbeat
from quorum.controller.idle import Idle, write_no_op
from quorum.controller.outcome import Draft, Outcome
from quorum.controller.producer_ids import allocate_producer_ids
from quorum.controller.register_broker import register_broker
from quorum.controller.sessions import Sessions
from quorum.metadata.image import EMPTY, Image
from quorum.metadata.registration import is_reserved_directory
from quorumlog.ids import Epoch, NodeId, Offset, Uuid
from quorumlog.messages.admin import CreatePartitionsRequest, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import CreateTopicsRequest, DeleteTopicsRequest
from quorumlog.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirectoriesRequest,
    BrokerHeartbeatRequest,
    RegisterBrokerRequest,
)

if TYPE_CHECKING:
    from random import Random

STALL_GRACE_MS = 500

ControllerRequest = (
    RegisterBrokerRequest
    | BrokerHeartbeatRequest
    | AlterPartitionRequest
    | AssignReplicasToDirectoriesRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | CreatePartitionsRequest
    | IncrementalAlterConfigsRequest
    | AllocateProducerIdsRequest
)


class Controller:
    """One node's controller. `tip`, sessions and timers mean something only between `claim` and `resign`."""

    def __init__(self, *, cluster_id: str, config: ControllerConfig, rng: Random) -> None:
        self.cluster_id = cluster_id
        self.config = config
        self.rng = rng
        self.epoch: Epoch | None = None  # of the quorum; None: not active
        self.tip: Image = EMPTY
        self.sessions = Sessions(config.broker_session_timeout_ms)
        self.idle = Idle(config.metadata_max_idle_interval_ms)

    @property
    def active(self) -> bool:
        return self.epoch is not None

    def claim(self, image: Image, epoch: Epoch, now_ms: int) -> Outcome:
        """Become active. image: all that is committed. The outcome is to be appended like any other."""
        self.epoch, self.tip = epoch, image
        self.sessions.begin(self.unfenced(), now_ms)
        self.idle.on_append(now_ms)
        return self._perform(lambda draft: activate(draft, self.config), atomic=False)

    def resign(self) -> None:
        """Be active no more. Everything that was not committed may vanish."""
        self.epoch, self.tip = None, EMPTY
        self.sessions.begin((), 0)

    def unfenced(self) -> list[NodeId]:
        return [broker.broker_id for broker in self.tip.sorted_brokers() if not broker.fenced]

    def operate(self, request: ControllerRequest, next_offset: Offset, now_ms: int) -> Outcome:
        """next_offset: the log's end, where the first record will be appended. Raises ApiError: nothing is written."""
        assert self.active, "only an active controller operates"
        match request:
            case RegisterBrokerRequest():
                return self._register(request, next_offset, now_ms)
            case BrokerHeartbeatRequest():
                return self._perform(
                    lambda draft: heartbeat(
                        draft, request, sessions=self.sessions, next_offset=next_offset, now_ms=now_ms
                    ),
                    atomic=False,
                )
            case AlterPartitionRequest():
                return self._perform(lambda draft: alter_partitions(draft, request))
            case AssignReplicasToDirectoriesRequest():
                return self._perform(lambda draft: assign_directories(draft, request), atomic=False)
            case CreateTopicsRequest():
                return self._perform(
                    lambda draft: create_topics(
                        draft, request, config=self.config, rng=self.rng, new_uuid=self._new_uuid
                    )
                )
            case DeleteTopicsRequest():
                return self._perform(lambda draft: delete_topics(draft, request))
            case CreatePartitionsRequest():
                return self._perform(lambda draft: create_partitions(draft, request, self.rng))
            case IncrementalAlterConfigsRequest():
                return self._perform(lambda draft: alter_configs(draft, request))
            case AllocateProducerIdsRequest():
                return self._perform(lambda draft: allocate_producer_ids(draft, request))

    def hear(self, heartbeat: BrokerHeartbeatRequest, now_ms: int) -> None:
        """Of a heartbeat that is not performed. Raises ApiError."""
        hear(self.tip, heartbeat, self.sessions, now_ms)

    def fence_broker(self, broker_id: NodeId) -> Outcome | None:
        """Because its session ended, or its death is proven. None: it is fenced already."""
        self.sessions.forget(broker_id)
        broker = self.tip.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        return self._perform(lambda draft: fence(draft, broker_id), atomic=False)

    def no_op(self) -> Outcome:
        return self._perform(write_no_op)

    def appended(self, outcome: Outcome, end_offset: Offset, now_ms: int) -> None:
        """The outcome's records, one or more, now end at `end_offset`, exclusive."""
        assert self.epoch is not None and outcome.delta.base is self.tip, "an outcome of another tip"
        self.tip = outcome.delta.apply(end_offset, self.epoch)
        self.idle.on_append(now_ms)

    def on_stall(self, now_ms: int) -> None:
        """This process stood still: heartbeats may wait in its sockets, and are read before anybody is fenced."""
        self.sessions.hold(now_ms + STALL_GRACE_MS)

    def expired_broker(self, now_ms: int) -> NodeId | None:
        """The unfenced broker whose session ended first. One at a time: then the rest is judged anew (KAFKA-13173)."""
        due = self._next_expiry()
        return due[1] if due is not None and due[0] <= now_ms else None

    def no_op_is_due(self, now_ms: int) -> bool:
        at = self.idle.deadline_ms()
        return at is not None and at <= now_ms

    def deadline_ms(self) -> int | None:
        """When a session ends or a NoOp is due; None: not active."""
        if not self.active:
            return None
        expiry = self._next_expiry()
        times = [time for time in (None if expiry is None else expiry[0], self.idle.deadline_ms()) if time is not None]
        return min(times, default=None)

    def _next_expiry(self) -> tuple[int, NodeId] | None:
        """(when, who) of the unfenced broker whose session ends first."""
        expiries = ((self.sessions.expiry_ms(broker_id), broker_id) for broker_id in self.unfenced())
        return min(((at_ms, broker_id) for at_ms, broker_id in expiries if at_ms is not None), default=None)

    def _register(self, request: RegisterBrokerRequest, next_offset: Offset, now_ms: int) -> Outcome:
        before = self.tip.brokers.get(request.broker_id)
        outcome = self._perform(
            lambda draft: register_broker(
                draft,
                request,
                cluster_id=self.cluster_id,
                sessions=self.sessions,
                next_offset=next_offset,
                now_ms=now_ms,
            ),
            atomic=False,
        )
        if before is not None and before.incarnation_id != request.incarnation_id:
            self.sessions.forget(request.broker_id)
        return outcome

    def _perform(self, operation: Callable[[Draft], Any], *, atomic: bool = True) -> Outcome:
        draft = Draft(self.tip)
        response = operation(draft)
        return Outcome(records=tuple(draft.records), response=response, delta=draft.delta, atomic=atomic)

    def _new_uuid(self) -> Uuid:
        """A topic id: not reserved, and not beginning with "-" as text, which tools would take for an option."""
        while True:
            value = self.rng.randbytes(16)
            if not is_reserved_directory(value) and value[0] >> 2 != 0b111110:
                return value
