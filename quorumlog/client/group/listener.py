"""What an application wants to hear of a rebalance. Each may be a coroutine function; partitions come in order.

Coroutines of the asynchronous consumer (`seek`, `position`, `commit`) need a callback that is one, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from quorumlog.ids import TopicPartition

Callback = Callable[[list[TopicPartition]], Awaitable[None] | None]


class Listener(NamedTuple):
    """on_assigned: it reads these, too, from now on; it may seek. on_revoked: it stops reading these, and may commit.

    on_lost: others may read these already, so nothing can be committed; without it, on_revoked is called.
    """

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    async def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        await _call(self.on_assigned, partitions)

    async def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        await _call(self.on_revoked, partitions)

    async def lost(self, partitions: Iterable[TopicPartition]) -> None:
        await _call(self.on_lost or self.on_revoked, partitions)


async def _call(callback: Callback | None, partitions: Iterable[TopicPartition]) -> None:
    if callback is not None:
        waiting = callback(sorted(partitions))
        if waiting is not None:
            await waiting
