"""Reads the one partition of a consumer in a stream of chunks (FetchChunks), ahead of the reader.

To the fetch loop it is a fetch like any other: a request goes in, its response comes out, and what is wrong with a
position is told and mended there. Here is only how much is asked for ahead: each request is a credit for one chunk, and
there are never more credits and chunks than the reader has room for (`Credits`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import replace

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.chunk_place import NO_END, behind
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchChunkResponse,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
)
from quorumlog.nursery import Nursery
from quorumlog.records import CorruptRecords, last_header
from quorumlog.rpc.transport import RpcError


class Credits:
    """What to ask of one broker, so that its answers are those that the next fetches ask for. Pure.

    Invariant: chunks asked for and not yet taken (`asked`), and those that the reader has not taken from its client
    (`held` of `requests`), are never more than `most`.
    """

    def __init__(self, most: int) -> None:
        assert most > 0
        self.asked = 0
        self._most = most
        self._node_id: NodeId = -1
        self._fetch: FetchRequest | None = None  # what the next answer belongs to; None: the next fetch begins anew
        self._end = NO_END

    def requests(self, node_id: NodeId, fetch: FetchRequest, end: Offset, held: int) -> list[FetchChunkRequest]:
        """To be sent before the next answer is taken. `goes_on` says whether earlier answers are of use."""
        assert held < self._most, "the reader has no room"
        made: list[FetchChunkRequest] = []
        if not self.goes_on(node_id, fetch, end):
            self.asked = 0
            self._node_id, self._fetch, self._end = node_id, fetch, end
            made.append(FetchChunkRequest(fetch=fetch, end_offset=end))
        while self.asked + len(made) + held < self._most:
            made.append(FetchChunkRequest())
        self.asked += len(made)
        return made

    def goes_on(self, node_id: NodeId, fetch: FetchRequest, end: Offset) -> bool:
        """The answers that were asked for are what this fetch wants."""
        return (node_id, fetch, end) == (self._node_id, self._fetch, self._end)

    def taken(self, partition: FetchPartitionResponse | None) -> None:
        """An answer was taken. None: it is not one of the partition."""
        self.asked -= 1
        assert self.asked >= 0 and self._fetch is not None
        if partition is None or partition.error_code or partition.diverging_epoch is not None:
            self._fetch = None
            return
        try:
            last = last_header(partition.records)  # type: ignore[arg-type]  # a received one is in one buffer
        except CorruptRecords:
            self._fetch = None
            return
        self._fetch = behind(self._fetch, last)

    def forget(self) -> None:
        """The next fetch begins anew."""
        self.asked, self._fetch = 0, None


class ChunkStream:
    """most: chunks of `Credits`."""

    def __init__(self, link: Link, nursery: Nursery, most: int) -> None:
        self._link, self._nursery = link, nursery
        self._credits = Credits(most)
        self._answers: deque[asyncio.Future[FetchChunkResponse]] = deque()  # that were asked for, in their order

    async def fetch(
        self, node_id: NodeId, request: FetchRequest, end: Offset | None, held: int, timeout_ms: int
    ) -> FetchResponse:
        """The response to a fetch of one partition. Raises RpcError, QuorumlogError; NotServed: the broker has no such
        call. end: exclusive, of what the reader wants. held: chunks that it has not taken yet."""
        stop = NO_END if end is None else end
        if not self._credits.goes_on(node_id, request, stop):
            self._answers.clear()
        for one in self._credits.requests(node_id, request, stop, held):
            self._ask(node_id, one, timeout_ms * (len(self._answers) + 1))
        awaited = self._answers[0]
        try:
            answer = await asyncio.shield(awaited)
        except BaseException:  # also where this fetch is given up because another broker leads
            if self._is_next(awaited):
                self._forget()
            raise
        if not self._is_next(awaited):
            return _response_of(answer)
        self._answers.popleft()
        return self._taken(answer)

    def _is_next(self, awaited: asyncio.Future[FetchChunkResponse]) -> bool:
        """False: the reader went elsewhere while this fetch waited, and what comes next belongs to another fetch."""
        return bool(self._answers) and self._answers[0] is awaited

    def _taken(self, answer: FetchChunkResponse) -> FetchResponse:
        response = _response_of(answer)
        if response.error_code:
            self._forget()
        else:
            topic = response.topics[0] if response.topics else None
            self._credits.taken(topic.partitions[0] if topic and topic.partitions else None)
        return response

    def _ask(self, node_id: NodeId, request: FetchChunkRequest, timeout_ms: int) -> None:
        answer: asyncio.Future[FetchChunkResponse] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_look_at)
        self._answers.append(answer)
        try:
            call = self._link.call_node(node_id, request, timeout_ms)  # queued now, so the stream keeps their order
        except (RpcError, QuorumlogError) as error:
            answer.set_exception(error)
            return
        self._nursery.start(_answered(call, answer), f"chunk from {node_id}")

    def _forget(self) -> None:
        """Answers that still come are dropped."""
        self._answers.clear()
        self._credits.forget()


def _response_of(answer: FetchChunkResponse) -> FetchResponse:
    response = answer.fetch
    if answer.error_code or response is None:
        code = answer.error_code or int(ErrorCode.UNKNOWN_SERVER_ERROR)
        return FetchResponse(error_code=code, error_message=answer.error_message)
    topic = response.topics[0] if response.topics else None
    if topic is None or not topic.partitions:
        return response
    partition = replace(topic.partitions[0], records=answer.records)
    return replace(response, topics=(replace(topic, partitions=(partition,)),))


async def _answered(call: Awaitable[FetchChunkResponse], answer: asyncio.Future[FetchChunkResponse]) -> None:
    try:
        answer.set_result(await call)
    except (RpcError, QuorumlogError) as error:
        answer.set_exception(error)


def _look_at(answer: asyncio.Future[FetchChunkResponse]) -> None:
    """One that failed may have nobody that still waits."""
    if not answer.cancelled():
        answer.exception()
