"""How long requests take, and in which parts, as Kafka's RequestMetrics name them; per API, with a line for slow ones.

    queue           from when the request is there as a whole until its handler begins
    local           the steps of its handler on the node's loop, with reading the request and making the answer
    remote          what the handler waits for: followers, other nodes, the disk, or more records
    throttle        what the client's quota costs it
    response_queue  the answer waits for those of earlier requests
    response_send   until the socket has taken the answer; by gRPC nobody tells, and it is 0

The total is from the first to the last. On the lane a throttled client gets its answer at once and is not read for a
while (KIP-219), so `throttle` is no part of the total there, as in Kafka; by gRPC the answer is held back, and it is.

Pure: times come in. A few reads of the clock for a request, and none for a record.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from quorumlog.histogram import Histogram
from quorumlog.messages.fetch import FetchChunkRequest, FetchRequest, FetchResponse
from quorumlog.messages.groups import JoinGroupRequest, SyncGroupRequest
from quorumlog.messages.produce import ProduceResponse
from quorumlog.messages.quorum import QuorumFetchRequest

if TYPE_CHECKING:
    from quorumlog.rpc.serving.dispatch import PeerContext
    from quorumlog.rpc.serving.slow_log import SlowLog

PARTS = ("queue", "local", "remote", "throttle", "response_queue", "response_send")
SHORT_S = 0.001  # the first bucket of parts, where most of them are
FOLLOWER_FETCH, CONSUMER_FETCH = "FetchFollower", "FetchConsumer"  # as Kafka tells them apart

WAITS = (JoinGroupRequest, SyncGroupRequest, QuorumFetchRequest, FetchChunkRequest)
"""Requests that wait for others by their nature: what they wait for makes none of them slow. A fetch says for how
long it is willing to wait."""


class Timing:
    """Of one request. All times are in seconds of the book's clock. wait_s: for how long it may wait and not be slow.

    Its handler runs from the start, until `rest`. held_s: of throttle_s, as far as the answer was held back.
    error_code: the first in the answer; 0: none.
    """

    __slots__ = (
        "api",
        "arrived_s",
        "correlation",
        "error_code",
        "held_s",
        "local_s",
        "queue_s",
        "replied_s",
        "rested_s",
        "sent_s",
        "size_bytes",
        "step_s",
        "throttle_s",
        "topics",
        "wait_s",
    )

    def __init__(self, api: str, arrived_s: float, begun_s: float, size_bytes: int) -> None:
        self.api, self.arrived_s, self.size_bytes = api, arrived_s, size_bytes
        self.queue_s = max(0.0, begun_s - arrived_s)
        self.step_s: float | None = begun_s
        self.rested_s = begun_s
        self.local_s = self.throttle_s = self.held_s = self.wait_s = 0.0
        self.replied_s = self.sent_s = 0.0  # 0: not yet
        self.error_code = self.topics = self.correlation = 0

    def asks(self, request: Any) -> None:
        """Its request was read."""
        kind = type(request)
        self.topics = len(getattr(request, "topics", None) or ())
        if kind is FetchRequest:
            self.api = CONSUMER_FETCH if request.replica is None else FOLLOWER_FETCH
            self.wait_s = request.max_wait_ms / 1000
        elif kind in WAITS:
            self.wait_s = float("inf")

    def step(self, now_s: float) -> None:
        """Its handler goes on. After the answer nothing of it counts."""
        if self.step_s is None and not self.replied_s:
            self.step_s = now_s

    def rest(self, now_s: float) -> None:
        """Its handler waits."""
        if self.step_s is not None:
            self.local_s += now_s - self.step_s
            self.step_s, self.rested_s = None, now_s

    def first_step(self, now_s: float) -> None:
        """Of a handler that is a task, which has waited for its first turn of the loop."""
        self.queue_s += now_s - self.rested_s
        self.step(now_s)

    def held_back(self, held_s: float) -> None:
        """The handler was done, and its answer was kept for so long."""
        self.throttle_s += held_s
        self.held_s += held_s

    def replied(self, message: Any, now_s: float) -> None:
        """The answer is written."""
        self.rest(now_s)
        self.replied_s = self.sent_s = now_s
        self.error_code = error_of(message)

    def parts_s(self, ended_s: float) -> tuple[float, float, float, float, float, float]:
        """In the order of PARTS."""
        remote_s = self.replied_s - self.arrived_s - self.queue_s - self.local_s - self.held_s
        return (
            self.queue_s,
            self.local_s,
            max(0.0, remote_s),
            self.throttle_s,
            self.sent_s - self.replied_s,
            ended_s - self.sent_s,
        )


CURRENT: ContextVar[tuple[int, Timing] | None] = ContextVar("request", default=None)
"""Which request the code that runs now works for, so that log lines can say it: its connection, and itself.

