"""Connections that are opened, shown who comes, and closed again, as many at a time as one wants: TLS handshakes with
certificates of both sides, and logins by SCRAM. One process, hardly more than the sockets: the passwords are salted
once.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from typing import cast

from quorumlog.security.sasl.scram_client import read_server_final, read_server_first
from quorumlog.security.sasl.scram_keys import HASHES, Keys, client_proof, salted_password, server_signature
from quorumlog.security.sasl.scram_text import Transcript, to_base64
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY, ask_authenticate, ask_handshake, read_answer

VERSIONS_FRAME = struct.pack(">ihhih5s", 15, 18, 0, 0, 5, b"bench")
_LENGTH_BYTES = 4
_CORRELATION_BYTES = 4
_UNBOUND = "n,,"

Salted = dict[tuple[bytes, int], Keys]


class Peer(asyncio.Protocol):
    """Says `steps` of it, each once the last answer is whole. done: when the last one has been answered."""

    def __init__(self) -> None:
        self._done = asyncio.get_running_loop().create_future()
        self._received = b""
        self._transport: asyncio.Transport | None = None

    async def served(self) -> None:
        """Raises ConnectionError, ssl.SSLError, or what is wrong with an answer."""
        try:
            await self._done
        finally:
            assert self._transport is not None
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(VERSIONS_FRAME)

    def data_received(self, data: bytes) -> None:
        self._received += data
        size = int.from_bytes(self._received[:_LENGTH_BYTES], "big") + _LENGTH_BYTES
        if len(self._received) < max(size, _LENGTH_BYTES + 1) or self._done.done():
            return
        answer, self._received = self._received[_LENGTH_BYTES:size], self._received[size:]
        try:
            said = self.answered(answer)
        except Exception as error:  # whatever it is, the login that waits for it has to end
            self._done.set_exception(error)
            return
        if said is None:
            self._done.set_result(None)
        else:
            assert self._transport is not None
            self._transport.write(said)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionResetError("the broker closed the connection"))

    def answered(self, _answer: bytes) -> bytes | None:
        """What is said next; None: that was all."""
        return None


class Login(Peer):
    """salted: kept for further logins of the same user."""

    def __init__(self, mechanism: str, user: str, password: str, salted: Salted) -> None:
        super().__init__()
        self._mechanism, self._password, self._salted = mechanism, password, salted
        self._bare = f"n={user},r={secrets.token_hex(12)}"
        self._round = 0
        self._signature = b""

    def answered(self, answer: bytes) -> bytes | None:
        self._round += 1
        if self._round == 1:
            return b"".join(ask_handshake(1, self._mechanism))
        if self._round == 2:
            read_answer(HANDSHAKE_KEY, memoryview(answer))
            return self._say(f"{_UNBOUND}{self._bare}")
        said = bytes(read_answer(AUTHENTICATE_KEY, memoryview(answer))["auth_bytes"])
        if self._round == 3:
            return self._prove(said)
        assert hmac.compare_digest(read_server_final(said), self._signature), "the broker has not proven itself"
        return None

    def _prove(self, said: bytes) -> bytes:
        first, hash_name = read_server_first(said), HASHES[self._mechanism]
        known = (first.salt, first.iterations)
        if known not in self._salted:
            self._salted[known] = Keys(salted_password(self._password, *known, hash_name), hash_name)
        keys = self._salted[known]
        unproven = f"c={to_base64(_UNBOUND.encode())},r={first.nonce}"
        transcript = Transcript(self._bare, first.text, unproven).as_bytes()
        self._signature = server_signature(keys, transcript)
        return self._say(f"{unproven},p={to_base64(client_proof(keys, transcript))}")

    def _say(self, text: str) -> bytes:
        return b"".join(ask_authenticate(2, text.encode()))


async def logins_per_s(servers: str, count: int, at_once: int, make: Callable[[], Peer]) -> float:
    """Each of the brokers has its part of them."""
    return await _per_s(servers, count, at_once, make, None)


async def handshakes_per_s(servers: str, count: int, at_once: int, context: ssl.SSLContext) -> float:
    """With an answer to ApiVersions, without which a client of TLS 1.3 does not know whether it is let in."""
    return await _per_s(servers, count, at_once, Peer, context)


async def _per_s(
    servers: str, count: int, at_once: int, make: Callable[[], Peer], context: ssl.SSLContext | None
) -> float:
    addresses = [server.rsplit(":", 1) for server in servers.split(",")]
    loop = asyncio.get_running_loop()

    async def one(number: int) -> None:
        host, port = addresses[number % len(addresses)]
        _, peer = await loop.create_connection(
            make, host, int(port), ssl=context, server_hostname=host if context else None
        )
        await peer.served()

    begun = time.perf_counter()
    await _in_parallel(count, at_once, one)
    return count / (time.perf_counter() - begun)


async def _in_parallel(count: int, at_once: int, one: Callable[[int], Awaitable[None]]) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(work() for _ in range(at_once)))
