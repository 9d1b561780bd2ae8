"""A scrape of a node with very many partitions: how long it takes, and for how long the node's loop stands still.

The node runs in this process, with real files and no client. Beside it a task takes a turn of the loop again and again,
and notes the longest time between two of its turns: a stall, by the wall clock, the waits for the interpreter with it.
Each scrape is built anew, not taken from the second before. Rows of the same node without scrapes stand beside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from bench.console.one_node import READY_LIMIT_S, longest_stall_ms, on_one_node
from bench.measuring.report import Row
from quorumlog.client import real_edges as edge
from quorumlog_server.metrics.reading import Pace
from quorumlog_server.metrics.scrapes import KEPT_S, Scrapes
from quorumlog_server.process.freezing import freeze_survivors
from quorumlog_server.process.node import Node
from quorumlog_server.process.watchdog import LoopWatchdog

PARTITIONS, QUICK_PARTITIONS = 10_000, 1_000
PER_TOPIC = 100
SCRAPE_GOAL_S, STALL_GOAL_MS = 0.1, 10.0
SCRAPES = 10  # of a round
CALL_TIMEOUT_MS = 300_000


def measure(folder: Path, partitions: int, rounds: int) -> list[Row]:
    """In `folder`, which must not exist."""

    async def rows(node: Node) -> list[Row]:
        await _fill(node, partitions)
        freeze_survivors()  # as a node's process does while it opens its logs
        return [row for detail in ("low", "high") for row in await _rows_of(node, detail, partitions, rounds)]

    return on_one_node(folder, rows)


async def _rows_of(node: Node, detail: str, partitions: int, rounds: int) -> list[Row]:
    object.__setattr__(node.config.process, "metrics_detail", detail)
    taken, stalls, rests, worked = [], [], [], list[float]()
    scrapes = Scrapes(node, LoopWatchdog(lambda _ms: None), _each_time_later(), lambda: _TimedPace(worked))
    worked.append(0.0)
    await scrapes.page()  # of the first one, what it loads is not counted
    for _ in range(rounds):
        worked.append(0.0)
        began_s = time.perf_counter()
        stalls.append(await longest_stall_ms(lambda: _scrape(scrapes)))
        taken.append((time.perf_counter() - began_s) / SCRAPES)
        rests.append(await longest_stall_ms(lambda: asyncio.sleep(1)))
    size = len((await scrapes.page()).body)
    name = f"{partitions:,} partitions, metrics.detail={detail}"
    return [
        Row(
            name=f"a scrape of {name} ({size // 1000:,} kB)", unit="s", rounds=taken, goal=SCRAPE_GOAL_S, at_least=False
        ),
        Row(
            name="the longest work of its thread before it gives way",
            unit="ms",
            rounds=[one * 1000 for one in worked[1:]],
            goal=STALL_GOAL_MS,
            at_least=False,
        ),
        Row(name="the longest stall of the loop in it", unit="ms", rounds=stalls, goal=STALL_GOAL_MS, at_least=False),
        Row(name="the same without scrapes", unit="ms", rounds=rests),
    ]


class _TimedPace(Pace):
    """Notes the longest work between two pauses, in the last of `worked`: processor time, whatever else runs here."""

    def __init__(self, worked: list[float]) -> None:
        super().__init__()
        began_s = time.thread_time()

        def sleep(seconds: float) -> None:
            nonlocal began_s
            worked[-1] = max(worked[-1], time.thread_time() - began_s)
            time.sleep(seconds)
            began_s = time.thread_time()

        self.sleep = sleep


def _each_time_later() -> Callable[[], float]:
    """A clock by which no page is young enough to be shown again."""
    now_s = 0.0

    def later() -> float:
        nonlocal now_s
        now_s += KEPT_S
        return now_s

    return later


async def _scrape(scrapes: Scrapes) -> None:
    for _ in range(SCRAPES):
        await scrapes.page()


async def _fill(node: Node, partitions: int) -> None:
    """Topics, and wait until the node leads all their partitions."""
    address = str(node.addresses["CLIENT"])
    async with edge.admin({"bootstrap.servers": address}, request_timeout_ms=CALL_TIMEOUT_MS) as admin:
        for number in range(partitions // PER_TOPIC):
            await admin.create_topic(f"topic-{number}", PER_TOPIC, 1)
    assert node.broker is not None
    registry = node.broker.data_plane.registry
    async with asyncio.timeout(READY_LIMIT_S):
        while registry.leader_count() < partitions:  # noqa: ASYNC110 - leaderships have no event for us
            await asyncio.sleep(0.2)
