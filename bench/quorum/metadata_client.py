"""The client that loads us: `python -m bench.quorum.metadata_client BOOTSTRAP_SERVERS` (loader.py says how it is told).

One `AsyncAdmin` for all clients of a round, as programs share one. Each client changes a setting of a topic of its own
to a new value of 200 bytes and waits for the answer before its next change. The admin client puts the changes that
wait into one request (quorumlog/client/administration/config_batches.py).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from itertools import count

from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin, NewTopic
from quorumlog.errors import ErrorCode

VALUE_BYTES = 200
SETTING = "retention.ms"  # a number, which may have any number of leading zeros
FIRST_VALUE = 604_800_000
MAX_CLIENTS = 256


def topic_of(client: int) -> str:
    return f"bench-settings-{client:03d}"


async def create_topics(admin: AsyncAdmin) -> None:
    topics = [NewTopic(name=topic_of(client), partitions=1, replication=3) for client in range(MAX_CLIENTS)]
    for result in await admin.create_topics(topics):
        assert result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), result


class Load:
    def __init__(self, admin: AsyncAdmin) -> None:
        self._admin = admin
        self._values = count(FIRST_VALUE)

    async def run(self, clients: int, seconds: float) -> dict[str, float]:
        latencies: list[float] = []
        before, start_s = self._admin.settings_requests, time.perf_counter()
        end_s = start_s + seconds
        await asyncio.gather(*(self._client(topic_of(client), end_s, latencies) for client in range(clients)))
        took_s = time.perf_counter() - start_s
        latencies.sort()
        return {
            "changes": len(latencies),
            "seconds": took_s,
            "p50_ms": 1_000 * latencies[len(latencies) // 2],
            "p99_ms": 1_000 * latencies[int(0.99 * (len(latencies) - 1))],
            "requests": self._admin.settings_requests - before,
        }

    async def _client(self, topic: str, end_s: float, latencies: list[float]) -> None:
        while (sent_s := time.perf_counter()) < end_s:
            value = f"{next(self._values):0{VALUE_BYTES}d}"
            await self._admin.alter_configs(topic, {SETTING: value})
            latencies.append(time.perf_counter() - sent_s)


async def serve(bootstrap_servers: str) -> None:
    loop = asyncio.get_running_loop()
    async with edge.admin({"bootstrap.servers": bootstrap_servers}) as admin:
        await create_topics(admin)
        load = Load(admin)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            clients, seconds = line.split()
            print(json.dumps(await load.run(int(clients), float(seconds))), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
