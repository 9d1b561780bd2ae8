"""A transport whose links to single nodes can be cut while it is used, for faults in tests on one machine.

A cut link loses everything, and nobody is told: a call waits for the healing, and an answer that comes meanwhile waits,
too. What still waits when its deadline comes has an unknown outcome. With the healing all go on in their order, as what
TCP repeats does. A link is cut by the one who calls, so two nodes are apart once each of them has cut the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.transport import (
    Address,
    Cancel,
    Connection,
    Handler,
    Listener,
    NoProof,
    OnEnded,
    OutcomeUnknown,
    ProbeResult,
    Server,
    Transport,
)


class CuttableTransport:
    """`transport.Transport` over another one. Only connections to internal listeners can be cut. Used by one loop."""

    def __init__(self, inner: Transport, on_crash: OnCrash) -> None:
        self._inner, self._on_crash = inner, on_crash
        self._links: dict[Address, _Link] = {}

    def cut(self, addresses: Collection[Address]) -> None:
        """Exactly these; a link that was cut and is none of them is healed."""
        for address in addresses:
            self._link(address)
        for address, link in list(self._links.items()):
            link.set_cut(address in addresses)

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        inner = self._inner.connect(address, internal=internal, client_id=client_id)
        return CuttableConnection(inner, self._link(address), self._on_crash) if internal else inner

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        return await self._inner.listen(listener, handler)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        link = self._link(address)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await link.healed()
                found = await self._inner.probe(address, timeout_ms)
                await link.healed()
                return found
        except TimeoutError:
            return NoProof(f"{address} did not answer within {timeout_ms} ms")

    def _link(self, address: Address) -> _Link:
        return self._links.setdefault(address, _Link())


class _Link:
    """To one address. waiting: told in their order when it is healed."""

    def __init__(self) -> None:
        self.is_cut = False
        self.waiting: dict[object, Callable[[], None]] = {}

    def set_cut(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        if not is_cut:
            waiting, self.waiting = self.waiting, {}
            for go_on in waiting.values():
                go_on()

    async def healed(self) -> None:
        """Returns once it is not cut."""
        while self.is_cut:
            healed = asyncio.Event()
            self.waiting[healed] = healed.set
            try:
                await healed.wait()
            finally:
                self.waiting.pop(healed, None)


class CuttableConnection:
    """`transport.Connection` over another one."""

    def __init__(self, inner: Connection, link: _Link, on_crash: OnCrash) -> None:
        self.address = inner.address
        self._inner, self._link = inner, link
        self._nursery = Nursery(on_crash)
        self._queue: deque[asyncio.Future[Awaitable[Any]]] = deque()  # calls that are not sent yet, in their order
        self._closing = Closing()
        self._closed = False
        inner.on_closed(self._on_inner_closed)

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """See `transport.Connection.call`."""
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        if not (self._link.is_cut or self._queue):
            return self._answer(self._inner.call(request, timeout_ms), deadline_s, timeout_ms)
        routed: asyncio.Future[Awaitable[Any]] = asyncio.get_running_loop().create_future()
        self._queue.append(routed)

        def send() -> None:
            left_ms = int((deadline_s - asyncio.get_running_loop().time()) * 1000)
            if not routed.done() and left_ms > 0:
                routed.set_result(self._inner.call(request, left_ms))

        if self._link.is_cut:
            self._link.waiting[routed] = send
        else:
            send()
        return self._sent_later(routed, deadline_s, timeout_ms)

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        """See `transport.Connection.begin`. Without a task while the link is whole."""
        if self._link.is_cut or self._queue:
            return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, f"call to {self.address}")
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        cancel_later: Cancel | None = None

        def told(response: Any, error: Exception | None) -> None:
            nonlocal cancel_later
            if not self._link.is_cut or self._closed:
                ended(response, error)
                return
            answer = self._answer(_result(response, error), deadline_s, timeout_ms)
            cancel_later = begin_by_task(answer, ended, self._nursery, f"call to {self.address}")

        cancel = self._inner.begin(request, timeout_ms, told)

        def give_up() -> None:
            cancel()
            if cancel_later is not None:
                cancel_later()

        return give_up

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    async def close(self) -> None:
        self._closed = True
        for routed in self._queue:
            if not routed.done():
                routed.set_exception(OutcomeUnknown(f"the connection to {self.address} was closed"))
        await self._inner.close()
        await self._nursery.close()

    async def _sent_later(self, routed: asyncio.Future[Awaitable[Any]], deadline_s: float, timeout_ms: int) -> Any:
        call: Awaitable[Any] | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                call = await routed
        except TimeoutError:
            raise self._silent(timeout_ms) from None
        finally:
            self._link.waiting.pop(routed, None)
            self._queue.remove(routed)
            if call is None:
                _forget(routed)
        return await self._answer(call, deadline_s, timeout_ms)

    async def _answer(self, call: Awaitable[Any], deadline_s: float, timeout_ms: int) -> Any:
        """Its answer or its failure, once the link lets it through."""
        try:
            answer = await call
        except Exception:
            await self._wait_healed(deadline_s, timeout_ms)
            raise
        await self._wait_healed(deadline_s, timeout_ms)
        return answer

    async def _wait_healed(self, deadline_s: float, timeout_ms: int) -> None:
        if self._closed or not self._link.is_cut:
            return
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._link.healed()
        except TimeoutError:
            raise self._silent(timeout_ms) from None

    def _silent(self, timeout_ms: int) -> OutcomeUnknown:
        return OutcomeUnknown(f"{self.address} did not answer within {timeout_ms} ms (the link to it is cut)")

    def _on_inner_closed(self) -> None:
        """A lost connection is not heard of either, until the link is healed."""
        if self._link.is_cut and not self._closed:
            self._link.waiting[self] = self._closing.close
        else:
            self._closing.close()


def _forget(routed: asyncio.Future[Awaitable[Any]]) -> None:
    """A call that was given up just when it would have been sent is not sent."""
    if routed.done() and not routed.cancelled() and routed.exception() is None:
        call = routed.result()
        if isinstance(call, Coroutine):
            call.close()


async def _result(response: Any, error: Exception | None) -> Any:
    if error is not None:
        raise error
    return response
