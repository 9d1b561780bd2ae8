"""The keys that sign clients' tokens: fetched before a port opens, and again while the node runs.

Without them a node does not start. Later the keys in use stay while the source is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from quorumlog.nursery import Nursery
from quorumlog_server.config.listener_security import rules_of
from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    from quorumlog.security.sasl.mechanisms import Tokens
    from quorumlog.settings.security import TokenSettings

MAX_PAUSE_MS = 60_000  # between two looks at the clock, which may be set meanwhile
MIN_PAUSE_MS = 100
_log = logging.getLogger("quorumlog.node")


class TokenKeys:
    """by_listener: of listeners with OAUTHBEARER. wall_ms: Unix time."""

    def __init__(self, by_listener: Mapping[str, Tokens] | None = None, wall_ms: Callable[[], int] = int) -> None:
        self.by_listener, self._wall_ms = by_listener or {}, wall_ms

    def keep_fresh(self, nursery: Nursery) -> None:
        """Fetch the keys again when they are due, until the nursery closes."""
        for name, tokens in self.by_listener.items():
            nursery.start(self._watch(name, tokens), f"token keys of {name}")

    async def _watch(self, name: str, tokens: Tokens) -> None:
        while True:
            pause_ms = min(MAX_PAUSE_MS, tokens.jwks.due_ms - self._wall_ms())
            await asyncio.sleep(max(MIN_PAUSE_MS, pause_ms) / 1000)
            if self._wall_ms() >= tokens.jwks.due_ms:
                await self._fetch(name, tokens)

    async def _fetch(self, name: str, tokens: Tokens) -> None:
        from quorumlog.security.sasl.jwks import BadJwks

        document = await asyncio.to_thread(tokens.fetch)
        if document is None:
            tokens.jwks.failed(self._wall_ms())
            return
        try:
            tokens.jwks.fetched(document, self._wall_ms())
        except BadJwks as error:
            _log.warning("%s: the keys of tokens in use stay: %s", name, error)


def read_token_keys(settings: Mapping[str, TokenSettings], wall_ms: Callable[[], int]) -> TokenKeys:
    """settings: by the names of listeners with OAUTHBEARER. Blocks while keys are fetched. Raises ConfigError."""
    return TokenKeys({name: _tokens(name, one, wall_ms) for name, one in settings.items()}, wall_ms)


def _tokens(name: str, settings: TokenSettings, wall_ms: Callable[[], int]) -> Tokens:
    from quorumlog.security.http_answer import FetchError
    from quorumlog.security.sasl.edge.fetching import fetch_document
    from quorumlog.security.sasl.jwks import BadJwks, Jwks
    from quorumlog.security.sasl.mechanisms import Tokens

    url = settings.jwks_url
    assert url is not None, "the configuration was checked"
    try:
        jwks = Jwks(fetch_document(url, None), wall_ms(), settings.refresh_ms)
    except (FetchError, BadJwks) as error:
        raise ConfigError(
            f"{name}: the keys that sign tokens cannot be had from {url}: {error}; without them nobody could be told "
            "from anybody else, so the node does not start"
        ) from None

    def fetch() -> bytes | None:
        try:
            return fetch_document(url, None)
        except FetchError as error:
            _log.warning("%s: the keys of tokens in use stay: %s", name, error)
            return None

    return Tokens(rules=rules_of(settings), jwks=jwks, fetch=fetch)
