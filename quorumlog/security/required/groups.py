"""Groups, their members, and the offsets that they commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResult,
)
from quorumlog.security.authorizer import ResourceType
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged, answered, put_back, split_topics
from quorumlog.security.required.need import (
    CLUSTER_ACTION,
    CLUSTER_DESCRIBE,
    GROUP_DELETE,
    GROUP_DESCRIBE,
    GROUP_READ,
    ID_DESCRIBE,
    TOPIC_DESCRIBE,
    TOPIC_READ,
)

GROUP_KEY, TRANSACTION_KEY = 0, 1  # kinds of coordinators; a share group's is a matter of the cluster
NOT_ASKED = -(2**31)
HIDDEN = "the group is assigned topics that the client may not describe"


def find_coordinator(ask: Asker, request: FindCoordinatorRequest) -> Judged:
    need = {GROUP_KEY: GROUP_DESCRIBE, TRANSACTION_KEY: ID_DESCRIBE}.get(request.key_type)
    if need is None:
        ask.demand(CLUSTER_ACTION)
        return Judged(request)
    code = need.denied

    def denied(key: str, _fault: bool) -> Coordinator:
        return Coordinator(key=key, error_code=code)

    faults = [not ask.allows(need, key) for key in request.keys]
    return _split(request, "keys", faults, FindCoordinatorResponse, "coordinators", denied)


def _split(
    request: Any,
    places: str,
    faults: Sequence[bool],
    response_type: Any,
    results: str,
    denied: Callable[[Any, Any], Any],
) -> Judged:
    """places: the field of the request whose elements are judged. results: that of the response, in the same order."""
    asked = getattr(request, places)
    if not any(faults):
        return Judged(request)
    kept = tuple(one for one, fault in zip(asked, faults, strict=True) if not fault)
    if not kept:
        return answered(response_type(**{results: put_back(asked, faults, (), denied)}))

    def finish(response: Any) -> Any:
        if response.error_code:
            return response
        return replace(response, **{results: put_back(asked, faults, getattr(response, results), denied)})

    return Judged(replace(request, **{places: kept}), finish)


def member(ask: Asker, request: Any) -> Judged:
    """Of the classic protocol."""
    ask.demand(GROUP_READ, request.group_id)
    return Judged(request)


def consumer_group_heartbeat(ask: Asker, request: ConsumerGroupHeartbeatRequest) -> Judged:
    ask.demand(GROUP_READ, request.group_id)
    names = () if request.subscribed_topic_names is None else request.subscribed_topic_names.names
    for name in names:
        ask.demand(TOPIC_DESCRIBE, name)
    return Judged(request)


# --- offsets


def offset_commit(ask: Asker, request: OffsetCommitRequest) -> Judged:
    ask.demand(GROUP_READ, request.group_id)
    return split_topics(ask, TOPIC_READ, request, OffsetCommitResponse, not_committed)


def not_committed(topic: Any, fault: ErrorCode) -> OffsetCommitTopicResult:
    partitions = (OffsetCommitPartitionResult(index=one.index, error_code=fault) for one in topic.partitions)
    return OffsetCommitTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))


def offset_fetch(ask: Asker, request: OffsetFetchRequest) -> Judged:
    """A group without its topics means all of them: those that may not be described are left out."""
    allowed = [ask.allows(GROUP_DESCRIBE, group.group_id) for group in request.groups]
    asked = [_OfGroup(ask, group) for group, is_allowed in zip(request.groups, allowed, strict=True) if is_allowed]

    def finish(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if response.error_code:
            return response
        found = iter([one.whole(result) for one, result in zip(asked, response.groups, strict=True)])
        groups = (
            next(found) if is_allowed else _group_denied(group)
            for group, is_allowed in zip(request.groups, allowed, strict=True)
        )
        return replace(response, groups=tuple(groups))

    if request.groups and not asked:
        return answered(OffsetFetchResponse(groups=tuple(map(_group_denied, request.groups))))
    return Judged(replace(request, groups=tuple(one.kept for one in asked)), finish)


def _group_denied(group: OffsetFetchGroup) -> OffsetFetchGroupResult:
    return OffsetFetchGroupResult(group_id=group.group_id, error_code=GROUP_DESCRIBE.denied)


class _OfGroup:
    """The topics of one group of an OffsetFetch. kept: the group with what is allowed."""

    def __init__(self, ask: Asker, group: OffsetFetchGroup) -> None:
        self._ask, self._group, self.kept = ask, group, group
        self._faults: list[ErrorCode] = []
        if group.topics is None:
            return
        topics = group.topics.topics
        self._faults = [ask.topic_fault(TOPIC_DESCRIBE, topic) for topic in topics]
        if any(self._faults):
            kept = tuple(topic for topic, fault in zip(topics, self._faults, strict=True) if not fault)
            self.kept = replace(group, topics=replace(group.topics, topics=kept))

    def whole(self, result: OffsetFetchGroupResult) -> OffsetFetchGroupResult:
        if result.error_code:
            return result
        if self._group.topics is None:
            seen = self._ask.seen(TOPIC_DESCRIBE, (topic.name for topic in result.topics))
            shown = tuple(topic for topic, is_seen in zip(result.topics, seen, strict=True) if is_seen)
            return replace(result, topics=shown)
        if not any(self._faults):
            return result
        return replace(result, topics=put_back(self._group.topics.topics, self._faults, result.topics, _not_fetched))


def _not_fetched(topic: Any, fault: ErrorCode) -> OffsetFetchTopicResult:
    partitions = (OffsetFetchPartition(index=index, error_code=fault) for index in topic.partitions)
    return OffsetFetchTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))


def offset_delete(ask: Asker, request: OffsetDeleteRequest) -> Judged:
    ask.demand(GROUP_DELETE, request.group_id)
    return split_topics(ask, TOPIC_READ, request, OffsetDeleteResponse, _offsets_kept)


def _offsets_kept(topic: Any, fault: ErrorCode) -> OffsetDeleteTopicResult:
    partitions = (OffsetDeletePartition(index=index, error_code=fault) for index in topic.partitions)
    return OffsetDeleteTopicResult(name=topic.name, partitions=tuple(partitions))


# --- administration


def list_groups(ask: Asker, request: ListGroupsRequest) -> Judged:
    if ask.holds(CLUSTER_DESCRIBE):
        return Judged(request)

    def finish(response: ListGroupsResponse) -> ListGroupsResponse:
        return replace(response, groups=tuple(one for one in response.groups if ask.may(GROUP_DESCRIBE, one.group_id)))

    return Judged(request, finish)


def delete_groups(ask: Asker, request: DeleteGroupsRequest) -> Judged:
    """The handler answers a group that is named twice once, and so does this."""
    named = replace(request, groups=tuple(dict.fromkeys(request.groups)))
    faults = [not ask.allows(GROUP_DELETE, group) for group in named.groups]
    return _split(named, "groups", faults, DeleteGroupsResponse, "results", _group_kept)


def _group_kept(group: str, _fault: bool) -> DeletedGroup:
    return DeletedGroup(group_id=group, error_code=GROUP_DELETE.denied)


def describe_groups(ask: Asker, request: DescribeGroupsRequest) -> Judged:
    def denied(group: str, _fault: bool) -> DescribedGroup:
        return DescribedGroup(group_id=group, error_code=GROUP_DESCRIBE.denied)

    faults = [not ask.allows(GROUP_DESCRIBE, group) for group in request.groups]
    judged = _split(request, "groups", faults, DescribeGroupsResponse, "groups", denied)
    return _shown(ask, judged, lambda group: group)


def consumer_group_describe(ask: Asker, request: ConsumerGroupDescribeRequest) -> Judged:
    def denied(group: str, _fault: bool) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(group_id=group, error_code=GROUP_DESCRIBE.denied)

    faults = [not ask.allows(GROUP_DESCRIBE, group) for group in request.group_ids]
    judged = _split(request, "group_ids", faults, ConsumerGroupDescribeResponse, "groups", denied)
    return _shown(ask, judged, lambda group: _with_visible_topics(ask, group))


def _shown(ask: Asker, judged: Judged, show: Callable[[Any], Any]) -> Judged:
    """With the bits of this client. show: what it may see of a group that was found."""
    if judged.request is None:
        return judged

    def finish(response: Any) -> Any:
        groups = tuple(_with_bits(ask, group if group.error_code else show(group)) for group in response.groups)
        shown = replace(response, groups=groups)
        return shown if judged.finish is None else judged.finish(shown)

    return Judged(judged.request, finish)


def _with_bits(ask: Asker, group: Any) -> Any:
    if group.authorized_operations == NOT_ASKED:
        return group
    return replace(group, authorized_operations=ask.operations(ResourceType.GROUP, group.group_id))


def _with_visible_topics(ask: Asker, group: DescribedConsumerGroup) -> DescribedConsumerGroup:
    names = {
        topic.topic_name
        for one in group.members
        for topic in (*one.assignment, *one.target_assignment)
        if topic.topic_name
    }
    if all(ask.allows(TOPIC_DESCRIBE, name) for name in sorted(names)):
        return group
    return DescribedConsumerGroup(
        group_id=group.group_id,
        error_code=TOPIC_DESCRIBE.denied,
        error_message=HIDDEN,
        authorized_operations=group.authorized_operations,
    )
