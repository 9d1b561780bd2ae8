"""BrokerHeartbeat: a broker says that it lives, what it has applied, and what it wants (KRAFT 2.6).

State and wish lead to the next state (`next_state`); a change of state is a record. Directories that the broker
reports as offline are taken away first.
"""

from __future__ import annotations

from enum import Enum

from quorum.controller.broker_epoch import registered
from quorum.controller.fencing import begin_controlled_shutdown, fence, take_directories_offline, unfence
from quorum.controller.outcome import Draft
from quorum.controller.sessions import Sessions
from quorum.metadata.image import Image
from quorum.metadata.registration import BrokerRegistration
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def next_state(
    now: BrokerState, *, want_fence: bool, want_shutdown: bool, caught_up: bool, leads_any: bool, may_stop: bool
) -> BrokerState:
    """Kafka's table. may_stop: every active broker has applied what moved this broker's partitions away."""
    match now:
        case BrokerState.FENCED:
            if want_shutdown:
                return BrokerState.SHUTDOWN_NOW
            return BrokerState.UNFENCED if caught_up and not want_fence else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if want_fence:
                return BrokerState.SHUTDOWN_NOW if want_shutdown else BrokerState.FENCED
            if want_shutdown:
                return BrokerState.CONTROLLED_SHUTDOWN if leads_any else BrokerState.SHUTDOWN_NOW
            return BrokerState.UNFENCED
        case BrokerState.CONTROLLED_SHUTDOWN:
            return BrokerState.SHUTDOWN_NOW if may_stop and not leads_any else BrokerState.CONTROLLED_SHUTDOWN
        case BrokerState.SHUTDOWN_NOW:
            return BrokerState.SHUTDOWN_NOW


def state_of(broker: BrokerRegistration) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def heartbeat(
    draft: Draft, request: BrokerHeartbeatRequest, *, sessions: Sessions, next_offset: Offset, now_ms: int
) -> BrokerHeartbeatResponse:
    """next_offset: where the operation's first record will be appended. Raises ApiError."""
    broker = hear(draft.image, request, sessions, now_ms)
    take_directories_offline(draft, broker.broker_id, request.offline_directories)
    now = state_of(broker)
    # The registration's own offset is the broker's epoch; an end is exclusive, so it must be above it.
    caught_up = request.current_metadata_offset > broker.broker_epoch
    leads_any = request.want_shutdown and leads(draft.image, broker.broker_id)
    if now is BrokerState.CONTROLLED_SHUTDOWN and not leads_any:
        sessions.note_shutdown_end(broker.broker_id, next_offset + len(draft.records))
    then = next_state(
        now,
        want_fence=request.want_fence,
        want_shutdown=request.want_shutdown,
        caught_up=caught_up,
        leads_any=leads_any,
        may_stop=sessions.may_stop(broker.broker_id, _active_brokers(draft.image)),
    )
    _enter(draft, broker.broker_id, now, then)
    if then is BrokerState.CONTROLLED_SHUTDOWN:
        sessions.note_shutdown_end(broker.broker_id, next_offset + len(draft.records))
    return BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=then in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shutdown=then is BrokerState.SHUTDOWN_NOW,
    )


def hear(image: Image, request: BrokerHeartbeatRequest, sessions: Sessions, now_ms: int) -> BrokerRegistration:
    """Whose heartbeat it is; its session begins anew with its arrival, whatever becomes of it. Raises ApiError."""
    broker = registered(image, request.broker_id, request.broker_epoch)
    if broker.incarnation_id != request.incarnation_id:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker.broker_id} is another incarnation")
    sessions.touch(broker.broker_id, request.current_metadata_offset, now_ms)
    return broker


def leads(image: Image, broker_id: NodeId) -> bool:
    return any(
        partition.leader == broker_id for topic in image.topics.values() for partition in topic.partitions.values()
    )


def _enter(draft: Draft, broker_id: NodeId, now: BrokerState, then: BrokerState) -> None:
    if then is now:
        return
    match then:
        case BrokerState.UNFENCED:
            unfence(draft, broker_id)
        case BrokerState.CONTROLLED_SHUTDOWN:
            begin_controlled_shutdown(draft, broker_id)
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
            if now is not BrokerState.FENCED:
                fence(draft, broker_id)


def _active_brokers(image: Image) -> list[NodeId]:
    return [broker.broker_id for broker in image.sorted_brokers() if broker.active]