It holds for the task of a request, and for tasks that this begins. Produce and Fetch have no task, and are not there:
to tell it would cost each of them more than a log line is worth."""


def current_request() -> str:
    """CONNECTION:CORRELATION, as `transport.Context.request_id`; empty outside of a request."""
    found = CURRENT.get()
    return "" if found is None else f"{found[0]}:{found[1].correlation}"


class ApiTimes:
    """What one API has taken since the start. parts: in the order of PARTS."""

    __slots__ = ("errors", "parts", "total")

    def __init__(self) -> None:
        self.total = Histogram("call")
        self.parts = [Histogram("part") for _ in PARTS]
        self.errors: dict[int, int] = {}  # by the code of the answer; 0: none


class RequestBook:
    """Of one node. now_s: the loop's time, also of `arrived_s`. slow: None: nobody is told of slow requests.

    held_bytes: of requests and answers on the lane, by whether their listener is internal; its transport sets it.
    """

    def __init__(self, now_s: Callable[[], float], slow: SlowLog | None = None) -> None:
        self.now_s, self.slow = now_s, slow
        self.held_bytes: Callable[[], Mapping[bool, int]] = dict
        self.by_api: dict[str, ApiTimes] = {}  # of the calls that there are, so not more than those

    def begin(self, api: str, size_bytes: int, arrived_s: float | None = None) -> Timing:
        """A request begins. arrived_s: None: now."""
        now_s = self.now_s()
        return Timing(api, now_s if arrived_s is None else arrived_s, now_s, size_bytes)

    def end(self, timing: Timing, context: PeerContext, ended_s: float) -> None:
        """The socket has taken the answer, or there is none."""
        times = self.by_api.get(timing.api)
        if times is None:
            times = self.by_api[timing.api] = ApiTimes()
        total_s = ended_s - timing.arrived_s
        times.total.observe(total_s)
        times.errors[timing.error_code] = times.errors.get(timing.error_code, 0) + 1
        parts_s = timing.parts_s(ended_s)
        for histogram, part_s in zip(times.parts, parts_s, strict=True):
            if part_s <= SHORT_S:
                histogram.counts[0] += 1
                histogram.sum += part_s
            else:
                histogram.observe(part_s)
        slow = self.slow
        if slow is not None:
            if ended_s >= slow.look_s:
                slow.look(ended_s)
            if total_s >= slow.least_s:
                slow.judge(timing, parts_s, context, ended_s)


class Stepped(Coroutine[Any, Any, Any]):
    """A handler that runs as a task, whose steps a timing measures."""

    __slots__ = ("_book", "_context", "_has_begun", "_steps", "_timing")

    def __init__(
        self, steps: Coroutine[Any, Any, Any], timing: Timing, book: RequestBook, context: PeerContext
    ) -> None:
        self._steps, self._timing, self._book, self._context = steps, timing, book, context
        self._has_begun = False
        timing.rest(book.now_s())

    def send(self, value: Any) -> Any:
        if self._has_begun:
            self._timing.step(self._book.now_s())
        else:
            self._has_begun = True
            self._timing.first_step(self._book.now_s())
            CURRENT.set((self._context.number, self._timing))
        try:
            return self._steps.send(value)
        finally:
            self._timing.rest(self._book.now_s())

    def throw(self, *error: Any) -> Any:
        self._timing.step(self._book.now_s())
        try:
            return self._steps.throw(*error)
        finally:
            self._timing.rest(self._book.now_s())

    def close(self) -> None:
        self._steps.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def __iter__(self) -> Stepped:
        return self

    def __next__(self) -> Any:
        return self.send(None)


def error_of(message: Any) -> int:
    """The first error in an answer; 0: none. Of those with many parts only Produce and Fetch are looked through."""
    code: int = getattr(message, "error_code", 0)
    if code or type(message) not in (ProduceResponse, FetchResponse):
        return int(code)
    for topic in message.topics:
        for partition in topic.partitions:
            if partition.error_code:
                return int(partition.error_code)
    return 0
