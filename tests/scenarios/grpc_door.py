"""Arbitrary bytes for gRPC, passed to `Dispatch.answer`, where gRPC delivers a message's bytes."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from quorumlog.messages.decode_error import DecodeError
from quorumlog.nursery import OnCrash
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import CALLS
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.transport import Address, Handler, Listener
from quorumlog.security.required.nodes_only import INTERNAL_SERVICES
from tests.wire.damage import change_bytes
from tests.wire.frames import RIGHT_PART
from tests.wire.tally import Tally


class GrpcDoor:
    """requests: to be damaged. patience_s: how long to wait for an answer."""

    def __init__(
        self, handler: Handler, on_crash: OnCrash, tally: Tally, requests: list[Any], patience_s: float
    ) -> None:
        listener = Listener(name="G", address=Address("h", 1), internal=False)
        self._dispatch = Dispatch(listener=listener, identity=None, handler=handler, on_crash=on_crash)
        self._tally, self._patience_s = tally, patience_s
        self._bodies: dict[str, list[bytes]] = {call.method.path: [b""] for call in CALLS}
        for call in CALLS:
            given = [request for request in requests if type(request) is call.method.request]
            self._bodies[call.method.path] += map(call.codec.encode_request, given)

    async def one(self, rng: random.Random) -> None:
        """Feed one message of a random method."""
        self._tally.inputs += 1
        call = rng.choice(CALLS)
        data = bytearray(rng.choice(self._bodies[call.method.path]))
        if rng.random() > RIGHT_PART:
            for _ in range(rng.choice((1, 1, 2, 5))):
                change_bytes(data, rng)
        if call.method.service not in INTERNAL_SERVICES and _is_read(call.codec.decode_request, bytes(data)):
            self._tally.by_grpc[call.method.name] += 1
        context = self._dispatch.context(Caller("me", None))
        try:
            async with asyncio.timeout(self._patience_s):
                await self._dispatch.answer(context, call, bytes(data))
        except TimeoutError:
            pass  # the caller gives up
        finally:
            self._dispatch.close(context)


def _is_read(decode: Any, data: bytes) -> bool:
    try:
        decode(data)
    except DecodeError:
        return False
    return True
