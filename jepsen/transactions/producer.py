"""One life of a transactional producer: it gets its epoch, and sends each call of its transactions by itself.

It repeats what a client repeats, and it knows what it does not know: a call without an answer may be carried out later.
A producer of transaction.version 2 (TV2) has another epoch by then. One of version 1 (TV1) has not, so that a late
EndTxn or TxnOffsetCommit of it could meet its next transaction; that is a gap of that protocol, so such a producer asks
for a new epoch before it goes on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from jepsen.checkers.transactional.events import NO_OFFSET, Session
from jepsen.transactions.calls import ASIDE, GROUP, NOT_LEADER, TRANSACTION, WAIT_S, Calls, Unknown
from jepsen.transactions.recorder import Recorder
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitTopic
from quorumlog.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TransactionToExtend,
    TransactionTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from quorumlog.records import lay_out_rows
from quorumlog.records.format.batch import TRANSACTIONAL
from quorumlog.rpc.transport import NotDelivered, RpcError

TV1, TV2 = 1, 2
ACKS_ALL = -1
PRODUCE_MS = 3_000
ATTEMPTS = 40
BUSY = ASIDE | {ErrorCode.CONCURRENT_TRANSACTIONS}


class Lost(Exception):
    """This producer cannot go on: it was fenced, or does not know what it has done. Another life has to begin."""


class Refused(Exception):
    """The transaction cannot be committed; it has to be aborted."""


@dataclass(slots=True)
class Producer:
    """index: of its session in the history."""

    calls: Calls
    recorder: Recorder
    transactional_id: str
    version: int
    timeout_ms: int
    producer_id: int = -1
    epoch: int = -1
    session: int = -1
    _sequences: dict[int, int] = field(default_factory=dict)  # by partition: the next one
    _added: set[object] = field(default_factory=set)  # of this transaction, TV1: partitions and groups

    # --- the epoch ---

    async def begin(self) -> None:
        """Get an epoch that fences every earlier life. Raises Lost."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        invoked_ns = self.recorder.now_ns()
        try:
            response: InitProducerIdResponse = await self.calls.repeat(
                TRANSACTION, self.transactional_id, request, _code, attempts=4 * ATTEMPTS, again=BUSY
            )
        except Unknown as error:
            raise Lost(str(error)) from error
        if response.error_code != ErrorCode.NONE:
            raise Lost(ErrorCode(response.error_code).name)
        self._take(response.producer_id, response.producer_epoch)
        one = Session(self.transactional_id, self.producer_id, self.epoch, invoked_ns, self.recorder.now_ns())
        self.session = self.recorder.session(one)

    def _take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.recorder.producer_id(self.transactional_id, producer_id)
        self.producer_id, self.epoch = producer_id, epoch

    # --- within a transaction ---

    def start(self) -> None:
        self._added.clear()

    async def send(self, topic: str, index: int, value: int | bytes) -> int:
        """The offset, NO_OFFSET if it is not known. Raises Refused, Lost."""
        if self.version == TV1 and index not in self._added:
            await self._add_partition(topic, index)
            self._added.add(index)
        sequence = self._sequences.get(index, 0)
        request = self._produce_request(topic, index, value, sequence)
        for _ in range(ATTEMPTS):
            try:
                response: ProduceResponse = await self.calls.to_leader(topic, index, request)
            except RpcError:
                await self._forget(topic)
                continue
            code, offset = ErrorCode(response.error_code), NO_OFFSET
            if response.topics:
                (found,) = response.topics[0].partitions
                code, offset = ErrorCode(found.error_code), found.base_offset
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[index] = sequence + 1
                return offset if code == ErrorCode.NONE else NO_OFFSET
            if code not in NOT_LEADER and code != ErrorCode.CONCURRENT_TRANSACTIONS:
                raise Refused(code.name)
            await self._forget(topic)
        raise Refused("no answer of the partition's leader")

    def next_request(self, topic: str, index: int, value: int) -> ProduceRequest:
        """A value again, under the next sequence number."""
        return self._produce_request(topic, index, value, self._sequences.get(index, 0))

    async def _forget(self, topic: str) -> None:
        await self.calls.forget_leader(topic)
        await asyncio.sleep(WAIT_S)

    def _produce_request(self, topic: str, index: int, value: int | bytes, sequence: int) -> ProduceRequest:
        content = value if isinstance(value, bytes) else b"%d" % value
        batch = lay_out_rows([(self.recorder.now_ns() // 1_000_000, None, content, ())])
        batch.attributes |= TRANSACTIONAL
        records = batch.seal(self.producer_id, self.epoch, sequence)
        return ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=PRODUCE_MS,
            topics=(ProduceTopic(name=topic, partitions=(ProducePartition(index=index, records=bytes(records)),)),),
            transactional_id=self.transactional_id,
            transaction_version=self.version if self.version == TV2 else 0,
        )

    async def _add_partition(self, topic: str, index: int) -> None:
        request = AddPartitionsToTxnRequest(
            transactions=(
                TransactionToExtend(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    topics=(TransactionTopic(name=topic, partitions=(index,)),),
                ),
            )
        )
        await self._ask(request, _added_code)

    async def commit_offset(self, group: str, topic: str, index: int, offset: int) -> None:
        """Raises Refused, Lost."""
        if self.version == TV1 and group not in self._added:
            await self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    group_id=group,
                ),
                _code,
            )
            self._added.add(group)
        request = self.offset_request(group, topic, index, offset)
        for _ in range(ATTEMPTS):
            try:
                response: TxnOffsetCommitResponse = await self.calls.to_coordinator(GROUP, group, request)
            except NotDelivered:
                await asyncio.sleep(WAIT_S)
                continue
            except RpcError as error:
                if self.version == TV1:
                    raise Lost("a TxnOffsetCommit may come late") from error
                await asyncio.sleep(WAIT_S)
                continue
            code = _offset_code(response)
            if code == ErrorCode.NONE:
                return
            if code in ASIDE and self.version == TV1 and code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise Lost("a TxnOffsetCommit may be committed late")
            if code not in BUSY | NOT_LEADER:
                raise Refused(code.name)
            self.calls.forget_coordinator(GROUP, group)
            await asyncio.sleep(WAIT_S)
        raise Refused("no answer of the group's coordinator")

    async def stage_offset(self, group: str, topic: str, index: int, offset: int) -> None:
        """As `commit_offset`, but repeated only where nothing was written, so that none of it can come later. For
        version 2. Raises Refused, Lost."""
        assert self.version == TV2
        request = self.offset_request(group, topic, index, offset)
        for _ in range(ATTEMPTS):
            try:
                response: TxnOffsetCommitResponse = await self.calls.to_coordinator(GROUP, group, request)
            except RpcError as error:
                raise Lost("a TxnOffsetCommit may come late") from error
            code = _offset_code(response)
            if code == ErrorCode.NONE:
                return
            if code not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
                raise Refused(f"{code.name}: the offset is perhaps committed late")
            await asyncio.sleep(WAIT_S)
        raise Refused("the group's coordinator is busy")

    def offset_request(self, group: str, topic: str, index: int, offset: int) -> TxnOffsetCommitRequest:
        partitions = (OffsetCommitPartition(index=index, committed_offset=offset),)
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(OffsetCommitTopic(name=topic, partitions=partitions),),
            transaction_version=self.version if self.version == TV2 else 0,
        )

    async def _ask(self, request: object, code_of: object) -> None:
        assert callable(code_of)
        try:
            response = await self.calls.repeat(
                TRANSACTION, self.transactional_id, request, code_of, attempts=ATTEMPTS, again=BUSY
            )
        except Unknown as error:
            raise Refused(str(error)) from error
        if code_of(response) != ErrorCode.NONE:
            raise Refused(ErrorCode(code_of(response)).name)

    # --- its end ---

    async def end(self, *, committed: bool) -> bool:
        """True: it ended so. False: it certainly did not. Raises Unknown; then, or with False, this life is over."""
        request = self.end_request(committed=committed)
        is_open = False  # an earlier attempt may have been carried out
        for _ in range(ATTEMPTS):
            try:
                response: EndTxnResponse = await self.calls.to_coordinator(TRANSACTION, self.transactional_id, request)
            except NotDelivered:
                await asyncio.sleep(WAIT_S)
                continue
            except RpcError as error:
                if self.version == TV1:
                    raise Unknown("an EndTxn may come late") from error
                is_open = True
                await asyncio.sleep(WAIT_S)
                continue
            code = ErrorCode(response.error_code)
            if code == ErrorCode.NONE:
                if response.producer_epoch >= 0:
                    self._take(response.producer_id, response.producer_epoch)
                    self._sequences.clear()  # as Kafka's producer does, whatever epoch it was told
                return True
            if code in ASIDE and code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                if self.version == TV1:
                    raise Unknown("an EndTxn may be committed late")
                is_open = True
            elif code == ErrorCode.CONCURRENT_TRANSACTIONS:
                is_open = True  # perhaps it is being ended as asked: the network may have repeated the request
            elif code not in BUSY:
                if is_open:
                    raise Unknown(code.name)
                return False
            if code in ASIDE:
                self.calls.forget_coordinator(TRANSACTION, self.transactional_id)
            await asyncio.sleep(WAIT_S)
        raise Unknown("no answer of the coordinator")

    def end_request(self, *, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
            transaction_version=self.version if self.version == TV2 else 0,
        )


def _code(response: InitProducerIdResponse | AddOffsetsToTxnResponse) -> int:
    return int(response.error_code)


def _added_code(response: AddPartitionsToTxnResponse) -> int:
    codes = [one.error_code for result in response.results for topic in result.topics for one in topic.partitions]
    return next((code for code in (response.error_code, *codes) if code != ErrorCode.NONE), int(ErrorCode.NONE))


def _offset_code(response: TxnOffsetCommitResponse) -> ErrorCode:
    codes = [one.error_code for topic in response.topics for one in topic.partitions]
    return ErrorCode(next((code for code in (response.error_code, *codes) if code != ErrorCode.NONE), ErrorCode.NONE))
