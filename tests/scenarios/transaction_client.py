"""A transactional producer of both protocols, call by call, over any connection; it retries what a client retries."""

from __future__ import annotations

import asyncio
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitTopic
from quorumlog.messages.produce import InitProducerIdRequest, ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TransactionToExtend,
    TransactionTopic,
    TxnOffsetCommitRequest,
)
from quorumlog.records.format.batch import TRANSACTIONAL
from quorumlog.records.rowwise.unsealed import lay_out_rows
from quorumlog.rpc.transport import Connection

CALL_MS = 10_000
RETRIED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
TRIES, RETRY_S = 100, 0.05
TIMESTAMP_MS = 1_700_000_000_000


def batch(producer_id: int, epoch: int, sequence: int, values: tuple[str, ...]) -> bytes:
    made = lay_out_rows([(TIMESTAMP_MS, None, value.encode(), ()) for value in values])
    made.attributes |= TRANSACTIONAL
    return bytes(made.seal(producer_id, epoch, sequence))


class TransactionClient:
    """version: 0 (TV1: partitions are added before) or 2 (TV2: by the leader)."""

    def __init__(self, connection: Connection, transactional_id: str, version: int = 2) -> None:
        self._connection, self.transactional_id, self.version = connection, transactional_id, version
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def call(self, request: Any) -> Any:
        return await self._connection.call(request, CALL_MS)

    async def until(self, request: Any, code_of: Any) -> Any:
        """Send it again as long as its error may pass."""
        for _ in range(TRIES):
            response = await self.call(request)
            if code_of(response) not in RETRIED:
                return response
            await asyncio.sleep(RETRY_S)
        raise AssertionError(f"{request}: still {response}")

    async def begin(self, timeout_ms: int = 60_000) -> int:
        """InitProducerId; the error code."""
        find = FindCoordinatorRequest(key_type=1, keys=(self.transactional_id,))
        await self.until(find, lambda answer: answer.coordinators[0].error_code)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        answer = await self.until(request, lambda answer: answer.error_code)
        if answer.error_code == 0:
            self._next(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def _next(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self._sequences.clear()

    async def add(self, topic: str, index: int = 0) -> int:
        extend = TransactionToExtend(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TransactionTopic(name=topic, partitions=(index,)),),
        )
        request = AddPartitionsToTxnRequest(transactions=(extend,))
        answer = await self.until(request, lambda answer: answer.results[0].topics[0].partitions[0].error_code)
        return int(answer.results[0].topics[0].partitions[0].error_code)

    def produce(self, topic: str, *values: str, index: int = 0) -> ProduceRequest:
        sequence = self._sequences.get((topic, index), 0)
        self._sequences[topic, index] = sequence + len(values)
        records = batch(self.producer_id, self.epoch, sequence, values)
        of = ProduceTopic(name=topic, partitions=(ProducePartition(index=index, records=records),))
        return ProduceRequest(
            acks=-1,
            timeout_ms=CALL_MS,
            topics=(of,),
            transactional_id=self.transactional_id,
            transaction_version=self.version,
        )

    async def send(self, topic: str, *values: str, index: int = 0) -> int:
        """Add the partition, where the protocol asks for it, and append; the error code."""
        if self.version < 2:
            code = await self.add(topic, index)
            if code:
                return code
        request = self.produce(topic, *values, index=index)
        answer = await self.until(request, lambda answer: answer.topics[0].partitions[0].error_code)
        return int(answer.topics[0].partitions[0].error_code)

    async def send_offset(self, group: str, topic: str, offset: int) -> int:
        if self.version < 2:
            add = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            answer = await self.until(add, lambda answer: answer.error_code)
            if answer.error_code:
                return int(answer.error_code)
        partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(OffsetCommitTopic(name=topic, partitions=partitions),),
            transaction_version=self.version,
        )
        answer = await self.until(commit, _offset_code)
        return _offset_code(answer)

    async def end(self, *, committed: bool) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
            transaction_version=self.version,
        )
        answer = await self.until(request, lambda answer: answer.error_code)
        if answer.error_code == 0 and answer.producer_id >= 0:
            self._next(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)


def _offset_code(answer: Any) -> int:
    return int(answer.error_code or answer.topics[0].partitions[0].error_code)
