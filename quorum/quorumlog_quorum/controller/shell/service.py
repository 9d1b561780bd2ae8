"""The controller's shell: requests in; answers out once the records behind them are committed.

Everything that decides is in `core`. What the shell adds is order: an operation runs and appends its first slice before
its handler's first suspension, so operations take effect in the order of their calls (runner.py). Its answer leaves
when the high watermark has passed its records, or, if it wrote none, all that it may have read; and then only once the
leadership is confirmed (ConfirmedReads).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.admin import CreatePartitionsRequest, UpdateFeaturesRequest
from quorumlog.messages.cluster import CreateTopicsRequest, DeleteTopicsRequest
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.controller import BrokerHeartbeatRequest, GetReplicaLogInfoResponse, RegisterBrokerRequest
from quorumlog.messages.metadata_records import ChangedByRecord
from quorumlog.nursery import Nursery
from quorumlog.rpc.envelope import Behalf
from quorumlog.rpc.transport import Context, Transport
from quorumlog.security.quota.mutations import UNLIMITED, Limited, MutationUse
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.activation import has_adopted
from quorumlog_quorum.controller.core import Controller
from quorumlog_quorum.controller.engine.controller_counts import UNCLEAN, ControllerCounts
from quorumlog_quorum.controller.engine.failure_detector import Target
from quorumlog_quorum.controller.engine.limits import MAX_WAITING_OPERATIONS
from quorumlog_quorum.controller.partitions.unclean_recovery import Ask
from quorumlog_quorum.controller.requests.requests import RULES, Asker, Deadline, Rule
from quorumlog_quorum.controller.shell.activation_wait import ActivationWait
from quorumlog_quorum.controller.shell.broker_liveness import BrokerLiveness
from quorumlog_quorum.controller.shell.commit_waiters import Answer, CommitWaiters, ConfirmedReads
from quorumlog_quorum.controller.shell.kraft_version import names_kraft_version, update_kraft_version
from quorumlog_quorum.controller.shell.log_end_calls import LogEndCalls
from quorumlog_quorum.controller.shell.runner import MetadataDriver, OperationRunner
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.topic_settings import IGNORED, ignored
from quorumlog_quorum.snapshots import SnapshotHeading

if TYPE_CHECKING:
    from random import Random

MUTATIONS = (CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest)  # that have a quota (KIP-599)
MAX_NAMED = 512  # characters of a principal and of a client id in the metadata log
STALL_MS = 250  # a timer that fires later than this says that the loop stood still

_log = logging.getLogger("quorumlog.controller")


class ControllerService:
    """A RaftListener, called after the loader, and the handler of every request to a controller.

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
        cluster_incarnation: ClusterIncarnation = FIRST,
        supported: tuple[FeatureRange, ...] = SUPPORTED,
        mutations: MutationUse | None = None,
    ) -> None:
        """supported: the levels of features that this software supports. mutations: what clients have used of their
        quotas; None: they have none."""
        self._mutations = mutations
        self.node_id = node_id
        self.config = config
        self._clock = clock
        self._loader = loader
        self._core = Controller(
            cluster_id=cluster_id, config=config, rng=rng, incarnation=cluster_incarnation, supported=supported
        )
        self._runner = OperationRunner(self._core, clock, on_not_leader=self._resign, on_later_end=self._arm_anew)
        self._waiters = CommitWaiters()
        self._reads = ConfirmedReads(lambda: self._runner.high_watermark, self._not_controller)
        self._alarm = Alarm(clock, self._core.deadline_ms, self._on_alarm)
        self._liveness = BrokerLiveness(
            config=config, clock=clock, transport=transport, nursery=nursery, on_proven_dead=self._on_proven_dead
        )
        self._log_ends = LogEndCalls(
            node_id=node_id,
            internal_listener=config.internal_listener,
            transport=transport,
            nursery=nursery,
            on_answer=self._on_log_ends,
        )
        self._activation = ActivationWait()
        self._stopped = False
        self._former: NodeId | None = None  # the last other node that was active
        loader.subscribe(self._on_image)

    @property
    def driver(self) -> MetadataDriver | None:
        return self._runner.driver

    @driver.setter
    def driver(self, driver: MetadataDriver) -> None:
        self._runner.driver = driver
        self._core.state.voter_ids = lambda: driver.voter_ids

    @property
    def active(self) -> bool:
        return self._core.active

    @property
    def counts(self) -> ControllerCounts:
        """Of this process since it started."""
        return self._core.counts

    @property
    def unclean_elections(self) -> int:
        """That this process has held since it started."""
        return self._core.counts.elections[UNCLEAN]

    @property
    def unclean_recoveries(self) -> int:
        """Partitions without a leader whose replicas are asked for their logs."""
        return len(self._core.state.recoveries)

    @property
    def tip(self) -> Image:
        """Everything this controller appended, committed or not; the empty image while it is not active."""
        return self._core.tip

    async def handle(self, context: Context, request: Any) -> Any:
        """Raises ApiError: NOT_CONTROLLER, REQUEST_TIMED_OUT (outcome unknown), or what the operation says."""
        if self._activation.is_open:
            await self._activation.wait()
        if isinstance(request, UpdateFeaturesRequest) and names_kraft_version(request):
            self._rule(context, request)
            if self.driver is None:
                raise self._not_controller()
            return await update_kraft_version(self.driver, request)
        return await self._submit(context, request)

    async def stop(self) -> None:
        """Fail every answer that waits, and do nothing from now on. Idempotent."""
        self._stopped = True
        self._activation.end()
        self._resign()
        self._liveness.stop()
        self._alarm.cancel()

    # Calls by the quorum (RaftListener).

    def on_snapshot(self, heading: SnapshotHeading) -> None:
        """Nothing to do: the loader takes it."""

    def on_committed(self, batches: bytes, end_offset: Offset) -> None:
        """Nothing to do: the loader replays them."""

    def on_high_watermark(self, high_watermark: Offset) -> None:
        self._waiters.on_high_watermark(high_watermark)
        self._reads.on_high_watermark(high_watermark)
        self._runner.schedule()

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        if leader_id == self.node_id:
            self._activation.begin()
            return
        self._activation.end()
        if leader_id != NO_NODE:
            self._former = leader_id

    def _tell_ignored(self, image: Image) -> None:
        """Warn of what this node's file says otherwise than the metadata, unless it is about to be written."""
        file = self._core.config.decided_together if has_adopted(image) else {}
        for one in ignored(image, file):
            _log.warning(IGNORED, self.node_id, *one)

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        if self._stopped:
            return
        image = self._loader.committed_image
        # Control records about the voters may follow, but no record of a controller: nobody else leads this epoch.
        assert image.offset >= end_offset, f"claimed at {end_offset}, replayed to {image.offset}"
        _log.info("node %d is the active controller of epoch %d, from offset %d", self.node_id, epoch, end_offset)
        activation = self._core.claim(image, epoch, self._clock.now_ms())
        self._liveness.on_active(self._core.unfenced(), self._former)
        if self._loader.in_transaction:
            _log.warning("node %d aborts the metadata transaction that its predecessor left open", self.node_id)
            self._runner.submit(self._core.abort())
        if self._core.active:  # the abort may have heard that this node leads no more
            self._tell_ignored(image)
            self._runner.submit(activation)
        self._activation.end()
        self._arm_anew()

    def on_hand_over(self, epoch: Epoch) -> None:
        """Answers whose records are appended may still leave; everything else is for the next controller."""
        _log.info("node %d hands the leadership of epoch %d over", self.node_id, epoch)
        self._become_inactive()

    def on_resign(self, epoch: Epoch) -> None:
        self._resign()

    # Requests.

    def _submit(self, context: Context, request: Any) -> asyncio.Future[Any]:
        """Run the request's operation, now or in its turn; the answer comes with the commit."""
        if not self._core.active or self._stopped:
            raise self._not_controller()
        rule = self._rule(context, request)
        lane = rule.lane(request)
        is_heartbeat = isinstance(request, BrokerHeartbeatRequest)
        if is_heartbeat and (self._is_overloaded or self._core.must_wait(lane)):
            is_heartbeat = self._on_waiting_heartbeat(context, request)
        if self._is_overloaded:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{len(self._waiters)} operations wait; nothing was written")
        answer = Answer(self._timeout_ms(rule, request), retry_safe=rule.retry_safe)
        permits = self._permits(context, request)
        call = Call(self, context, request, rule, answer, permits)
        by = changed_by(rule, context)
        self._runner.submit(self._core.operation(request, call, permits or UNLIMITED, by))
        if is_heartbeat and not answer.given and not call.is_refused:
            self._keep_session(request.broker_id, answer)
        self._arm()
        return answer.future

    def _permits(self, context: Context, request: Any) -> Limited | None:
        """What the client may make and delete; None: as much as it likes, as a node may, too."""
        if self._mutations is None or context.peer is not None or not isinstance(request, MUTATIONS):
            return None
        return self._mutations.permits(
            context.principal.name, context.client_id, self._clock.now_ms(), strict=request.takes_throttling
        )

    @property
    def _is_overloaded(self) -> bool:
        return len(self._waiters) + len(self._reads) + len(self._core.queue) >= MAX_WAITING_OPERATIONS

    def _rule(self, context: Context, request: Any) -> Rule:
        """Raises ApiError for a request that is no controller's, or that speaks for another node."""
        rule = RULES.get(type(request))
        if rule is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"controllers do not serve {type(request).__name__}")
        peer = context.peer
        speaker = rule.speaker(request)
        if speaker is not None and peer is not None and peer.node_id != speaker:
            text = f"{type(request).__name__} speaks for node {speaker}, and node {peer.node_id} sent it"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
        return rule

    def _timeout_ms(self, rule: Rule, request: Any) -> int:
        if rule.deadline is Deadline.REQUESTED and request.timeout_ms > 0:
            return int(request.timeout_ms)
        return self.config.commit_timeout_ms

    def _on_waiting_heartbeat(self, context: Context, request: BrokerHeartbeatRequest) -> bool:
        """Its broker is alive, though its operation cannot run yet. False if it is not registered: its operation says
        so to the caller."""
        try:
            self._core.renew_session(request, self._clock.now_ms())
        except ApiError:
            return False
        self._liveness.on_heartbeat(context, request)
        return True

    def _keep_session(self, broker_id: NodeId, answer: Answer) -> None:
        """Keep the broker's session alive until its heartbeat is answered or times out."""
        session = self._core.sessions.wait(broker_id)

        def answered(_: object) -> None:
            session.answered(self._clock.now_ms())
            self._arm()

        answer.future.add_done_callback(answered)

    # Calls by its requests (Call).

    def on_accepted(self, call: Call) -> None:
        if isinstance(call.request, BrokerHeartbeatRequest):
            self._liveness.on_heartbeat(call.context, call.request)
            if not call.request.at_rest and self._core.idle.end_rest():
                self._arm_anew()

    def on_refused(self, call: Call, error: ApiError) -> None:
        if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION and isinstance(call.request, RegisterBrokerRequest):
            self._liveness.on_id_wanted(call.request.broker_id)

    def await_commit(self, end_offset: Offset, response: Any, answer: Answer) -> None:
        self._waiters.add(end_offset, response, answer)
        self._waiters.on_high_watermark(self._runner.high_watermark)

    def await_confirmation(self, outcome: Any, answer: Answer) -> None:
        """outcome: a response, or an ApiError."""
        driver = self._runner.driver
        assert driver is not None
        try:
            confirmed = driver.confirm_leadership()
        except ApiError:  # the quorum has stopped
            answer.fail(self._not_controller())
            return
        self._reads.add(confirmed, self._core.tip.offset, outcome, answer)

    def leadership_lost(self, *, unknown: bool) -> ApiError:
        """unknown: the change may survive in the log, and repeating it may do harm."""
        if unknown:
            text = f"node {self.node_id} is no longer the active controller; this may have been carried out"
            return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
        return self._not_controller()

    def _resign(self) -> None:
        self._become_inactive()
        self._waiters.fail_all(lambda answer: self.leadership_lost(unknown=not answer.retry_safe))
        self._reads.fail_all()

    def _become_inactive(self) -> None:
        if self._core.active:
            _log.info("node %d is no longer the active controller", self.node_id)
            self._core.resign()
            self._liveness.on_inactive()

    def _not_controller(self) -> ApiError:
        leader = self._loader.active_controller
        if leader is None or leader.node_id == self.node_id:
            return ApiError(ErrorCode.NOT_CONTROLLER, "no active controller is known yet")
        where = f"{leader.endpoint.host}:{leader.endpoint.port}"
        return ApiError(ErrorCode.NOT_CONTROLLER, f"node {leader.node_id} at {where} is the active controller")

    # Which brokers are alive.

    def _on_image(self, delta: Delta, image: Image) -> None:
        if self._core.active and image.offset == self._core.tip.offset:
            assert image.state_hash == self._core.tip.state_hash, f"the log and the tip differ at {image.offset}"
        self._liveness.on_image(delta, image)

    def _on_proven_dead(self, target: Target, evidence: str) -> None:
        """Ends the session too, so that the next process of this broker may register at once."""
        broker = self._core.tip.brokers.get(target.broker_id)
        if broker is not None and broker.incarnation_id == target.incarnation_id:
            self._fence(target.broker_id, f"its process is dead: {evidence}")
            self._arm()

    def _fence(self, broker_id: NodeId, why: str) -> None:
        fencing = self._core.fencing(broker_id)
        if fencing is not None:
            _log.warning("node %d fences broker %d: %s", self.node_id, broker_id, why)
            broker = self._core.tip.brokers[broker_id]
            if not broker.fenced and not broker.in_controlled_shutdown:
                self._core.counts.brokers_lost += 1
            self._runner.submit(fencing)

    # Unclean recovery.

    def _recover(self, now_ms: int) -> None:
        asks, election = self._core.recover(now_ms)
        for ask in asks:
            self._log_ends.ask(ask, self._core.tip)
        if election is not None:
            self._runner.submit(election)

    def _on_log_ends(self, ask: Ask, response: GetReplicaLogInfoResponse | None) -> None:
        if self._core.active and not self._stopped:
            self._core.state.recoveries.on_answer(ask, response, self._clock.now_ms())
            self._recover(self._clock.now_ms())
            self._arm_anew()

    # Time.

    def _arm(self) -> None:
        """Set the timer if it is not set. Enough after a request, which only postpones deadlines: finding the nearest
        one costs a step for each broker."""
        if not self._stopped and not self._alarm.is_set:
            self._alarm.arm()

    def _arm_anew(self) -> None:
        """Set the timer again: the deadline may be nearer, since sessions began or an operation on a broker ended."""
        if not self._stopped:
            self._alarm.arm()

    def _on_alarm(self, now_ms: int, late_ms: int) -> None:
        if late_ms > STALL_MS:
            self._core.on_stall(now_ms)
        expired = self._core.expired_broker(now_ms)
        if expired is not None:
            self._core.counts.heartbeats_timed_out += 1
            self._fence(expired, f"no heartbeat for {self.config.broker_session_timeout_ms} ms")
        elif self._core.balance_is_due(now_ms):
            balancing = self._core.balancing(now_ms)
            if balancing is not None:
                self._runner.submit(balancing)
        elif self._core.recovery_is_due(now_ms):
            self._recover(now_ms)
        elif self._core.no_op_is_due(now_ms):
            if self._core.transaction is None and self._runner.high_watermark >= self._core.tip.offset:
                self._runner.submit(self._core.no_op())
            else:
                self._core.idle.on_no_op(now_ms)  # records under way will move the high watermark


