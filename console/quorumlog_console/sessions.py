"""Who is logged in: sessions that end, a bounded number of them, and logins that may not be guessed quickly. No I/O."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from quorumlog_console.options import Limits

TOKEN_BYTES = 32
MINUTE_MS = 60_000
ADDRESSES = 1_000  # whose failures are counted; the one that failed longest ago goes

A = TypeVar("A")


@dataclass(slots=True)
class Session(Generic[A]):
    access: A
    began_ms: int
    used_ms: int


class Sessions(Generic[A]):
    """ended: is told of each access whose session is over. secure_bytes: of the machine."""

    def __init__(self, limits: Limits, secure_bytes: Callable[[int], bytes], ended: Callable[[A], None]) -> None:
        self._limits, self._secure_bytes, self._ended = limits, secure_bytes, ended
        self._open: OrderedDict[str, Session[A]] = OrderedDict()  # by the hash of the token; least recently used first

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, access: A, now_ms: int) -> str:
        """The token, which only its browser has: a hash of it is kept."""
        self.expire(now_ms)
        while len(self._open) >= self._limits.sessions:
            _, oldest = self._open.popitem(last=False)
            self._ended(oldest.access)
        token = self._secure_bytes(TOKEN_BYTES).hex()
        self._open[_hash(token)] = Session(access, now_ms, now_ms)
        return token

    def find(self, token: str, now_ms: int) -> A | None:
        """None: there is no such session, or it is over. A use extends it, up to session_ms in all."""
        self.expire(now_ms)
        key = _hash(token)
        session = self._open.get(key)
        if session is None:
            return None
        session.used_ms = now_ms
        self._open.move_to_end(key)
        return session.access

    def end(self, token: str) -> None:
        session = self._open.pop(_hash(token), None)
        if session is not None:
            self._ended(session.access)

    def end_all_of(self, access: A) -> None:
        for key in [key for key, session in self._open.items() if session.access is access]:
            del self._open[key]
            self._ended(access)

    def expire(self, now_ms: int) -> None:
        limits = self._limits
        over = [
            key
            for key, one in self._open.items()
            if now_ms - one.used_ms >= limits.idle_ms or now_ms - one.began_ms >= limits.session_ms
        ]
        for key in over:
            self._ended(self._open.pop(key).access)


class Failures:
    """How often logins have failed within the last minute."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_address: OrderedDict[Hashable, list[int]] = OrderedDict()
        self._all: list[int] = []

    def is_full(self, address: str, now_ms: int) -> bool:
        """No further try is allowed from there now."""
        since = now_ms - MINUTE_MS
        self._all = [one for one in self._all if one > since]
        of_address = [one for one in self._by_address.get(address, ()) if one > since]
        return len(of_address) >= self._limits.failures_a_minute or len(self._all) >= self._limits.all_failures_a_minute

    def note(self, address: str, now_ms: int) -> None:
        """A try begins; `forget` takes it back once it has succeeded."""
        since = now_ms - MINUTE_MS
        found = [one for one in self._by_address.pop(address, []) if one > since]
        self._by_address[address] = [*found, now_ms]
        self._all.append(now_ms)
        if len(self._by_address) > ADDRESSES:
            self._by_address.popitem(last=False)

    def forget(self, address: str, at_ms: int) -> None:
        for times in (self._by_address.get(address, []), self._all):
            if at_ms in times:
                times.remove(at_ms)


class FormTokens:
    """A form is taken only from the browser that was given it: it sends a cookie, and this key's word for it."""

    def __init__(self, secure_bytes: Callable[[int], bytes]) -> None:
        self._key = secure_bytes(TOKEN_BYTES)
        self._secure_bytes = secure_bytes

    def new_cookie(self) -> str:
        return self._secure_bytes(TOKEN_BYTES).hex()

    def of(self, cookie: str) -> str:
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def fits(self, cookie: str, field: str) -> bool:
        return bool(cookie) and hmac.compare_digest(self.of(cookie).encode(), field.encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
