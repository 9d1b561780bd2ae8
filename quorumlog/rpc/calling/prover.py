"""The calling side of a proof, the same for gRPC and the simulation: proves this node to one address, and signs calls.

Shell around `ScramClient` and `CallerSession`. One exchange serves all calls that wait for it. After it a call costs no
further round trip, until the server has forgotten the session: after its restart, or after a long silence. The server
refuses a call of such a session before anything is carried out, so the call is repeated once in a new session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.nursery import Nursery
from quorumlog.proof.caller_session import CallerSession
from quorumlog.proof.scram_client import NotProven, ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.proof.server_sessions import StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.transport import CONNECT_TIMEOUT_MS_DEFAULT, Address, Identity, NotDelivered, RpcError

MESSAGE_TIMEOUT_MS = CONNECT_TIMEOUT_MS_DEFAULT  # of each of the two messages of an exchange
MAX_EXCHANGES = 2  # in a row: the server may have forgotten the first before it ended
MAX_SENDS = 2  # of one call
FRESH_S = 2.0  # a session that is so young needs no other one for the first stream that opens with it

Ask = Callable[[bytes, int], Awaitable[bytes]]  # (message, timeout in ms) -> answer; raises RpcError
Send = Callable[[bytes], Awaitable[bytes]]  # (the call's proof) -> response; raises StaleProof, RpcError


class TakesNoProof(NotDelivered):
    """The server does not serve the exchange: it is older software, or no internal listener."""


class Prover:
    """Of one connection. ask: sends a message of the exchange to the server."""

    def __init__(
        self,
        identity: Identity,
        address: Address,
        ask: Ask,
        *,
        nursery: Nursery,
        random_bytes: Callable[[int], bytes],
        log: ProofLog,
    ) -> None:
        self._identity, self._address, self._ask = identity, address, ask
        self._nursery, self._random_bytes, self._log = nursery, random_bytes, log
        self._session: CallerSession | None = None
        self._attempt: asyncio.Future[CallerSession] | None = None
        self._fresh_until_s = 0.0  # in the loop's time
        self._closed = False

    async def session(self, *, fresh: bool = False) -> CallerSession:
        """fresh: one that the server has hardly forgotten: proven within FRESH_S, and not given out as fresh before.
        Raises ApiError if the server refuses this node, and NotDelivered if there was no answer or the server does not
        prove itself."""
        if self._session is not None and not (fresh and self._is_stale()):
            return self._given(self._session, fresh=fresh)
        if self._closed:
            raise NotDelivered(f"{self._address}: the connection was closed")
        if self._attempt is None:
            self._attempt = asyncio.get_running_loop().create_future()
            self._attempt.add_done_callback(_look_at)
            self._nursery.start(self._try(self._attempt), f"proof to {self._address}")
        return self._given(await asyncio.shield(self._attempt), fresh=fresh)

    def _is_stale(self) -> bool:
        return asyncio.get_running_loop().time() >= self._fresh_until_s

    def _given(self, session: CallerSession, *, fresh: bool) -> CallerSession:
        if fresh:
            self._fresh_until_s = 0.0
        return session

    async def call(self, path: str, data: bytes, deadline_s: float, send: Send) -> bytes:
        """Send one call with its proof; again if the server has forgotten the session. Raises what `session` and
        `send` raise. deadline_s: in the loop's time; `send` keeps it by itself."""
        for _ in range(MAX_SENDS):
            session = self._session or await self._session_by(deadline_s)
            try:
                return await send(session.sign(path, data))
            except StaleProof:
                self.forget(session)
        raise NotDelivered(f"{self._address}: it has refused the proof of the call {MAX_SENDS} times")

    async def _session_by(self, deadline_s: float) -> CallerSession:
        try:
            async with asyncio.timeout_at(deadline_s):
                return await self.session()
        except TimeoutError:
            raise NotDelivered(f"{self._address}: it has not answered this node's proof in time") from None

    def forget(self, session: CallerSession) -> None:
        """The server does not know the session any more."""
        if self._session is session:
            self._session = None

    def forget_session(self) -> None:
        """Whichever it is; the next call begins another."""
        self._session = None

    def close(self) -> None:
        """Before the nursery closes: those who wait for a session get none."""
        self._closed = True
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_exception(NotDelivered(f"{self._address}: the connection was closed"))

    async def _try(self, attempt: asyncio.Future[CallerSession]) -> None:
        try:
            session = await self._prove()
        except (ApiError, RpcError) as error:
            self._attempt = None
            if not attempt.done():
                attempt.set_exception(error)
            return
        self._session, self._attempt = session, None
        self._fresh_until_s = asyncio.get_running_loop().time() + FRESH_S
        if not attempt.done():
            attempt.set_result(session)

    async def _prove(self) -> CallerSession:
        now_s = asyncio.get_running_loop().time
        try:
            return await self._exchange()
        except NotProven as error:
            self._log.is_not_proven(self._address, str(error), now_s())
            raise NotDelivered(f"{self._address} has not proven itself: {error}") from None
        except ApiError as error:
            self._log.refuses_us(self._address, error, now_s())
            raise

    async def _exchange(self) -> CallerSession:
        own = self._identity
        keys = own.keys
        for _ in range(MAX_EXCHANGES):
            scram = ScramClient(keys, own.peer, new_nonce(self._random_bytes(NONCE_BYTES)))
            answer = prove_method.read_answer(await self._ask(scram.first(), MESSAGE_TIMEOUT_MS))
            final = await self._ask(scram.final(answer), MESSAGE_TIMEOUT_MS)
            try:
                return CallerSession(scram.verify(prove_method.read_answer(final)))
            except ApiError as error:
                if error.code is not ErrorCode.ILLEGAL_SASL_STATE:
                    raise
        raise NotDelivered(f"{self._address}: it has forgotten this node's proof {MAX_EXCHANGES} times before its end")


def _look_at(attempt: asyncio.Future[CallerSession]) -> None:
    """An attempt that failed may have no caller that still waits."""
    if not attempt.cancelled():
        attempt.exception()
