"""Which services a listener has, and who says whether they are healthy. standard.py serves it, and loads more."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.messages.services import METHODS

HealthSource = Callable[[str], bool | None]  # service name -> healthy; None: unknown service
WHOLE_SERVER = ""  # the service name for the whole server
SERVICES = tuple(dict.fromkeys(method.service for method in METHODS))


def always_serving(service: str) -> bool | None:
    """For a listener that is always ready."""
    return True if service in (WHOLE_SERVER, *SERVICES) else None
