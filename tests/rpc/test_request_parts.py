"""How long requests take and in which parts, on both wires; which of them have a line as slow ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from quorumlog.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.serving.dispatch import Dispatch, PeerContext
from quorumlog.rpc.serving.request_parts import PARTS, ApiTimes, RequestBook, Timing
from quorumlog.rpc.serving.slow_log import MAX_LINES, SlowLog
from quorumlog.rpc.transport import Address, Listener
from tests.wire.lane import echo, request_bytes, serving, until

ASKED = MetadataRequest(all_topics=True)
LISTENER = Listener(name="T", address=Address("h", 1), internal=False)


class Clock:
    """Runs when a test says so."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def parts(times: ApiTimes) -> dict[str, float]:
    assert all(one.count == times.total.count for one in times.parts)
    return {name: round(one.sum, 6) for name, one in zip(PARTS, times.parts, strict=True)}


@given(
    queue=st.integers(0, 9), steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4),
    held=st.integers(0, 9), waits=st.integers(0, 9), sends=st.integers(0, 9), told=st.integers(0, 9),
)  # fmt: skip
def test_the_parts_are_the_whole(
    queue: int, steps: list[tuple[int, int]], held: int, waits: int, sends: int, told: int
) -> None:
    """But what a client was only told to wait."""
    now, timing = 100.0 + queue, Timing("Produce", 100.0, 100.0 + queue, 1)
    for local, remote in steps:
        timing.step(now)
        timing.rest(now + local)
        now += local + remote
    timing.rest(now)
    now += held
    timing.held_back(held)
    timing.step(now)
    timing.replied(ProduceResponse(), now)
    timing.step(now + 1)  # what its handler does after that
    timing.rest(now + 2)
    timing.throttle_s += told
    timing.sent_s += waits
    ended = now + waits + sends
    found = list(timing.parts_s(ended))
    assert found == [queue, sum(one for one, _ in steps), sum(one for _, one in steps), held + told, waits, sends]
    assert sum(found) - told == ended - 100.0


def test_a_lane_request_has_its_parts() -> None:
    clock = Clock()
    book, signals = RequestBook(clock), list[asyncio.Future[None]]()

    async def handler(_context: Any, request: Any) -> Any:
        clock.s += 1
        if isinstance(request, ProduceRequest):
            await signals[0]
        else:
            await asyncio.sleep(0)
        clock.s += 2
        return ProduceResponse(throttle_time_ms=1) if isinstance(request, ProduceRequest) else MetadataResponse()

    async def scenario() -> None:
        signals.append(asyncio.get_running_loop().create_future())
        async with serving(handler, book=book) as served:
            wire = await served.socket()
            clock.s = asyncio.get_running_loop().time() + 1_000  # what it takes until it is begun is its queue
            wire.send(request_bytes(ProduceRequest(acks=1, timeout_ms=1), 1))
            await until(lambda: served.transport.held_bytes[False] > 0)
            clock.s += 4
            signals[0].set_result(None)
            await wire.frame()
            wire.send(request_bytes(ASKED, 2))
            await wire.frame()
            assert served.crashes == []

    asyncio.run(scenario())
    produce, metadata = book.by_api["Produce"], book.by_api["Metadata"]
    found = parts(produce)
    assert (found["local"], found["remote"], found["throttle"]) == (3, 4, 0.001) and found["response_send"] == 0
    assert produce.total.count == 1 and produce.errors == {0: 1}
    assert parts(metadata)["local"] == 3


def test_an_answer_that_its_peer_does_not_take_is_long_on_its_way() -> None:
    clock = Clock()
    book = RequestBook(clock)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=20 << 20)

    async def scenario() -> None:
        async with serving(echo, book=book) as served:
            wire = await served.socket()
            clock.s = asyncio.get_running_loop().time() + 1_000
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            wire.send(request_bytes(request, 1))
            await until(lambda: served.transport.held_bytes[False] > 1 << 20)
            assert book.by_api == {}
            clock.s += 7
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await wire.frame()
            await until(lambda: bool(book.by_api))

    asyncio.run(scenario())
    assert parts(book.by_api["FetchConsumer"])["response_send"] == 7


def _by_grpc(handler: Callable[[Any, Any], Awaitable[Any]], book: RequestBook, request: Any) -> None:
    """One call, which leads through `Dispatch.answer` as gRPC's do."""
    call = BY_REQUEST[type(request)]

    async def scenario() -> None:
        dispatch = Dispatch(
            listener=LISTENER, identity=None, handler=handler, on_crash=lambda name, _: pytest.fail(name), book=book
        )
        await dispatch.answer(dispatch.context(Caller("me"), "h"), call, call.codec.encode_request(request))

    asyncio.run(scenario())


def test_throttling_by_grpc_is_a_part_of_its_own() -> None:
    clock = Clock()
    book = RequestBook(clock)

    async def handler(_context: Any, _request: Any) -> MetadataResponse:
        clock.s += 0.5
        asyncio.get_running_loop().call_later(0.01, lambda: setattr(clock, "s", clock.s + 0.02))
        return MetadataResponse(throttle_time_ms=20)

    _by_grpc(handler, book, ASKED)
    assert parts(book.by_api["Metadata"]) == dict.fromkeys(PARTS, 0.0) | {"local": 0.5, "throttle": 0.02}


