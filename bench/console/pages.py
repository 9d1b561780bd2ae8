"""The console on a node's own listener, with many topics: how long its pages take, and the node's loop beside them.

The node runs in this process, with real files; the console has its thread and loop, as `console.listener` gives them.
Beside both a task takes a turn of the node's loop again and again, and notes the longest time between two of its turns:
a stall, by the wall clock, the waits for the interpreter with it. The same without pages stands beside.
"""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

from bench.console.one_node import longest_stall_ms, on_one_node
from bench.measuring.report import Row
from quorumlog.client.admin import NewTopic
from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog_console.options import ConsoleOptions, Login
from quorumlog_console.serving import ConsoleThread, address_of, listen, url_of
from quorumlog_server.process.node import Node

TOPICS, QUICK_TOPICS = 1_000, 200
PAGE_GOAL_S, STALL_GOAL_MS = 0.1, 10.0
PAGES = (("first page", ""), ("page of topics", "topics"), ("page of a topic", "topics/t-00000"))
LOADS = 10  # of a page, in a round
READY_LIMIT_S = 60


def measure(folder: Path, topics: int, rounds: int) -> list[Row]:
    """In `folder`, which must not exist."""

    async def rows(node: Node) -> list[Row]:
        servers = str(node.addresses["CLIENT"])
        await _fill(servers, topics)
        options = ConsoleOptions(client={"bootstrap_servers": servers}, login=Login.NEVER)
        made = listen("127.0.0.1", 0)
        thread, url = ConsoleThread(options), url_of(address_of(made), options)
        thread.start(made)
        try:
            return await _rows_of(url, topics, rounds)
        finally:
            await asyncio.to_thread(thread.stop)

    return on_one_node(folder, rows)


async def _rows_of(url: str, topics: int, rounds: int) -> list[Row]:
    async with asyncio.timeout(READY_LIMIT_S):
        while not await _is_there(url):  # noqa: ASYNC110 - the console looks first
            await asyncio.sleep(0.1)
    for _, path in PAGES:
        await _load(url + path)  # of the first one, what it loads is not counted
    taken: dict[str, list[float]] = {name: [] for name, _ in PAGES}
    stalls, rests = [], []
    for _ in range(rounds):
        stall_ms = 0.0
        for name, path in PAGES:
            began_s = time.perf_counter()
            stall_ms = max(stall_ms, await longest_stall_ms(partial(_loads, url + path)))
            taken[name].append((time.perf_counter() - began_s) / LOADS)
        stalls.append(stall_ms)
        rests.append(await longest_stall_ms(lambda: asyncio.sleep(1)))
    rows = [
        Row(
            name=f"the {name} of the console, {topics:,} topics",
            unit="s",
            rounds=found,
            goal=PAGE_GOAL_S,
            at_least=False,
        )
        for name, found in taken.items()
    ]
    stall = "the longest stall of the node's loop in them"
    rows.append(Row(name=stall, unit="ms", rounds=stalls, goal=STALL_GOAL_MS, at_least=False))
    return [*rows, Row(name="the same without pages", unit="ms", rounds=rests)]


async def _loads(url: str) -> None:
    for _ in range(LOADS):
        await _load(url)


async def _load(url: str) -> None:
    def get() -> None:
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200 and answer.read(), url

    await asyncio.to_thread(get)


async def _is_there(url: str) -> bool:
    try:
        await _load(url)
    except urllib.error.HTTPError:
        return False
    return True


async def _fill(servers: str, topics: int) -> None:
    async with AsyncAdmin(bootstrap_servers=servers) as admin:
        wanted = [NewTopic(name=f"t-{number:05}", partitions=1, replication=1) for number in range(topics)]
        for first in range(0, topics, 100):
            results = await admin.create_topics(wanted[first : first + 100])
            assert not any(one.error_code for one in results), results
