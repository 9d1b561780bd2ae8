"""Templates and the frame of every page: who is logged in, how far the past goes back, what the keys do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from quorumlog_console import words
from quorumlog_console.access import Access
from quorumlog_console.console import console_of

NAVIGATION = (
    ("o", "/", "Overview"),
    ("w", "/causes", "Causes"),
    ("n", "/nodes", "Nodes"),
    ("q", "/quorum", "Quorum"),
    ("t", "/topics", "Topics"),
    ("c", "/groups", "Groups"),
    ("x", "/transactions", "Transactions"),
    ("m", "/moves", "Moves"),
    ("s", "/settings", "Settings"),
    ("r", "/rights", "Quotas and ACLs"),
    ("e", "/events", "Events"),
)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(words.FILTERS)
    return made


_TEMPLATES = _environment()


def render(
    request: Request, template: str, title: str, access: Access | None = None, status: int = 200, **values: Any
) -> Response:
    """title: plain text. values: of the template; all text in them is escaped."""
    path = "/" + request.url.path.lstrip("/\\")  # as a link, //host leads to the host
    sample = access.past.newest if access is not None else None
    age_ms = access.age_ms() if access is not None else 0
    text = _TEMPLATES.get_template(template).render(
        title=title,
        path=path,
        navigation=[(key, href, name, _is_here(path, href)) for key, href, name in NAVIGATION],
        access=access,
        sample=sample,
        past=access.past if access is not None else None,
        age_ms=age_ms,
        is_stale=age_ms > console_of(request).limits.stale_ms,
        now_ms=time.time_ns() // 1_000_000,
        is_live=values.pop("is_live", False),
        **values,
    )
    return HTMLResponse(text, status)


def _is_here(path: str, href: str) -> bool:
    return path == href if href == "/" else path == href or path.startswith(f"{href}/")
