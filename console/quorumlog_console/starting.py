"""What whoever starts a console asks first. Nothing of the extra [ui] is loaded for it."""

from __future__ import annotations

from importlib.util import find_spec

LISTEN = "127.0.0.1:8080"
PACKAGES = ("jinja2", "starlette", "uvicorn")


def missing_package() -> str:
    """One of the extra [ui] that is not installed; empty: all are."""
    return next((name for name in PACKAGES if find_spec(name) is None), "")


def host_and_port(text: str) -> tuple[str, int]:
    """Without a host it is this machine's own. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
