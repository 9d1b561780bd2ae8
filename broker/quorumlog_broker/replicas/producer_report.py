"""What a replica's log knows of producers (DescribeProducers, KIP-664): for those who look for one that hangs."""

from __future__ import annotations

from functools import partial

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import ActiveProducer, ProducersOfPartition
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import Lane
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import ProducerEntry


class ProducerReport:
    def __init__(self, registry: Registry, upcoming: UpcomingLeaderships) -> None:
        self._registry, self._upcoming = registry, upcoming

    async def describe(self, topic: str, index: int, deadline_ms: int) -> ProducersOfPartition:
        """Of a leader or a follower. An error is in the answer.

        deadline_ms: until then it waits for a log that this broker is about to lead; on the clock of `now_ms`.
        """
        while True:
            try:
                return ProducersOfPartition(index=index, active_producers=await self._describe(topic, index))
            except (ApiError, Busy) as error:
                if not await self._upcoming.wait(error, topic, index, deadline_ms):
                    return ProducersOfPartition(index=index, error_code=error.code, error_message=str(error))

    async def _describe(self, topic: str, index: int) -> tuple[ActiveProducer, ...]:
        """Raises ApiError."""
        replica = self._registry.find(topic, index)
        log, queue = replica.log, replica.queue
        if queue is None or not replica.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {replica.name} is offline")
        if log is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the log of {replica.name} is not open yet")
        try:
            return await queue.run(partial(_producers, log), Lane.BACKGROUND)
        except Exception as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


def _producers(log: Log) -> tuple[ActiveProducer, ...]:
    """In the log's worker, which alone changes them."""
    if log.producers is None:
        return ()
    return tuple(_active(producer_id, entry) for producer_id, entry in log.producers.states.entries.items())


def _active(producer_id: int, entry: ProducerEntry) -> ActiveProducer:
    return ActiveProducer(
        producer_id=producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence if entry.batches else -1,
        last_timestamp_ms=entry.timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_transaction_start_offset=entry.first_offset,
    )
