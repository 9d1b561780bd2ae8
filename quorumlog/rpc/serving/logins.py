"""Logins of clients at a listener of gRPC: the metadata `authorization`, by the mechanisms that the lane has.

`Basic` is PLAIN, `Bearer` is OAUTHBEARER: each becomes the one message of its mechanism, so that names, passwords and
tokens are judged alike on both wires. A name with a colon cannot log in by Basic (RFC 7617, 2); SCRAM on the lane takes
it. Why a login failed is for the log only.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, Done, Failed, ServerMechanism, Work
from quorumlog.security.sasl.oauth_message import BadMessage, write_token_message
from quorumlog.security.sasl.session import FAILED_DELAY_MS
from quorumlog.security.secret import Secret

AUTHENTICATION_FAILED = "authentication failed"  # what a client is told, whatever the reason is
EXPIRED = "the credential has expired"  # of a call or stream that was let in: what it asked for may be carried out
THREADS = 2
MAX_CHECKS = 256  # logins that wait for a thread, of one listener
MAX_CHECKS_OF_ADDRESS = 64  # of those, so that one address leaves room for the others
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1

MakeMechanism = Callable[[], ServerMechanism]


class NotLoggedIn(Exception):
    """The message is for the log, and has nothing secret in it."""


class NotOpen(Exception):
    """Nobody can log in now, whatever it shows; later somebody can."""


class LoggedIn(NamedTuple):
    """expires_ms: when that ends, in Unix time; None: it does not."""

    principal: Principal
    expires_ms: int | None


class Shown(NamedTuple):
    """mechanism: its name in SASL. message: its first one."""

    mechanism: str
    message: bytes


def read_authorization(value: str) -> Shown:
    """Raises NotLoggedIn."""
    scheme, _, rest = value.partition(" ")
    match scheme.lower():
        case "basic":
            return Shown(PLAIN, _plain(rest.strip()))
        case "bearer":
            try:
                return Shown(OAUTHBEARER, write_token_message(Secret(rest.strip()), {}))
            except BadMessage:
                raise NotLoggedIn("what stands behind Bearer is no token") from None
        case _:
            raise NotLoggedIn("its authorization is neither Basic nor Bearer")


def _plain(text: str) -> bytes:
    try:
        shown = base64.b64decode(text, validate=True)
        shown.decode("utf-8")
    except (binascii.Error, ValueError):
        raise NotLoggedIn("what stands behind Basic is not base64 of UTF-8") from None
    name, found, password = shown.partition(b":")
    if not found or not name or b"\0" in shown:
        raise NotLoggedIn("what stands behind Basic is not NAME:PASSWORD")
    return b"\0" + name + b"\0" + password


def basic(name: str, password: str) -> str:
    """What `read_authorization` reads. Raises ValueError for a name with a colon."""
    if ":" in name:
        raise ValueError(
            f"{name!r} has a colon, and Basic of HTTP takes no such name: use a listener of Kafka's protocol"
        )
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode("ascii")


def bearer(token: str) -> str:
    """What `read_authorization` reads."""
    return f"Bearer {token}"


class Logins:
    """Of one listener. mechanisms: by the names of SASL; PLAIN and OAUTHBEARER are of use here.

    unix_ms: the wall clock. delay_ms: before a client hears that its login has failed. is_open: the users are known;
    before that a right password would be told to be wrong. max_reauth_ms: how long a login holds at most
    (`connections.max.reauth.ms`), which bounds streams; 0: as long as its credential.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, MakeMechanism],
        unix_ms: Callable[[], int],
        delay_ms: int = FAILED_DELAY_MS,
        is_open: Callable[[], bool] = lambda: True,
        max_reauth_ms: int = 0,
    ) -> None:
        self._is_open, self._max_reauth_ms = is_open, max_reauth_ms
        self._mechanisms, self._unix_ms, self.delay_ms = mechanisms, unix_ms, delay_ms
        self._threads: ThreadPoolExecutor | None = None
        self._checks: Counter[str] = Counter()  # by address

    async def log_in(self, values: list[str], host: str = "") -> LoggedIn:
        """values: of all the entries `authorization` of a call. host: the caller's address. Raises NotLoggedIn,
        NotOpen."""
        if not self._is_open():
            raise NotOpen("this node does not know the users of the cluster yet; ask again")
        if len(values) != 1:
            raise NotLoggedIn(f"it shows {len(values) or 'no'} credentials, and the listener wants one")
        shown = read_authorization(values[0])
        make = self._mechanisms.get(shown.mechanism)
        if make is None:
            raise NotLoggedIn(f"this listener has no {shown.mechanism} (sasl.enabled.mechanisms)")
        mechanism = make()
        step = mechanism.step(shown.message, self._unix_ms())
        if isinstance(step, Work):
            step = mechanism.resume(await self._run(step, host), self._unix_ms())
        if isinstance(step, Done):
            return LoggedIn(step.principal, self._ends_ms(step.expires_ms))
        raise NotLoggedIn(step.reason if isinstance(step, Failed) else "the token is not valid")

    def _ends_ms(self, expires_ms: int | None) -> int | None:
        """expires_ms: of the credential."""
        if not self._max_reauth_ms:
            return expires_ms
        latest_ms = self._unix_ms() + self._max_reauth_ms
        return latest_ms if expires_ms is None else min(latest_ms, expires_ms)

    async def _run(self, work: Work, host: str) -> object:
        """Raises NotOpen: nobody is told that a password is wrong before it was looked at."""
        if self._checks.total() >= MAX_CHECKS or self._checks[host] >= MAX_CHECKS_OF_ADDRESS:
            raise NotOpen("too many logins wait for their check; ask again")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "logins")
        self._checks[host] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work.run)
        finally:
            self._checks[host] -= 1
            if not self._checks[host]:
                del self._checks[host]

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
