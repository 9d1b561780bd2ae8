"""One ordered stream of a gRPC connection, client side.

Requests are written in order, answers are read in order, and the stream fails as a whole. Only the reader ends it, so
that answers received before the end are still delivered.

A stream that the peer refuses has delivered nothing. gRPC for Python replaces the peer's status by INTERNAL where a
message is being written when it comes, so the first status of a stream is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import grpc

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.nursery import Nursery
from quorumlog.proof.call_proof import StreamProof
from quorumlog.rpc.calling.ordered_calls import OrderedCall, OrderedCalls
from quorumlog.rpc.calls import Call
from quorumlog.rpc.serving.logins import EXPIRED
from quorumlog.rpc.transport import NotAuthenticated, NotDelivered, NotServed, OutcomeUnknown, RpcError

Rpc = Any  # grpc.aio.StreamStreamCall of bytes


class Opened(NamedTuple):
    """proof: None: the messages carry none."""

    rpc: Rpc
    proof: StreamProof | None


class Status(NamedTuple):
    """How a stream has ended. details: text from the peer, or from gRPC."""

    code: grpc.StatusCode
    details: str

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details}"


# None: there is no connection. Raises ApiError if the peer refuses this node, or NotDelivered.
OpenRpc = Callable[[], Awaitable[Opened | None]]
OnEnd = Callable[["GrpcStream", bool], None]  # bool: True if the stream had been open


class OfClient(NamedTuple):
    """What a client's stream tells of its credentials. accepted: there is an answer. refused: the peer does not take
    them, in its words: the error of the calls."""

    accepted: Callable[[], None]
    refused: Callable[[str], NotDelivered]


UNIMPLEMENTED, UNAUTHENTICATED = grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
# Before an answer: the peer has read no message. Another status may also come from what the messages did.
_REFUSALS = (UNIMPLEMENTED, UNAUTHENTICATED)
_BROKEN = (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError)


class GrpcStream:
    """Lives until it breaks or its connection is closed. The connection then drops it and opens another."""

    def __init__(
        self, call: Call, open_rpc: OpenRpc, nursery: Nursery, on_end: OnEnd, of_client: OfClient | None = None
    ) -> None:
        """of_client: of one that has shown credentials; a node's proof may only be stale."""
        self.calls = OrderedCalls(call)
        self._of_client = of_client
        self._refusal: NotDelivered | None = None  # told once
        self.name, self.request, self._is_optional = call.method.name, call.method.request, call.is_optional
        self._open_rpc, self._nursery, self._on_end = open_rpc, nursery, on_end
        self._rpc: Rpc | None = None
        self._ended = False
        self._status: Status | None = None  # the first that gRPC has told
        self._has_answered = False
        self._tasks = [nursery.start(self._run(), f"{self.name} stream")]

    async def _run(self) -> None:
        reason = "it was cut off"  # gRPC raises CancelledError in that case
        try:
            opened = await self._open_rpc()
            if opened is None:
                reason = "there is no connection"
                return
            self._rpc = opened.rpc
            opened.rpc.add_done_callback(self._keep_status)
            self._tasks.append(self._nursery.start(self._write(opened), f"{self.name} writer"))
            reason = await self._read(opened.rpc)
        except ApiError as refusal:
            reason = "the peer refuses this node"
            self.calls.refuse(refusal)
        except NotAuthenticated as error:
            self.calls.fail(error)
        except NotDelivered as error:
            reason = str(error)
        finally:
            self.end(reason)

    async def _write(self, opened: Opened) -> None:
        try:
            while not self._ended:
                await self._write_one(opened, await self.calls.next_to_send())
        except _BROKEN:
            pass  # the reader gets the error too

    async def _write_one(self, opened: Opened, call: OrderedCall) -> None:
        """Ends a call without an answer here; a call with an answer ends with its answer or with the stream."""
        try:
            await opened.rpc.write(call.data if opened.proof is None else opened.proof.seal(call.data))
            if not call.answered:
                call.succeed(None)
        finally:
            if not call.answered:
                call.fail(self._error("it was cut off while it was sent"))  # no effect if it succeeded

    async def _read(self, rpc: Rpc) -> str:
        """Deliver answers until the stream ends. Returns the reason for the end."""
        try:
            while True:
                data = await rpc.read()
                if data is grpc.aio.EOF:
                    return "the peer ended it"
                if not self.calls.on_answer(data):
                    return "the peer sent an answer without a request"
                if not self._has_answered and self._of_client is not None:
                    self._of_client.accepted()
                self._has_answered = True
        except _BROKEN as error:
            return f"{type(error).__name__}: {error}" if self._status is None else str(self._status)

    def _keep_status(self, rpc: Rpc) -> None:
        if self._status is None:
            self._status = Status(_at_once(rpc.code()), _at_once(rpc.details()))

    @property
    def _is_refused(self) -> bool:
        status = self._status
        return status is not None and status.code in _REFUSALS and status.details != EXPIRED and not self._has_answered

    @property
    def is_unknown(self) -> bool:
        """The peer does not know the call; nothing was carried out."""
        return self._is_refused and self._status is not None and self._status.code is UNIMPLEMENTED

    @property
    def _is_denied(self) -> bool:
        """As a client hears it on the other wire, by an answer. Of a node it is a call that came before."""
        status = self._status
        return status is not None and status.code is DENIED and not self._has_answered and self._of_client is not None

    def _error(self, reason: str) -> RpcError:
        """Of calls without an answer that were given to gRPC."""
        text = f"{self.name}: {reason}"
        if self.is_unknown and self._is_optional:
            return NotServed(f"{text}: its software is older than this call")
        if self._is_refused and self._status is not None and self._status.code is UNAUTHENTICATED and self._of_client:
            self._refusal = self._refusal or self._of_client.refused(self._status.details)
            return type(self._refusal)(str(self._refusal))
        return NotDelivered(text) if self._is_refused else OutcomeUnknown(text)

    def end(self, reason: str) -> None:
        """Idempotent."""
        if self._ended:
            return
        self._ended = True
        rpc, self._rpc = self._rpc, None  # which knows this object: a cycle would keep the socket until it is found
        opened = rpc is not None
        if rpc is not None:
            rpc.cancel()
        if self._is_denied and self._status is not None:
            self.calls.refuse(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, self._status.details))
        self.calls.fail(self._error(reason) if opened else NotDelivered(f"{self.name}: {reason}"))
        self._on_end(self, opened)

    def give_up(self, reason: str) -> None:
        """End it while its connection goes on: no task of it stays, and the peer prepares no more answers."""
        self.end(reason)
        tasks, self._tasks = self._tasks, []  # a cancelled one keeps its frames, which know this object: as above
        for task in tasks:
            task.cancel()


def _at_once(known: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine with nothing to wait for: gRPC gives what it knows of a call's end only by these."""
    try:
        known.send(None)
    except StopIteration as done:
        return done.value
    known.close()
    raise AssertionError("a call that has ended waits for its status")
