"""A member that reads committed records only: what it is given, where it stands, and what it commits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from group_cluster import GroupCluster
from test_group_consumer import make
from virtual_time import run

from quorumlog.client import real_edges as edge
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import NotAssigned
from quorumlog.records import NO_PRODUCER, Record, encode_batch
from quorumlog.records.control import EndTxnMarker, control_batch

KEY = ("t", 0)
PRODUCERS = {"c": 11, "a": 12, "o": 13}  # of transactions that are committed, aborted, open
Found = tuple[list[int], int, int]
"""Values, the position, the lag."""


def written(script: str) -> GroupCluster:
    """One partition, a record at each offset. p: of no transaction; c, a, o: of one; C, A: markers."""
    cluster = GroupCluster(partitions=1)
    log = cluster.topics["t"][0]
    first: dict[str, int] = {}
    for offset, letter in enumerate(script):
        log.batches.append((offset, offset + 1, batch(offset, letter)))
        if letter in "CA":
            began = first.pop(letter.lower())
            log.aborted += [(PRODUCERS["a"], began, offset)] if letter == "A" else []
        elif letter != "p":
            first.setdefault(letter, offset)
    assert not {*first} - {"o"}, "each of the other transactions ends"
    log.end, log.first_open = len(script), first.get("o")
    return cluster


def batch(offset: int, letter: str) -> bytes:
    producer = PRODUCERS.get(letter.lower(), NO_PRODUCER)
    if letter in "CA":
        marker = EndTxnMarker(letter == "C", 1)
        return control_batch([marker], base_offset=offset, timestamp_ms=5, producer_id=producer, producer_epoch=0)
    return encode_batch(
        [Record(offset=offset, timestamp_ms=5, key=None, value=b"%d" % offset)],
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=offset,
        leader_epoch=1,
        transactional=letter != "p",
    )


# --- each way to read: the values, then the position and the lag at the end ---


async def by_poll(consumer: AsyncConsumer) -> list[int]:
    found: list[int] = []
    while not consumer.finished:
        found += [int(one.value or b"") for one in await consumer.poll(1, timeout_ms=200)]
    return found


async def by_record(consumer: AsyncConsumer) -> list[int]:
    return [int(one.value or b"") async for one in consumer]


async def by_columns(consumer: AsyncConsumer) -> list[int]:
    found: list[int] = []
    while not consumer.finished:
        chunk = await consumer.next_arrow(200)
        found += [int(value) for value in chunk[1].column("value").to_pylist()] if chunk is not None else []
    return found


def read_async(cluster: GroupCluster, way: Callable[[AsyncConsumer], Awaitable[list[int]]]) -> Found:
    async def scenario() -> Found:
        async with make(cluster, isolation_level="read_committed") as consumer:
            await consumer.subscribe("t", stop="latest")
            return await way(consumer), await consumer.position(*KEY), consumer.lag(*KEY)

    found: Found = run(scenario())
    return found


def by_poll_here(consumer: Consumer) -> list[int]:
    found: list[int] = []
    while not consumer.finished:
        found += [int(one.value or b"") for one in consumer.poll(1, timeout_ms=200)]
    return found


def by_record_here(consumer: Consumer) -> list[int]:
    return [int(one.value or b"") for one in consumer]


def by_columns_here(consumer: Consumer) -> list[int]:
    found: list[int] = []
    while not consumer.finished:
        chunk = consumer.next_arrow(200)
        found += [int(value) for value in chunk[1].column("value").to_pylist()] if chunk is not None else []
    return found


def read_here(cluster: GroupCluster, way: Callable[[Consumer], list[int]]) -> Found:
    def consumer(config: dict[str, Any], **options: Any) -> AsyncConsumer:
        return make(cluster, **{**config, **options})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge, "consumer", consumer)
        with Consumer(isolation_level="read_committed") as reader:
            reader.subscribe("t", stop="latest")
            return way(reader), reader.position(*KEY), reader.lag(*KEY)


WAYS: dict[str, Callable[[GroupCluster], Found]] = {
    "poll": lambda cluster: read_async(cluster, by_poll),
    "record": lambda cluster: read_async(cluster, by_record),
    "columns": lambda cluster: read_async(cluster, by_columns),
    "blocking-poll": lambda cluster: read_here(cluster, by_poll_here),
    "blocking-record": lambda cluster: read_here(cluster, by_record_here),
    "blocking-columns": lambda cluster: read_here(cluster, by_columns_here),
}
LOGS = [
    ("no transaction", "ppp", [0, 1, 2], 3),
    ("aborted at the end", "ppaaA", [0, 1], 5),
    ("aborted at the start", "aaApp", [3, 4], 5),
    ("interleaved", "cacaCA", [0, 2], 6),
    ("two aborted ones around", "apAcaCA", [1, 3], 7),
    ("nothing but aborted", "aaA", [], 3),
    ("two of one producer", "aAcaAC", [2], 6),
    ("one is open", "pcCop", [0, 1], 3),
    ("open behind aborted", "aAocC", [], 2),
]


def committed(cluster: GroupCluster) -> int | None:
    async def scenario() -> int | None:
        async with make(cluster, enable_auto_commit=False) as consumer:
            found = (await consumer.committed([KEY])).get(KEY)
            return None if found is None else found.offset

    offset: int | None = run(scenario())
    return offset


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("script", "want", "end"), [one[1:] for one in LOGS], ids=[one[0] for one in LOGS])
def test_a_member_passes_over_what_was_aborted(way: str, script: str, want: list[int], end: int) -> None:
    """Markers and aborted records are behind the position, and behind what is committed."""
    if "columns" in way:
        pytest.importorskip("pyarrow")
    cluster = written(script)
    assert WAYS[way](cluster) == (want, end, 0)
    assert committed(cluster) == end


STOPS = [
    ("before an aborted one", "ppaAp", 2, 2, [4]),
    ("inside of an aborted one", "acaCcCA", 1, 2, [4]),
    ("inside of a committed one", "ccaCA", 1, 1, [1]),
    ("behind it", "aaApp", 1, 4, [4]),
]


@pytest.mark.parametrize(
    ("script", "count", "offset", "rest"), [one[1:] for one in STOPS], ids=[one[0] for one in STOPS]
)
def test_the_next_member_goes_on_behind_the_last_record(script: str, count: int, offset: int, rest: list[int]) -> None:
    """Also where that is in the middle of an aborted transaction, whose first record it never sees."""
    cluster = written(script)

    async def scenario() -> None:
        async with make(cluster, isolation_level="read_committed") as consumer:
            await consumer.subscribe("t")
            seen = 0
            while seen < count:
                seen += len(await consumer.poll(1, timeout_ms=200))
            assert await consumer.position(*KEY) == offset and consumer.lag(*KEY) == len(script) - offset

    run(scenario())
    assert committed(cluster) == offset
    assert WAYS["poll"](cluster) == (rest, len(script), 0)


def test_a_member_waits_at_an_open_transaction_and_goes_on_behind_it() -> None:
    """It was aborted: its record and its marker are passed over."""
    cluster = written("pop")

    async def next_record(consumer: AsyncConsumer) -> int:
        while not (records := await consumer.poll(timeout_ms=50)):
            pass
        return int(records[0].value or b"")

    async def scenario() -> None:
        log = cluster.topics["t"][0]
        async with make(cluster, isolation_level="read_committed") as consumer:
            await consumer.subscribe("t")
            assert await next_record(consumer) == 0
            assert await consumer.poll(timeout_ms=100) == []
            assert (await consumer.position(*KEY), consumer.lag(*KEY)) == (1, 0)
            end = control_batch(
                [EndTxnMarker(False, 1)], base_offset=3, timestamp_ms=5, producer_id=13, producer_epoch=0
            )
            log.batches.append((3, 4, end))
            log.aborted.append((PRODUCERS["o"], 1, 3))
            log.end, log.first_open = 4, None
            assert await next_record(consumer) == 2
            while await consumer.position(*KEY) < 4:
                assert await consumer.poll(timeout_ms=50) == []

    run(scenario())
    assert committed(cluster) == 4


def test_only_what_it_reads_has_a_lag() -> None:
    async def scenario() -> None:
        async with make(written("p"), isolation_level="read_committed") as consumer:
            with pytest.raises(NotAssigned, match="t-0 is not assigned"):
                consumer.lag(*KEY)

    run(scenario())
