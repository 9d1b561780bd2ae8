"""Credits of a stream of chunks, on both sides: what is asked for, and which answers belong to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.fetching.chunk_stream import Credits
from quorumlog.errors import ApiError
from quorumlog.messages.buffer import Buffer, Pieces
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from quorumlog.records import Record, encode_batch
from quorumlog_broker.fetch.chunk_stream import ChunkReader

NODE = 1
END = 40
DIVERGED = EpochEndOffset(epoch=1, end_offset=2)


def fetch(offset: int = 0, *, epoch: int = -1, index: int = 0) -> FetchRequest:
    part = FetchPartition(index=index, fetch_offset=offset, max_bytes=100, last_fetched_epoch=epoch)
    return FetchRequest(
        max_wait_ms=1, min_bytes=1, max_bytes=100, topics=(FetchTopic(topic_id=b"i" * 16, partitions=(part,)),)
    )


def batch(first: int, records: int, *, epoch: int = 4) -> bytes:
    made = bytearray(encode_batch([Record(number, 1, None, b"v", ()) for number in range(records)]))
    made[:8] = first.to_bytes(8, "big")
    made[12:16] = epoch.to_bytes(4, "big")
    return bytes(made)


def in_parts(one: bytes, *, is_stamped: bool) -> list[Buffer]:
    """As it lies in a leader's memory: stamped where it was received, or in one buffer."""
    return [one[:17], memoryview(one)[17:]] if is_stamped else [one]


def answer(records: bytes | Pieces = b"", **fields: object) -> FetchPartitionResponse:
    return FetchPartitionResponse(index=0, records=records, **fields)  # type: ignore[arg-type]


@given(st.integers(1, 5), st.lists(st.sampled_from(["fetch", "elsewhere", "answer", "refusal", "take"]), max_size=60))
def test_a_reader_never_has_more_chunks_than_it_has_room_for(most: int, steps: list[str]) -> None:
    """Both sides together: what the reader asks for is what the broker reads next, and never too much of it."""
    credits, broker = Credits(most), ChunkReader()
    position, epoch, held = 0, -1, 0
    under_way: list[FetchRequest | None] = []  # that the broker was asked for, and which the reader has not taken
    for step in steps:
        if step == "take" and held:
            held -= 1
        if step == "elsewhere":
            position, epoch = position + 100, -1
        if step in ("fetch", "elsewhere") and held < most:
            wanted = fetch(position, epoch=epoch)
            if not credits.goes_on(NODE, wanted, -1):
                under_way.clear()
            for request in credits.requests(NODE, wanted, -1, held):
                if request.fetch is not None:
                    assert not under_way and request.fetch == wanted
                under_way.append(request.fetch)
            assert credits.goes_on(NODE, wanted, -1)
        assert credits.asked + held <= most and credits.asked == len(under_way)
        if step in ("answer", "refusal") and under_way and held < most:
            wanted = fetch(position, epoch=epoch)
            if not credits.goes_on(NODE, wanted, -1):
                continue  # the reader went elsewhere, and has not asked since
            read = broker.next(FetchChunkRequest(fetch=under_way.pop(0)))
            assert read == wanted
            if step == "answer":
                part = answer(batch(position, 3))
                position, epoch, held = position + 3, 4, held + 1
            else:
                part = answer(error_code=6)
            broker.answered(part)
            credits.taken(part)
            if step == "refusal":
                under_way.clear()
                credits.forget()


def test_what_is_asked_for_ahead_goes_on_where_the_answer_ends() -> None:
    credits = Credits(3)
    assert credits.requests(NODE, fetch(5), END, held=0) == [
        FetchChunkRequest(fetch=fetch(5), end_offset=END),
        FetchChunkRequest(),
        FetchChunkRequest(),
    ]
    credits.taken(answer(batch(4, 3) + batch(7, 2) + b"cut"))
    assert credits.requests(NODE, fetch(9, epoch=4), END, held=1) == []
    assert credits.requests(NODE, fetch(9, epoch=4), END, held=0) == [FetchChunkRequest()]


OTHERS = [
    ("another node", (2, fetch(9, epoch=4), END)),
    ("another offset", (NODE, fetch(8, epoch=4), END)),
    ("another epoch", (NODE, fetch(9, epoch=3), END)),
    ("another end", (NODE, fetch(9, epoch=4), END + 1)),
    ("another partition", (NODE, fetch(9, epoch=4, index=1), END)),
    ("another isolation", (NODE, replace(fetch(9, epoch=4), isolation_level=1), END)),
]


@pytest.mark.parametrize("asked", [c[1] for c in OTHERS], ids=[c[0] for c in OTHERS])
def test_a_reader_that_wants_something_else_begins_anew(asked: tuple[int, FetchRequest, int]) -> None:
    credits = Credits(2)
    credits.requests(NODE, fetch(5), END, held=0)
    credits.taken(answer(batch(4, 5)))
    assert credits.goes_on(NODE, fetch(9, epoch=4), END) and not credits.goes_on(*asked)
    assert credits.requests(*asked, held=0)[0].fetch == asked[1]


STOPS = [
    ("an error", answer(error_code=1)),
    ("a diverging epoch", answer(diverging_epoch=DIVERGED)),
    ("records that cannot be read", answer(batch(5, 2) + bytes(80))),
]


