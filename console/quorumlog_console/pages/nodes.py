"""Brokers and their disks."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.sample import Part
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of


@page
async def nodes(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    leaders, replicas, behind = Counter[int](), Counter[int](), Counter[int]()
    for topic in sample.topics.values():
        for one in topic.partitions:
            leaders[one.leader] += 1
            replicas.update(one.replicas)
            behind.update(set(one.replicas) - set(one.isr))
    return render(
        request,
        "nodes.html",
        "Nodes and disks",
        access,
        is_live=True,
        brokers=sample.brokers,
        leaders=leaders,
        replicas=replicas,
        behind=behind,
        disks_missing=sample.missing.get(Part.DISKS, ""),
    )
