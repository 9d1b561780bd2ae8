"""A client that commits small changes of the metadata, one after the other, and notes when each was acknowledged."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.rpc.transport import Connection, RpcError

TOPIC_RESOURCE, SET = 2, 0
RETRY_S = 0.002
CALL_TIMEOUT_MS = 10_000


class ControllerLoad:
    """acks: `time.perf_counter` at each acknowledgement. `start`, then `stop`.

    One request is under way at a time. Each is sent once; after an error the next one follows.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        """connection: to a broker that lives on during the measurement."""
        self.acks: list[float] = []
        self._connection, self._topic = connection, topic
        self._task: asyncio.Task[None] | None = None
        self._wanted, self._reached = 0, asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def acknowledged(self, count: int, timeout_s: float = 30.0) -> None:
        """Wait for so many more acknowledgements. Raises TimeoutError."""
        self._wanted, self._reached = len(self.acks) + count, asyncio.Event()
        async with asyncio.timeout(timeout_s):
            await self._reached.wait()

    def longest_gap_s(self, since: float) -> float:
        """Between two acknowledgements in a row, of which the later one came after `since`."""
        pairs = zip(self.acks, self.acks[1:], strict=False)
        return max(later - earlier for earlier, later in pairs if later > since)

    async def _run(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                response = await self._connection.call(self._change(number), CALL_TIMEOUT_MS)
            except RpcError:
                await asyncio.sleep(RETRY_S)
                continue
            if response.error_code == 0 and all(result.error_code == 0 for result in response.results):
                self.acks.append(time.perf_counter())
                if len(self.acks) == self._wanted:
                    self._reached.set()
            else:
                await asyncio.sleep(RETRY_S)

    def _change(self, number: int) -> IncrementalAlterConfigsRequest:
        config = AlterableConfig(name="retention.ms", operation=SET, value=str(10_000_000 + number))
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=self._topic, configs=(config,))
        return IncrementalAlterConfigsRequest(resources=(resource,))
