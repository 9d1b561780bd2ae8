"""Arbitrary bytes against a whole node: `./dev fuzz`; 20,000 inputs in the test suite.

Most inputs go to the lane (tests/wire/fuzz.py), some to gRPC, some through a socket of the node's own listener. They
are made from requests that name existing topics, so that they reach the handlers, the log and the controller. These
must hold: no handler fails unexpectedly (which would end the process), data and settings of the protected topic do
not change, the node answers and accepts records on another connection, its memory does not grow, and it starts again
with its stored data. Each input is determined by its seed.
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
from quorumlog.settings.rights import AUTHORIZER
from tests.scenarios import asking
from tests.scenarios.fuzz_requests import SCRATCH, TOPIC, Ids, bodies_of, requests
from tests.scenarios.grpc_door import GrpcDoor
from tests.scenarios.memory_peak import forget_peak, peak_bytes
from tests.scenarios.one_node import CALL_MS, LANE, NO_TOPICS_BY_ACCIDENT, READY_LIMIT_S, RealNode, make_topic
from tests.wire.fuzz import Fuzz, quiet

# Access rules are made and found; nobody is refused by them.
WITH_RULES = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
OUT_OF_REACH = {"node.id": "74219"}  # no damage makes this number: a request to unregister this broker would be obeyed
PATIENCE_S = 0.02
AT_ONCE = 100  # inputs at a time, each on its own connection
GRPC_PART, SOCKET_PART = 0.1, 0.005  # of the inputs
LOOKED_AT_EVERY = 1_000  # inputs between two checks of the node's state
WARM_INPUTS = 5_000  # after these, everything that is loaded once is loaded
MAX_GROWTH_BYTES = 128 * 1024 * 1024  # after the warm-up
MAX_GROWTH_AT_ONCE_BYTES = 64 * 1024 * 1024
PROGRESS_S = 10.0
INPUTS = 1_000_000


class NodeFuzz:
    """One node with two topics of one partition: one that no input may change, and one that any input may."""

    def __init__(self, folder: Path) -> None:
        self.at = RealNode(folder, NO_TOPICS_BY_ACCIDENT | OUT_OF_REACH | WITH_RULES)
        self._connection = self.at.connect(LANE)
        ids = Ids(
            topic=self.at.do(make_topic(self._connection, TOPIC, retention_ms="-1")),  # its records are of 2023
            scratch=self.at.do(make_topic(self._connection, SCRATCH)),
        )
        self._before = self.at.do(_state(self._connection))
        self._fuzz = self.at.do(_made(lambda: Fuzz(self._handle, bodies_of(ids), PATIENCE_S)))
        self.tally = self._fuzz.tally
        self._grpc = GrpcDoor(self._handle, self._fuzz.on_crash, self.tally, requests(ids), PATIENCE_S)
        self._warm_bytes: int | None = None

    def run(self, count: int, first_seed: int, progress: Callable[[], None] = lambda: None) -> None:
        """Raises AssertionError, with a note how to repeat the failure."""
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
        """Start the node again with everything that the inputs have left. Raises AssertionError."""
        self.at.do(self._connection.close())
        self.at.restart()
        self._connection = self.at.connect(LANE)
        self.at.do(self._until_led())
        self._before["leader"] = self.at.do(_state(self._connection))["leader"]  # a restart is a leadership of its own
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
            self.tally.count_response(response)
        return response

    async def _piece(self, begin: int, end: int) -> None:
        for first in range(begin, end, AT_ONCE):
            seeds = range(first, min(first + AT_ONCE, end))
            name = f"seeds {seeds[0]} to {seeds[-1]}"
            before = forget_peak()
            with self._fuzz.harmless(name):
                for task in [asyncio.ensure_future(self._one(seed)) for seed in seeds]:
                    await task
                await self._fuzz.settled()
            assert self.at.crashes == [], f"{name}: {self.at.crashes[0]}"
            assert self.at.node.fatal is None, f"{name}: {self.at.node.fatal}"
            grown = peak_bytes() - before
            assert grown <= MAX_GROWTH_AT_ONCE_BYTES, f"{name}: {grown} bytes"

    async def _one(self, seed: int) -> None:
        rng = random.Random(-1 - seed)  # independent of the numbers that make the input
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
        """Checks that the node is unchanged and healthy."""
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
    """The state of TOPIC that no bad input may change: partitions, leadership, settings, log start and log end."""
    asked = MetadataRequest(all_topics=False, topics=(TopicQuery(name=TOPIC),), allow_auto_topic_creation=False)
    (topic,) = (await connection.call(asked, CALL_MS)).topics
    (described,) = (await connection.call(asking.configs(TOPIC), CALL_MS)).results
    found: dict[str, Any] = {"error": topic.error_code, "id": topic.topic_id, "partitions": len(topic.partitions)}
    found["leader"] = [(one.leader_id, one.leader_epoch) for one in topic.partitions]
    found |= {config.name: (config.value, config.source) for config in described.configs}
    for name, timestamp_ms in (("log start", -2), ("log end", -1)):
        (end,) = (await connection.call(asking.offsets(TOPIC, timestamp_ms), CALL_MS)).topics
        found[name] = (end.partitions[0].error_code, end.partitions[0].offset)
    return found


class Progress:
    """Prints a line from time to time: number of inputs, rate, coverage."""

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
    parser.add_argument("--inputs", type=int, default=INPUTS, help="number of inputs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first input (default: %(default)s)")
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
    print(f"no input did harm; the node started again with its data; {progress.took_s:.0f} s")


if __name__ == "__main__":
    main()
