"""A client of Kafka's wire with as little of its own as possible: one socket, one request at a time.

A request that is sent again and again is encoded once, and its answer compared with the first one, so that a rate is
the cluster's and not the client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import WireRequest, decode_response, encode_request

RETRY_S = 0.02
CORRELATION = 7
LENGTH_BYTES = 4


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, host: str, port: int) -> Connection:
        return cls(*await asyncio.open_connection(host, port))

    async def ask(self, request: Any, version: int) -> Any:
        """The response. Raises OSError, asyncio.IncompleteReadError if the connection ends."""
        asked = prepared(request, version)
        return decode_response(asked[0], memoryview(await self.exchange(asked[1])))

    async def exchange(self, frame: bytes) -> bytes:
        """The bytes of the answer, without their length."""
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big")
        return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


def prepared(request: Any, version: int) -> tuple[WireRequest, bytes]:
    """What its response is read by, and its frame."""
    api = BY_REQUEST[type(request)]
    header = RequestHeader(api.key, version, CORRELATION, "bench")
    return WireRequest(api, header, request), b"".join(map(bytes, encode_request(api, header, request)))


async def to_coordinator(servers: str, group_id: str) -> Connection:
    """A connection to the group's coordinator, asked for until one is there. Any broker may be down."""
    request = FindCoordinatorRequest(keys=(group_id,))
    while True:
        for server in servers.split(","):
            host, port = server.rsplit(":", 1)
            try:
                connection = await Connection.open(host, int(port))
                found = (await connection.ask(request, 4)).coordinators[0]
                connection.close()
                if found.error_code == ErrorCode.NONE:
                    return await Connection.open(found.host, found.port)
            except (OSError, asyncio.IncompleteReadError):
                continue
        await asyncio.sleep(RETRY_S)


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again. A connection that ends is an answer of no."""
    while True:
        try:
            if await done():
                return
        except (OSError, asyncio.IncompleteReadError):
            pass
        await asyncio.sleep(RETRY_S)


TOPIC, TOPIC_PARTITIONS = "committed", 1_000
COMMIT_VERSION = 8


def commit(group_id: str, partitions: int) -> OffsetCommitRequest:
    """Of a client that is no member."""
    rows = tuple(
        OffsetCommitPartition(index=index, committed_offset=7, committed_metadata="") for index in range(partitions)
    )
    topics = (OffsetCommitTopic(name=TOPIC, partitions=rows),)
    return OffsetCommitRequest(group_id=group_id, generation_id=-1, member_id="", topics=topics)


async def committer(servers: str, group_id: str, partitions: int) -> tuple[Connection, bytes, bytes]:
    """A connection that has committed once, the frame, and the answer to it."""
    connection, (_, frame) = (
        await to_coordinator(servers, group_id),
        prepared(commit(group_id, partitions), COMMIT_VERSION),
    )
    await until(lambda: accepted(connection, group_id, partitions))
    return connection, frame, await connection.exchange(frame)


async def accepted(connection: Connection, group_id: str, partitions: int = 1) -> bool:
    response = await connection.ask(commit(group_id, partitions), COMMIT_VERSION)
    return all(one.error_code == 0 for topic in response.topics for one in topic.partitions)
