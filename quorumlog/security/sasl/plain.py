"""Logins by PLAIN (RFC 4616): the name and the password in clear, so for encrypted connections and loopback only.

The cluster keeps no passwords. The server checks one against the user's SCRAM credential, of SHA-512 or else of
SHA-256. That takes PBKDF2, which the shell runs in a thread. A success is remembered for a minute under a MAC of name
and password, as long as the credential stays as it was.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

from quorumlog.security.principal import USER, Principal
from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.mechanism import (
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Credentials,
    Done,
    Failed,
    LoginError,
    Outcome,
    Step,
    Work,
    check_utf8,
    shown_user,
)
from quorumlog.security.sasl.scram_keys import HASHES, MIN_ITERATIONS, Keys, fake_salt, salted_password
from quorumlog.security.secret import Secret

MAX_MESSAGE_BYTES = 8 * 1024
CACHED_MS = 60_000
MAX_CACHED = 10_000  # logins; the one that is longest unused goes first
_SEPARATOR = "\0"
_STORES = (SCRAM_SHA_512, SCRAM_SHA_256)


class BadPlain(Exception):
    """The bytes are not PLAIN's message, or they want what is not allowed."""


def read_plain(message: bytes) -> tuple[str, Secret]:
    """`[authzid] NUL authcid NUL passwd`: the name and the password. Raises BadPlain.

    authzid is empty or authcid: nobody acts for another (CVE-2017-12610).
    """
    if len(message) > MAX_MESSAGE_BYTES:
        raise BadPlain(f"a message of {len(message)} bytes; {MAX_MESSAGE_BYTES} are allowed")
    parts = message.count(0) + 1  # counted before it is split: thousands of parts would take twelve times its memory
    if parts != 3:
        raise BadPlain(f"the message has {parts} parts, not 3")
    try:
        identity, name, password = message.decode("utf-8").split(_SEPARATOR)
    except UnicodeDecodeError:
        raise BadPlain("the message is not UTF-8") from None
    if not name or not password:
        raise BadPlain("the name or the password is empty")
    if identity not in ("", name):
        raise BadPlain("it wants to act for another user")
    return name, Secret(password)


class PlainCache:
    """Logins of the last minute. key: random, of this process."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._known: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()  # MAC -> stored key, since when

    def _mac(self, name: str, password: Secret) -> bytes:
        return hmac.digest(self._key, f"{name}{_SEPARATOR}{password.reveal()}".encode(), "sha256")

    def knows(self, name: str, password: Secret, stored: ScramCredential, now_ms: int) -> bool:
        """This password was right for this very credential, less than a minute ago. now_ms: Unix time; if it was set
        back, nothing is known."""
        mac = self._mac(name, password)
        stored_key, since_ms = self._known.get(mac, (b"", 0))
        if not hmac.compare_digest(stored_key, stored.stored_key) or not 0 <= now_ms - since_ms < CACHED_MS:
            self._known.pop(mac, None)
            return False
        self._known.move_to_end(mac)
        return True

    def learn(self, name: str, password: Secret, stored: ScramCredential, now_ms: int) -> None:
        mac = self._mac(name, password)
        self._known[mac] = stored.stored_key, now_ms
        self._known.move_to_end(mac)
        if len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class _Login:
    name: str
    password: Secret
    mechanism: str  # of the credential
    stored: ScramCredential | None


class PlainServer:
    """fake_key: as that of ScramServer: a name that is not known costs as much as a wrong password."""

    def __init__(self, credentials: Credentials, cache: PlainCache, fake_key: bytes) -> None:
        self._credentials, self._cache, self._fake_key = credentials, cache, fake_key
        self._login: _Login | None = None
        self._is_over = False

    def step(self, message: bytes, now_ms: int) -> Step:
        if self._is_over:
            return Failed(f"{PLAIN}: a message after the end of the exchange")
        self._is_over = True
        try:
            name, password = read_plain(message)
        except BadPlain as error:
            return Failed(f"{PLAIN}: {error}")
        self._login = login = self._find(name, password)
        if login.stored is None:
            salt = fake_salt(self._fake_key, PLAIN, name)
            return Work(partial(_stored_key, password, salt, MIN_ITERATIONS, HASHES[login.mechanism]))
        if self._cache.knows(name, password, login.stored, now_ms):
            return Done(b"", Principal(USER, name))
        stored = login.stored
        return Work(partial(_stored_key, password, stored.salt, stored.iterations, HASHES[login.mechanism]))

    def _find(self, name: str, password: Secret) -> _Login:
        for mechanism in _STORES:
            if (stored := self._credentials.scram(mechanism, name)) is not None:
                return _Login(name, password, mechanism, stored)
        return _Login(name, password, _STORES[0], None)

    def resume(self, result: Any, now_ms: int) -> Outcome:
        """result: the stored key that the password makes."""
        login = self._login
        assert login is not None, "no work was asked for"
        user = shown_user(login.name)
        if login.stored is None:
            return Failed(f"{PLAIN}: {user} has no credential")
        if not hmac.compare_digest(result, login.stored.stored_key):
            return Failed(f"{PLAIN}: wrong password of {user}")
        still = self._credentials.scram(login.mechanism, login.name)
        if still is None or not hmac.compare_digest(still.stored_key, login.stored.stored_key):
            return Failed(f"{PLAIN}: the credential of {user} has just been changed or deleted")
        self._cache.learn(login.name, login.password, login.stored, now_ms)
        return Done(b"", Principal(USER, login.name))


def _stored_key(password: Secret, salt: bytes, iterations: int, hash_name: str) -> bytes:
    return Keys(salted_password(password.reveal(), salt, iterations, hash_name), hash_name).stored_key


class PlainClient:
    """Raises LoginError for what PLAIN cannot say."""

    name = PLAIN

    def __init__(self, name: str, password: Secret) -> None:
        check_utf8(name, password)
        if not name or not password.reveal():
            raise LoginError(f"{PLAIN} needs a name and a password that are not empty")
        if _SEPARATOR in name + password.reveal():
            raise LoginError(f"{PLAIN} cannot send a name or a password with the character NUL in it")
        self._name, self._password = name, password

    def first(self) -> bytes:
        return f"{_SEPARATOR}{self._name}{_SEPARATOR}{self._password.reveal()}".encode()

    def step(self, message: bytes) -> bytes | None:
        if message:
            raise LoginError(f"the server answered {PLAIN} with a message, which it never does")
        return None
