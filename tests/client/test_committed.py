"""Which batches a read_committed consumer delivers, case by case, against a scan, and through the whole consumer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster
from hypothesis import given
from hypothesis import strategies as st
from test_consumer import make, run

from quorumlog.client.errors import ConfigError
from quorumlog.client.fetching.position import committed_batches
from quorumlog.messages.fetch import AbortedTransaction, FetchRequest, FetchResponse, ListOffsetsRequest
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from tests.rules import rule

P, Q = 7, 8


def data(base: int, producer_id: int, *, transactional: bool = True, count: int = 1) -> bytes:
    records = [Record(base + n, 5, None, b"%d" % (base + n)) for n in range(count)]
    return encode_batch(
        records,
        base_offset=base,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=base,
        transactional=transactional,
    )


def marker(base: int, producer_id: int, *, committed: bool) -> bytes:
    return control_batch(
        [EndTxnMarker(committed, 0)], base_offset=base, timestamp_ms=5, producer_id=producer_id, producer_epoch=0
    )


def aborted(*pairs: tuple[int, int]) -> tuple[AbortedTransaction, ...]:
    return tuple(AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in pairs)


CASES = [
    ("nothing aborted", [data(0, P), marker(1, P, committed=True)], aborted(), [0]),
    ("an aborted one", [data(0, P), data(1, P), marker(2, P, committed=False), data(3, P)], aborted((P, 0)), [3]),
    ("another producer between", [data(0, P), data(1, Q), marker(2, P, committed=False)], aborted((P, 0)), [1]),
    ("no transaction between", [data(0, P), data(1, P, transactional=False)], aborted((P, 0)), [1]),
    (
        "a marker of another producer ends nothing",
        [data(0, P), marker(1, Q, committed=False), data(2, P), marker(3, P, committed=False)],
        aborted((P, 0)),
        [],
    ),
    (
        "two that overlap",
        [data(0, P), data(1, Q), marker(2, P, committed=False), data(3, Q), marker(4, Q, committed=False), data(5, P)],
        aborted((Q, 1), (P, 0)),
        [5],
    ),
    ("one that began before the fetch", [data(5, P), marker(6, P, committed=False)], aborted((P, 1)), []),
    (
        "committed, then aborted",
        [data(0, P), marker(1, P, committed=True), data(2, P), marker(3, P, committed=False)],
        aborted((P, 2)),
        [0],
    ),
]


@pytest.mark.parametrize(("batches", "told", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_which_batches_count(batches: list[bytes], told: tuple[AbortedTransaction, ...], want: list[int]) -> None:
    records = b"".join(batches)
    assert [one.base_offset for one in committed_batches(records, headers(records), told)] == want


@rule("storage 5.4")
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["data", "plain", "commit", "abort"])), max_size=40))
def test_it_equals_a_scan(steps: list[tuple[int, str]]) -> None:
    batches: list[bytes] = []
    open_since: dict[int, list[int]] = {}
    told: list[tuple[int, int]] = []
    visible = []
    for offset, (producer_id, what) in enumerate(steps):
        if what in ("commit", "abort"):
            batches.append(marker(offset, producer_id, committed=what == "commit"))
            ended = open_since.pop(producer_id, [])
            if what == "commit":
                visible += ended
            elif ended:
                told.append((producer_id, ended[0]))
        else:
            batches.append(data(offset, producer_id, transactional=what == "data"))
            if what == "data":
                open_since.setdefault(producer_id, []).append(offset)
            else:
                visible.append(offset)
    stable = min([first for first, *_ in open_since.values()], default=len(steps))
    records = b"".join(batches[:stable])
    got = [one.base_offset for one in committed_batches(records, headers(records), aborted(*told))]
    assert got == sorted(offset for offset in visible if offset < stable)


def transactional_cluster() -> FakeCluster:
    """Offsets 0, 2 aborted, 1 committed by another producer, 3 and 4 markers, 5 plain."""
    cluster = FakeCluster(partitions=1)
    log = cluster.topics["t"][0]
    for batch in (
        data(0, P),
        data(1, Q),
        data(2, P),
        marker(3, P, committed=False),
        marker(4, Q, committed=True),
        encode_batch([Record(0, 5, None, b"5")]),
    ):
        (header,) = headers(batch)
        log.batches.append((log.end, log.end + 1, encode_at(batch, log.end)))
        log.end += 1
        assert header.count == 1
    return cluster


def encode_at(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]


def tell_aborted(response: FetchResponse, *pairs: tuple[int, int]) -> FetchResponse:
    topics = []
    for topic in response.topics:
        parts = [
            replace(part, aborted_transactions=aborted(*pairs), last_stable_offset=part.high_watermark)
            for part in topic.partitions
        ]
        topics.append(replace(topic, partitions=tuple(parts)))
    return replace(response, topics=tuple(topics))


def leader_that_tells(cluster: FakeCluster, *pairs: tuple[int, int]) -> None:
    answer = cluster.answer

    async def told(node: int, request: Any) -> Any:
        response = await answer(node, request)
        return tell_aborted(response, *pairs) if isinstance(response, FetchResponse) else response

    cluster.answer = told  # type: ignore[method-assign]


def offsets_read(**options: Any) -> tuple[list[int], list[int], FakeCluster]:
    """As records and as columns."""
    cluster = transactional_cluster()
    leader_that_tells(cluster, (P, 0))

    async def scenario() -> tuple[list[int], list[int]]:
        async with make(cluster, **options) as consumer:
            await consumer.assign([("t", 0, 0)], stop=6)
            records = [record.offset async for record in consumer]
            await consumer.assign([("t", 0, 0)], stop=6)
            columns: list[int] = []
            while not consumer.finished:
                found = await consumer.next_arrow(1_000)
                if found is not None:
                    columns += found[1].column("offset").to_pylist()
            return records, columns

    return (*run(scenario()), cluster)


def test_a_consumer_of_committed_records() -> None:
    pytest.importorskip("pyarrow")
    records, columns, cluster = offsets_read(isolation_level="read_committed")
    assert records == columns == [1, 5]
    assert {one.isolation_level for _, one in cluster.requests if isinstance(one, FetchRequest)} == {1}


def test_a_consumer_of_all_records_leaves_out_the_markers_alone() -> None:
    pytest.importorskip("pyarrow")
    records, columns, cluster = offsets_read()
    assert records == columns == [0, 1, 2, 5]
    assert {one.isolation_level for _, one in cluster.requests if isinstance(one, FetchRequest)} == {0}


def test_its_end_is_the_last_stable_offset() -> None:
    cluster = transactional_cluster()

    async def scenario() -> None:
        async with make(cluster, **{"isolation.level": "read_committed"}) as consumer:
            await consumer.assign_topic("t", stop="latest")

    run(scenario())
    assert [one.isolation_level for _, one in cluster.requests if isinstance(one, ListOffsetsRequest)][-1] == 1


def test_a_poll_goes_on_behind_what_is_left_out() -> None:
    cluster = transactional_cluster()
    leader_that_tells(cluster, (P, 0))

    async def scenario() -> None:
        options = {"isolation_level": "read_committed", "max_partition_fetch_bytes": 1}
        async with make(cluster, **options) as consumer:
            await consumer.assign([("t", 0, 2)], stop=6)
            assert [record.offset for record in await consumer.poll(timeout_ms=5_000)] == [5]

    virtual_time.run(scenario())


def test_another_level_is_refused() -> None:
    with pytest.raises(ConfigError, match="isolation_level"):
        make(FakeCluster(), isolation_level="serializable")
