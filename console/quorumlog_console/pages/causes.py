"""What is wrong and why, as `quorumlog check` and `explain` find it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.explaining.finding import Finding, Severity
from quorumlog_console.access import Access
from quorumlog_console.console import console_of
from quorumlog_console.page import page, render

MOST = 200  # findings on the page: a dead broker has one for each of its replicas
LEVELS = {Severity.NOTICE: "note", Severity.WARNING: "warn", Severity.CRITICAL: "bad"}


@page
async def causes(request: Request, access: Access) -> Response:
    found = await access.judge.judgement(console_of(request).limits.first_look_ms)
    findings = () if found is None else found.findings
    return render(
        request,
        "causes.html",
        "Causes",
        access,
        is_live=True,
        judgement=found,
        rows=[(LEVELS[one.severity], one, href_of(one)) for one in findings[:MOST]],
        more=max(0, len(findings) - MOST),
    )


def href_of(finding: Finding) -> str:
    """The page that shows more about its subject."""
    sort = finding.subject.partition("/")[0]
    return {
        "partition": "/topics", "topic": "/topics", "broker": "/nodes", "directory": "/nodes", "listener": "/nodes",
        "quorum": "/quorum", "group": "/groups", "transaction": "/transactions", "client": "/rights",
    }.get(sort, "/")  # fmt: skip
