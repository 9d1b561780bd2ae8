"""What a ConsumerGroupHeartbeat must be, whatever the state of its group. Source: Kafka's GroupMetadataManager."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest
from quorumlog_broker.coordinator.groups.consumer.assignment import flat
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED, Current
from quorumlog_broker.coordinator.groups.consumer.subscriptions import why_invalid

JOIN, LEAVE = 0, -1


def check_request(request: ConsumerGroupHeartbeatRequest, assignors: Mapping[str, object]) -> None:
    """Raises ApiError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION."""
    epoch, regex = request.member_epoch, request.subscribed_topic_regex
    for name, text in (
        ("instance id", request.group_instance_id),
        ("rack", request.rack_id),
    ):
        _require(text != "", f"the {name} is empty; leave it out, or give one")
    _require(bool(request.group_id), "the group's id is empty; set group.id")
    may_lack_id = epoch == JOIN and not request.chooses_member_id
    _require(bool(request.member_id) or may_lack_id, "the member's id is empty")
    _require(epoch >= PAUSED, f"member epoch {epoch}: it is at least {PAUSED}")
    if epoch == PAUSED:
        _require(
            request.group_instance_id is not None, "only a static member leaves with epoch -2; give its instance id"
        )
    if epoch == JOIN:
        _require(request.rebalance_timeout_ms != -1, "a member that joins has to say its rebalance time-out")
        owned = request.topic_partitions
        _require(owned is not None and not owned.topic_partitions, "a member that joins owns no partitions")
        _require(
            request.subscribed_topic_names is not None or regex is not None,
            "a member that joins has to say its topics, or a regular expression for them",
        )
    if epoch >= JOIN and request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        text = f"assignor {request.server_assignor} is not known; take one of {known}"
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    if epoch >= JOIN and regex and (reason := why_invalid(regex)):
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"regular expression {regex!r}: {reason}")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ApiError(ErrorCode.INVALID_REQUEST, text)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """It says everything, so it wants to be told everything: its last answer may be lost."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None


def check_epoch(request: ConsumerGroupHeartbeatRequest, current: Current) -> None:
    """Raises ApiError(FENCED_MEMBER_EPOCH) unless the member may speak in the epoch that it names.

    An epoch behind is taken if it is the previous one, and the member owns nothing beside what it may: the answer that
    would have told it the epoch was lost. A join is always taken (KAFKA-19233).
    """
    received = request.member_epoch
    if received in (JOIN, current.epoch):
        return
    if received > current.epoch:
        text = f"member epoch {received} is above the coordinator's, {current.epoch}; join again"
        raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, text)
    owned = request.topic_partitions
    if (
        received != current.previous_epoch
        or owned is None
        or not flat(owned.topic_partitions) <= current.assigned.keys()
    ):
        text = f"member epoch {received} is behind the coordinator's, {current.epoch}; join again"
        raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, text)
