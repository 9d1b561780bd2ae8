"""Offsets of groups of both protocols: who may commit, read and delete them, and when they expire."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.group_turn import Call, Turn
from quorumlog_broker.coordinator.groups.classic.answers import all_refused
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.offsets.calls import OffsetCalls
from quorumlog_broker.coordinator.groups.offsets.of_consumer_groups import (
    commit_rule,
    fetch_refusal,
    transactional_rule,
)
from quorumlog_broker.coordinator.groups.offsets.transactional import TransactionalOffsets
from quorumlog_broker.coordinator.groups.registry import Registry


class GroupOffsets:
    def __init__(
        self,
        turn: Turn,
        registry: Registry,
        settings: Settings,
        calls: OffsetCalls,
        transactional: TransactionalOffsets,
    ) -> None:
        self._turn, self._registry, self._settings = turn, registry, settings
        self._calls, self._transactional = calls, transactional

    def commit(self, call: Call, request: OffsetCommitRequest) -> Sliced[None]:
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            rule = commit_rule(consumers, self._settings.cluster, request)
            error = yield from self._calls.first_refusal(request.topics, rule)
            if error != ErrorCode.NONE:
                self._turn.answer(call.number, all_refused(request, error))
                return
            response = yield from self._calls.write(request)
            self._turn.answer_after_commit(call.number, response)
            return
        group = self._registry.known(request.group_id)
        if group is not None:
            error = self._calls.refusal(group, request)
        elif request.generation_id >= 0:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif not self._registry.has_room_for(request.group_id):
            error = ErrorCode.POLICY_VIOLATION
        else:
            group, error = ClassicGroup(request.group_id), ErrorCode.NONE  # it is one once something is stored
        if group is None or error != ErrorCode.NONE:
            self._turn.answer(call.number, all_refused(request, error))
            return
        response = yield from self._calls.commit(group, request)
        self._registry.known(request.group_id)
        self._turn.answer_after_commit(call.number, response)

    def commit_transactional(self, call: Call, request: TxnOffsetCommitRequest) -> Sliced[None]:
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            rule = transactional_rule(consumers, self._settings.cluster, request)
            yield from self._transactional.commit(call, request, rule)
            return
        error = self._transactional.refusal(self._registry.known(request.group_id), request)
        if error == ErrorCode.NONE and not self._registry.has_room_for(request.group_id):
            error = ErrorCode.POLICY_VIOLATION
        if error != ErrorCode.NONE:
            self._transactional.refuse(call, request, error)
            return
        yield from self._transactional.commit(call, request)
        self._registry.known(request.group_id)

    def fetch(self, call: Call, request: OffsetFetchGroup, *, require_stable: bool) -> Sliced[None]:
        consumers = self._registry.consumer(request.group_id)
        error = ErrorCode.NONE if consumers is None else fetch_refusal(consumers, request)
        if error == ErrorCode.NONE:
            yield from self._calls.fetch(call, request, require_stable=require_stable)
        else:
            response = OffsetFetchGroupResult(group_id=request.group_id, error_code=error)
            self._turn.answer_read(request.group_id, call.number, response)

    def delete(self, call: Call, request: OffsetDeleteRequest) -> None:
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            response = self._calls.delete_unsubscribed(request, consumers.subscribed_topics())
            self._turn.answer_after_commit(call.number, response)
            return
        group = self._registry.known(request.group_id)
        if group is None:
            response = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
            self._turn.answer_read(request.group_id, call.number, response)
            return
        self._turn.answer_after_commit(call.number, self._calls.delete(group, request))