@pytest.mark.parametrize("stop", [c[1] for c in STOPS], ids=[c[0] for c in STOPS])
def test_nothing_comes_behind_an_answer_that_the_reader_has_to_look_at(stop: FetchPartitionResponse) -> None:
    broker, credits = ChunkReader(), Credits(2)
    credits.requests(NODE, fetch(5), END, held=0)
    assert broker.next(FetchChunkRequest(fetch=fetch(5))) == fetch(5)
    broker.answered(stop)
    credits.taken(stop)
    assert broker.next(FetchChunkRequest()) is None
    assert not credits.goes_on(NODE, fetch(5), END)
    assert broker.next(FetchChunkRequest(fetch=fetch(7))) == fetch(7)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_broker_reads_on_behind_the_last_batch_and_not_past_the_end(in_memory: bool) -> None:
    broker = ChunkReader()
    assert broker.next(FetchChunkRequest(fetch=fetch(5), end_offset=9)) == fetch(5)
    broker.answered(answer())  # nothing came in time
    assert broker.next(FetchChunkRequest()) == fetch(5)
    two = [batch(3, 3), batch(6, 2)]
    pieces = [part for one in two for part in in_parts(one, is_stamped=True)]
    broker.answered(answer(Pieces(pieces) if in_memory else b"".join(two)))
    assert broker.next(FetchChunkRequest()) == fetch(8, epoch=4)
    broker.answered(answer(batch(8, 2)))
    assert broker.next(FetchChunkRequest()) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), min_size=1, max_size=6), st.integers(-1, 20))
def test_batches_from_memory_may_be_in_one_part_or_in_two(shapes: list[tuple[bool, int]], end: int) -> None:
    """A marker lies behind what a producer wrote, and a batch that was copied behind one that was not."""
    made: list[bytes] = []
    pieces: list[Buffer] = []
    offset = 5
    for is_stamped, count in shapes:
        made.append(batch(offset, count))
        pieces += in_parts(made[-1], is_stamped=is_stamped)
        offset += count
    from_disk, from_memory = ChunkReader(), ChunkReader()
    for broker in (from_disk, from_memory):
        assert broker.next(FetchChunkRequest(fetch=fetch(5), end_offset=end)) == (None if 0 <= end <= 5 else fetch(5))
    if 0 <= end <= 5:
        return
    assert from_memory.answered(answer(Pieces(pieces))) == from_disk.answered(answer(b"".join(made)))
    goes_on = from_disk.next(FetchChunkRequest())
    assert (goes_on is None) == (0 <= end <= offset)
    assert from_memory.next(FetchChunkRequest()) == goes_on


FOUR = [batch(3, 3), batch(6, 2), batch(8, 2), batch(10, 2)]
ENDS = [  # of the reader, and how many of the four batches it is sent
    (-1, 4), (12, 4), (11, 4), (10, 3), (9, 3), (8, 2), (6, 1), (5, 1),
]  # fmt: skip


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(("end", "count"), ENDS)
def test_little_is_sent_behind_the_end(end: int, count: int, in_memory: bool) -> None:
    broker = ChunkReader()
    broker.next(FetchChunkRequest(fetch=fetch(4), end_offset=end))
    pieces = [part for one in FOUR for part in in_parts(one, is_stamped=True)]
    sent = broker.answered(answer(Pieces(pieces) if in_memory else b"".join(FOUR)))
    assert bytes(sent) == b"".join(FOUR[:count])
    assert (broker.next(FetchChunkRequest()) is None) == (end >= 0)


def test_a_gap_that_reaches_past_the_end_is_told_by_the_batch_behind_it() -> None:
    """As after a compaction. Without it the reader would ask for the rest of its range for ever."""
    broker = ChunkReader()
    broker.next(FetchChunkRequest(fetch=fetch(4), end_offset=9))
    assert bytes(broker.answered(answer(batch(4, 2) + batch(20, 2)))) == batch(4, 2)
    assert broker.next(FetchChunkRequest()) == fetch(6, epoch=4)
    assert bytes(broker.answered(answer(batch(20, 2) + batch(22, 1)))) == batch(20, 2)
    assert broker.next(FetchChunkRequest()) is None


REFUSED = [
    ("nothing to go on with", FetchChunkRequest(), "says where to begin"),
    ("no partition", FetchChunkRequest(fetch=replace(fetch(), topics=())), "one partition"),
    ("two topics", FetchChunkRequest(fetch=replace(fetch(), topics=fetch().topics * 2)), "one partition"),
    ("a session", FetchChunkRequest(fetch=replace(fetch(), session_id=3, session_epoch=1)), "no fetch session"),
    ("a new session", FetchChunkRequest(fetch=replace(fetch(), session_epoch=0)), "no fetch session"),
    (
        "a session's partitions",
        FetchChunkRequest(fetch=replace(fetch(), forgotten=(ForgottenTopic(topic_id=b"i" * 16),))),
        "one partition",
    ),
    (
        "a replica",
        FetchChunkRequest(fetch=replace(fetch(), replica=ReplicaState(replica_id=1, broker_epoch=1))),
        "replicas",
    ),
]


@pytest.mark.parametrize(("request_", "text"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_a_stream_cannot_read_is_refused(request_: FetchChunkRequest, text: str) -> None:
    with pytest.raises(ApiError, match=text):
        ChunkReader().next(request_)


def test_a_beginning_that_is_refused_ends_what_was_read_before() -> None:
    """Else what was asked for behind it would be answered from a place that the reader has left."""
    broker = ChunkReader()
    broker.next(FetchChunkRequest(fetch=fetch(5)))
    broker.answered(answer(batch(5, 2)))
    with pytest.raises(ApiError):
        broker.next(FetchChunkRequest(fetch=replace(fetch(90), topics=())))
    assert broker.next(FetchChunkRequest()) is None
    assert broker.next(FetchChunkRequest(fetch=fetch(7))) == fetch(7)


def test_nothing_comes_behind_a_fetch_that_failed() -> None:
    broker = ChunkReader()
    broker.next(FetchChunkRequest(fetch=fetch(5)))
    assert broker.next(FetchChunkRequest()) is None
