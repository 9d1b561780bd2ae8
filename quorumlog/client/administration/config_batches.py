"""Changes of settings that wait are sent together: many callers, few requests.

A change is sent at once while fewer than MAX_REQUESTS are under way. The others wait, and the next request takes them
along, as many as fit. Changes of one resource are carried out in the order of the calls: a change waits while an
earlier one of its resource is under way. Each caller gets the outcome of its own resource. No change waits for a timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from quorumlog.messages.admin import (
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

MAX_REQUESTS = 2  # at a time: one is being carried out while the other one is on its way
MAX_RESOURCES = 128  # in one request: what a controller carries out in one slice
MAX_BYTES = 1 << 20  # of names and values in one request; a single larger change is sent alone

Send = Callable[[IncrementalAlterConfigsRequest], Awaitable[IncrementalAlterConfigsResponse]]
Resource = tuple[int, str]


class _Waiting(NamedTuple):
    change: AlterConfigsResource
    size: int  # bytes
    outcome: asyncio.Future[AlterConfigsResult]

    @property
    def resource(self) -> Resource:
        return self.change.resource_type, self.change.resource_name


class ConfigBatches:
    """send: carries a request out, with all its retries. It may raise; every caller of that request gets the error."""

    def __init__(self, send: Send) -> None:
        self.requests = 0  # sent so far
        self._send = send
        self._waiting: deque[_Waiting] = deque()
        self._under_way: set[Resource] = set()
        self._open = 0  # requests under way
        self._tasks: set[asyncio.Task[None]] = set()  # so that they are not collected
        self._scheduled = False

    async def alter(self, change: AlterConfigsResource) -> AlterConfigsResult:
        """The resource's outcome, which may be an error. Raises what `send` raises. If the caller is cancelled, the
        change is not sent any more, or its outcome is not known."""
        outcome: asyncio.Future[AlterConfigsResult] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(change, _size_of(change), outcome))
        self._schedule()
        return await outcome

    def _schedule(self) -> None:
        """Send in the loop's next turn, so that all changes of this one go together."""
        if not self._scheduled and self._waiting and self._open < MAX_REQUESTS:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send_next)

    def _send_next(self) -> None:
        self._scheduled = False
        batch = self._take()
        if batch:
            self.requests += 1
            self._open += 1
            self._under_way.update(one.resource for one in batch)
            task = asyncio.get_running_loop().create_task(self._carry_out(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._schedule()  # what is left of them goes with another request

    def _take(self) -> list[_Waiting]:
        """In the order of the calls, one of each resource."""
        batch: list[_Waiting] = []
        kept: deque[_Waiting] = deque()
        blocked, size = set(self._under_way), 0
        while self._waiting and len(batch) < MAX_RESOURCES:
            one = self._waiting.popleft()
            if one.outcome.done():
                continue  # its caller was cancelled
            if one.resource in blocked:
                kept.append(one)
                continue
            if batch and size + one.size > MAX_BYTES:
                self._waiting.appendleft(one)
                break
            blocked.add(one.resource)
            batch.append(one)
            size += one.size
        self._waiting.extendleft(reversed(kept))
        return batch

    async def _carry_out(self, batch: list[_Waiting]) -> None:
        try:
            response = await self._send(IncrementalAlterConfigsRequest(resources=tuple(one.change for one in batch)))
            assert len(response.results) == len(batch), f"{len(response.results)} results of {len(batch)} changes"
            for one, result in zip(batch, response.results, strict=True):
                if not one.outcome.done():
                    one.outcome.set_result(result)
        except BaseException as error:
            is_ours = isinstance(error, Exception)  # or this task was cancelled with its loop
            for one in batch:
                if not one.outcome.done():
                    one.outcome.set_exception(error) if is_ours else one.outcome.cancel()
            if not is_ours:
                raise
        finally:
            self._open -= 1
            self._under_way.difference_update(one.resource for one in batch)
            self._schedule()


def _size_of(change: AlterConfigsResource) -> int:
    return len(change.resource_name) + sum(len(one.name) + len(one.value or "") for one in change.configs)
