"""What a group waits for when its coordinator is killed: until the next commit, and until a large log is loaded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bench.kafka_clients import create_topic, make_admin
from bench.kafka_lives import start_peer
from bench.kafka_samples import Samples
from bench.peer import Peer
from bench.raw_client import Connection, to_coordinator, until
from bench.raw_commits import TOPIC, TOPIC_PARTITIONS, accepted, committer
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetFetchGroup, OffsetFetchRequest

FAILOVER, LOAD = "group failover", "group load"  # names of figures
FILL_PARTITIONS = TOPIC_PARTITIONS  # of one commit
FETCH_VERSION = 8


def failover(peer: Peer, figures: Samples) -> None:
    """From kill -9 of the coordinator until a commit is accepted. The node is started again."""
    figures.add(FAILOVER, asyncio.run(_failover_of(peer, "group-0")))


async def _failover_of(peer: Peer, group_id: str) -> float:
    servers = peer.bootstrap_servers
    victim = await _coordinator_id(servers, group_id)
    peer.kill(victim)
    begun = time.perf_counter()

    async def is_accepted() -> bool:
        connection = await to_coordinator(servers, group_id)
        try:
            return await accepted(connection, group_id)
        finally:
            connection.close()

    await until(is_accepted)
    seconds = time.perf_counter() - begun
    peer.restart(victim)
    return seconds


async def _coordinator_id(servers: str, group_id: str) -> int:
    host, port = servers.split(",", maxsplit=1)[0].rsplit(":", 1)
    connection = await Connection.open(host, int(port))
    found = (await connection.ask(FindCoordinatorRequest(keys=(group_id,)), 4)).coordinators[0]
    connection.close()
    return int(found.node_id)


def measure_load(make: Callable[[], Peer], records: int, live: int, figures: Samples) -> None:
    """A log of `records` offsets, of which `live` are live: seconds from a kill until they can be read elsewhere."""
    figures.attempt([LOAD], lambda: _load(make, records, live, figures))


def _load(make: Callable[[], Peer], records: int, live: int, figures: Samples) -> None:
    peer = make()
    try:
        start_peer(peer)
        create_topic(make_admin(peer.bootstrap_servers), TOPIC, TOPIC_PARTITIONS)
        asyncio.run(_fill(peer.bootstrap_servers, records, live))
        figures.add(LOAD, asyncio.run(_loaded_after_kill(peer)))
    finally:
        peer.close()


async def _fill(servers: str, records: int, live: int) -> None:
    """Commits of FILL_PARTITIONS each, of as many groups as have `live` offsets together."""
    groups = [f"group-{number}" for number in range(max(1, live // FILL_PARTITIONS))]
    committers = [await committer(servers, group, FILL_PARTITIONS) for group in groups]
    for number in range(records // FILL_PARTITIONS - 2 * len(committers)):  # each has committed twice
        connection, frame, good = committers[number % len(committers)]
        assert await connection.exchange(frame) == good, "a commit was refused"


async def _loaded_after_kill(peer: Peer) -> float:
    servers, group_id = peer.bootstrap_servers, "group-0"
    peer.kill(await _coordinator_id(servers, group_id))
    begun = time.perf_counter()
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group_id),))

    async def read() -> bool:
        connection = await to_coordinator(servers, group_id)
        try:
            found = (await connection.ask(request, FETCH_VERSION)).groups[0]
            return not found.error_code and sum(len(topic.partitions) for topic in found.topics) == FILL_PARTITIONS
        finally:
            connection.close()

    await until(read)
    return time.perf_counter() - begun
