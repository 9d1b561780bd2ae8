"""A topic, a group and a transactional id of one node, and what a reader of committed records gets."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ListOffsetsRequest
from quorumlog.messages.groups import OffsetFetchGroup, OffsetFetchRequest
from quorumlog.messages.transactions import DescribeTransactionsRequest
from quorumlog.records import iter_batch, iter_headers
from quorumlog.rpc.transport import Connection
from tests.scenarios import asking
from tests.scenarios.one_node import CALL_MS, GRPC, OneNode, make_topic
from tests.scenarios.transaction_client import TransactionClient

KEPT = {"retention.ms": "-1"}  # the records are of 2023
FIRST = 3  # records that `make_topic` has left


class Place:
    """A fresh topic and transactional id for each test."""

    numbers = count()

    def __init__(self, at: OneNode, version: int) -> None:
        self.at, self.version = at, version
        self.connection: Connection = at.connect(GRPC)
        number = next(self.numbers)
        self.topic, self.id, self.group = f"t{number}", f"x{number}", f"g{number}"
        self.topic_id = self.do(make_topic(self.connection, self.topic, **KEPT))

    def do(self, coroutine: Any) -> Any:
        return self.at.do(coroutine)

    def client(self, name: str = "") -> TransactionClient:
        return TransactionClient(self.connection, name or self.id, self.version)

    def call(self, request: Any) -> Any:
        async def ask() -> Any:
            return await self.connection.call(request, CALL_MS)

        return self.do(ask())

    def committed(self) -> list[str]:
        """What a reader of committed records gets, from the start to the last stable offset."""
        wanted = FetchPartition(index=0, fetch_offset=FIRST, max_bytes=1 << 20)
        topics = (FetchTopic(name="", topic_id=self.topic_id, partitions=(wanted,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics, isolation_level=1)
        found = self.call(request).topics[0].partitions[0]
        assert found.error_code == 0
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted_transactions or ())
        values, live = [], set()
        for header in iter_headers(found.records):
            while aborted and aborted[0][0] <= header.last_offset:
                live.add(aborted.pop(0)[1])
            if header.is_control:
                live.discard(header.producer_id)
            elif header.producer_id not in live:
                values += [(one.value or b"").decode() for one in iter_batch(found.records, header)]
        return values

    def stable(self) -> int:
        request = asking.offsets(self.topic)
        asked = ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=request.topics)
        return int(self.call(asked).topics[0].partitions[0].offset)

    def offset(self) -> int:
        found = self.call(OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=self.group),))).groups[0]
        return int(found.topics[0].partitions[0].committed_offset) if found.topics else -1

    def state(self) -> str:
        found = self.call(DescribeTransactionsRequest(transactional_ids=(self.id,))).transactions[0]
        return str(found.state)

    def until_complete(self) -> None:
        async def wait() -> None:
            for _ in range(1_000):
                request = DescribeTransactionsRequest(transactional_ids=(self.id,))
                found = (await self.connection.call(request, CALL_MS)).transactions[0]
                if found.state.startswith("Complete"):
                    return
                await asyncio.sleep(0.02)
            raise AssertionError(found)

        self.do(wait())
