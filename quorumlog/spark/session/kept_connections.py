"""Connections that a Spark worker keeps for its next tasks. They are all that outlives a task.

A task has a client of its own. So it begins without a position, a buffer, or knowledge of topics and leaders, and what
it is told does not depend on the tasks before it. But its client borrows connections, and gives them back when it is
closed. A connection is closed, and not kept, if a call failed on it, if its task ended with an error or was cut off, if
it is not connected any more, or if an answer is still to come. Streams of chunks are given up: brokers hold nothing.

All of it happens on the loop of the blocking clients, of which each process has its own: nothing crosses a fork.
Decision 110 has the reasons.

What waits for its next use, for a while. Pure: the time is given.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from quorumlog.client import real_edges as edge
from quorumlog.client.handover.loop import loop_thread
from quorumlog.client.security.secured import is_of_security
from quorumlog.nursery import Nursery
from quorumlog.rpc.begun_call import already_ended
from quorumlog.rpc.caller_security import CallerSecurity
from quorumlog.rpc.transport import (
    Address,
    Cancel,
    CanRest,
    Connection,
    Handler,
    Listener,
    NotDelivered,
    NotServed,
    OnEnded,
    ProbeResult,
    RpcError,
    Server,
    Transport,
)

One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[One]):
    key: Hashable
    one: One
    until_ms: int  # exclusive


class Shelf(Generic[One]):
    """most: how many wait at once. Whatever leaves it by `put`, `drop` or `due` is to be closed."""

    def __init__(self, most: int) -> None:
        assert most > 0
        self._most = most
        self._waiting: list[_Waiting[One]] = []  # oldest first

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, key: Hashable, one: One, until_ms: int) -> One | None:
        """Returns what leaves for it: the oldest, if there is no room."""
        assert all(other.one is not one for other in self._waiting), "it waits already"
        self._waiting.append(_Waiting(key, one, until_ms))
        return self._waiting.pop(0).one if len(self._waiting) > self._most else None

    def take(self, key: Hashable, now_ms: int) -> One | None:
        """The one that was last put there under this key. It does not wait any more."""
        for found in reversed(self._waiting):
            if found.key == key and now_ms < found.until_ms:
                self._waiting.remove(found)
                return found.one
        return None

    def drop(self, one: One) -> bool:
        """False: it does not wait."""
        kept = [other for other in self._waiting if other.one is not one]
        was_there = len(kept) < len(self._waiting)
        self._waiting = kept
        return was_there

    def due(self, now_ms: int) -> list[One]:
        """Those whose time is over, oldest first."""
        over = [one.one for one in self._waiting if one.until_ms <= now_ms]
        self._waiting = [one for one in self._waiting if one.until_ms > now_ms]
        return over

    @property
    def next_due_ms(self) -> int | None:
        return min((one.until_ms for one in self._waiting), default=None)


MOST_KEPT = 16  # connections of a worker that wait for a task; one more closes the oldest
MOST_SECURITIES = 16  # logins and what they trust, of a worker; one more forgets the one that was not used for longest

_log = logging.getLogger(__name__)


class Key(NamedTuple):
    """What connections that can stand for each other have in common. kind: the client's option `transport`. who:
    stands for its options of security; b"": it has none."""

    kind: str
    client_id: str
    address: Address
    who: bytes = b""


class KeptConnections:
    """Of one process, and used on its loop only."""

    def __init__(self, now_ms: Callable[[], int], most: int = MOST_KEPT) -> None:
        self.pid = os.getpid()
        self._now_ms = now_ms
        self._shelf: Shelf[Connection] = Shelf(most)
        self._nursery = Nursery(lambda name, error: _log.error("%s failed", name, exc_info=error))
        self._timer: asyncio.TimerHandle | None = None
        self._secret = os.urandom(32)
        self._securities: OrderedDict[bytes, CallerSecurity] = OrderedDict()  # the one that was used last comes last

    def security_of(self, client: Mapping[str, Any]) -> tuple[bytes, CallerSecurity]:
        """Of a client's options, and what stands for them here: two users, or two authorities, never share it.

        A token that was fetched for one task serves the next one. Raises ConfigError.
        """
        if str(client.get("security_protocol", "PLAINTEXT")).upper() == "PLAINTEXT":
            return b"", edge.security_of(client)
        given = sorted((name, str(value)) for name, value in client.items() if is_of_security(name))
        who = hmac.digest(self._secret, json.dumps(given).encode(), "sha256")
        found = self._securities.pop(who, None) or edge.security_of(client)
        self._securities[who] = found
        if len(self._securities) > MOST_SECURITIES:
            self._securities.popitem(last=False)
        return who, found

    def __len__(self) -> int:
        return len(self._shelf)

    def take(self, key: Key, open_one: Callable[[], Connection]) -> Connection:
        """A kept one, or else a new one. Nobody else has it until it is given back."""
        kept = self._shelf.take(key, self._now_ms())
        if kept is not None:
            return kept
        made = open_one()
        made.on_closed(lambda: self._broke(made))
        return made

    async def give_back(self, key: Key, connection: Connection, keep_ms: int) -> None:
        """keep_ms: how long it waits for its next use; 0: it is closed now."""
        if not keep_ms or not isinstance(connection, CanRest) or not connection.rest():
            await connection.close()
            return
        left = self._shelf.put(key, connection, self._now_ms() + keep_ms)
        self._set_timer()
        if left is not None:
            await left.close()

    async def close(self) -> None:
        """Those that wait. Others may be given back later."""
        if self._timer is not None:
            self._timer.cancel()
        while (next_ms := self._shelf.next_due_ms) is not None:
            for one in self._shelf.due(next_ms):
                await one.close()

    def _broke(self, connection: Connection) -> None:
        if self._shelf.drop(connection):
            self._nursery.start(connection.close(), f"close the connection to {connection.address}")

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        next_ms = self._shelf.next_due_ms
        if next_ms is not None:
            delay_s = max(next_ms - self._now_ms(), 1) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._close_due)

    def _close_due(self) -> None:
        for one in self._shelf.due(self._now_ms()):
            self._nursery.start(one.close(), f"close the connection to {one.address}")
        self._set_timer()


_kept: KeptConnections | None = None


def kept_here() -> KeptConnections:
    """Those of this process. On the clients' loop."""
    global _kept
    if _kept is None or _kept.pid != os.getpid():
        _kept = KeptConnections(edge.SystemClock().now_ms)
    return _kept


