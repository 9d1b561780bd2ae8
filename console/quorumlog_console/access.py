"""What a page may see: a client of the cluster that acts as one principal, and the watch that it keeps.

Everybody who is logged in as the same user shares one access. Without a login there is one, and it acts as nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.client.real_edges import SystemClock, consumer
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.watch.past import Past
from quorumlog.watch.reading import Reader
from quorumlog.watch.sample import Sample
from quorumlog_console.judgement import Judge

_log = logging.getLogger("quorumlog.console")
NOBODY = "ANONYMOUS"


class Access:
    """client: options of a client that acts as `principal`. Make and use it on one loop."""

    def __init__(self, principal: str, client: Mapping[str, Any], *, look_every_ms: int) -> None:
        self.principal, self.users = principal, 0
        self._client, self._look_every_ms = dict(client), look_every_ms
        self.admin = AsyncAdmin(self._client)
        self._clock = SystemClock()
        self.past = Past()
        self.trouble = ""  # why the last look saw nothing; empty: it did
        self.is_refused = False  # the cluster does not know this principal any more
        self._looked = asyncio.Event()
        self._nursery = Nursery(lambda name, error: _log.error("%s failed", name, exc_info=error))
        self.judge = Judge(self.admin, self._nursery)

    def is_of(self, client: Mapping[str, Any]) -> bool:
        return self._client == dict(client)

    def consumer(self, **options: Any) -> Any:
        """An AsyncConsumer that acts as the principal. Who makes it closes it."""
        return consumer(self._client, **options)

    def start(self) -> None:
        """Watch the cluster from now on."""
        self._nursery.start(self._watch(), f"watch of {self.principal}")

    async def close(self) -> None:
        self.judge.close()
        await self._nursery.close()
        await self.admin.close()

    def age_ms(self) -> int:
        """Since the newest look; 0 while there is none. By the clock that says more: one of them may have been set."""
        newest = self.past.newest
        if newest is None:
            return 0
        return max(0, self._clock.now_ms() - newest.at_ms, self._clock.wall_ms() - newest.wall_ms)

    async def sample(self, wait_ms: int) -> Sample | None:
        """The newest one; the first is waited for. None: there is none yet."""
        if self.past.newest is None:
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._looked.wait()
            except TimeoutError:
                pass
        return self.past.newest

    async def _watch(self) -> None:
        reader = Reader(self.admin, self._clock)
        while True:
            try:
                sample = await reader.look()
            except AuthenticationFailed as error:
                self.trouble, self.is_refused = str(error), True
            except (QuorumlogError, RpcError) as error:
                self.trouble = str(error)
            else:
                if sample.cluster_id:
                    self.past.add(sample)
                    self.trouble = ""
                else:
                    self.trouble = next(iter(sample.missing.values()), "no broker answers")
            self._looked.set()
            await asyncio.sleep(self._look_every_ms / 1000)
