"""The ends of this broker's logs, for the controller's unclean elections (GetReplicaLogInfo, KIP-966).

A log is told only when it is open and ready in the leader epoch that the controller knows: then no record of an older
leader is still on its way into it, and its end stays where it is until a leader is elected.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch
from quorumlog.messages.controller import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
    ReplicaLogQuery,
)
from quorumlog_broker.replicas.registry import Registry


class LogEnds:
    """broker_epoch: of this broker's registration as it is now; -1 before it is registered."""

    def __init__(self, registry: Registry, broker_epoch: Callable[[], BrokerEpoch]) -> None:
        self._registry = registry
        self._broker_epoch = broker_epoch

    def describe(self, request: GetReplicaLogInfoRequest) -> GetReplicaLogInfoResponse:
        """Each partition has an error of its own."""
        return GetReplicaLogInfoResponse(
            broker_epoch=self._broker_epoch(), partitions=tuple(self._try(asked) for asked in request.partitions)
        )

    def _try(self, asked: ReplicaLogQuery) -> ReplicaLogInfo:
        try:
            return self._end(asked)
        except ApiError as error:
            return ReplicaLogInfo(topic_id=asked.topic_id, index=asked.index, error_code=error.code)

    def _end(self, asked: ReplicaLogQuery) -> ReplicaLogInfo:
        """Raises ApiError."""
        replica = self._registry.find(asked.topic_id, asked.index)
        core, log = replica.core, replica.log
        if log is None or not replica.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {replica.name} is not open")
        if core.leader_epoch < asked.leader_epoch or not core.ready:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"epoch {asked.leader_epoch} of {replica.name} is not begun")
        if core.leader_epoch > asked.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"{replica.name} is in epoch {core.leader_epoch}")
        return ReplicaLogInfo(
            topic_id=asked.topic_id,
            index=asked.index,
            last_written_leader_epoch=log.epochs.last_epoch,
            log_end_offset=log.end_offset,
        )
