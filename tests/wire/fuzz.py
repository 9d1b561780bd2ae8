"""Any bytes for a listener of the lane: 20,000 inputs in the suite, any number by tests/scenarios/node_fuzz.py.

An input is a sequence of frames, intact or damaged (frames.py, damage.py), read in pieces of any size by its own
connection. It must hold: only this connection suffers, no handler's task is left, the node's counts are zero again, no
input takes long, and none allocates more than a small multiple of its size. A failure prints the seed that repeats it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.proof.keys import keys_of
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_server import ScramServer
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import Watch
from quorumlog.rpc.transport import Address, Handler, Identity, Listener
from quorumlog.turn import Turn
from quorumlog.wire.format.framing import SCRATCH_BYTES
from quorumlog.wire.protocol import sasl
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import WireRequest
from quorumlog.wire.protocol.limits import NodeBytes, WireLimits
from quorumlog.wire.serving.answering import Slot
from quorumlog.wire.serving.outgoing import SendTurns
from quorumlog.wire.serving.served import ServedConnection
from quorumlog.wire.serving.server import Serving
from tests.wire.frames import Bodies, a_frame, seeds
from tests.wire.tally import Tally

IDENTITY = Identity(cluster_id="c1", node_id=1, incarnation_id=b"i" * 16, secret=b"s" * 32)
MAX_FACTOR = 200  # bytes of memory per byte of input
MIN_ALLOWANCE = 2_000_000
MAX_INPUT_S = 2.0  # of this thread's processor time; it includes loading the schema of an API's newest version
SETTLED_S = 30.0  # the longest that a request may go on without its connection
PATIENT_PART = 0.6
INTERNAL_PART = 0.1  # of the inputs: to the internal listener


def _proof() -> bytes:
    """The frames of a node's whole proof. The listener's nonces are no secret here, so they can be sent in one go."""
    keys, nonce = keys_of(IDENTITY.secret, IDENTITY.cluster_id), new_nonce(bytes(NONCE_BYTES))
    client, server = ScramClient(keys, IDENTITY.peer, nonce), ScramServer(keys, IDENTITY.cluster_id, nonce)
    first = client.first()
    final = client.final(server.first(first))
    return b"".join([*sasl.ask_handshake(1), *sasl.ask_authenticate(2, first), *sasl.ask_authenticate(3, final)])


PROOF = _proof()


class DeadTransport(asyncio.Transport):
    """Takes all bytes, like a socket whose peer reads at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += len(data)

    def writelines(self, list_of_data: Any) -> None:
        self.written += sum(map(len, list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


async def _handler(_context: Any, request: Any) -> Any:
    if isinstance(request, ProduceRequest):
        return None if request.acks == 0 else ProduceResponse()
    return BY_REQUEST[type(request)].method.response()


class Watched(ServedConnection):
    """Counts the requests that reach a handler."""

    def __init__(self, serving: Serving, tally: Tally, made: list[str]) -> None:
        super().__init__(serving)
        self._tally, self._made = tally, made

    async def _answer(self, slot: Slot, asked: WireRequest, watch: Watch | None) -> None:
        number = asked.header.correlation_id
        if 0 <= number < len(self._made):
            self._tally.begun[self._made[number]] += 1
        self._tally.handled[asked.api.key, asked.header.version] += 1
        await super()._answer(slot, asked, watch)


SEEDS = seeds()


class Fuzz:
    """handler: of the client listener. patience_s: how long six inputs in ten wait for its answers."""

    def __init__(self, handler: Handler = _handler, bodies: Bodies = SEEDS, patience_s: float = 0) -> None:
        self.crashes: list[str] = []
        self.tally = Tally()
        listeners = [
            Listener(name="F", address=Address("h", 1), internal=internal, lane=True) for internal in (False, True)
        ]
        limits = WireLimits()
        self._bodies, self._patience_s = bodies, patience_s
        self.node_bytes = NodeBytes(limits.max_node_bytes, limits.min_grant_bytes)
        self.servings = [
            Serving(
                Dispatch(
                    listener=listener,
                    identity=IDENTITY,
                    handler=_handler if listener.internal else handler,  # a caller with the secret may do harm
                    on_crash=self.on_crash,
                    book=RequestBook(time.monotonic),
                ),
                limits=limits,
                node_bytes=self.node_bytes,
                scratch=memoryview(bytearray(SCRATCH_BYTES)),
                send_turns=SendTurns(1 << 20),
                serves=None,
                grpc_address=lambda: None,
                on_crash=self.on_crash,
                random_bytes=bytes,
                proof_log=ProofLog(),
                turn=Turn(),
            )
            for listener in listeners
        ]

    def on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append(f"{name}: {error!r}")

    async def one(self, seed: int) -> bytes:
        """Feed one input, and return it."""
        rng = random.Random(seed)
        serving = self.servings[rng.random() < INTERNAL_PART]
        frames = [a_frame(rng, self._bodies, number) for number in range(rng.randrange(1, 5))]
        data = b"".join(frame.data for frame in frames)
        if serving.dispatch.listener.internal and rng.random() < 0.5:
            data = PROOF + data
        kinds = [frame.kind for frame in frames]
        self.tally.made.update(kinds)
        connection, transport = Watched(serving, self.tally, kinds), DeadTransport()
        connection.connection_made(transport)
        position = 0
        while position < len(data) and not transport.closed:
            buffer = connection.get_buffer(-1)
            count = min(len(buffer), len(data) - position, rng.choice((1, 7, 100, 100_000)))
            buffer[:count] = data[position : position + count]
            del buffer
            connection.buffer_updated(count)
            position += count
        for _ in range(rng.choice((0, 3))):
            await asyncio.sleep(0)
        if rng.random() < PATIENT_PART:
            await self._until_answered(connection)
        connection.connection_lost(None)
        self.tally.inputs += 1
        self.tally.answered += transport.written > 0
        return data

    async def _until_answered(self, connection: ServedConnection) -> None:
        until_s = asyncio.get_running_loop().time() + self._patience_s
        while not connection.idle and asyncio.get_running_loop().time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(0.0005)

    async def settled(self) -> None:
        """Waits for requests whose connections are gone: those that are on their way into a log hold their bytes until
        they are there. What is not given back in time is left to `harmless`."""
        until_s = asyncio.get_running_loop().time() + SETTLED_S
        while self.node_bytes.used_bytes and asyncio.get_running_loop().time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(0.0005)

    async def checked(self, seed: int) -> None:
        """As `one`, but checks its memory. Raises AssertionError, which names the seed."""
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with self.harmless(f"seed {seed}"):
            data = await self.one(seed)
        peak = tracemalloc.get_traced_memory()[1] - before
        assert peak <= MIN_ALLOWANCE + MAX_FACTOR * len(data), f"seed {seed}: {peak} bytes of memory for {len(data)}"

    @contextmanager
    def harmless(self, name: str) -> Iterator[None]:
        """Checks the memory of one input, or of several together. Raises AssertionError."""
        began_s = time.thread_time()
        yield
        took_s = time.thread_time() - began_s
        assert not self.crashes, f"{name}: {self.crashes}"
        assert (self.node_bytes.used_bytes, self.node_bytes.granted_bytes) == (0, 0), name
        assert took_s <= MAX_INPUT_S, f"{name}: {took_s:.1f} s"

    async def close(self) -> None:
        for serving in self.servings:
            await serving.nursery.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log line of every closed connection."""
    log = logging.getLogger("quorumlog.wire")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
