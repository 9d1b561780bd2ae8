"""Asks the coordinators of transactions for the leaders of partitions: is the transaction under way, is it here?

TV1: the producer has added the partition before, and the coordinator only says so (KIP-890, part 1). TV2: the same call
adds the partition (part 2). What is asked of one coordinator while a request to it is under way goes out as one request
behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TransactionToExtend,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.turn import Signal, Turn
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.transactions.state.table import Partition, by_topic

MAX_QUESTIONS = 1_000  # transactions of one request
EPOCH_PER_TRANSACTION = 2  # transaction.version: the leader adds the partition


class Producer(NamedTuple):
    """Of a transaction, as a request names it. adds: the partition is added if it is not in the transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds: bool


class _Waiting(Signal):
    code: ErrorCode = ErrorCode.NETWORK_EXCEPTION


_Questions = dict[Producer, dict[Partition, list[_Waiting]]]


class Verifier:
    """leader_for: the coordinator's broker; raises ApiError (`TransactionCoordinators.leader_for`). max_waiting:
    questions, of all coordinators."""

    def __init__(
        self,
        leader_for: Callable[[str], NodeId | None],
        peers: Peers,
        *,
        max_waiting: int,
        turn: Turn,
        nursery: Nursery,
    ) -> None:
        self._max_waiting, self._waiting = max_waiting, 0
        self._leader_for, self._peers, self._turn, self._nursery = leader_for, peers, turn, nursery
        self._asked: dict[NodeId, _Questions] = {}  # not sent yet
        self._busy: set[NodeId] = set()  # with a request under way

    async def ask(self, producer: Producer, partition: Partition) -> ErrorCode:
        """The coordinator's answer: NONE if the transaction has the partition. NETWORK_EXCEPTION: there was none.
        COORDINATOR_NOT_AVAILABLE: nobody leads its partition, or too many questions wait."""
        try:
            broker = self._leader_for(producer.transactional_id)
        except ApiError as error:
            return error.code
        if broker is None or self._waiting >= self._max_waiting:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        waiting = _Waiting()
        questions = self._asked.setdefault(broker, {})
        questions.setdefault(producer, {}).setdefault(partition, []).append(waiting)
        if broker not in self._busy:
            self._busy.add(broker)
            self._turn.later(lambda: self._send(broker))
        self._waiting += 1
        try:
            await waiting
        finally:
            self._waiting -= 1
        return waiting.code

    def _send(self, broker: NodeId) -> None:
        questions = self._asked.pop(broker, {})
        if not questions:
            self._busy.discard(broker)
            return
        sent: _Questions = dict(list(questions.items())[:MAX_QUESTIONS])
        rest = {producer: found for producer, found in questions.items() if producer not in sent}
        if rest:
            self._asked[broker] = rest
        self._nursery.start(self._call(broker, sent), f"transactions of broker {broker}")

    async def _call(self, broker: NodeId, sent: _Questions) -> None:
        response: AddPartitionsToTxnResponse | None = None
        code = ErrorCode.NETWORK_EXCEPTION
        try:
            response = await self._peers.call(broker, _request(sent))
        except RpcError:
            pass
        except ApiError as error:
            code = error.code
        for number, found in enumerate(sent.values()):
            codes = {} if response is None else _codes(response, number)
            for partition, all_waiting in found.items():
                for waiting in all_waiting:
                    waiting.code = codes.get(partition, code)
                    waiting.fire(self._turn)
        self._send(broker)


def _request(sent: _Questions) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=tuple(
            TransactionToExtend(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=not producer.adds,
                topics=by_topic(partitions),
                transaction_version=EPOCH_PER_TRANSACTION if producer.adds else 0,
            )
            for producer, partitions in sent.items()
        )
    )


def _codes(response: AddPartitionsToTxnResponse, number: int) -> dict[Partition, ErrorCode]:
    """Answers are in the order of the request."""
    if number >= len(response.results):
        return {}
    return {
        (topic.name, one.index): ErrorCode(one.error_code)
        for topic in response.results[number].topics
        for one in topic.partitions
    }
