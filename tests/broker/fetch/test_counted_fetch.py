"""A consumer's fetch that waits for many bytes counts what comes: it answers what a fetch that reads at every change
would answer, at the same time, and reads twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch, clusters, values_of

from quorumlog.errors import ApiError
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic
from quorumlog_broker.data_plane import DataPlane
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams, FetchPath
from quorumlog_broker.fetch.isolation import READ_COMMITTED, READ_UNCOMMITTED
from quorumlog_broker.fetch.scope import FetchScope, scope_of
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.partition.tail import MAX_BATCHES_READ, Tail
from quorumlog_storage.rules.isolation import Isolation
from tests.parts import few

PARTITIONS = 3
WAIT_MS = 2_000


class ReadsAtEveryChange(FetchPath):
    """The model: it waits for any change and then reads everything again."""

    def _scope(self, context: FetchContext, isolation: Isolation, params: FetchParams) -> FetchScope:
        return scope_of(context, isolation)


def model_of(plane: DataPlane) -> ReadsAtEveryChange:
    return ReadsAtEveryChange(
        plane._clock,
        plane.registry,
        plane.delayed,
        plane.stepper.step,
        plane.fetch_path._turn,
        plane.upcoming,
        plane.near_replicas,
    )


@dataclass(frozen=True)
class Want:
    """One reader. offset: where it reads all its partitions from. in_session: its second request names nothing."""

    partitions: tuple[int, ...]
    offset: int
    params: FetchParams
    partition_bytes: int
    in_session: bool = False


@dataclass(frozen=True)
class Happens:
    """After `delay_ms`. partition: that gets a batch with a value of `size`, or whose leadership moves (size 0)."""

    delay_ms: int
    partition: int
    size: int


Answer = tuple[float, list[FetchPartitionResponse] | str]


async def fetched(node: Node, path: FetchPath, want: Want) -> Answer:
    """When (ms of the simulated clock) and what was answered."""
    parts = [
        FetchPartition(index=one, fetch_offset=want.offset, max_bytes=want.partition_bytes) for one in want.partitions
    ]
    if not want.in_session:
        context = FetchContext(tuple(FetchTarget(TOPIC_ID, part) for part in parts), None)
        responses, _ = await path.fetch(context, want.params)
        return asyncio.get_running_loop().time() * 1000, responses
    named = (FetchTopic(topic_id=TOPIC_ID, partitions=tuple(parts)),)
    first = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=named, session_epoch=0)
    now_ms = node.clock.now_ms()
    context = node.sessions.begin(first, now_ms)
    responses, more = await path.fetch(context, FetchParams(0, 0, 1))
    session_id, _ = node.sessions.end(context, responses, more, now_ms)
    context = node.sessions.begin(
        FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, session_id=session_id, session_epoch=1), now_ms
    )
    responses, more = await path.fetch(context, want.params)
    answered_ms = asyncio.get_running_loop().time() * 1000
    _, sent = node.sessions.end(context, responses, more, node.clock.now_ms())
    node.sessions.check_invariants()
    return answered_ms, [one for _, one in sent]


def both(cluster: ReplicaCluster, wants: Sequence[Want], events: Sequence[Happens]) -> list[tuple[Answer, Answer]]:
    """Of each reader: by the production path, by the model."""
    node = cluster.nodes[1]
    model = model_of(node.data_plane)

    appends: list[asyncio.Future[None]] = []

    async def append(event: Happens) -> None:
        with suppress(ApiError):  # it does not lead any more
            data = batch("v" * event.size)
            await node.produce_path.append(TOPIC_ID, event.partition, data, acks=1, timeout_ms=5_000)

    async def happen() -> None:
        for event in events:
            await asyncio.sleep(event.delay_ms / 1000)
            if event.size:
                appends.append(asyncio.ensure_future(append(event)))
            else:
                cluster.elect(2, (1, 2), event.partition)

    async def run() -> list[Answer]:
        tasks = [
            asyncio.ensure_future(fetched(node, path, want)) for want in wants for path in (node.fetch_path, model)
        ]
        happening = asyncio.ensure_future(happen())
        answers = [await task for task in tasks]
        await happening
        for one in appends:
            await one
        return answers

    answers = node.run(run())
    return list(zip(answers[::2], answers[1::2], strict=True))


def new_cluster(tail_bytes: int, before: Sequence[int]) -> ReplicaCluster:
    """before: sizes of the values in each partition when the readers come."""
    cluster = ReplicaCluster(nodes=(1, 2), tail_bytes=tail_bytes)
    cluster.create_topic((1, 2), partitions=PARTITIONS)
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        for size in before:
            cluster.produce(1, "v" * size, index=index)
    return cluster


SIZES = st.sampled_from([1, 20, 200, 900])
LIMITS = st.sampled_from([1, 80, 150, 400, 1_000, 5_000])
WANTS = st.builds(
    Want,
    st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=PARTITIONS, unique=True).map(tuple),
    st.integers(0, 3),
    st.builds(
        FetchParams,
        st.sampled_from([0, 40, WAIT_MS]),
        LIMITS,
        LIMITS,
        st.sampled_from([READ_UNCOMMITTED, READ_COMMITTED]),
    ),
    LIMITS,
    st.booleans(),
)
EVENTS = st.lists(
    st.builds(Happens, st.sampled_from([0, 1, 3, 40]), st.integers(0, PARTITIONS - 1), SIZES | st.just(0)), max_size=25
)


@settings(max_examples=few(60), deadline=None)
@given(st.lists(WANTS, min_size=1, max_size=4), st.lists(SIZES, max_size=3), EVENTS)
def test_it_answers_as_one_that_reads_at_every_change(
    wants: list[Want], before: list[int], events: list[Happens]
) -> None:
    cluster = new_cluster(1 << 20, before)
    try:
        for ours, models in both(cluster, wants, events):
            assert ours == models
    finally:
        clusters.remove(cluster)
        cluster.end()


@settings(max_examples=few(40), deadline=None)
@given(st.lists(WANTS, min_size=1, max_size=3), st.sampled_from([0, 300]), st.lists(SIZES, max_size=3), EVENTS)
def test_it_waits_for_no_less_and_no_longer_where_records_are_on_the_disk(
    wants: list[Want], tail_bytes: int, before: list[int], events: list[Happens]
) -> None:
    """The model may be reading from the disk, in vain, when the last batch comes; so it may be later, and have more."""
    cluster = new_cluster(tail_bytes, before)
    try:
        for want, (ours, models) in zip(wants, both(cluster, wants, events), strict=True):
            assert ours[0] <= models[0]
            assert isinstance(ours[1], list) and isinstance(models[1], list)
            by_index = {one.index: one for one in models[1]}
            is_early = ours[0] < models[0]
            enough = want.params.enough.needed_bytes
            if sum(len(one.records) for one in models[1]) >= enough and not is_early:
                assert sum(len(one.records) for one in ours[1]) >= enough
            for one in ours[1]:
                if one.error_code == 0 and by_index[one.index].error_code == 0:
                    assert bytes(by_index[one.index].records).startswith(bytes(one.records))
    finally:
        clusters.remove(cluster)
        cluster.end()


class Tally:
    """Batches that reads and counts of tails have touched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = self.counted = self.reads = 0
        read, count = Tail.read, Tail.count

        def noted_read(tail: Tail, *arguments: Any) -> Any:
            found = read(tail, *arguments)
            self.reads += 1
            self.read += 0 if found is None else found.batches
            return found

        def noted_count(tail: Tail, *arguments: Any) -> Any:
            found = count(tail, *arguments)
            self.counted += 0 if found is None else found.batches
            return found

        monkeypatch.setattr(Tail, "read", noted_read)
        monkeypatch.setattr(Tail, "count", noted_count)


