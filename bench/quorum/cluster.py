"""A large cluster: three real controllers, 3 to 300 brokers that open no logs, 200,000 partitions of three replicas.

For each number of brokers and each shape of topics a cluster is made (cluster_nodes.py), and four things are measured:

- its topics are created by ordinary requests, until the image of every broker's process has all partitions;
- memory: what that adds to each process, for each partition;
- a broker with an empty disk starts, and loads the image: from the snapshot if the log begins behind it;
- one broker is killed, until in the image of every other broker each partition has a leader that lives.

Elections of the quorum are counted throughout (none is allowed), and turns of the loops are held against a goal.
Then come the rows of one change, of heartbeats and of observers: delta_cost.py, observer_cost.py, many_heartbeats.py.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.measuring.report import Row
from bench.nodes.subject import until
from bench.quorum import delta_cost, many_heartbeats, observer_cost
from bench.quorum.cluster_nodes import HOSTS, NEWCOMER, VICTIM, ClusterNodes, Seen, crews_of
from bench.quorum.fencing import CONTROLLERS
from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin, NewTopic
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import CreateTopicResult
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import TimedOut, wait_until

BROKERS, QUICK_BROKERS = (3, 30, 300), (3, 30)
SHAPES = ((10_000, 20), (200, 1_000))  # topics, partitions of each
QUICK_SHAPES = ((500, 20), (10, 1_000))
REPLICAS = 3
OBSERVERS_MOST = 30  # beside the processes: each fetches all of the metadata
PER_REQUEST = 5_000  # partitions; the limit of one request is 10,000
TRIES = 6
START_TIMEOUT_S, CREATE_TIMEOUT_S, KILL_TIMEOUT_S, LOAD_TIMEOUT_S = 120.0, 300.0, 120.0, 180.0
SETTLE_S = 2.0  # turns are told apart by the second
LED_GOAL_S = 10.0
TURN_GOAL_MS = 50.0  # while an image is loaded or a fence applied
SETTINGS = {  # snapshots often enough that a new broker finds one, and a log that begins behind it
    "metadata.log.max.record.bytes.between.snapshots": str(8 << 20),
    "metadata.log.segment.bytes": str(4 << 20),
    "metadata.max.retention.bytes": str(1 << 20),
    "metadata.retention.check.interval.ms": "2000",
}
NODES = (*CONTROLLERS, *HOSTS, VICTIM)
SURVIVORS = (*CONTROLLERS, *HOSTS)
REQUEST_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Between two times of time.monotonic. elections: of the quorum meanwhile."""

    start_s: float
    end_s: float
    elections: int

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(slots=True)
class Found:
    """Of one cluster. leader: of the quorum when the broker was killed. grown_mb: by node, by the creation."""

    leader: NodeId
    spans: dict[str, Span]
    grown_mb: dict[NodeId, float]
    newcomer_mb: float
    from_snapshot: bool
    turns: dict[tuple[NodeId, str], float] = field(default_factory=dict)  # the longest, in ms


def measure(folder: Path, rounds: int, *, quick: bool) -> Iterator[Row]:
    """Rows as they are found; a cluster of the full size takes about a minute."""
    folder.mkdir(parents=True)
    yield from delta_cost.measure(rounds, quick=quick)
    yield from observer_cost.measure(rounds, quick=quick)
    yield from many_heartbeats.measure(folder / "heartbeats", quick=quick)
    for topics, per_topic in QUICK_SHAPES if quick else SHAPES:
        for brokers in QUICK_BROKERS if quick else BROKERS:
            yield Row(
                name=f"{topics:,} topics x {per_topic:,} partitions, {brokers} brokers", unit="", rounds=[],
                note="each row below is of this cluster",
            )  # fmt: skip
            try:
                yield from run(folder / f"{topics}-{brokers}", topics, per_topic, brokers)
            except (RequestFailed, TimeoutError, TimedOut) as error:  # the other clusters are measured nevertheless
                yield Row(name="  this cluster", unit="", rounds=[], failed=f"{type(error).__name__}: {error}")


