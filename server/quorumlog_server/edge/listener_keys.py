"""The certificates of a node's listeners: read before a port opens, and again while the node runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from quorumlog.nursery import Nursery
from quorumlog.settings.node_auth import DENIED
from quorumlog.settings.security import DENIED_CERTIFICATES
from quorumlog_broker.api.listener_files import NotTaken
from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    import ssl

    from quorumlog.security.tls.reload import Certificates, Generation
    from quorumlog.security.tls.settings import ServerTls
    from quorumlog_server.edge.denied_certificates import DeniedCertificates

_log = logging.getLogger("quorumlog.node")
EXPIRY_DAYS = 14  # before that a certificate is no event
DAY_MS = 86_400_000


class ListenerKeys:
    """by_listener: those of listeners with TLS. Two that name the same files have each its own, which change alone.
    denied: certificates that count no more; of_nodes: of nodes alone. None: there is no such list."""

    def __init__(
        self,
        by_listener: Mapping[str, Certificates] | None = None,
        denied: DeniedCertificates | None = None,
        of_nodes: DeniedCertificates | None = None,
    ) -> None:
        self.by_listener, self._denied, self._of_nodes = by_listener or {}, denied, of_nodes
        self.told: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None  # of each change; the node's
        self._sooner = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()  # of reads

    def look_now(self) -> None:
        """An operator's order (SIGHUP): do not wait for the next look."""
        self._sooner.set()

    def context_of(self, listener: str) -> Callable[[], ssl.SSLContext] | None:
        """For the next connection: that of the newest certificate. None: the listener is in clear."""
        certificates = self.by_listener.get(listener)
        return None if certificates is None else lambda: certificates.generation.context

    def is_denied(self, fingerprint: str) -> bool:
        """Of a client's certificate."""
        return self._denied is not None and fingerprint in self._denied

    def is_denied_node(self, fingerprint: str) -> bool:
        return self.is_denied(fingerprint) or (self._of_nodes is not None and fingerprint in self._of_nodes)

    # --- `api.listener_files.ListenerFiles`

    def path_of(self, listener: str, key: str) -> str | None:
        for name, certificates in self.by_listener.items():
            if name.lower() == listener:
                return certificates.path_of(key)
        return None

    async def read_again(self, listener: str, *, validate_only: bool) -> None:
        from quorumlog.security.tls.errors import BadTls

        for name, certificates in self.by_listener.items():
            if name.lower() == listener:
                try:
                    found = await self._aside(partial(certificates.order, validate_only=validate_only))
                except BadTls as error:
                    raise NotTaken(str(error)) from None
                if found is not None:
                    self._tell(name, found)

    async def _aside(self, read: Callable[[], Generation | None]) -> Generation | None:
        async with self._one_at_a_time:
            return await asyncio.to_thread(read)

    # --- in the background

    def keep_fresh(self, nursery: Nursery, wall_ms: Callable[[], int]) -> None:
        """Look at the files and the time that is left, from time to time, until the nursery closes."""
        if not self.by_listener:
            return
        from quorumlog.security.tls.reload import keep_fresh

        for name, certificates in self.by_listener.items():
            tell, complain = partial(self._tell, name), partial(self._complain, name)
            mended = partial(self._mended, name)
            watch = keep_fresh(certificates, self._pause, self._aside, tell, complain, mended)
            nursery.start(watch, f"certificates of {name}")
        nursery.start(self._watch_expiry(wall_ms), "expiry of certificates")
        for denied in (self._denied, self._of_nodes):
            if denied is not None:
                nursery.start(self._watch(denied), f"denied certificates of {denied.key}")

    def _tell(self, name: str, found: Generation) -> None:
        text = f"new connections get certificate generation {found.number}"
        _log.info("%s: %s", name, text)
        self.told("tls.reloaded", f"listener/{name}", text)

    def _complain(self, name: str, trouble: str) -> None:
        _log.warning("%s: the certificates in use stay: %s", name, trouble)
        self.told("tls.trouble", f"listener/{name}", f"the certificates in use stay: {trouble}")

    def _mended(self, name: str) -> None:
        text = "the files hold the certificate in use again"
        _log.info("%s: %s", name, text)
        self.told("tls.reloaded", f"listener/{name}", text)

    async def _watch_expiry(self, wall_ms: Callable[[], int]) -> None:
        """An event once a day for each certificate that ends soon or has ended."""
        from quorumlog.security.tls.reload import POLL_MS

        told: dict[str, tuple[int, int]] = {}  # the generation and the days that were told, by listener
        while True:
            for name, certificates in self.by_listener.items():
                ends_ms = certificates.generation.material.not_after_ms
                days = None if ends_ms is None else (ends_ms - wall_ms()) // DAY_MS
                number = certificates.generation.number
                if days is not None and days < EXPIRY_DAYS and told.get(name) != (number, days):
                    told[name] = (number, days)
                    text = f"expires in {days} days" if days >= 0 else "has expired"
                    self.told("tls.expiry", f"listener/{name}", f"the certificate of generation {number} {text}")
            await self._pause(POLL_MS)

    async def _watch(self, denied: DeniedCertificates) -> None:
        from quorumlog.security.tls.reload import POLL_MS

        told: str | None = None
        while True:
            await self._pause(POLL_MS)
            if await asyncio.to_thread(denied.look):
                _log.info("other certificates are denied now (%s)", denied.path)
            if denied.trouble != told:
                told = denied.trouble
                if told is not None:
                    _log.warning("the same certificates stay denied: %s", told)

    async def _pause(self, pause_ms: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._sooner.wait()
        asyncio.get_running_loop().call_soon(self._sooner.clear)  # once all who wait have heard it
        await asyncio.sleep(0)  # until it is cleared: who pauses again before that would not wait, and never give way


def read_keys(
    settings: Mapping[str, ServerTls],
    wall_ms: Callable[[], int],
    denied: str | None = None,
    denied_nodes: str | None = None,
) -> ListenerKeys:
    """settings: by the names of listeners with TLS. denied, denied_nodes: files of certificates that count no more.
    Raises ConfigError."""
    if not settings:
        return ListenerKeys()
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.files import RealFiles
    from quorumlog.security.tls.reload import Certificates
    from quorumlog_server.edge.denied_certificates import DeniedCertificates

    found = {}
    for name, tls in settings.items():
        try:
            found[name] = Certificates(tls, RealFiles(), wall_ms)
        except BadTls as error:
            raise ConfigError(f"{name}: {error}") from None
    lists = ((DENIED_CERTIFICATES, denied), (DENIED, denied_nodes))
    made = (None if path is None else DeniedCertificates(key, path, RealFiles()) for key, path in lists)
    return ListenerKeys(found, *made)