@pytest.mark.parametrize("in_session", [False, True])
def test_five_readers_touch_each_of_1500_small_batches_a_few_times(
    in_session: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reader read all that it had at each batch: 5.6 million batches."""
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,), partitions=2)
    cluster.wait_led(1)
    cluster.wait_led(1, 1)
    node, one = cluster.nodes[1], len(batch("v"))
    tally = Tally(monkeypatch)
    params = FetchParams(600_000, 1_500 * one, 1 << 20)
    want = Want((0, 1), 0, params, 1 << 20, in_session)

    async def run() -> list[Answer]:
        readers = [asyncio.ensure_future(fetched(node, node.fetch_path, want)) for _ in range(5)]
        for _ in range(1_500):
            await node.produce_path.append(TOPIC_ID, 0, batch("v"), acks=-1, timeout_ms=5_000)
        return [await reader for reader in readers]

    for _, responses in node.run(run()):
        assert isinstance(responses, list)
        assert sum(len(values_of(bytes(one.records))) for one in responses) == 1_500
    assert tally.read == tally.counted == 5 * 1_500
    assert tally.reads <= 5 * 2 * 3


def test_as_many_batches_as_one_response_takes_are_enough() -> None:
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,))
    cluster.wait_led(1)
    node, found = cluster.nodes[1], 0
    want = Want((0,), 0, FetchParams(20_000, 1 << 20, 1 << 20), 1 << 20)

    async def run() -> Answer:
        reader = asyncio.ensure_future(fetched(node, node.fetch_path, want))
        for _ in range(MAX_BATCHES_READ):
            await node.produce_path.append(TOPIC_ID, 0, batch("v"), acks=1, timeout_ms=5_000)
        began_ms = asyncio.get_running_loop().time() * 1000
        answered_ms, responses = await reader
        return answered_ms - began_ms, responses

    late_ms, responses = node.run(run())
    assert isinstance(responses, list)
    found = len(values_of(bytes(responses[0].records)))
    assert late_ms <= 0 and found == MAX_BATCHES_READ


def test_a_fetch_that_finds_the_disk_busy_waits_for_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not ask the disk again and again."""
    cluster = new_cluster(0, [20])
    node, asked = cluster.nodes[1], 0

    async def busy(*_arguments: object) -> Any:
        nonlocal asked
        asked += 1
        raise Busy("it has enough to do")

    monkeypatch.setattr("quorumlog_broker.fetch.fetch_path.read_from_disk", busy)
    for in_session in (False, True):
        want = Want((0,), 0, FetchParams(500, 1_000, 1 << 20), 1 << 20, in_session)
        began_ms = node.clock.now_ms()
        answered_ms, responses = node.run(fetched(node, node.fetch_path, want))
        assert answered_ms - began_ms >= 500 and isinstance(responses, list)
        assert all(len(one.records) == 0 for one in responses)
    assert asked <= 5