def close_kept() -> None:
    """From any thread but that of the loop. Those that wait in this process are closed."""

    async def close() -> None:
        await kept_here().close()

    loop_thread().run(close())


class Lease:
    """The transport of one task's client (`transport.Transport`). keep_ms: see `KeptConnections.give_back`; with 0 it
    shares a user's token with other tasks, and nothing else."""

    def __init__(self, keep_ms: int, kept: Callable[[], KeptConnections] = kept_here) -> None:
        self._keep_ms, self._find_kept = keep_ms, kept

    def of_kind(self, kind: str, client: Mapping[str, Any]) -> Transport:
        """On the clients' loop, once. kind: the client's option `transport`. client: all of them. Raises
        ConfigError."""
        self._kept, self._kind = self._find_kept(), kind
        self._who, security = self._kept.security_of(client)
        self._real = edge.make_transport(kind, security)
        return self

    def spoil(self) -> None:
        """The task has not come to its end, so nobody knows in what state it leaves its connections: none is kept. From
        any thread, before the client is closed."""
        self._keep_ms = 0

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> LentConnection:
        key = Key(self._kind, client_id, address, self._who)
        taken = self._kept.take(key, lambda: self._real.connect(address, internal=internal, client_id=client_id))
        return LentConnection(self, key, taken)

    async def give_back(self, key: Key, connection: Connection, *, is_spoiled: bool) -> None:
        await self._kept.give_back(key, connection, 0 if is_spoiled else self._keep_ms)

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        return await self._real.listen(listener, handler)

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return await self._real.probe(address, timeout_ms)


class LentConnection:
    """`transport.Connection`, until its client closes it."""

    def __init__(self, lease: Lease, key: Key, real: Connection) -> None:
        self.address = key.address
        self._lease, self._key, self._real = lease, key, real
        self._is_spoiled = self._closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        if self._closed:
            return self._watched(_failed(NotDelivered(f"the connection to {self.address} was given back")))
        return self._watched(self._real.call(request, timeout_ms))

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        def over(response: Any, error: Exception | None) -> None:
            self._look_at(error)
            ended(response, error)

        if self._closed:
            ended(None, NotDelivered(f"the connection to {self.address} was given back"))
            return already_ended
        return self._real.begin(request, timeout_ms, over)

    def on_closed(self, callback: Callable[[], None]) -> None:
        """The real one holds it to its own end. Clients ask for none, or kept connections would hold them, too."""
        self._real.on_closed(callback)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._lease.give_back(self._key, self._real, is_spoiled=self._is_spoiled)

    async def _watched(self, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except RpcError as error:
            self._look_at(error)
            raise

    def _look_at(self, error: Exception | None) -> None:
        """That a peer does not serve a request says nothing against the connection: a Kafka has no stream of chunks."""
        if error is not None and not isinstance(error, NotServed):
            self._is_spoiled = True


async def _failed(error: RpcError) -> Any:
    raise error
