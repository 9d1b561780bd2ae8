"""The certificates of one client, which are read again when their files have changed: new connections get the new ones.

A client has no timer for that. It looks when it connects, and no more often than every POLL_MS as long as its own
certificate has not ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorumlog.security.tls.files import Files
from quorumlog.security.tls.reload import POLL_MS, Certificates, Generation
from quorumlog.security.tls.settings import ClientTls

_log = logging.getLogger(__name__)


class FreshCertificates:
    """`caller_security.CallerTls`. wall_ms: Unix time, which certificates go by. now_ms: a clock that never goes
    back."""

    def __init__(self, tls: ClientTls, files: Files, wall_ms: Callable[[], int], now_ms: Callable[[], int]) -> None:
        """Raises BadTls."""
        self._tls, self._wall_ms, self._now_ms = tls, wall_ms, now_ms
        self._certificates = Certificates(tls, files, wall_ms)
        self._looked_ms = now_ms()
        self._told: str | None = None

    @property
    def settings(self) -> ClientTls:
        return self._tls

    def newest(self) -> Generation:
        ends_ms = self._certificates.generation.material.not_after_ms
        has_ended = ends_ms is not None and self._wall_ms() >= ends_ms
        if has_ended or self._now_ms() - self._looked_ms >= POLL_MS:
            self.look()
        return self._certificates.generation

    def look(self) -> bool:
        self._looked_ms = self._now_ms()
        is_new = self._certificates.look() is not None
        trouble = self._certificates.trouble
        if trouble is not None and trouble != self._told:
            _log.warning("the certificates in use stay: %s", trouble)
        self._told = trouble
        return is_new