@pytest.mark.parametrize(
    ("request_", "answer", "api", "code"),
    [
        (ASKED, MetadataResponse(), "Metadata", 0),
        (FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1), FetchResponse(error_code=70), "FetchConsumer", 70),
        (
            ProduceRequest(acks=1, timeout_ms=1),
            ProduceResponse(
                topics=(
                    ProduceTopicResponse(
                        name="t",
                        partitions=(
                            ProducePartitionResponse(index=0, base_offset=0),
                            ProducePartitionResponse(index=1, base_offset=0, error_code=6),
                        ),
                    ),
                )
            ),
            "Produce",
            6,
        ),
    ],
)
def test_an_api_and_its_errors_are_counted(request_: Any, answer: Any, api: str, code: int) -> None:
    book = RequestBook(Clock())

    async def handler(_context: Any, _request: Any) -> Any:
        return answer

    _by_grpc(handler, book, request_)
    assert {name: dict(times.errors) for name, times in book.by_api.items()} == {api: {code: 1}}


def test_a_followers_fetch_is_another_than_a_consumers() -> None:
    timing = Timing("Fetch", 0.0, 0.0, 1)
    timing.asks(
        FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1, replica=ReplicaState(replica_id=2, broker_epoch=1))
    )
    assert (timing.api, timing.wait_s) == ("FetchFollower", 0.5)


# --- slow ones


class Ended:
    """Requests that took so long, in ms, at a node whose limit is `least_ms`."""

    def __init__(self) -> None:
        self.least_ms, self.clock = 500, Clock()
        self.log = SlowLog(7, lambda: self.least_ms)
        self.book = RequestBook(self.clock, self.log)
        self._context = PeerContext(LISTENER, Caller("me\nand you"), "10.0.0.9", 4)

    def request(self, request: Any = ASKED, *, local: float = 0, remote: float = 0, held: float = 0) -> None:
        timing = self.book.begin(BY_REQUEST[type(request)].method.name, 123)
        timing.asks(request)
        timing.correlation = 12
        self.clock.s += local / 1000
        timing.rest(self.clock.s)
        self.clock.s += remote / 1000
        self.clock.s += held / 1000
        timing.held_back(held / 1000)
        timing.replied(MetadataResponse(), self.clock.s)
        self.book.end(timing, self._context, self.clock.s)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    caplog.set_level(logging.INFO, "quorumlog.requests")
    handler, log = Lines(), logging.getLogger("quorumlog.requests")
    log.addHandler(handler)
    yield handler.found
    log.removeHandler(handler)


def test_a_slow_request_has_a_line_with_its_parts(lines: list[logging.LogRecord]) -> None:
    ended = Ended()
    topics = (ProduceTopic(name="a"), ProduceTopic(name="b"))
    ended.request(ProduceRequest(acks=-1, timeout_ms=1, topics=topics), local=100, remote=400)
    ended.request(local=100, remote=390)
    assert [line.getMessage() for line in lines] == [
        "slow Produce: 500 ms (queue 0, local 100, remote 400, throttle 0, response queue 0, response send 0); "
        "User:ANONYMOUS, client 'me\\nand you', from 10.0.0.9, 123 bytes, topics: 2"
    ]
    assert lines[0].__dict__["request"] == "7:4:12"


@pytest.mark.parametrize(
    ("request_", "times", "is_slow"),
    [
        (FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1), {"remote": 900}, False),
        (FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1), {"remote": 1_100}, True),
        (FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1), {"local": 600}, True),
        (ASKED, {"held": 900}, False),
        (ASKED, {"local": 600, "held": 900}, True),
    ],
)
def test_what_it_was_willing_to_wait_for_makes_no_request_slow(
    lines: list[logging.LogRecord], request_: Any, times: dict[str, float], is_slow: bool
) -> None:
    Ended().request(request_, **times)
    assert bool(lines) == is_slow


def test_slow_requests_have_few_lines_and_the_rest_is_counted(lines: list[logging.LogRecord]) -> None:
    ended = Ended()
    ended.least_ms = 1
    for _ in range(300):
        ended.request(local=2)
    assert len(lines) == MAX_LINES and ended.log.slow == 300 and ended.log.left_out == 290
    ended.request(local=600)
    assert [line.getMessage() for line in lines[MAX_LINES:-1]] == ["290 more requests were slow and have no line"]


def test_the_limit_changes_while_the_node_runs(lines: list[logging.LogRecord]) -> None:
    ended = Ended()
    ended.request(local=100)
    ended.least_ms = 50
    ended.clock.s += 1
    ended.request(local=100)
    ended.least_ms = 500
    ended.clock.s += 1
    ended.request(local=100)
    assert len(lines) == 1


def test_requests_are_counted_by_how_long_they_took() -> None:
    ended = Ended()
    for milliseconds in (0, 0.9, 5.1, 31_000):
        ended.request(local=milliseconds)
    times = ended.book.by_api["Metadata"]
    total = times.total
    assert total.counts[0] == 1 and total.counts[-1] == 1 and total.count == 4 and round(total.sum, 3) == 31.006
    local = times.parts[PARTS.index("local")]
    assert local.counts[0] == 2 and round(local.sum, 3) == 31.006
    assert times.errors == {ErrorCode.NONE: 4}
