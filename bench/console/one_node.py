"""A node of its own in this process, with real files, and how long its loop stands still meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.measuring.report import Row
from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.random_uuid import random_uuid
from quorumlog_server.edge.real_edges import real_edges
from quorumlog_server.process.node import Node, build_node
from quorumlog_storage.edge.disk import RealDisk

READY_LIMIT_S = 300


def on_one_node(folder: Path, measure: Callable[[Node], Awaitable[list[Row]]]) -> list[Row]:
    """The node has its files in `folder`, which must not exist, and is gone afterwards."""

    async def run(internal_port: int) -> list[Row]:
        node = await _started(folder, internal_port)
        try:
            return await measure(node)
        finally:
            await node.stop()

    folder.mkdir(parents=True)
    picker = PortPicker()
    try:
        return asyncio.run(run(picker.pick(1)[0].internal))
    finally:
        picker.close()
        shutil.rmtree(folder)


async def longest_stall_ms(act: Callable[[], Awaitable[None]]) -> float:
    """Of this loop, while `act` is under way: the longest time between two turns of a task that sleeps for half a
    millisecond between them, the sleep with it."""
    longest_s = 0.0

    async def watch() -> None:
        nonlocal longest_s
        before_s = time.perf_counter()
        while True:
            await asyncio.sleep(0.000_5)
            now_s = time.perf_counter()
            longest_s, before_s = max(longest_s, now_s - before_s), now_s

    watching = asyncio.create_task(watch())
    await act()
    watching.cancel()
    return longest_s * 1000


async def _started(folder: Path, internal_port: int) -> Node:
    text = (
        f"node.id=1\nlog.dirs={folder}/a\n"
        f"listeners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{internal_port}\n"
        f"controller.quorum.voters=1@127.0.0.1:{internal_port}\n"
    )
    config = load(str(folder / "server.properties"), text, {})
    format_node(
        config,
        cluster_id="bench",
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )
    node = build_node(config, real_edges(config))
    await node.start()
    async with asyncio.timeout(READY_LIMIT_S):
        while not node.ready:  # noqa: ASYNC110 - readiness has no event
            await asyncio.sleep(0.05)
    return node
