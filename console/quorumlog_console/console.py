"""What all requests share: who is logged in, and how a request comes to the access of its principal."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.looking.forms import Form
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog_console.access import NOBODY, Access
from quorumlog_console.decoding import Decoded, Decoding
from quorumlog_console.door import cluster_asks, takes_passwords
from quorumlog_console.options import ConsoleOptions, Login
from quorumlog_console.sessions import Failures, FormTokens, Sessions
from quorumlog_console.slots import Slots

_log = logging.getLogger("quorumlog.console")
COOKIE = "quorumlog_session"
ASK_AGAIN_S = 1.0


class Console:
    """Made on any thread, used on the console's loop only."""

    def __init__(self, options: ConsoleOptions) -> None:
        self.options, self.limits = options, options.limits
        self.sessions: Sessions[Access] = Sessions(options.limits, os.urandom, self._ended)
        self.failures, self.forms = Failures(options.limits), FormTokens(os.urandom)
        self.searches = Slots(options.limits.searches, "searches for records")
        self.tails = Slots(options.limits.tails, "live tails")
        self._decoding = Decoding(options.registry) if options.registry else None
        self.asks: bool | None = {Login.ALWAYS: True, Login.NEVER: False}.get(options.login)
        if takes_passwords(options.client):
            self.asks = True
        self.trouble = "it has not been asked yet"  # why it is not known whether the cluster asks for a login
        self._by_user: dict[str, Access] = {}
        self._nobody: Access | None = None
        self._nursery = Nursery(lambda name, error: _log.error("%s failed", name, exc_info=error))

    def start(self) -> None:
        self._nursery.start(self._find_out(), "whether the cluster asks for a login")
        self._nursery.start(self._expire(), "end of sessions")

    async def close(self) -> None:
        if self._decoding is not None:
            self._decoding.close()
        await self._nursery.close()
        for access in [*self._by_user.values(), *([self._nobody] if self._nobody else [])]:
            await access.close()

    async def decoded(self, records: Sequence[ConsumedRecord], form: Form | None) -> list[Decoded]:
        """form: None: what fits, which is what a schema says; in any other the bytes are shown that are stored."""
        if self._decoding is None or form is not None or not records:
            return [Decoded(record) for record in records]
        return await self._decoding.of(records)

    @staticmethod
    def now_ms() -> int:
        return time.monotonic_ns() // 1_000_000

    def access_of(self, request: Request, *, extends: bool = True) -> Access | None:
        """None: nobody is logged in, and somebody has to; or it is not known yet whether they have.

        extends: the session's time; not where a page asks on its own, such as a live tail.
        """
        if self.asks is None:
            return None
        if not self.asks:
            return self._of_nobody()
        token = request.cookies.get(COOKIE, "")
        access = self.sessions.find(token, self.now_ms(), extends=extends) if token else None
        if access is not None and access.is_refused:
            self.sessions.end_all_of(access)
            return None
        return access

    def begin_session(self, user: str, client: dict[str, Any]) -> str:
        """The token of a session for a user whose password the cluster has just taken."""
        access = self._by_user.get(user)
        if access is None or access.is_refused or not access.is_of(client):  # the password was changed since
            access = Access(f"User:{user}", client, look_every_ms=self.limits.look_every_ms)
            access.start()
            self._by_user[user] = access
        access.users += 1
        return self.sessions.begin(access, self.now_ms())

    def _ended(self, access: Access) -> None:
        access.users -= 1
        if access.users == 0:
            for user in [user for user, one in self._by_user.items() if one is access]:
                del self._by_user[user]
            self._nursery.start(access.close(), "end of an access")

    async def _find_out(self) -> None:
        while self.asks is None:
            try:
                self.asks = await cluster_asks(self.options.client)
            except (QuorumlogError, RpcError) as error:
                self.trouble = str(error) or type(error).__name__
                await asyncio.sleep(ASK_AGAIN_S)
        if not self.asks:
            self._of_nobody()  # its history begins now

    def _of_nobody(self) -> Access:
        if self._nobody is None:
            self._nobody = Access(f"User:{NOBODY}", self.options.client, look_every_ms=self.limits.look_every_ms)
            self._nobody.start()
        return self._nobody

    async def _expire(self) -> None:
        """A session that nobody uses any more ends, and its watch with it."""
        while True:
            await asyncio.sleep(min(60.0, self.limits.idle_ms / 4_000))
            self.sessions.expire(self.now_ms())


def console_of(request: Request) -> Console:
    console: Console = request.app.state.console
    return console