def changed_by(rule: Rule, context: Context) -> ChangedByRecord | None:
    """Who asks, as the metadata log tells it. A client chooses its id, and its name may be long, too: both are cut."""
    if rule.asker is not Asker.CLIENT:
        return None
    return ChangedByRecord(
        principal=str(context.principal)[:MAX_NAMED], host=context.client_host, client_id=context.client_id[:MAX_NAMED]
    )


class Call:
    """One request on its way: the `Caller` of its operation. It says which answer leaves, and when."""

    def __init__(
        self,
        service: ControllerService,
        context: Context,
        request: Any,
        rule: Rule,
        answer: Answer,
        permits: Limited | None = None,
    ) -> None:
        self._permits = permits
        self.context = context
        self.request = request
        self.rule = rule
        self.answer = answer
        self.is_refused = False
        self._service = service

    @property
    def gone(self) -> bool:
        return self.answer.given

    def accepted(self) -> None:
        self._service.on_accepted(self)

    def refused(self, error: ApiError) -> None:
        self.is_refused = True
        self._service.on_refused(self, error)
        self._service.await_confirmation(error, self.answer)

    def performed(self, response: Any, tip: Image, wrote: bool) -> None:
        if self._permits is not None and self._permits.wait_ms:
            response = replace(response, throttle_time_ms=self._permits.wait_ms)
        assert isinstance(response, self.rule.response), f"{type(response).__name__} answers {self.rule.request}"
        if wrote and isinstance(self.context, Behalf):
            self.context.metadata_end = tip.offset
        if wrote or not self.rule.needs_confirmation(response):
            self._service.await_commit(tip.offset, response, self.answer)
        else:
            self._service.await_confirmation(response, self.answer)

    def dropped(self, wrote: bool) -> None:
        self.answer.fail(self._service.leadership_lost(unknown=wrote and not self.rule.retry_safe))
