"""The controller's shell: requests in, records into the metadata log, answers out when they are committed.

Everything that decides is in `core`. What the shell adds is order: an operation runs and appends
before its handler's first suspension, so operations take effect in the order of their calls; its answer leaves when
the high watermark has passed its records, or, if it wrote none, all that it may have read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from quorum.controller.alarm import Alarm
from quorum.controller.commit_waiters import CommitWaiters
from quorum.controller.config import MAX_RECORDS_PER_BATCH, MAX_WAITING_OPERATIONS, ControllerConfig
from quorum.controller.core import Controller, ControllerRequest
from quorum.controller.death_watch import DeathWatch
from quorum.controller.outcome import Outcome
from quorum.controller.suspicion import Target
from quorum.metadata.delta import Delta
from quorum.metadata.frame import encode_record
from quorum.metadata.image import Image
from quorum.metadata.loader import MetadataLoader
from quorum.raft.events import NotLeader
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.cluster import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import BrokerHeartbeatRequest, RegisterBrokerRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Context, Transport

if TYPE_CHECKING:
    from random import Random

CHANGES_OF_CLIENTS = (
    CreateTopicsResponse,
    DeleteTopicsResponse,
    CreatePartitionsResponse,
    IncrementalAlterConfigsResponse,
)
STALL_MS = 250  # a timer that fires later than this says that the loop stood still

_log = logging.getLogger("quorumlog.controller")


class MetadataDriver(Protocol):
    """What the controller needs of quorum.driver.Driver."""

    @property
    def end_offset(self) -> Offset:
        """End of the log, appended or not yet synced, exclusive."""

    @property
    def high_watermark(self) -> Offset: ...

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """One atomic batch; its end offset, exclusive. Synchronous. Raises NotLeader: nothing was appended."""


class ControllerService:
    """A RaftListener, to be told after the loader, and the handler of every request to a controller.

    `driver` is set once, before the first call. Runs on one loop.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        cluster_id: str,
        config: ControllerConfig,
        clock: Clock,
        rng: Random,
        transport: Transport,
        nursery: Nursery,
        loader: MetadataLoader,
    ) -> None:
        self.node_id = node_id
        self.config = config
        self.driver: MetadataDriver | None = None
        self._clock = clock
        self._loader = loader
        self._core = Controller(cluster_id=cluster_id, config=config, rng=rng)
        self._waiters = CommitWaiters()
        self._alarm = Alarm(clock, self._on_alarm)
        self._watch = DeathWatch(
            config=config, clock=clock, transport=transport, nursery=nursery, on_proven_dead=self._on_proven_dead
        )
        self._stopped = False
        self._former: NodeId | None = None  # the last other node that was active
        loader.subscribe(self._on_image)

    @property
    def active(self) -> bool:
        return self._core.active

    @property
    def tip(self) -> Image:
        """Everything this controller appended, committed or not; the empty image while it is not active."""
        return self._core.tip

    async def handle(self, context: Context, request: ControllerRequest) -> Any:
        """Raises ApiError: NOT_CONTROLLER, REQUEST_TIMED_OUT (outcome unknown), or what the operation says."""
        return await self._submit(context, request)

    async def stop(self) -> None:
        """Answer everybody who waits, and do nothing any more. Idempotent."""
        self._stopped = True
        self._resign()
        self._watch.stop()
        self._alarm.set(None)

    # What the quorum tells (RaftListener).

    def on_committed(self, batches: bytes, end_offset: Offset) -> None:
        """The loader reads them."""

    def on_high_watermark(self, high_watermark: Offset) -> None:
        self._waiters.on_high_watermark(high_watermark)

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        """The loader remembers the active one."""
        if leader_id not in (NO_NODE, self.node_id):
            self._former = leader_id

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        if self._stopped:
            return
        image = self._loader.committed_image
        assert image.offset == end_offset, f"claimed at {end_offset}, replayed to {image.offset}"
        _log.info("node %d is the active controller of epoch %d, from offset %d", self.node_id, epoch, end_offset)
        outcome = self._core.claim(image, epoch, self._clock.now_ms())
        self._watch.on_active(self._core.unfenced(), self._former)
        self._append_or_resign(outcome)
        self._reschedule()

    def on_resign(self, epoch: Epoch) -> None:
        self._resign()
        self._reschedule()

    # Requests.

    def _submit(self, context: Context, request: ControllerRequest) -> asyncio.Future[Any]:
        """Perform and append now; the answer comes with the commit."""
        if not self._core.active or self._stopped:
            raise self._not_controller()
        if len(self._waiters) >= MAX_WAITING_OPERATIONS:
            self._refuse(context, request)
        outcome = self._operate(context, request)
        self._append(outcome)
        self._reschedule()
        waiting = self._waiters.wait(self._core.tip.offset, outcome.response, self._timeout_ms(request))
        self._waiters.on_high_watermark(self._driver().high_watermark)
        if isinstance(request, BrokerHeartbeatRequest) and not waiting.done():
            self._keep_session(request.broker_id, waiting)
        return waiting

    def _refuse(self, context: Context, request: ControllerRequest) -> NoReturn:
        """Nothing is written, but a heartbeat is heard."""
        if isinstance(request, BrokerHeartbeatRequest):
            self._core.hear(request, self._clock.now_ms())
            self._watch.on_heartbeat(context, request)
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{len(self._waiters)} operations wait; nothing was written")

    def _keep_session(self, broker_id: NodeId, waiting: asyncio.Future[Any]) -> None:
        """The broker's session does not end before its heartbeat is answered, or gives up."""
        session = self._core.sessions.wait(broker_id)

        def answered(_: object) -> None:
            session.answered(self._clock.now_ms())
            self._reschedule()

        waiting.add_done_callback(answered)
        self._reschedule()

    def _operate(self, context: Context, request: ControllerRequest) -> Outcome:
        try:
            outcome = self._core.operate(request, self._driver().end_offset, self._clock.now_ms())
        except ApiError as error:
            if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION and isinstance(request, RegisterBrokerRequest):
                self._watch.on_id_wanted(request.broker_id)
            raise
        if isinstance(request, BrokerHeartbeatRequest):
            self._watch.on_heartbeat(context, request)
        return outcome

    def _timeout_ms(self, request: ControllerRequest) -> int:
        timed = CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest
        if isinstance(request, timed) and request.timeout_ms > 0:
            return request.timeout_ms
        return self.config.commit_timeout_ms

    def _append(self, outcome: Outcome) -> None:
        """Raises ApiError(NOT_CONTROLLER) if leadership is gone."""
        if not outcome.records:
            return
        driver, epoch = self._driver(), self._core.epoch
        assert epoch is not None
        assert driver.end_offset == self._core.tip.offset, f"{driver.end_offset} != {self._core.tip.offset}"
        level = outcome.delta.base.metadata_version
        values = [encode_record(record, level) for record in outcome.records]
        limit = len(values) if outcome.atomic else MAX_RECORDS_PER_BATCH
        end_offset = expected = driver.end_offset
        try:
            for first in range(0, len(values), limit):
                end_offset = driver.append(epoch, values[first : first + limit])
        except NotLeader as error:
            self._resign()
            raise self._not_controller() from error
        assert end_offset == expected + len(values), f"{end_offset} != {expected} + {len(values)}"
        self._core.appended(outcome, end_offset, self._clock.now_ms())

    def _append_or_resign(self, outcome: Outcome) -> None:
        """For operations that nobody asked for: that leadership is gone has been seen to."""
        try:
            self._append(outcome)
        except ApiError as error:
            _log.info("node %d: %s", self.node_id, error.message)

    def _resign(self) -> None:
        if self._core.active:
            _log.info("node %d is the active controller no more", self.node_id)
            self._core.resign()
            self._watch.on_inactive()
        self._waiters.fail_all(self._lost)

    def _lost(self, response: Any) -> ApiError:
        """A client's change may survive in the log; who repeats it has to know that the second may meet the first."""
        if isinstance(response, CHANGES_OF_CLIENTS):
            text = f"node {self.node_id} is the active controller no more; this may have been carried out"
            return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
        return self._not_controller()

    def _not_controller(self) -> ApiError:
        leader = self._loader.active_controller
        if leader is None or leader.node_id == self.node_id:
            return ApiError(ErrorCode.NOT_CONTROLLER, "no active controller is known yet")
        where = f"{leader.endpoint.host}:{leader.endpoint.port}"
        return ApiError(ErrorCode.NOT_CONTROLLER, f"node {leader.node_id} at {where} is the active controller")

    def _driver(self) -> MetadataDriver:
        assert self.driver is not None, "driver is set before the first call"
        return self.driver

    # Who is alive.

    def _on_image(self, delta: Delta, image: Image) -> None:
        if self._core.active and image.offset == self._core.tip.offset:
            assert image.state_hash == self._core.tip.state_hash, f"the log and the tip differ at {image.offset}"
        self._watch.on_image(delta, image)

    def _on_proven_dead(self, target: Target, evidence: str) -> None:
        """Ends the session too, so that the next process of this broker may register at once."""
        broker = self._core.tip.brokers.get(target.broker_id)
        if broker is not None and broker.incarnation_id == target.incarnation_id:
            self._fence(target.broker_id, f"its process is dead: {evidence}")
            self._reschedule()

    def _fence(self, broker_id: NodeId, why: str) -> None:
        outcome = self._core.fence_broker(broker_id)
        if outcome is not None:
            _log.warning("node %d fences broker %d: %s", self.node_id, broker_id, why)
            self._append_or_resign(outcome)

    # Time.

    def _reschedule(self) -> None:
        if not self._stopped:
            self._alarm.set(self._core.deadline_ms())

    def _on_alarm(self, late_ms: int) -> None:
        now_ms = self._clock.now_ms()
        if late_ms > STALL_MS:
            self._core.on_stall(now_ms)
        if self._core.active:
            self._on_active_timer(now_ms)
        self._reschedule()

    def _on_active_timer(self, now_ms: int) -> None:
        expired = self._core.expired_broker(now_ms)
        if expired is not None:
            self._fence(expired, f"no heartbeat for {self.config.broker_session_timeout_ms} ms")
        elif self._core.no_op_is_due(now_ms):
            if self._driver().high_watermark >= self._core.tip.offset:
                self._append_or_resign(self._core.no_op())
            else:
                self._core.idle.on_append(now_ms)  # what is on its way will move the high watermark
