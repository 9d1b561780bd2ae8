"""Transactions that are open, and those that hang."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.client.administration.hanging import MAX_TIMEOUT_MS
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of
from quorumlog_console.pages.listing import listing

MAX_PARTITIONS = 2_000  # whose producers are asked for, to find what hangs
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@page
async def transactions(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    found = await access.admin.list_transactions()
    is_all_shown = request.query_params.get("all") == "1"
    shown = found if is_all_shown else [one for one in found if one.transaction.state in OPEN]
    described = await access.admin.describe_transactions(
        [one.transaction.transactional_id for one in found if one.transaction.state in OPEN][:500]
    )
    now_ms = time.time_ns() // 1_000_000
    keys = [
        (name, one.index) for name, topic in sample.topics.items() for one in topic.partitions if not one.is_offline
    ]
    is_asked = request.query_params.get("hanging") == "1"
    hanging = []
    if is_asked and len(keys) <= MAX_PARTITIONS:
        hanging = await access.admin.find_hanging_transactions(keys, MAX_TIMEOUT_MS, now_ms=now_ms)
    listed = listing(
        request,
        shown,
        lambda one: one.transaction.transactional_id,
        {"name": lambda one: one.transaction.transactional_id, "state": lambda one: one.transaction.state},
        "name",
        kept={"all": "1" if is_all_shown else "", "hanging": "1" if is_asked else ""},
    )
    return render(
        request,
        "transactions.html",
        "Transactions",
        access,
        is_live=not is_asked,
        listed=listed,
        described=described,
        is_all_shown=is_all_shown,
        is_asked=is_asked,
        hanging=hanging,
        too_many=len(keys) if len(keys) > MAX_PARTITIONS else 0,
        max_timeout_ms=MAX_TIMEOUT_MS,
    )
