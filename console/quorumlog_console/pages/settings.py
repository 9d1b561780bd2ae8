"""Settings of brokers, with the origin of each."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.client.admin import BROKER_RESOURCE
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of
from quorumlog_console.pages.listing import listing
from quorumlog_console.pages.setting_rows import setting_rows


@page
async def settings(request: Request, access: Access) -> Response:
    """?node=: of that broker; empty: what holds for all brokers."""
    sample = await sample_of(request, access)
    nodes = [one.node_id for one in sample.brokers]
    asked = request.query_params.get("node")
    chosen = asked if asked is not None and asked in ("", *map(str, nodes)) else str(nodes[0]) if nodes else ""
    found = await access.admin.describe_configs(chosen, resource_type=BROKER_RESOURCE)
    is_all_shown = request.query_params.get("all") == "1"
    rows = setting_rows(found)
    kept = {"node": chosen, "all": "1" if is_all_shown else ""}
    listed = listing(
        request,
        rows if is_all_shown else [row for row in rows if not row.is_default],
        lambda row: f"{row.name} {row.value or ''}",
        {"name": lambda row: row.name, "origin": lambda row: row.origin},
        "name",
        kept=kept,
    )
    return render(
        request, "settings.html", "Settings", access, nodes=nodes, chosen=chosen, listed=listed,
        is_all_shown=is_all_shown, defaults=sum(row.is_default for row in rows),
    )  # fmt: skip
