"""Looks at a cluster again and again: samples and events, whatever is lost meanwhile.

The client asks every broker that it knows of, so a broker that comes back is found without a new start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from quorumlog.client.errors import AuthenticationFailed, QuorumlogError, RequestFailed
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import NotServed, RpcError
from quorumlog.watch.reading import Reader
from quorumlog.watch.sample import Part
from quorumlog_cli.top.views import HOUR_MS, Watched

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin

ASK_TIMEOUT_MS = 4_000
EVENTS_A_LOOK = 500  # of each broker
OVERLAP_MS = 10_000  # of two questions for events: clocks differ, and a node may be silent once
MANY_GROUPS_A_LOOK = 100


class Watching:
    """watched: what it has found. told: called after each look."""

    def __init__(
        self, admin: AsyncAdmin, clock: Clock, watched: Watched, told: Callable[[], object] = lambda: None
    ) -> None:
        self.watched = watched
        self._admin, self._clock, self._told = admin, clock, told
        self._reader = Reader(admin, clock, groups_a_look=MANY_GROUPS_A_LOOK)
        self._has_events: bool | None = None  # None: not known yet
        self._asked_events_ms = 0

    async def run(self, every_ms: int) -> None:
        """Until it is cancelled. Raises AuthenticationFailed."""
        while True:
            began_ms = self._clock.now_ms()
            await self.look()
            self._told()
            await asyncio.sleep(max(every_ms - (self._clock.now_ms() - began_ms), every_ms // 4) / 1_000)

    async def look(self) -> None:
        """A look without brokers or topics, which every cluster tells, keeps what is known, and says why.

        Raises AuthenticationFailed.
        """
        sample = await self._reader.look()
        for part in (Part.BROKERS, Part.TOPICS):
            if part in sample.missing:
                self.watched.trouble = sample.missing[part]
                return
        self.watched.add(sample)
        await self._look_at_events(sample.wall_ms)

    async def _look_at_events(self, wall_ms: int) -> None:
        if self._has_events is not False:
            since_ms = max(self._asked_events_ms - OVERLAP_MS, wall_ms - HOUR_MS)
            silent: dict[int, str] = {}
            try:
                found = await self._admin.describe_events(
                    since_ms=max(0, since_ms), limit=EVENTS_A_LOOK, timeout_ms=ASK_TIMEOUT_MS, silent=silent
                )
            except AuthenticationFailed:
                raise
            except (QuorumlogError, RpcError) as error:
                self._has_events = False if _has_none(error) else self._has_events
            else:
                self._has_events = True
                self._asked_events_ms = wall_ms
                for answer in found.values():
                    self.watched.events.add(answer.events)
        if self._has_events is not True:
            self.watched.events.add_changes(self.watched.past.changes)


def _has_none(error: Exception) -> bool:
    """A cluster that has no events, or does not tell them to this client."""
    if isinstance(error, RequestFailed):
        return error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return isinstance(error, NotServed)


def client_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of a client that is to say soon that nobody answers."""
    return {
        "client_id": "quorumlog-top",
        "default_api_timeout_ms": ASK_TIMEOUT_MS,
        "request_timeout_ms": ASK_TIMEOUT_MS,
        **options,
    }