def run(folder: Path, topics: int, per_topic: int, brokers: int) -> list[Row]:
    """The figures of one cluster in `folder`, which must not exist. brokers: 3 or more, the killed one included."""
    picker = PortPicker()
    nodes = ClusterNodes.make(folder, picker, SETTINGS)
    assert isinstance(nodes, ClusterNodes)
    nodes.crews = crews_of(brokers)
    nodes.following = {host: min(count, OBSERVERS_MOST // len(HOSTS)) for host, count in nodes.crews.items()}
    try:
        nodes.start(NODES)
        nodes.wait_ready(NODES, timeout_s=START_TIMEOUT_S)
        found = asyncio.run(_measure(nodes, topics, per_topic, brokers))
        nodes.stop()
        for name, span in found.spans.items():
            for node_id in SURVIVORS:
                turns = nodes.turns(node_id, span.start_s, span.end_s)
                found.turns[node_id, name] = turns.longest_ms
    finally:
        nodes.stop()
        picker.close()
    shutil.rmtree(folder)
    return _rows(found, topics * per_topic, brokers)


async def _measure(nodes: ClusterNodes, topics: int, per_topic: int, brokers: int) -> Found:
    addresses = [nodes.layout.node(node_id).client_address for node_id in HOSTS]
    config = {"bootstrap.servers": ",".join(addresses)}
    partitions = topics * per_topic
    async with edge.admin(
        config, request_timeout_ms=REQUEST_TIMEOUT_MS, default_api_timeout_ms=REQUEST_TIMEOUT_MS
    ) as admin:
        await until(lambda: _unfenced(admin, brokers), f"{brokers} unfenced brokers", START_TIMEOUT_S)
        await asyncio.sleep(SETTLE_S)
        before_mb = {node_id: nodes.resident_mb(node_id) for node_id in NODES}
        spans: dict[str, Span] = {}

        async def create() -> float:
            await _create(admin, topics, per_topic)
            return await _seen_by(nodes, (*HOSTS, VICTIM), lambda one: one.partitions == partitions, CREATE_TIMEOUT_S)

        spans["creating"] = await _span(admin, create)
        _say(f"created in {spans['creating'].seconds:.1f} s")
        await asyncio.sleep(SETTLE_S)
        grown_mb = {node_id: nodes.resident_mb(node_id) - before_mb[node_id] for node_id in NODES}

        async def load() -> float:
            await asyncio.to_thread(nodes.start, [NEWCOMER])
            return await _seen_by(nodes, (NEWCOMER,), lambda one: one.partitions == partitions, LOAD_TIMEOUT_S)

        spans["loading"] = await _span(admin, load)
        newcomer_mb, from_snapshot = nodes.resident_mb(NEWCOMER), nodes.has_snapshot(NEWCOMER)
        _say(f"a new broker loaded the image in {spans['loading'].seconds:.1f} s")
        await asyncio.to_thread(nodes.stop, [NEWCOMER])
        await asyncio.sleep(SETTLE_S)
        leader = (await admin.describe_quorum()).leader_id

        async def kill() -> float:
            killed_s = time.monotonic()
            await asyncio.to_thread(nodes.kill, VICTIM)
            return await _seen_by(nodes, HOSTS, lambda one: one.at_s > killed_s and one.is_led, KILL_TIMEOUT_S)

        spans["killing"] = await _span(admin, kill)
        _say(f"every partition had a leader after {spans['killing'].seconds:.1f} s")
        await asyncio.sleep(SETTLE_S)
    return Found(leader, spans, grown_mb, newcomer_mb, from_snapshot)


def _say(text: str) -> None:
    """Progress, for those who wait."""
    print(f"  ... {text}", flush=True)


async def _span(admin: AsyncAdmin, act: Callable[[], Awaitable[float]]) -> Span:
    """act: returns when what was awaited had happened, of time.monotonic."""
    epoch = (await admin.describe_quorum()).leader_epoch
    start_s = time.monotonic()
    end_s = await act()
    elections = (await admin.describe_quorum()).leader_epoch - epoch
    return Span(start_s=start_s, end_s=end_s, elections=elections)


async def _seen_by(
    nodes: ClusterNodes, node_ids: Iterable[NodeId], wanted: Callable[[Seen], bool], timeout_s: float
) -> float:
    """Wait until each of these processes has applied such an image. Returns when the last of them first had."""

    def first_times() -> list[float | None]:
        return [next((one.at_s for one in nodes.seen(node_id) if wanted(one)), None) for node_id in node_ids]

    await asyncio.to_thread(
        wait_until, lambda: all(at is not None for at in first_times()), timeout_s, "every broker to have the image"
    )
    return max(at for at in first_times() if at is not None)


async def _create(admin: AsyncAdmin, topics: int, per_topic: int) -> None:
    """Some thousand partitions in each request."""
    at_once = max(1, PER_REQUEST // per_topic)
    for first in range(0, topics, at_once):
        names = [f"topic-{number:05}" for number in range(first, min(topics, first + at_once))]
        topics_of = [NewTopic(name=name, partitions=per_topic, replication=REPLICAS) for name in names]
        for result in await _until_answered(admin, topics_of):
            assert result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), result


async def _until_answered(admin: AsyncAdmin, topics: list[NewTopic]) -> list[CreateTopicResult]:
    """A request that timed out on a busy machine is repeated: what it has made meanwhile exists already then."""
    for _ in range(TRIES):
        try:
            return await admin.create_topics(topics)
        except RequestFailed as error:
            if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                raise
            _say(f"once more: {error}")
    raise TimeoutError(f"{TRIES} requests to create {len(topics)} topics timed out")


async def _unfenced(admin: AsyncAdmin, count: int) -> bool:
    brokers = (await admin.describe_cluster()).brokers
    return len(brokers) == count and not any(one.fenced for one in brokers)


def _rows(found: Found, partitions: int, brokers: int) -> list[Row]:
    loading = "from the snapshot" if found.from_snapshot else "from the log"
    kb = {node_id: 1_000 * grown / partitions for node_id, grown in found.grown_mb.items()}
    created, loaded, killed = (found.spans[name] for name in ("creating", "loading", "killing"))
    rows = [
        Row(name="  created and in the image of every broker", unit="s", rounds=[created.seconds]),
        Row(name="  memory a partition, controllers", unit="kB", rounds=[kb[one] for one in CONTROLLERS]),
        Row(name="  memory a partition, a broker's image", unit="kB", rounds=[kb[VICTIM]]),
        Row(name=f"  a new broker starts and loads the image {loading}", unit="s", rounds=[loaded.seconds]),
        Row(name="    memory of its process", unit="MB", rounds=[found.newcomer_mb]),
        Row(
            name=f"  one of {brokers} killed: all led in every image", unit="s", rounds=[killed.seconds],
            goal=LED_GOAL_S, at_least=False,
        ),
        Row(
            name="  elections of the quorum in all of it", unit="", goal=0, at_least=False,
            rounds=[sum(span.elections for span in found.spans.values())],
        ),
    ]  # fmt: skip
    followers = tuple(one for one in CONTROLLERS if one != found.leader)
    for name in found.spans:
        for who, node_ids in (("leader", (found.leader,)), ("followers", followers)):
            longest = [found.turns[node_id, name] for node_id in node_ids]
            rows.append(_turn_row(f"  longest turn of {who} while {name}", longest, is_judged=True))
        hosts = [found.turns[node_id, name] for node_id in HOSTS]
        beside = f"{brokers // len(HOSTS)} brokers" if brokers > 3 else "brokers"
        rows.append(_turn_row(f"  longest turn of {beside} while {name}", hosts, is_judged=brokers == 3))
    return rows


def _turn_row(name: str, longest_ms: list[float], *, is_judged: bool) -> Row:
    """Only a process that is one node is judged."""
    return Row(name=name, unit="ms", rounds=longest_ms, goal=TURN_GOAL_MS if is_judged else None, at_least=False)
