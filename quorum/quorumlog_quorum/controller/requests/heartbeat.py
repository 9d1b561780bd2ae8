"""BrokerHeartbeat: a broker is alive, has applied metadata up to an offset, and asks for a state (KIP-631).

The present state and the one asked for give the next one (`next_state`); a change is a record. Directories that it
reports as offline are taken away first; those that it has cordoned since are noted (KIP-1066).
"""

from __future__ import annotations

from enum import Enum

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.fencing import (
    begin_controlled_shutdown,
    fence,
    note_cordoned,
    take_directories_offline,
    unfence,
)
from quorumlog_quorum.controller.bulk_changes.forget_deleted import forget_deleted
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.requests.broker_epoch import registered
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def next_state(
    now: BrokerState, *, want_fence: bool, want_shutdown: bool, caught_up: bool, leads_any: bool, may_stop: bool
) -> BrokerState:
    """The next state, by Kafka's table. may_stop: for a broker in controlled shutdown, every active broker has applied
    the records that moved its partitions away.
    """
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


def heartbeat(draft: Draft, request: BrokerHeartbeatRequest) -> Sliced[BrokerHeartbeatResponse]:
    """Raises ApiError."""
    sessions = draft.state.sessions
    broker_id = renew_session(draft, request).broker_id
    if request.offline_directories:
        yield from take_directories_offline(draft, broker_id, request.offline_directories)
    if request.tells_cordoned:
        note_cordoned(draft, broker_id, request.cordoned_directories)
    broker = draft.image.brokers[broker_id]
    now = state_of(broker)
    # The registration's own offset is the broker's epoch; an end is exclusive, so it must be above it.
    caught_up = request.current_metadata_offset > broker.broker_epoch
    leads_any = broker_id in draft.image.index.led
    if now is BrokerState.CONTROLLED_SHUTDOWN and not leads_any:
        sessions.note_shutdown_end(broker_id, draft.next_offset)
    then = next_state(
        now,
        want_fence=request.want_fence,
        want_shutdown=request.want_shutdown,
        caught_up=caught_up,
        leads_any=leads_any,
        may_stop=now is BrokerState.CONTROLLED_SHUTDOWN and sessions.may_stop(broker_id, _active_brokers(draft.image)),
    )
    if then is not now:
        yield from _enter(draft, broker_id, now, then)
    if then is BrokerState.CONTROLLED_SHUTDOWN:
        sessions.note_shutdown_end(broker_id, draft.next_offset)
    forget_deleted(draft)
    return BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=then in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shutdown=then is BrokerState.SHUTDOWN_NOW,
        session_timeout_ms=sessions.timeout_ms,
    )


def renew_session(draft: Draft, request: BrokerHeartbeatRequest) -> BrokerRegistration:
    """Start the session of the heartbeat's broker again, now. Returns the broker. Raises ApiError."""
    broker = registered(draft.image, request.broker_id, request.broker_epoch)
    if broker.incarnation_id != request.incarnation_id:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker.broker_id} is another incarnation")
    draft.state.sessions.touch(broker.broker_id, request.current_metadata_offset, draft.now_ms)
    draft.state.sessions.note_deletions_done(broker.broker_id, request.deletions_done_before)
    return broker


def _enter(draft: Draft, broker_id: NodeId, now: BrokerState, then: BrokerState) -> Sliced[None]:
    match then:
        case BrokerState.UNFENCED:
            unfence(draft, broker_id)
        case BrokerState.CONTROLLED_SHUTDOWN:
            yield from begin_controlled_shutdown(draft, broker_id)
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
            if now is not BrokerState.FENCED:
                yield from fence(draft, broker_id)


def _active_brokers(image: Image) -> list[NodeId]:
    return [broker.broker_id for broker in image.sorted_brokers() if broker.active]
