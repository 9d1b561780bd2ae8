"""What has happened, on one time line: as the nodes tell it, or as the console has seen it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.ids import NodeId
from quorumlog_console.access import Access
from quorumlog_console.page import ask, page, render
from quorumlog_console.pages.happenings import Happening, of_nodes, of_watching
from quorumlog_console.pages.listing import listing

HOUR_MS = 3_600_000
EVENTS = 2_000  # of each node
NODE_MS = 2_000
SLOTS = 60  # of the picture: minutes


class Told(NamedTuple):
    """why_not: why the nodes tell nothing; empty: they do. since_ms: from when on nothing is missing, ms since 1970.

    silent: nodes that have not answered, with the reason.
    """

    happenings: list[Happening]
    since_ms: int = 0
    why_not: str = ""
    silent: dict[NodeId, str] = {}


async def told_since(access: Access, since_ms: int, kinds: Sequence[str] = ()) -> Told:
    silent: dict[NodeId, str] = {}
    answers, why_not = await ask(
        lambda: access.admin.describe_events(
            since_ms=since_ms, kinds=kinds, limit=EVENTS, timeout_ms=NODE_MS, silent=silent
        )
    )
    if not answers:
        return Told([], why_not=why_not or next(iter(silent.values()), "no node has answered"))
    complete = max(one.complete_since_ms for one in answers.values())
    return Told(of_nodes(answers), max(since_ms, complete), silent=silent)


@page
async def events(request: Request, access: Access) -> Response:
    now_ms = time.time_ns() // 1_000_000
    since_ms = now_ms - HOUR_MS
    told = await told_since(access, since_ms)
    seen = [one for one in of_watching(access.past) if one.at_ms >= since_ms]
    shown = seen if told.why_not else told.happenings
    chosen = request.query_params.get("kind", "")
    kinds = sorted({one.kind.partition(".")[0] for one in shown})
    rows = [one for one in shown if not chosen or one.kind.partition(".")[0] == chosen]
    listed = listing(
        request,
        rows,
        lambda one: f"{one.kind} {one.subject} {one.text}",
        {"time": lambda one: one.at_ms, "kind": lambda one: one.kind, "subject": lambda one: one.subject},
        "time",
        is_descending=True,
        kept={"kind": chosen},
    )
    return render(
        request,
        "events.html",
        "Events of the last hour",
        access,
        is_live=True,
        told=told,
        listed=listed,
        kinds=kinds,
        chosen=chosen,
        slots=slots(rows, since_ms),
        since_ms=access.past.since_wall_ms if told.why_not else told.since_ms,
    )


def slots(rows: Sequence[Happening], since_ms: int) -> list[int]:
    """How many events each minute had, oldest first."""
    counts = [0] * SLOTS
    for one in rows:
        counts[min(SLOTS - 1, max(0, (one.at_ms - since_ms) * SLOTS // HOUR_MS))] += 1
    return counts
