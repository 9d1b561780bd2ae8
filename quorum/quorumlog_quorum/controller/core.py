"""The controller's decisions: what each request and each passing of time adds to the metadata log.

An operation looks at the tip image (committed or not: everything this controller appended), at sessions and at what
other operations are about to write, and gives slices of records. The shell appends each slice at once, before anything
else happens, and calls `appended`; only that moves the tip. When the quorum's leadership is lost, the tip and all
operations are dropped; what is committed is found in the log again (KIP-631).
A core: no I/O, no clock; randomness is `rng` (placement, topic ids).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.idle_backoff import IdleBackoff
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.messages.metadata_records import ChangedByRecord
from quorumlog.security.quota.mutations import UNLIMITED, Permits
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.activation import abort_transaction, activate
from quorumlog_quorum.controller.bulk_changes.balance import BalanceTimer, balance_leaders
from quorumlog_quorum.controller.bulk_changes.fencing import elect_missing_leaders, fence_lost_broker
from quorumlog_quorum.controller.bulk_changes.unclean_elections import UncleanElections, elect_longest
from quorumlog_quorum.controller.engine.controller_counts import ControllerCounts
from quorumlog_quorum.controller.engine.controller_state import ControllerState
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.operation import Caller, Lane, Operation, Slice, broker_lane, in_one_slice
from quorumlog_quorum.controller.engine.operation_queue import OperationQueue
from quorumlog_quorum.controller.engine.sessions import Sessions
from quorumlog_quorum.controller.engine.transaction import Transaction
from quorumlog_quorum.controller.idle import Idle, write_no_op
from quorumlog_quorum.controller.partitions.unclean_recovery import Ask
from quorumlog_quorum.controller.requests.heartbeat import renew_session
from quorumlog_quorum.controller.requests.requests import RULES
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.image import EMPTY, Image

if TYPE_CHECKING:
    from random import Random

STALL_GRACE_MS = 500
NO_OP = "no-op"  # the operation's name


class Controller:
    """One node's controller. `tip`, sessions, timers and the queue mean something only between `claim` and `resign`.

    Every operation that is made here enters `queue` next.
    """

    def __init__(
        self,
        *,
        cluster_id: str,
        config: ControllerConfig,
        rng: Random,
        incarnation: ClusterIncarnation = FIRST,
        supported: tuple[FeatureRange, ...] = SUPPORTED,
    ) -> None:
        self.config = config
        self.epoch: Epoch | None = None  # of the quorum; None: not active
        self.tip: Image = EMPTY
        self.queue = OperationQueue()
        self.sessions = Sessions(config.broker_session_timeout_ms)
        self.idle = Idle(IdleBackoff(config.metadata_max_idle_interval_ms, config.metadata_rest_interval_ms))
        self.state = ControllerState(
            cluster_id=cluster_id,
            config=config,
            rng=rng,
            sessions=self.sessions,
            incarnation=incarnation,
            supported=supported,
        )
        self.balance = BalanceTimer.of(config)
        self.unclean = UncleanElections()
        self.counts = ControllerCounts()
        self.transaction: Transaction | None = None  # begun, and not whole in the log: nothing else is appended
        self._elections: Operation | None = None  # under way
        self._balancing: Operation | None = None  # likewise

    @property
    def active(self) -> bool:
        return self.epoch is not None

    def claim(self, image: Image, epoch: Epoch, now_ms: int) -> Operation:
        """Become active. image: all that is committed."""
        self.epoch, self.tip = epoch, image
        self.state.announced.clear()
        self.state.minimum_raised_end = image.offset
        self.sessions.reset(self.unfenced(), now_ms)
        self.idle.on_append(now_ms)
        self.balance.begin(now_ms)
        return Operation("activation", in_one_slice(activate), self.state)

    def abort(self) -> Operation:
        """Ends the transaction that the former controller has left open. It comes before the activation."""
        return Operation("abort of a transaction", in_one_slice(abort_transaction), self.state)

    def resign(self) -> None:
        """Stop being active. Every operation is dropped; what was appended and not committed may be lost, and a
        transaction that is not whole never takes effect."""
        operations = self.queue.clear()
        if self.transaction is not None and self.transaction.operation not in operations:
            operations.insert(0, self.transaction.operation)
        self.transaction = None
        for operation in operations:
            operation.drop()
            if operation.caller is not None:
                operation.caller.dropped(operation.wrote)
        self.epoch, self.tip = None, EMPTY
        self.sessions.reset((), 0)
        self.state.elections_wanted, self._elections = False, None
        self._balancing = None
        self.state.recoveries.clear()
        self.balance.end()
        self.state.forgot_ms = None

    def unfenced(self) -> list[NodeId]:
        return [broker.broker_id for broker in self.tip.sorted_brokers() if not broker.fenced]

    def must_wait(self, lane: Lane | None) -> bool:
        """Whether an operation of this lane would not begin in the turn in which it is submitted."""
        return self.transaction is not None or (lane is not None and self.queue.is_busy(lane))

    # Operations.

    def operation(
        self,
        request: Any,
        caller: Caller | None = None,
        permits: Permits = UNLIMITED,
        changed_by: ChangedByRecord | None = None,
    ) -> Operation:
        """request: of a type in `RULES`. changed_by: who made it, if it is a client's."""
        rule = RULES[type(request)]
        name = type(request).__name__
        return Operation(name, rule.slices(request), self.state, rule.lane(request), caller, permits, changed_by)

    def fencing(self, broker_id: NodeId) -> Operation | None:
        """Fences a broker whose session ended or whose death is proven. None: it is fenced, or about to be."""
        broker = self.tip.brokers.get(broker_id)
        if broker is None:
            return None
        epoch, lane = broker.broker_epoch, broker_lane(broker_id)
        if broker.fenced and not self.queue.is_busy(lane):
            self.sessions.forget(broker_id)
            return None
        name = f"fencing of broker {broker_id}"
        return Operation(name, lambda draft: fence_lost_broker(draft, broker_id, epoch), self.state, lane)

    def elections(self) -> Operation | None:
        """Elects missing leaders. None: nothing has happened that could give one, or such an operation is under way."""
        if not self.state.elections_wanted or self._elections is not None:
            return None
        self._elections = Operation("elections", elect_missing_leaders, self.state)
        return self._elections

    def balancing(self, now_ms: int) -> Operation | None:
        """Gives brokers the leaderships back that are preferably theirs. None: the last such operation goes on."""
        self.balance.begin(now_ms)
        if self._balancing is not None:
            return None
        self._balancing = Operation("balance of leaders", balance_leaders, self.state)
        return self._balancing

    def recover(self, now_ms: int) -> tuple[list[Ask], Operation | None]:
        """Questions to brokers about their logs, and an operation that elects the longest ones; None: none is known."""
        asks, found = self.state.recoveries.step(self.tip, now_ms)
        if not found:
            return asks, None
        return asks, Operation("unclean recovery", lambda draft: elect_longest(draft, found), self.state)

    def no_op(self) -> Operation:
        return Operation(NO_OP, in_one_slice(write_no_op), self.state)

    def renew_session(self, heartbeat: BrokerHeartbeatRequest, now_ms: int) -> None:
        """For a heartbeat that has to wait, or is refused because too much waits. Raises ApiError."""
        renew_session(Draft(self.state, self.tip, now_ms), heartbeat)

    def skip_to(self, end_offset: Offset) -> None:
        """The log ends here, exclusive: the quorum itself may have appended control records since the last slice."""
        if self.epoch is not None and end_offset > self.tip.offset:
            self.tip = Delta(self.tip).apply(end_offset, self.epoch)

    def appended(self, operation: Operation, piece: Slice, end_offset: Offset, now_ms: int) -> None:
        """The records of the operation's slice, one or more, now end at `end_offset`, exclusive."""
        assert self.epoch is not None and piece.delta.base is self.tip, "a slice on another tip"
        self.tip = piece.delta.apply(end_offset, self.epoch)
        self.unclean.note(piece.records, self.tip)
        self.counts.note(piece.records, self.tip)
        operation.wrote = True
        if operation.name == NO_OP:
            self.idle.on_no_op(now_ms)
        else:
            self.idle.on_append(now_ms)

    def ended(self, operation: Operation) -> None:
        """The operation is done, or was refused."""
        self.queue.leave(operation)
        if operation is self._elections:
            self._elections = None
        if operation is self._balancing:
            self._balancing = None

    # Time.

    def on_stall(self, now_ms: int) -> None:
        """This process did not run for a while. Heartbeats may wait in its sockets: they come before any fencing."""
        self.sessions.hold(now_ms + STALL_GRACE_MS)

    def expired_broker(self, now_ms: int) -> NodeId | None:
        """The unfenced broker whose session ended first. Only one: its fencing may change the rest (KAFKA-13173)."""
        due = self._next_expiry()
        return due[1] if due is not None and due[0] <= now_ms else None

    def no_op_is_due(self, now_ms: int) -> bool:
        at = self.idle.deadline_ms()
        return at is not None and at <= now_ms

    def balance_is_due(self, now_ms: int) -> bool:
        at = self.balance.deadline_ms
        return at is not None and at <= now_ms

    def recovery_is_due(self, now_ms: int) -> bool:
        at = self.state.recoveries.deadline_ms()
        return at is not None and at <= now_ms

    def deadline_ms(self) -> int | None:
        """When a session ends, a NoOp or a recovery is due, or leaders are to be balanced; None: not active."""
        if not self.active:
            return None
        expiry = self._next_expiry()
        times = (
            None if expiry is None else expiry[0],
            self.idle.deadline_ms(),
            self.balance.deadline_ms,
            self.state.recoveries.deadline_ms(),
        )
        return min((time for time in times if time is not None), default=None)

    def _next_expiry(self) -> tuple[int, NodeId] | None:
        """(when, which) of the unfenced broker whose session ends first.

        Brokers with an operation in their lane are left out: it fences the broker already, or the broker asked for it.
        """
        waiting = (broker_id for broker_id in self.unfenced() if not self.queue.is_busy(broker_lane(broker_id)))
        expiries = ((self.sessions.expiry_ms(broker_id), broker_id) for broker_id in waiting)
        return min(((at_ms, broker_id) for at_ms, broker_id in expiries if at_ms is not None), default=None)
