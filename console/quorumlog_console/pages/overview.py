"""The first page: what is wrong, and what is busy."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.health import LIMITS, health_of
from quorumlog.watch.sample import BrokerState, Sample
from quorumlog_console.access import Access
from quorumlog_console.page import not_shown, page, render, sample_of
from quorumlog_console.pages.happenings import of_watching

TOP = 10


class Problem(NamedTuple):
    """level: bad or warn. where: the page that shows more."""

    level: str
    text: str
    where: str


@page
async def overview(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    rates = access.past.topic_rates()
    busiest = heapq.nlargest(TOP, rates.items(), key=lambda item: item[1].records or 0)
    behind = heapq.nlargest(TOP, sample.groups.values(), key=lambda group: group.lag)
    known = [rate.records for rate in rates.values() if rate.records is not None]
    partitions = [one for topic in sample.topics.values() for one in topic.partitions]
    return render(
        request,
        "overview.html",
        "Overview",
        access,
        is_live=True,
        problems=list(problems(sample)),
        partitions=len(partitions),
        serving=sum(one.state is BrokerState.SERVING for one in sample.brokers),
        records=sum(known) if known else None,
        size=sum(one.size_bytes for one in partitions if one.size_bytes > 0),
        busiest=[(name, rate) for name, rate in busiest if rate.records],
        behind=[(one, access.past.behind_ms(one)) for one in behind if one.lag > 0],
        events=of_watching(access.past)[:TOP],
    )


def problems(sample: Sample) -> Iterator[Problem]:
    """What an operator should look at first, the worst first."""
    health = health_of(sample)
    if health.has_no_leader:
        yield Problem("bad", "The quorum has no leader: nothing can be changed in the cluster.", "/quorum")
    if health.offline:
        text = f"{_counted(health.offline, 'partition')} without a leader: not readable, not writable."
        yield Problem("bad", text, "/topics?state=offline")
    for node_id in health.fenced:
        yield Problem("bad", f"Broker {node_id} is fenced: it leads nothing until it is back.", "/nodes")
    for node_id, one in health.dead:
        yield Problem("bad", f"Directory {one.path} of broker {node_id} is offline: {one.error}.", "/nodes")
    if health.under_replicated:
        text = f"{_counted(health.under_replicated, 'partition')} with fewer replicas in sync than assigned."
        yield Problem("warn", text, "/topics?state=under")
    for node_id in health.silent_voters:
        yield Problem("warn", f"Voter {node_id} of the quorum does not fetch from its leader.", "/quorum")
    for node_id in health.stopping:
        yield Problem("warn", f"Broker {node_id} is stopping.", "/nodes")
    for node_id, one in health.nearly_full:
        text = f"Directory {one.path} of broker {node_id} has less than {LIMITS.free_percent:.0f} % free."
        yield Problem("warn", text, "/nodes")
    for text in not_shown(sample, *sample.missing):
        yield Problem("note", text, "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
