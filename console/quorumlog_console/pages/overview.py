"""The first page: what is wrong, and what is busy."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.health import LIMITS, is_nearly_full, led_under_replicated
from quorumlog.watch.sample import BrokerState, Sample
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of
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
    behind = heapq.nlargest(TOP, sample.groups.values(), key=lambda group: group.distance)
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
        behind=[(one, access.past.behind_ms(one)) for one in behind if one.distance > 0],
        events=of_watching(access.past)[:TOP],
    )


def problems(sample: Sample) -> Iterator[Problem]:
    """What an operator should look at first, the worst first."""
    topics = list(sample.topics.values())
    if sample.quorum is not None and sample.quorum.leader_id < 0:
        yield Problem("bad", "The quorum has no leader: nothing can be changed in the cluster.", "/quorum")
    offline = sum(one.offline for one in topics)
    if offline:
        yield Problem(
            "bad",
            f"{_counted(offline, 'partition')} without a leader: not readable, not writable.",
            "/topics?state=offline",
        )
    for broker in sample.brokers:
        if broker.state is BrokerState.FENCED:
            yield Problem("bad", f"Broker {broker.node_id} is fenced: it leads nothing until it is back.", "/nodes")
        elif broker.state is BrokerState.STOPPING:
            yield Problem("warn", f"Broker {broker.node_id} is stopping.", "/nodes")
        for directory in broker.directories:
            if directory.error:
                yield Problem(
                    "bad",
                    f"Directory {directory.path} of broker {broker.node_id} is offline: {directory.error}.",
                    "/nodes",
                )
            elif is_nearly_full(directory):
                text = f"has less than {LIMITS.free_percent:g} % free."
                yield Problem("warn", f"Directory {directory.path} of broker {broker.node_id} {text}", "/nodes")
    under = led_under_replicated(topics)
    if under:
        yield Problem(
            "warn", f"{_counted(under, 'partition')} with fewer replicas in sync than assigned.", "/topics?state=under"
        )
    for part, why in sample.missing.items():
        yield Problem("note", f"The {part.value} are not shown: {why}.", "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
