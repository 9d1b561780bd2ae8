"""Transactional clients in the simulation (jepsen.transactions), each on a host that fails with nobody else.

Some transactional ids begin as if they had lived for long, so that their epochs run out within a run. Two producers
share an id, and two transformers each unit: a new life of one fences the other. The level of transaction.version falls
and rises all the while (transaction_levels.py), and producers of both protocols go on as they have begun.

- transactions-end: after the faults, every open transaction ends, and every id is served again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.checkers.findings import Finding
from jepsen.sim.settings import BOOTSTRAP
from jepsen.sim.workload.transactions.transaction_levels import change_levels
from jepsen.transactions.calls import TRANSACTION, Calls
from jepsen.transactions.clients import Client, Load
from jepsen.transactions.producer import TV1, TV2, Lost, Producer
from jepsen.transactions.readers import LEDGER, LEDGER_CONFIGS, follow, follow_offsets, read_everything
from jepsen.transactions.recorder import Recorder
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.messages.transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError, Transport

SETTINGS = {
    "group.initial.rebalance.delay.ms": "200",
    "log.cleaner.enable": "false",  # the other invariants compare bytes
    "offsets.commit.timeout.ms": "3000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
IDS = ("alone-1", "alone-2", "shared", "shared")  # of appenders
OLD_IDS = ("alone-1", "shared", "pipe-0")
LAST_EPOCH = 32_766
UNIT_ID = "pipe-{}"  # of the transformers of a unit
TRANSFORMERS = 2  # of each unit
REPLICAS = 3
_LOOKS_MAX = 1_000
_MIN_PER_S = {"transactions committed": 0.4, "transactions aborted": 0.05, "transactional reads": 0.4}


class Transactions:
    """trusted: a transport with the cluster's secret. age: makes an id old. late_requests: the network
    repeats requests, which TV1 does not survive."""

    def __init__(
        self,
        rng: Callable[[str], random.Random],
        transport: Callable[[], Transport],
        trusted: Callable[[], Transport],
        admin: Callable[[], AsyncAdmin],
        clock: Clock,
        now_ns: Callable[[], int],
        age: Callable[[str, int], bool],
        *,
        late_requests: bool,
    ) -> None:
        self.recorder = Recorder(now_ns)
        self._rng, self._transport, self._admin, self._clock = rng, transport, admin, clock
        self._age, self._trusted = age, trusted
        self._load = Load(gap_s=0.2, versions=(TV2,) if late_requests else (TV1, TV2))

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in sorted(self.recorder.counts.items()) if ":" not in name}

    def stop(self) -> None:
        self.recorder.stopping = True

    async def run(self, nursery: Nursery) -> None:
        """Make the topic, then start the clients."""
        while not self.recorder.stopping:
            async with self._admin() as admin:
                try:
                    await admin.create_topic(LEDGER, self._load.partitions, REPLICAS, LEDGER_CONFIGS, exist_ok=True)
                    break
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)
        for name in OLD_IDS:
            await self._make_old(name)
        levels = change_levels(
            self._trusted(), self._rng("levels"), lambda: self.recorder.stopping, self.recorder.counts
        )
        nursery.start(levels, "levels of transaction.version")
        units = [(UNIT_ID.format(unit), unit) for unit in range(self._load.units) for _ in range(TRANSFORMERS)]
        for number, (name, unit) in enumerate([*((one, None) for one in IDS), *units]):
            client = f"{name}/{number}"
            one = Client(client, name, unit, self.recorder, self._load, self._calls, self._rng(client))
            nursery.start(one.run(), client)
        for partition in range(self._load.partitions):
            reader = f"reader/{partition}"
            nursery.start(follow(reader, partition, self.recorder, self._calls, self._rng(reader)), reader)
        for unit in range(self._load.units):
            reader = f"offsets/{unit}"
            nursery.start(follow_offsets(reader, unit, self.recorder, self._calls, self._rng(reader)), reader)

    async def _make_old(self, name: str) -> None:
        """So that its epochs run out soon."""
        while not self.recorder.stopping:
            calls = self._calls("old")
            producer = Producer(calls, self.recorder, name, TV2, self._load.timeout_ms)
            try:
                await producer.begin()
            except Lost:
                continue
            finally:
                await calls.close()
            if self._age(name, LAST_EPOCH - self._rng(f"age/{name}").randint(0, 12)):
                self.recorder.counts["old ids"] += 1
                return

    def _calls(self, name: str) -> Calls:
        rng = self._rng(f"calls/{name}")
        return Calls(self._transport(), bootstrap=BOOTSTRAP, clock=self._clock, rng=rng, name=name)

    # --- after everything has healed ---

    async def read_all(self) -> None:
        """Ends when no transaction is open any more."""
        calls = self._calls("final")
        await read_everything(calls, self.recorder, self._load.partitions, self._load.units)
        for name in dict.fromkeys((*IDS, *(UNIT_ID.format(unit) for unit in range(self._load.units)))):
            for _ in range(_LOOKS_MAX):
                if await self._is_at_rest(calls, name):
                    break
                await asyncio.sleep(0.1)
            else:
                raise TimeoutError(f"the transaction of {name} does not end")
        await calls.close()

    async def _is_at_rest(self, calls: Calls, name: str) -> bool:
        try:
            request = DescribeTransactionsRequest(transactional_ids=(name,))
            response: DescribeTransactionsResponse = await calls.to_coordinator(TRANSACTION, name, request)
        except RpcError:
            return False
        (found,) = response.transactions
        if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return True
        if found.error_code != ErrorCode.NONE:
            calls.forget_coordinator(TRANSACTION, name)
        return found.state in ("Empty", "CompleteCommit", "CompleteAbort")

    def check(self) -> list[Finding]:
        verdict = self.recorder.history.verdict()
        self.recorder.counts.update(
            {name: count for name, count in verdict.counts.items() if "transactions" not in name}
        )
        return verdict.findings

    def exercised_enough(self, seconds: int) -> bool:
        """A run with less proves nothing."""
        return all(self.recorder.counts[name] >= seconds * per_s for name, per_s in _MIN_PER_S.items())
