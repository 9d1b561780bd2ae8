"""Groups beside Kafka: commits, joins, and what a client waits for when the coordinator dies.

Members and committers are raw sockets (`bench/raw/client.py`), the same for both clusters. Internal topics have one
partition, so that one broker coordinates all groups of a cluster: it is its turn that is measured, not the spread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from bench.kafka.clients import create_topic, make_admin
from bench.kafka.lives import start_peer
from bench.kafka.table import Samples, figure_beside, or_why, ratios
from bench.measuring.report import Row
from bench.peers.kafka_peer import KafkaPeer
from bench.peers.peer import Peer
from bench.raw.client import TOPIC, TOPIC_PARTITIONS, Connection, accepted, committer, to_coordinator, until
from bench.raw.consumer_member import ConsumerGroup
from bench.raw.member import HEARTBEAT_S, SESSION_MS, Group
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetFetchGroup, OffsetFetchRequest
from quorumlog.topic_name import CONSUMER_OFFSETS

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


SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.session.timeout.ms": SESSION_MS,  # as members of the classic protocol ask for
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": int(HEARTBEAT_S * 1_000),
    "group.consumer.min.heartbeat.interval.ms": int(HEARTBEAT_S * 1_000),
    "group.consumer.max.size": 1_000,
}
CLASSIC, CONSUMER = "classic", "consumer"  # protocols of groups
FLUSH = "flush.messages"
GROUPS, PARTITIONS = (1, 16, 64), (1, 100)
LATENCY_RATE, LATENCY_GROUPS = 500, 16


def commits(groups: int, partitions: int) -> str:
    """The name of a figure."""
    return f"commits {groups} groups {partitions} partitions"


def flushed(figure: str) -> str:
    """The name of the figure with flush.messages=1 on the internal topic."""
    return f"{figure} flushed"


def joins(members: int, protocol: str = CLASSIC) -> str:
    """The name of a figure."""
    return f"join {members} {protocol}"


def deaths(members: int, protocol: str) -> str:
    """The name of a figure."""
    return f"death {members} {protocol}"


def measure(
    peers: Sequence[tuple[Callable[[], Peer], Samples]], rounds: int, seconds: float, members: Sequence[int]
) -> None:
    """Both clusters are up; rounds alternate between them. members: how many join."""
    running: list[tuple[Peer, Samples]] = []
    try:
        for make, figures in peers:
            peer = make()
            running.append((peer, figures))
            start_peer(peer)
            create_topic(make_admin(peer.bootstrap_servers), TOPIC, TOPIC_PARTITIONS)
        for turn in range(rounds + 1):
            for peer, figures in running:
                found = figures if turn else Samples("warm-up")
                print(f"{peer.name}: groups, round {turn} of {rounds}", flush=True)
                _round(peer, seconds, members, found, turn)
        for peer, figures in running:
            print(f"{peer.name}: groups, one of {max(members)} dies; the coordinator dies", flush=True)
            for protocol in (CLASSIC, CONSUMER):
                name, made = deaths(max(members), protocol), f"dying-{protocol}"
                figures.attempt([name], partial(_death, peer, made, max(members), protocol, figures))
            figures.attempt([FAILOVER], partial(failover, peer, figures))
    finally:
        for peer, _ in running:
            peer.close()


def _round(peer: Peer, seconds: float, members: Sequence[int], figures: Samples, turn: int) -> None:
    servers = peer.bootstrap_servers
    for groups in GROUPS:
        for partitions in PARTITIONS:
            name = commits(groups, partitions)
            figures.attempt([name], partial(_rate, servers, groups, partitions, seconds, figures))
    figures.attempt(["commit p50", "commit p99"], partial(_latency, servers, seconds, figures))
    if isinstance(peer, KafkaPeer):  # ours syncs always
        names = [flushed(commits(groups, partitions)) for groups in GROUPS for partitions in PARTITIONS]
        figures.attempt(names, partial(_flushed_rates, servers, seconds, figures))
    for number in members:
        for protocol in (CLASSIC, CONSUMER):
            group_id = f"joined-{turn}-{number}-{protocol}"
            name = joins(number, protocol)
            figures.attempt([name], partial(_join, servers, group_id, number, protocol, figures))


def _rate(servers: str, groups: int, partitions: int, seconds: float, figures: Samples) -> None:
    figures.add(commits(groups, partitions), asyncio.run(_rate_of(servers, groups, partitions, seconds)))


async def _rate_of(servers: str, groups: int, partitions: int, seconds: float) -> float:
    """Commits per second of all groups together, one at a time from each."""
    committers = [await committer(servers, f"group-{number}", partitions) for number in range(groups)]
    begun = time.perf_counter()
    done = await asyncio.gather(*(_again(*one, begun + seconds) for one in committers))
    return sum(done) / (time.perf_counter() - begun)


async def _again(connection: Connection, frame: bytes, good: bytes, end: float) -> int:
    done = 0
    while time.perf_counter() < end:
        assert await connection.exchange(frame) == good, "a commit was refused"
        done += 1
    connection.close()
    return done


def _latency(servers: str, seconds: float, figures: Samples) -> None:
    found = sorted(asyncio.run(_latencies(servers, seconds)))
    figures.add("commit p50", found[len(found) // 2] * 1_000)
    figures.add("commit p99", found[len(found) * 99 // 100] * 1_000)


async def _latencies(servers: str, seconds: float) -> list[float]:
    """Seconds from when each commit was due, at a fixed rate whether or not earlier ones are answered."""
    committers = [await committer(servers, f"group-{number}", 1) for number in range(LATENCY_GROUPS)]
    locks = [asyncio.Lock() for _ in committers]  # one request at a time on a connection
    found: list[float] = []

    async def one(number: int, due: float) -> None:
        connection, frame, good = committers[number % LATENCY_GROUPS]
        async with locks[number % LATENCY_GROUPS]:
            assert await connection.exchange(frame) == good, "a commit was refused"
        found.append(time.perf_counter() - due)

    begun, tasks = time.perf_counter(), []
    for number in range(int(LATENCY_RATE * seconds)):
        due = begun + number / LATENCY_RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    for connection, _, _ in committers:
        connection.close()
    return found


def _flushed_rates(servers: str, seconds: float, figures: Samples) -> None:
    _set_flush(servers, "1")
    try:
        for groups in GROUPS:
            for partitions in PARTITIONS:
                found = asyncio.run(_rate_of(servers, groups, partitions, seconds))
                figures.add(flushed(commits(groups, partitions)), found)
    finally:
        _set_flush(servers, None)


def _set_flush(servers: str, value: str | None) -> None:
    """Of the internal topic; None: as it is by default."""
    from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
    from confluent_kafka.admin._resource import ResourceType

    how = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(FLUSH, value, incremental_operation=how)
    resource = ConfigResource(ResourceType.TOPIC, CONSUMER_OFFSETS, incremental_configs=[entry])
    admin = make_admin(servers)  # it has to live until it is answered
    admin.incremental_alter_configs([resource])[resource].result()


def _join(servers: str, group_id: str, members: int, protocol: str, figures: Samples) -> None:
    figures.add(joins(members, protocol), asyncio.run(_joined(servers, group_id, members, protocol)))


async def _group(servers: str, group_id: str, members: int, protocol: str) -> Group | ConsumerGroup:
    if protocol == CLASSIC:
        return await Group.connected(servers, group_id, members)
    return await ConsumerGroup.connected(servers, group_id, members, TOPIC_PARTITIONS)


async def _joined(servers: str, group_id: str, members: int, protocol: str) -> float:
    """Seconds from the first call until all are stable in one generation or epoch."""
    group = await _group(servers, group_id, members, protocol)
    begun = time.perf_counter()
    await group.join()
    seconds = time.perf_counter() - begun
    await group.end()
    return seconds


def _death(peer: Peer, group_id: str, members: int, protocol: str, figures: Samples) -> None:
    figures.add(deaths(members, protocol), asyncio.run(_lost(peer.bootstrap_servers, group_id, members, protocol)))


async def _lost(servers: str, group_id: str, members: int, protocol: str) -> float:
    group = await _group(servers, group_id, members, protocol)
    await group.join()
    seconds = await group.lose_one()
    await group.end()
    return seconds


COMMITS_GOAL = {1: 0.5, 100: 1.0}  # by partitions a call
FLUSHED_GOAL = 1.0
FAILOVER_GOAL, LATENCY_GOAL, P99_GOAL, JOIN_GOAL, DEATH_GOAL, LOAD_GOAL = 0.1, 1.5, 1.0, 1.0, 1.0, 1.0


def group_rows(theirs: Samples, ours: Samples) -> list[Row]:
    rows = [
        row
        for groups in GROUPS
        for partitions in PARTITIONS
        for row in figure_beside(
            f"commits, {groups} groups, {partitions} partitions a call", "1/s", commits(groups, partitions),
            COMMITS_GOAL[partitions], theirs, ours, at_least=True,
        )
    ]  # fmt: skip
    for groups in GROUPS:
        for partitions in PARTITIONS:
            name = f"commits, {groups} groups, {partitions} partitions a call, beside {FLUSH}=1"
            rows += _beside_flushed(name, commits(groups, partitions), theirs, ours)
    rows += figure_beside("commit at 500/s, p50", "ms", "commit p50", LATENCY_GOAL, theirs, ours)
    rows += figure_beside("commit at 500/s, p99", "ms", "commit p99", P99_GOAL, theirs, ours)
    for figure in theirs.starting_with("join "):
        _, members, protocol = figure.split()
        name = f"{members} members join until all are stable, {protocol}"
        rows += figure_beside(name, "s", figure, JOIN_GOAL, theirs, ours)
    for figure in theirs.starting_with("death "):
        _, members, protocol = figure.split()
        name = f"one of {members} dies until all is owned again, {protocol}"
        rows += figure_beside(name, "s", figure, DEATH_GOAL, theirs, ours)
    rows += figure_beside(
        "kill -9 of the coordinator to next accepted commit", "s", FAILOVER, FAILOVER_GOAL, theirs, ours
    )
    rows += figure_beside("kill -9 of the coordinator until a large log is loaded", "s", LOAD, LOAD_GOAL, theirs, ours)
    return rows


def _beside_flushed(name: str, figure: str, theirs: Samples, ours: Samples) -> list[Row]:
    """Ours as it is, beside Kafka's once each commit of it is on disk, too."""

    def make() -> list[Row]:
        found, own = theirs[flushed(figure)], ours[figure]
        shares = ratios(found, own)
        return [
            Row(name=f"Kafka: {name}", unit="1/s", rounds=found),
            Row(name=name, unit="1/s", rounds=own, shares=shares, of="Kafka's", goal=FLUSHED_GOAL),
        ]

    return or_why(name, make)
