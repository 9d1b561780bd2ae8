"""The quorum: who leads it, how far each voter is, which elections there were."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.sample import Part
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of
from quorumlog_console.pages.events import told_since
from quorumlog_console.pages.happenings import of_watching

ELECTIONS = ("election", "quorum")  # kinds, or their first words


@page
async def quorum(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    told = await told_since(access, 0, kinds=ELECTIONS)
    elections = (
        told.happenings if told.happenings else [one for one in of_watching(access.past) if one.kind == "election"]
    )
    return render(
        request,
        "quorum.html",
        "Quorum",
        access,
        is_live=True,
        quorum=sample.quorum,
        missing=sample.missing.get(Part.QUORUM, ""),
        elections=elections[:100],
        is_told=bool(told.happenings),
    )
