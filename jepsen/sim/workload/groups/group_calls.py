"""What members of a group in the simulation share: the way to their coordinator, and what they write down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from jepsen.checkers.group_history import Fetched, GroupHistory
from jepsen.sim.settings import BROKERS, CLIENT_PORT
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic, OffsetFetchTopics
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport

UNITS, UNITS_MAX = 4, 6
UNITS_OF = "units"
SESSION_MS, REBALANCE_MS, CALL_MS = 3_000, 5_000, 12_000
ASIDE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Gone(Exception):
    """This member goes on as another one: it was fenced, or it does not know what it has done."""


class Group:
    """One group. counts: for the report. A unit is a partition of UNITS_OF, a topic without records.

    units: how many there are as far as its members know; more are added meanwhile.
    """

    def __init__(
        self, group_id: str, rng: random.Random, transport: Callable[[], Transport], now_ns: Callable[[], int]
    ) -> None:
        self.group_id, self.rng, self.now_ns = group_id, rng, now_ns
        self.history = GroupHistory()
        self.stopping = False
        self.units = UNITS
        self.counts = {"group commits": 0, "group members gone": 0}
        self._transport = transport

    async def run(self, name: str, live: Callable[[Calls], Awaitable[None]]) -> None:
        """Members, one after the other, until `stopping`. live: one member; it may raise Gone."""
        while not self.stopping:
            await self.run_once(name, live)
            await asyncio.sleep(self.rng.uniform(0.05, 1.0))

    async def run_once(self, name: str, live: Callable[[Calls], Awaitable[None]]) -> None:
        calls = Calls(self, name)
        try:
            await live(calls)
        except Gone:
            self.count("group members gone")
        finally:
            await calls.close()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def connect(self, address: Address, name: str) -> Connection:
        return self._transport().connect(address, internal=False, client_id=name)


class Calls:
    """A member's requests: to its coordinator, which is looked for again when it is another one."""

    def __init__(self, group: Group, name: str) -> None:
        self.group, self.name = group, name
        self._coordinator: Connection | None = None

    async def close(self) -> None:
        if self._coordinator is not None:
            await self._coordinator.close()
            self._coordinator = None

    async def once(self, request: Any) -> Any:
        """Raises RpcError."""
        if self._coordinator is None:
            self._coordinator = await self._find()
        try:
            return await self._coordinator.call(request, CALL_MS)
        except RpcError:
            await self.close()
            raise

    async def repeat(self, request: Any, code_of: Callable[[Any], int], again: Any = None) -> Any:
        """Until a coordinator answers: for calls that may be carried out twice. again: what to send from then on."""
        while not self.group.stopping or self.name == "final":
            try:
                response = await self.once(request)
            except RpcError:
                response = None
            if response is not None and code_of(response) not in ASIDE:
                return response
            if response is not None and code_of(response) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await self.close()
            await asyncio.sleep(0.1)
            request = request if again is None else again
        raise Gone

    async def _find(self) -> Connection:
        """Raises NotDelivered if the broker that was asked does not know it."""
        host = self.group.rng.choice(list(BROKERS))
        broker = self.group.connect(Address(host, CLIENT_PORT), self.name)
        try:
            response = await broker.call(FindCoordinatorRequest(keys=(self.group.group_id,)), CALL_MS)
        finally:
            await broker.close()
        (found,) = response.coordinators
        if found.error_code != ErrorCode.NONE:
            raise NotDelivered(f"no coordinator yet: {found.error_message}")
        return self.group.connect(Address(found.host, found.port), self.name)


async def fetch(calls: Calls, units: tuple[int, ...], *, stable: bool = False) -> dict[int, int]:
    """The committed offset of each unit. stable: once no transaction is about to change one of them."""
    if not units:
        return {}
    topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name=UNITS_OF, partitions=units),))
    request = OffsetFetchRequest(
        groups=(OffsetFetchGroup(group_id=calls.group.group_id, topics=topics),), require_stable=stable
    )
    while True:
        invoked_ns = calls.group.now_ns()
        response = await calls.repeat(request, lambda answer: int(answer.groups[0].error_code))
        (answer,) = response.groups
        codes = {answer.error_code, *(one.error_code for topic in answer.topics for one in topic.partitions)}
        if codes == {ErrorCode.NONE}:
            break
        await asyncio.sleep(0.1)
    found = {one.index: one.committed_offset for topic in answer.topics for one in topic.partitions}
    for unit, offset in found.items():
        calls.group.history.fetches.append(Fetched(unit, offset, invoked_ns, calls.group.now_ns()))
    return found
