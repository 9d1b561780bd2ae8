"""Any bytes at the lane's front door: 20,000 inputs in the suite, as many as one likes by tests/scenarios/node_fuzz.py.

An input is a sequence of frames, valid ones of every API and version with bytes changed, cut, doubled or swapped, or
no frames at all, read in pieces of any size by a connection of its own. What has to hold: nothing but the connection
suffers, no handler's task is left, what the node counts is zero again, and no input makes more objects than a small
factor of its size. One failure prints the seed that repeats it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import struct
import tracemalloc
from typing import Any

from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.dispatch import Dispatch
from quorumlog.rpc.transport import Address, Handler, Identity, Listener
from quorumlog.wire import sasl
from quorumlog.wire.apis import APIS, BY_REQUEST
from quorumlog.wire.framing import SCRATCH_BYTES
from quorumlog.wire.limits import NodeBytes, WireLimits
from quorumlog.wire.parts import LENGTH_BYTES, Parts
from quorumlog.wire.served import ServedConnection
from quorumlog.wire.server import Serving

IDENTITY = Identity(cluster_id="c1", node_id=1, incarnation_id=b"i" * 16, secret=b"s" * 32)
SPOKEN = [(api.key, api.oldest, api.newest) for api in APIS] + [(18, 0, 4), (17, 0, 1), (36, 0, 2)]
INTERESTING = (
    b"\0",
    b"\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff",
    b"\x01",
    b"\x02",
)
MAX_FACTOR = 200  # bytes of memory for a byte of input
MIN_ALLOWANCE = 2_000_000
PATIENT_PART = 0.02


class DeadTransport(asyncio.Transport):
    """Takes everything, as a socket whose peer reads at once."""

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


Bodies = dict[tuple[int, int], list[bytes]]  # by API and version


def a_frame(rng: random.Random, bodies: Bodies) -> bytes:
    """Of a random API and version, empty or damaged."""
    key, oldest, newest = rng.choice(SPOKEN)
    version = rng.randint(oldest, newest)
    header = struct.pack(">hhih", key, version, rng.randrange(2**31), 2) + b"me"
    body = rng.choice(bodies.get((key, version), [b""])) if rng.random() < 0.8 else rng.randbytes(rng.randrange(60))
    frame = bytearray(header + (b"\0" if rng.random() < 0.6 else b"") + body)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        _damage(frame, rng)
    size = len(frame) if rng.random() < 0.97 else rng.choice((-1, 0, 2**31 - 1, len(frame) + 1, max(1, len(frame) - 1)))
    return struct.pack(">i", size) + bytes(frame)


def _damage(frame: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(frame) + 1)
    match rng.randrange(5):
        case 0:
            frame[at : at + 1] = rng.choice(INTERESTING)
        case 1:
            del frame[at : at + rng.randrange(8)]
        case 2:
            frame[at:at] = frame[at : at + rng.randrange(64)] * rng.randrange(1, 9)
        case 3:
            frame[at : at + 4] = rng.choice(INTERESTING)
        case _:
            frame[at:at] = rng.randbytes(rng.randrange(16))


def _seeds() -> Bodies:
    """Bodies that are right, to be damaged: each field at its default, and once with one element in each list."""
    found: Bodies = {}
    for api in APIS:
        for version in range(api.oldest, api.newest + 1):
            shape = api.request_shape(version)
            parts = Parts()
            shape.write(parts, {})
            found[api.key, version] = [b"".join(parts.frame())[LENGTH_BYTES:]]
            for step in shape.steps:
                many: dict[str, Any] = {getattr(step, "name", ""): [{}]}
                parts = Parts()
                try:
                    shape.write(parts, many)
                except (AttributeError, TypeError, struct.error):
                    continue  # not a list of structs
                found[api.key, version].append(b"".join(parts.frame())[LENGTH_BYTES:])
    return found


SEEDS = _seeds()


class Fuzz:
    """handler: what is behind the door of clients. patience_s: how long one input in fifty waits for its answers."""

    def __init__(self, handler: Handler = _handler, bodies: Bodies = SEEDS, patience_s: float = 0) -> None:
        self.crashes: list[str] = []
        self.served = 0
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
                    handler=_handler if listener.internal else handler,  # who has the secret may do harm
                    on_crash=self._on_crash,
                ),
                limits=limits,
                node_bytes=self.node_bytes,
                scratch=memoryview(bytearray(SCRATCH_BYTES)),
                serves=None,
                grpc_address=lambda: None,
                on_crash=self._on_crash,
            )
            for listener in listeners
        ]

    def _on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append(f"{name}: {error!r}")

    async def one(self, seed: int) -> int:
        """Feed one input; gives its size."""
        rng = random.Random(seed)
        serving = self.servings[rng.random() < 0.3]
        data = b"".join(a_frame(rng, self._bodies) for _ in range(rng.randrange(1, 5)))
        if serving.dispatch.listener.internal and rng.random() < 0.5:
            data = b"".join(sasl.ask_authenticate(1, IDENTITY)) + data
        connection, transport = ServedConnection(serving), DeadTransport()
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
        self.served += transport.written > 0
        return len(data)

    async def _until_answered(self, connection: ServedConnection) -> None:
        until_s = asyncio.get_running_loop().time() + self._patience_s
        while not connection.idle and asyncio.get_running_loop().time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def run(self, count: int, first_seed: int) -> None:
        """Raises AssertionError, naming the seed."""
        for seed in range(first_seed, first_seed + count):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            size = await self.one(seed)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert not self.crashes, f"seed {seed}: {self.crashes}"
            assert (self.node_bytes.used_bytes, self.node_bytes.granted_bytes) == (0, 0), f"seed {seed}"
            assert peak <= MIN_ALLOWANCE + MAX_FACTOR * size, f"seed {seed}: {peak} bytes of memory for {size}"
        for serving in self.servings:
            await serving.nursery.close()


async def fuzz(fuzz: Fuzz, count: int, first_seed: int) -> int:
    """How many inputs were answered at all: a fuzz that is always turned away at the door finds nothing."""
    log = logging.getLogger("quorumlog.wire")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        await fuzz.run(count, first_seed)
        return fuzz.served
    finally:
        log.setLevel(before)
