"""The certificates of a node's listeners: read before a port opens, and again while the node runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from quorumlog.nursery import Nursery
from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    from quorumlog.security.tls.reload import Certificates, Generation
    from quorumlog.security.tls.settings import ServerTls

_log = logging.getLogger("quorumlog.node")


class ListenerKeys:
    """by_listener: those of listeners with TLS. Two that name the same files have each its own, which change alone."""

    def __init__(self, by_listener: Mapping[str, Certificates] | None = None) -> None:
        self.by_listener = by_listener or {}
        self._sooner = asyncio.Event()

    def look_now(self) -> None:
        """An operator's order (SIGHUP): do not wait for the next look."""
        self._sooner.set()

    def keep_fresh(self, nursery: Nursery) -> None:
        """Look at the files from time to time, until the nursery closes."""
        if not self.by_listener:
            return
        from quorumlog.security.tls.reload import keep_fresh

        for name, certificates in self.by_listener.items():
            watch = keep_fresh(certificates, self._pause, asyncio.to_thread, _tell(name), _complain(name))
            nursery.start(watch, f"certificates of {name}")

    async def _pause(self, pause_ms: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._sooner.wait()
        asyncio.get_running_loop().call_soon(self._sooner.clear)  # once all who wait have heard it


def read_keys(settings: Mapping[str, ServerTls], wall_ms: Callable[[], int]) -> ListenerKeys:
    """settings: by the names of listeners with TLS. Raises ConfigError."""
    if not settings:
        return ListenerKeys()
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.files import RealFiles
    from quorumlog.security.tls.reload import Certificates

    found = {}
    for name, tls in settings.items():
        try:
            found[name] = Certificates(tls, RealFiles(), wall_ms)
        except BadTls as error:
            raise ConfigError(f"{name}: {error}") from None
    return ListenerKeys(found)


def _tell(name: str) -> Callable[[Generation], None]:
    return lambda found: _log.info("%s: new connections get certificate generation %d", name, found.number)


def _complain(name: str) -> Callable[[str], None]:
    return lambda trouble: _log.warning("%s: the certificates in use stay: %s", name, trouble)
