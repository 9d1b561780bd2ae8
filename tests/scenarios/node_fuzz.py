"""Any bytes at a whole node: `./dev fuzz`; 20,000 inputs in the suite.

Inputs go to the lane (tests/wire/fuzz.py), some to the door of gRPC, some over a socket of the node's own listener;
they are made of requests that name topics which are there, so that they come as far as the handlers, the log, and the
controller behind it. What has to hold besides: no handler fails unexpectedly (that would end the process), what is
stored and set for a topic that no input may change stays as it is, the node answers and takes records on another
connection, its memory does not grow, and it starts again with what it has stored. Each input is made of its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quorumlog.errors import ApiError
from quorumlog.messages.cluster import MetadataRequest, TopicQuery
from quorumlog.rpc.transport import Connection
from tests.scenarios import asking
from tests.scenarios.fuzz_requests import SCRATCH, TOPIC, Ids, bodies_of, requests
from tests.scenarios.grpc_door import GrpcDoor
from tests.scenarios.memory_peak import forget_peak, peak_bytes
from tests.scenarios.one_node import CALL_MS, LANE, NO_TOPICS_BY_ACCIDENT, READY_LIMIT_S, RealNode, make_topic
from tests.wire.fuzz import Fuzz, quiet

PATIENCE_S = 0.02
AT_ONCE = 100  # inputs, each on a connection of its own
GRPC_PART, SOCKET_PART = 0.1, 0.005  # of the inputs
LOOKED_AT_EVERY = 1_000  # inputs: how far a finding that needs several may lie before where it shows
WARM_INPUTS = 5_000  # until everything that is loaded once has been
MAX_GROWTH_BYTES = 128 * 1024 * 1024  # since then
MAX_GROWTH_AT_ONCE_BYTES = 64 * 1024 * 1024
PROGRESS_S = 10.0
INPUTS = 1_000_000


class NodeFuzz:
    """One node with two topics of one partition: what no input may change, and what any may."""

    def __init__(self, folder: Path) -> None:
        self.at = RealNode(folder, NO_TOPICS_BY_ACCIDENT)
        self._connection = self.at.connect(LANE)
        ids = Ids(
            topic=self.at.do(make_topic(self._connection, TOPIC)),
            scratch=self.at.do(make_topic(self._connection, SCRATCH)),
        )
        self._before = self.at.do(_state(self._connection))
        self._fuzz = self.at.do(_made(lambda: Fuzz(self._handle, bodies_of(ids), PATIENCE_S)))
        self.tally = self._fuzz.tally
        self._grpc = GrpcDoor(self._handle, self._fuzz.on_crash, self.tally, requests(ids), PATIENCE_S)
        self._warm_bytes: int | None = None

    def run(self, count: int, first_seed: int, progress: Callable[[], None] = lambda: None) -> None:
        """Raises AssertionError, which says how to repeat it."""
        with quiet():
            for begin in range(first_seed, first_seed + count, LOOKED_AT_EVERY):
                end = min(begin + LOOKED_AT_EVERY, first_seed + count)
                try:
                    self.at.do(self._piece(begin, end))
                    self._look()
                except BaseException as error:
                    error.add_note(f"repeat it: ./dev fuzz --seed {begin} --inputs {end - begin}")
                    raise
                progress()

    def restart(self) -> None:
        """Start again with what all those inputs have left. Raises AssertionError."""
        self.at.do(self._connection.close())
        self.at.restart()
        self._connection = self.at.connect(LANE)
        self.at.do(self._until_led())
        self._look()

    def close(self) -> None:
        self.at.do(self._fuzz.close())
        self.at.do(self._connection.close())
        self.at.close()

    async def _handle(self, context: Any, request: Any) -> Any:
        try:
            response = await self.at.node._handle_client(context, request)
        except ApiError as error:
            self.tally.codes[type(request).__name__.replace("Request", "Response")].add(int(error.code))
            raise
        if response is not None:
            self.tally.told(response)
        return response

    async def _piece(self, begin: int, end: int) -> None:
        for first in range(begin, end, AT_ONCE):
            seeds = range(first, min(first + AT_ONCE, end))
            name = f"seeds {seeds[0]} to {seeds[-1]}"
            before = forget_peak()
            with self._fuzz.harmless(name):
                for task in [asyncio.ensure_future(self._one(seed)) for seed in seeds]:
                    await task
            assert self.at.crashes == [], f"{name}: {self.at.crashes[0]}"
            assert self.at.node.fatal is None, f"{name}: {self.at.node.fatal}"
            grown = peak_bytes() - before
            assert grown <= MAX_GROWTH_AT_ONCE_BYTES, f"{name}: {grown} bytes"

    async def _one(self, seed: int) -> None:
        rng = random.Random(-1 - seed)  # other numbers than those of which the input is made
        if rng.random() < GRPC_PART:
            await self._grpc.one(rng)
            return
        data = await self._fuzz.one(seed)
        if rng.random() < SOCKET_PART:
            await self._by_socket(data)

    async def _by_socket(self, data: bytes) -> None:
        address = self.at.node.addresses[LANE]
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            async with asyncio.timeout(PATIENCE_S):
                writer.write(data)
                writer.write_eof()
                await reader.read(-1)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
        self.tally.sockets += 1

    async def _until_led(self) -> None:
        async with asyncio.timeout(READY_LIMIT_S):
            while (await _state(self._connection))["log end"] != self._before["log end"]:  # noqa: ASYNC110 - a question
                await asyncio.sleep(0.02)

    def _look(self) -> None:
        """Is the node as it was, and well?"""
        assert self.at.crashes == [], self.at.crashes[0]
        assert self.at.node.ready and self.at.node.fatal is None
        after = self.at.do(_state(self._connection))
        changed = {name: (self._before.get(name), after.get(name)) for name in {**self._before, **after}}
        changed = {name: (before, now) for name, (before, now) in changed.items() if before != now}
        assert not changed, f"before and now: {changed}"
        held = forget_peak()
        if self._warm_bytes is None and self.tally.inputs >= WARM_INPUTS:
            self._warm_bytes = held
        grown = held - (self._warm_bytes or held)
        assert grown <= MAX_GROWTH_BYTES, f"{grown} bytes more than after {WARM_INPUTS} inputs"


async def _made(make: Callable[[], Fuzz]) -> Fuzz:
    return make()


async def _state(connection: Connection) -> dict[str, Any]:
    """What no bad input may change of TOPIC: its partitions, its settings, and where its log begins and ends."""
    asked = MetadataRequest(all_topics=False, topics=(TopicQuery(name=TOPIC),), allow_auto_topic_creation=False)
    (topic,) = (await connection.call(asked, CALL_MS)).topics
    (described,) = (await connection.call(asking.configs(TOPIC), CALL_MS)).results
    found: dict[str, Any] = {"error": topic.error_code, "id": topic.topic_id, "partitions": len(topic.partitions)}
    found |= {config.name: (config.value, config.source) for config in described.configs}
    for name, timestamp_ms in (("log start", -2), ("log end", -1)):
        (end,) = (await connection.call(asking.offsets(TOPIC, timestamp_ms), CALL_MS)).topics
        found[name] = (end.partitions[0].error_code, end.partitions[0].offset)
    return found


class Progress:
    """A line now and then: inputs done, how fast, what was covered."""

    def __init__(self, fuzzing: NodeFuzz, count: int) -> None:
        self._fuzzing, self._count = fuzzing, count
        self._began_s = self._told_s = time.monotonic()

    def __call__(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= PROGRESS_S:
            self._told_s = now_s
            tally = self._fuzzing.tally
            rate = tally.inputs / (now_s - self._began_s)
            print(f"{tally.inputs:,} of {self._count:,} inputs, {rate:,.0f}/s; {tally.line()}", flush=True)

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Bad input of every kind at one whole node.")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; each has its own (default: %(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzzing = NodeFuzz(Path(folder))
        progress = Progress(fuzzing, given.inputs)
        try:
            fuzzing.run(given.inputs, given.seed, progress)
            fuzzing.restart()
        finally:
            fuzzing.close()
    print(*fuzzing.tally.report(), sep="\n")
    short = fuzzing.tally.shortfalls()
    if short:
        sys.exit("not enough of: " + "; ".join(short))
    print(f"none did harm; the node started again with what they left; {progress.took_s:.0f} s")


if __name__ == "__main__":
    main()
