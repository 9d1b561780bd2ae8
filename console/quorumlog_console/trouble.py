"""Pages that say what went wrong."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog_console.access import Access
from quorumlog_console.layout import render


def trouble(request: Request, status: int, what: str, why: str, access: Access | None = None) -> Response:
    return render(request, "trouble.html", what, access, status, what=what, why=why)


async def not_found(request: Request, _: Exception) -> Response:
    return trouble(
        request, 404, "There is no such page", "What it showed may be gone, or the address has a mistake in it."
    )
