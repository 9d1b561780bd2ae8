"""A node that is away for a while: it is killed, shut down or stands still, and then it is ready again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quorumlog.ids import NodeId
from quorumlog.testing.nodes import LocalNodes

KILLED, PAUSED, SHUT_DOWN = "kill -9", "SIGSTOP", "SIGTERM"


@asynccontextmanager
async def away(nodes: LocalNodes, node_id: NodeId, kind: str) -> AsyncIterator[None]:
    """kind: KILLED, PAUSED or SHUT_DOWN. Raises TimedOut if it does not come back."""
    if kind == PAUSED:
        nodes.pause(node_id)
    elif kind == KILLED:
        await asyncio.to_thread(nodes.kill, node_id)
    else:
        await asyncio.to_thread(nodes.stop, [node_id])
    try:
        yield
    finally:
        if kind == PAUSED:
            nodes.resume(node_id)
        else:
            nodes.start([node_id])
    await asyncio.to_thread(nodes.wait_ready)
