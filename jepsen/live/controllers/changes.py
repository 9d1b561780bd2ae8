"""Clients that change metadata: each change is sent once, and its outcome is noted.

A change is a value of a setting, or a new topic. A client gives its next value only after the outcome of the last one
is known or cannot be known any more, so acknowledged values of one key follow each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from quorumlog.client.real_edges import make_transport
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.rpc.transport import Address, Connection, RpcError

TOPIC_RESOURCE, SET = 2, 0
KEY = "retention.ms"  # its values are the numbers of the changes
FIRST_VALUE = 1_000_000
CALL_TIMEOUT_MS = 3_000
PAUSE_S = 0.005  # after an error
MAKING_S = 60.0  # for the topics before the first fault
DONE = frozenset([0])  # the error codes of an answer that acknowledges


class Outcome(Enum):
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"  # refused, timed out, or the connection broke: it may have been carried out, or be later


@dataclass(slots=True)
class Change:
    """value: of the setting; None for a new topic. at_s: the wall clock when the outcome was noted."""

    topic: str
    value: int | None
    outcome: Outcome = Outcome.UNKNOWN
    at_s: float = 0.0


@dataclass(slots=True)
class Ledger:
    changes: list[Change] = field(default_factory=list)
    acknowledged: int = 0

    def add(self, change: Change) -> None:
        self.changes.append(change)

    def settle(self, change: Change, outcome: Outcome) -> None:
        change.outcome, change.at_s = outcome, time.time()
        self.acknowledged += outcome is Outcome.ACKNOWLEDGED


class Clients:
    """`writers` change the setting of a topic each; one more makes new topics. Brokers are asked in turn after errors.

    Everything runs on the caller's loop.
    """

    def __init__(self, addresses: Sequence[Address], writers: int, ledger: Ledger) -> None:
        self._addresses, self._ledger = tuple(addresses), ledger
        self.topics = tuple(f"key-{number}" for number in range(writers))
        self._connections: list[Connection] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def make_topics(self) -> None:
        """The topics whose settings are changed, before the first fault. Raises TimeoutError.

        Each is asked for until it is there: on a busy machine a call times out, or another leader is elected, without
        any fault.
        """
        async with asyncio.timeout(MAKING_S):
            for topic in self.topics:
                number = 0
                while not await self._made(self._connect(number), topic):
                    number += 1
                    await asyncio.sleep(PAUSE_S)

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        for number, topic in enumerate(self.topics):
            self._tasks.append(loop.create_task(self._write(number, topic)))
        self._tasks.append(loop.create_task(self._create(len(self.topics))))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._connections:
            await connection.close()

    async def _write(self, number: int, topic: str) -> None:
        connection, value = self._connect(number), FIRST_VALUE
        while True:
            value += 1
            if not await self._send(connection, Change(topic, value)):
                number += 1
                connection = self._connect(number)
                await asyncio.sleep(PAUSE_S)

    async def _create(self, number: int) -> None:
        connection, made = self._connect(number), 0
        while True:
            made += 1
            if not await self._send(connection, Change(f"new-{made}", None)):
                number += 1
                connection = self._connect(number)
            await asyncio.sleep(0.1)

    def _connect(self, number: int) -> Connection:
        address = self._addresses[number % len(self._addresses)]
        connection = make_transport("grpc").connect(address, internal=False, client_id="controller-loop")
        self._connections.append(connection)
        return connection

    async def _made(self, connection: Connection, topic: str) -> bool:
        """A call whose outcome is unknown may have made it."""
        codes = await self._codes(connection, Change(topic, None))
        return codes == DONE or ErrorCode.TOPIC_ALREADY_EXISTS in codes

    async def _send(self, connection: Connection, change: Change) -> bool:
        """Whether it was acknowledged."""
        return await self._codes(connection, change) == DONE

    async def _codes(self, connection: Connection, change: Change) -> frozenset[int]:
        """Of the answer, which is noted; none if it is unknown whether the change was carried out."""
        self._ledger.add(change)
        request = _new_topic(change.topic) if change.value is None else _setting(change.topic, change.value)
        try:
            response = await connection.call(request, CALL_TIMEOUT_MS)
        except RpcError:
            self._ledger.settle(change, Outcome.UNKNOWN)
            return frozenset()
        results = response.topics if change.value is None else response.results
        codes = frozenset([response.error_code, *(result.error_code for result in results)] if results else [])
        self._ledger.settle(change, Outcome.ACKNOWLEDGED if codes == DONE else Outcome.UNKNOWN)
        return codes


def _new_topic(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_TIMEOUT_MS)


def _setting(topic: str, value: int) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=KEY, operation=SET, value=str(value))
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))
