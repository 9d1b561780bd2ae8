"""What a scrape tells of requests and of those who wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from quorumlog.messages.cluster import MetadataResponse
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.slow_log import SlowLog
from quorumlog.rpc.transport import Address, Listener
from quorumlog_server.metrics import requests
from quorumlog_server.metrics.bounded import BoundedLabels
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.text import page_of
from quorumlog_server.process.watchdog import LoopWatchdog


def scrape(book: RequestBook) -> dict[str, float]:
    """Values by name and labels, as the parser of Prometheus reads them."""
    edges: Any = SimpleNamespace(requests=book)
    node: Any = SimpleNamespace(edges=edges, broker=None)
    reading = Reading()
    requests.collect(Source(node, LoopWatchdog(lambda _ms: None), 0, 0), reading)
    page = page_of(requests.SERIES, BoundedLabels().bound(reading), reading.pace).decode()
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_requests_and_their_parts() -> None:
    now_s = 10.0
    slow = SlowLog(1, lambda: 500)
    book = RequestBook(lambda: now_s, slow)
    context = PeerContext(Listener(name="T", address=Address("h", 1), internal=False), Caller("me"), "h", 1)
    for code, remote_s in ((0, 0.0), (6, 2.0)):
        timing = book.begin("Produce", 9)
        timing.rest(now_s)
        timing.replied(MetadataResponse(error_code=code), now_s + remote_s)
        book.end(timing, context, now_s + remote_s)
    book.held_bytes = lambda: {False: 7, True: 8}
    shown = scrape(book)
    assert shown["quorumlog_requests_total[('api', 'Produce'), ('error', 'NONE')]"] == 1
    assert shown["quorumlog_requests_total[('api', 'Produce'), ('error', 'NOT_LEADER_OR_FOLLOWER')]"] == 1
    assert shown["quorumlog_request_seconds_sum[('api', 'Produce')]"] == 2
    assert shown["quorumlog_request_part_seconds_sum[('api', 'Produce'), ('part', 'remote')]"] == 2
    assert shown["quorumlog_request_part_seconds_bucket[('api', 'Produce'), ('le', '0.001'), ('part', 'remote')]"] == 1
    assert shown["quorumlog_slow_requests_total[]"] == 1
    assert shown["quorumlog_node_bytes[('peers', 'clients')]"] == 7
    assert shown["quorumlog_node_bytes[('peers', 'nodes')]"] == 8
