"""One run: three nodes, transactional clients, kills of coordinators, leaders and clients; read everything, judge.

All clients run in this process, each with connections of its own; one that is killed leaves its transaction open and
its connections closed, as the end of its process would. Most speak Kafka's wire, some ours. Faults come by number of
transactions, not by time, so that a slow machine exercises as much as a fast one. What clients saw goes into arrays at
once (jepsen.checkers.transactional_history): a million transactions need some hundred MB.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.live.minimums import Minimum
from jepsen.live.transactions.minimums import by_target, minimums
from jepsen.live.transactions.odd_nodes import OLD, OddNodes, odd_nodes
from jepsen.live.transactions.strikes import Strike, Striker
from jepsen.transactions.calls import Calls
from jepsen.transactions.clients import Client, Load
from jepsen.transactions.readers import LEDGER, LEDGER_CONFIGS, follow, follow_offsets, read_everything
from jepsen.transactions.recorder import Recorder
from quorumlog.client import real_edges as edge
from quorumlog.rpc.transport import Transport
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.routing import RoutingTransport

LOAD = Load(partitions=12, units=4, gap_s=0.005, dies=0.002, aborts=0.15, late=0.01, timeout_ms=10_000)
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "6",  # fewer files to sync: more transactions in the same time
    "offsets.topic.num.partitions": "6",
}
CLIENT_KILLED_EVERY = 100  # transactions
OLD_EVERY = 4  # ids: of so many, one is old
OURS_EVERY = 6  # clients: of so many, one speaks our own wire
CALM_SHARE = 4  # this part of the transactions between two faults comes behind the end of the first one, at least
PROGRESS_S = 5.0
POLL_S = 0.05
STALLED_S = 120.0  # without a transaction that ends: the run is over, and found something
FINAL_S, FINAL_PER_S, CLIENTS_S = 120.0, 2_000, 60.0  # FINAL_PER_S: transactions to be read a second, at least
REPORT = "report.json"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """count: of transactions that ended one way or the other. clients: transactional ids, transformers included.

    every: transactions between two faults of nodes.
    """

    count: int
    clients: int
    seed: int
    every: int

    @property
    def faults(self) -> int:
        """How many there are to be."""
        return max(1, self.count // self.every)

    @property
    def old(self) -> int:
        """How many ids are old."""
        return len(range(0, self.clients, OLD_EVERY))


@dataclass(slots=True)
class Outcome:
    """ended: committed or aborted. anomalies: all findings, of which `findings` has some of each name.

    loaded_s: the time in which transactions ran.
    """

    options: Options
    strikes: list[Strike] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    anomalies: int = 0
    ended: int = 0
    loaded_s: float = 0.0
    took_s: float = 0.0

    @property
    def minimums(self) -> list[Minimum]:
        options = self.options
        return [
            Minimum("transactions that ended", options.count, self.ended),
            *minimums(
                options.count, self.counts, self.strikes, faults=options.faults,
                clients=options.count // CLIENT_KILLED_EVERY, old=options.old, turns=options.count // options.clients,
            ),
        ]  # fmt: skip

    @property
    def by_target(self) -> list[str]:
        return by_target(self.strikes)

    @property
    def rate(self) -> float:
        """Transactions per second while they ran, faults included."""
        return self.ended / self.loaded_s if self.loaded_s else 0.0

    @property
    def verdict(self) -> str:
        if self.findings:
            return "INVALID"
        return "VALID" if all(one.is_met for one in self.minimums) else "TOO LITTLE EXERCISED"


def carry_out(options: Options, folder: Path, say: Say) -> Outcome:
    """Writes the report into `folder`. Raises TimedOut, NodeEnded, TimeoutError."""
    began = time.monotonic()
    outcome = Outcome(options)
    with (
        tempfile.TemporaryDirectory(prefix="quorumlog-transactions-") as root,
        odd_nodes(Path(root) / "cluster", SETTINGS) as nodes,
    ):
        recorder = asyncio.run(_Run(options, nodes, outcome, say).carry_out())
    say(f"judging what {recorder.history.events:,} events tell")
    verdict = recorder.history.verdict()
    outcome.findings += verdict.findings
    outcome.anomalies = sum(verdict.number.values()) + len(outcome.findings) - len(verdict.findings)
    outcome.counts = {**verdict.counts, **dict(sorted(recorder.counts.items()))}
    outcome.counts = {name: count for name, count in outcome.counts.items() if ":" not in name}
    outcome.ended = recorder.ended
    outcome.took_s = time.monotonic() - began
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        **asdict(outcome),
        "verdict": outcome.verdict,
        "number of findings": verdict.number,
        "by target": outcome.by_target,
        "minimums": [str(one) for one in outcome.minimums],
    }
    (folder / REPORT).write_text(json.dumps(facts, indent=1) + "\n")
    return outcome


class _Run:
    def __init__(self, options: Options, nodes: OddNodes, outcome: Outcome, say: Say) -> None:
        self._options, self._outcome, self._say = options, outcome, say
        self._recorder = Recorder(time.monotonic_ns)
        self._rng = random.Random(options.seed)
        self._servers = nodes.layout.bootstrap_servers
        self._striker = Striker(nodes, self._recorder, self._rng, self._servers)
        self._lives: dict[int, asyncio.Timeout] = {}  # by client: its end, if it is to be killed

    async def carry_out(self) -> Recorder:
        async with edge.admin({"bootstrap.servers": self._servers}) as admin:
            await admin.create_topic(LEDGER, LOAD.partitions, 3, LEDGER_CONFIGS)
        began = time.monotonic()
        clients = [asyncio.create_task(self._client(number)) for number in range(self._options.clients)]
        beside = [asyncio.create_task(one) for one in (*self._readers(), self._kill_clients())]
        telling = asyncio.create_task(self._tell())
        try:
            await self._strike(clients)
        finally:
            self._recorder.stopping = True
            self._outcome.strikes = self._striker.struck
            self._outcome.loaded_s = time.monotonic() - began
        self._say("the last faults are over; waiting for the clients")
        await self._until_ended([*clients, *beside])
        telling.cancel()
        self._say("reading everything")
        await self._read_everything()
        return self._recorder

    async def _read_everything(self) -> None:
        limit_s = FINAL_S + self._recorder.ended / FINAL_PER_S
        calls = self._calls("final")
        try:
            async with asyncio.timeout(limit_s):
                await read_everything(calls, self._recorder, LOAD.partitions, LOAD.units)
        except TimeoutError:
            text = f"open {limit_s:.0f} s later: {self._recorder.waiting_for}"
            self._outcome.findings.append(Finding("transactions-end", text))
        await calls.close()

    # --- clients ---

    def _calls(self, name: str, make: Callable[[], Transport] = edge.make_transport) -> Calls:
        rng = random.Random(self._rng.getrandbits(64))
        return Calls(make(), bootstrap=self._servers, clock=edge.SystemClock(), rng=rng, name=name)

    def _kafka_calls(self, name: str) -> Calls:
        return self._calls(name, lambda: RoutingTransport(identity=None, by_lane=frozenset(BY_REQUEST)))

    async def _client(self, number: int) -> None:
        """Lives of one transactional id; each ends when its client is killed. The first ones are transformers."""
        rng = random.Random(self._options.seed * 1_000_003 + number)
        unit = number if number < LOAD.units else None
        name = f"{OLD}{number}" if number % OLD_EVERY == 0 else f"client-{number}"
        make_calls = self._calls if number % OURS_EVERY == 0 else self._kafka_calls
        while not self._recorder.stopping:
            client = Client(name, name, unit, self._recorder, LOAD, make_calls, rng)
            try:
                async with asyncio.timeout(None) as self._lives[number]:
                    await client.run()
            except TimeoutError:
                self._recorder.counts["clients killed"] += 1

    async def _kill_clients(self) -> None:
        """One of them, whatever it does, each CLIENT_KILLED_EVERY transactions."""
        due = CLIENT_KILLED_EVERY
        while not self._recorder.stopping:
            if self._recorder.ended >= due:
                due += CLIENT_KILLED_EVERY
                self._lives[self._rng.choice(list(self._lives))].reschedule(asyncio.get_running_loop().time())
            await asyncio.sleep(POLL_S)

    def _readers(self) -> list[Coroutine[Any, Any, None]]:
        found: list[Coroutine[Any, Any, None]] = []
        for partition in range(0, LOAD.partitions, 3):
            rng = random.Random(self._options.seed * 2_000_003 + partition)
            found.append(follow(f"reader-{partition}", partition, self._recorder, self._calls, rng))
        for unit in range(LOAD.units):
            rng = random.Random(self._options.seed * 3_000_017 + unit)
            found.append(follow_offsets(f"offsets-{unit}", unit, self._recorder, self._calls, rng))
        return found

    async def _until_ended(self, tasks: list[asyncio.Task[None]]) -> None:
        _, left = await asyncio.wait(tasks, timeout=CLIENTS_S)
        for task in left:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                self._outcome.findings.append(Finding("client-crashed", repr(result)))

    # --- faults ---

    async def _strike(self, clients: list[asyncio.Task[None]]) -> None:
        """Spread over the transactions; behind the last fault some follow."""
        options = self._options
        for number in range(options.faults):
            planned = int((number + 0.5) * options.count / options.faults)
            if not await self._until(max(planned, self._recorder.ended + options.every // CALM_SHARE), clients):
                return
            one = await self._striker.strike()
            self._say(
                f"{one.kind}: node {one.node_id} ({one.aim}), back after {one.back_s:.1f} s, {one.away} commits "
                f"meanwhile; the clock of node {one.clock_of} is {one.clock_ms / 1_000:+,.0f} s ahead"
            )
        await self._until(options.count, clients)

    async def _until(self, ended: int, clients: list[asyncio.Task[None]]) -> bool:
        """False: every client has crashed before, or nothing goes on."""
        newest, at = self._recorder.ended, time.monotonic()
        while self._recorder.ended < ended:
            if all(client.done() for client in clients):
                return False
            if self._recorder.ended > newest:
                newest, at = self._recorder.ended, time.monotonic()
            elif time.monotonic() - at > STALLED_S:
                text = f"no transaction has ended for {STALLED_S:g} s, with all nodes up"
                self._outcome.findings.append(Finding("transactions-stalled", text))
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _tell(self) -> None:
        before, began = 0, time.monotonic()
        while True:
            await asyncio.sleep(PROGRESS_S)
            ended, took_s = self._recorder.ended, time.monotonic() - began
            now, mean = (ended - before) / PROGRESS_S, ended / took_s
            left_s = max(0, self._options.count - ended) / mean if mean else 0.0
            self._say(f"{took_s:6.0f} s  {ended:>9,} of {self._options.count:,} transactions "
                      f"({now:,.0f}/s, mean {mean:,.0f}/s, {left_s:,.0f} s to go)")  # fmt: skip
            before = ended
