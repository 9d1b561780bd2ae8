"""How this node answers requests, and whether its loop keeps up."""

from __future__ import annotations

from typing import Final

from quorumlog.errors import ErrorCode
from quorumlog.rpc.serving.request_parts import PARTS
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

_TIMES = "kafka.network:type=RequestMetrics,name="

REQUESTS = Series(
    "requests_total", Kind.COUNTER, "", ("api", "error"), "How many requests were answered, and with which error?",
    f"{_TIMES}RequestsPerSec, ErrorsPerSec",
)  # fmt: skip
SECONDS = Series(
    "request_seconds", Kind.HISTOGRAM, "seconds", ("api",),
    "How long do requests take, from the whole request to the sent answer?", f"{_TIMES}TotalTimeMs", buckets="call",
)  # fmt: skip
PART_SECONDS = Series(
    "request_part_seconds", Kind.HISTOGRAM, "seconds", ("api", "part"),
    "In which part? The queue, this node (local), others (remote), a quota (throttle), the turn of the answer, "
    "or the client's socket.",
    f"{_TIMES}RequestQueueTimeMs, LocalTimeMs, RemoteTimeMs, ThrottleTimeMs, ResponseQueueTimeMs, ResponseSendTimeMs",
    buckets="part",
)  # fmt: skip
SLOW = Series(
    "slow_requests_total", Kind.COUNTER, "", (), "How many requests took slow.request.ms or more? The log names them."
)
PURGATORY = Series(
    "purgatory", Kind.GAUGE, "", ("kind",), "How many requests wait, and for what of a partition?",
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
)  # fmt: skip
BUSY = Series(
    "loop_busy_ratio", Kind.GAUGE, "", (), "How busy is the event loop, of the last seconds? 1 is all that it can do.",
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
)  # fmt: skip
STALLS = Series(
    "loop_stall_seconds", Kind.HISTOGRAM, "seconds", (), "For how long did each turn hold up the event loop?",
    buckets="turn",
)  # fmt: skip
LONGEST_STALL = Series(
    "loop_stall_longest_seconds", Kind.GAUGE, "seconds", (), "For how long was the event loop held up at most?"
)
NODE_BYTES = Series(
    "node_bytes", Kind.GAUGE, "bytes", ("peers",),
    "How much do requests and answers hold? Clients: of queued.max.request.bytes.",
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
)  # fmt: skip

SERIES: Final = (
    REQUESTS, SECONDS, PART_SECONDS, SLOW, PURGATORY, BUSY, STALLS, LONGEST_STALL, NODE_BYTES,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    _of_requests(source, out)
    _of_waiting(source, out)
    selector = source.watchdog.selector
    out.add(BUSY, selector.busy_ratio)
    out.add_histogram(STALLS, selector.turns)
    out.add(LONGEST_STALL, source.watchdog.max_stall_ms / 1000)


def _of_requests(source: Source, out: Reading) -> None:
    book = source.node.edges.requests
    if book is None:
        return
    for api, times in out.each(list(book.by_api.items())):
        for code, count in list(times.errors.items()):
            out.add(REQUESTS, count, api, _name_of(code))
        out.add_histogram(SECONDS, times.total, api)
        for part, histogram in zip(PARTS, times.parts, strict=True):
            out.add_histogram(PART_SECONDS, histogram, api, part)
    if book.slow is not None:
        out.add(SLOW, book.slow.slow)
    held_bytes = book.held_bytes()
    out.add(NODE_BYTES, held_bytes.get(False, 0), "clients")
    out.add(NODE_BYTES, held_bytes.get(True, 0), "nodes")


def _of_waiting(source: Source, out: Reading) -> None:
    broker = source.node.broker
    if broker is None:
        return
    delayed = broker.data_plane.delayed
    out.add(PURGATORY, len(delayed.ends), "log_end")
    out.add(PURGATORY, len(delayed.commits), "high_watermark")
    out.add(PURGATORY, len(delayed.stable), "last_stable_offset")
    out.add(PURGATORY, len(delayed.starts), "low_watermark")
    out.add(PURGATORY, len(delayed.leaders), "leader")


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
