"""Clients of three users whose rights, passwords and quotas change all the time: they write, read, and are refused.

They use the production client. What they are told is counted and not judged here: what may leave a broker is judged
there, when it leaves (invariants/security).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from jepsen.sim.users import TENANTS
from jepsen.sim.workload.security.officer import GROUP, IDS, SHARED_TOPICS
from jepsen.sim.workload.security.session_reader import read_in_session
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.batches.delivery import Delivery
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import AuthenticationFailed, QuorumlogError, RequestFailed
from quorumlog.client.producer import AsyncProducer
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, RpcError, Transport
from quorumlog.security.acl.content import AclContent
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.security.quota.entity import REQUEST_PERCENTAGE

WRITTEN, READ_BY, IN_GROUPS, IN_TRANSACTIONS, ADMINISTERED, DENIED, LOCKED_OUT = (
    "tenants' records written", "tenants' records read", "of them in groups", "tenants' transactions",
    "tenants' changes of the cluster", "tenants denied", "tenants locked out",
)  # fmt: skip
_FAST: dict[str, Any] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50, "retry_backoff_max_ms": 500}
_LIFE_S = (3.0, 9.0)  # of a client
_SIDE = "side-"  # names in rules that tenants make; no client uses them
_DENIALS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class Tenants:
    """transport: of a user. now_ms: the loop's time. Ends soon after `stopping`."""

    def __init__(
        self,
        rng: Callable[[str], random.Random],
        transport: Callable[[str], Transport],
        clock: Clock,
        bootstrap: Callable[[], str],
        is_ready: Callable[[], bool],
    ) -> None:
        self._rng, self._transport, self._clock = rng, transport, clock
        self._bootstrap, self._is_ready = bootstrap, is_ready
        self.stopping = False
        names = (WRITTEN, READ_BY, IN_GROUPS, IN_TRANSACTIONS, ADMINISTERED, DENIED, LOCKED_OUT)
        self.counts = dict.fromkeys(names, 0)

    async def run(self, nursery: Nursery) -> None:
        while not self._is_ready() and not self.stopping:  # noqa: ASYNC110 - the officer says it without an event
            await asyncio.sleep(0.2)
        ada, bob, cy = TENANTS
        lives: dict[str, Callable[[random.Random, str], Awaitable[None]]] = {
            ada: self._write, bob: self._write, cy: self._transact,
        }  # fmt: skip
        for user, write in lives.items():
            nursery.start(self._live(f"{user} writes", user, write), f"{user} writes")
            nursery.start(self._live(f"{user} reads", user, self._read), f"{user} reads")
        nursery.start(self._live("bob in sessions", bob, self._read_in_session), "bob in sessions")
        nursery.start(self._live("ada in a group", ada, self._join), "ada in a group")
        nursery.start(self._live("cy in a group", cy, self._join), "cy in a group")
        nursery.start(self._live("bob administers", bob, self._administer), "bob administers")

    async def _live(self, name: str, user: str, life: Callable[[random.Random, str], Awaitable[None]]) -> None:
        """One client after the other."""
        rng = self._rng(name)
        while not self.stopping:
            try:
                async with asyncio.timeout(rng.uniform(*_LIFE_S)):
                    await life(rng, user)
            except (QuorumlogError, RpcError) as error:
                self._note(error)
            except TimeoutError:
                pass
            await asyncio.sleep(rng.uniform(0.05, 0.4))

    def _note(self, error: Exception) -> None:
        self.counts[LOCKED_OUT] += isinstance(error, AuthenticationFailed)
        self.counts[DENIED] += isinstance(error, RequestFailed) and error.code in _DENIALS

    # --- lives of clients

    async def _write(self, rng: random.Random, user: str) -> None:
        async with self._client(AsyncProducer, rng, user, acks=rng.choice(("all", "1"))) as producer:
            while not self.stopping:
                sent = [await self._send(rng, user, producer) for _ in range(rng.choice((1, 1, 3)))]
                for delivery in sent:
                    try:
                        await delivery
                        self.counts[WRITTEN] += 1
                    except QuorumlogError as error:
                        self._note(error)
                await asyncio.sleep(rng.expovariate(1 / 0.15))

    async def _transact(self, rng: random.Random, user: str) -> None:
        name = f"{IDS}-{rng.randrange(3)}"
        async with self._client(AsyncProducer, rng, user, transactional_id=name) as producer:
            while not self.stopping:
                async with producer.transaction():
                    for _ in range(2):
                        await self._send(rng, user, producer)
                self.counts[IN_TRANSACTIONS] += 1
                await asyncio.sleep(rng.expovariate(1 / 0.3))

    async def _send(self, rng: random.Random, user: str, producer: AsyncProducer) -> Delivery:
        value = f"{user}:{rng.random()}" + "." * rng.choice((50, 200, 600))
        return await producer.send(rng.choice(SHARED_TOPICS), value, partition=rng.randrange(2))

    async def _read(self, rng: random.Random, user: str) -> None:
        by_stream = rng.choice(("auto", "false"))
        async with self._client(AsyncConsumer, rng, user, stream_chunks=by_stream) as consumer:
            topics = rng.choice((SHARED_TOPICS, SHARED_TOPICS[:1]))
            places = [(name, index) for name in topics for index in (0, 1)]
            if by_stream == "auto":  # of one partition
                places = places[:1]
            await consumer.assign([(*place, rng.choice(("earliest", "latest"))) for place in places])
            await self._poll(consumer)

    async def _read_in_session(self, rng: random.Random, user: str) -> None:
        host, _, port = rng.choice(self._bootstrap().split(",")).partition(":")
        connection = self._transport(user).connect(Address(host, int(port)), internal=False, client_id="shared-client")
        try:
            await read_in_session(connection, SHARED_TOPICS, lambda: not self.stopping)
        except ApiError as error:
            self.counts[DENIED] += error.code in _DENIALS
        finally:
            await connection.close()

    async def _join(self, rng: random.Random, user: str) -> None:
        protocol = rng.choice(("classic", "consumer"))
        group = f"{GROUP}" if protocol == "classic" else f"{GROUP}-new"
        options = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
        async with self._client(AsyncConsumer, rng, user, **options) as consumer:
            await consumer.subscribe(list(SHARED_TOPICS))
            await self._poll(consumer, IN_GROUPS)

    async def _poll(self, consumer: AsyncConsumer, also: str | None = None) -> None:
        while not self.stopping:
            found = await consumer.poll(timeout_ms=500)
            self.counts[READ_BY] += len(found)
            if also is not None:
                self.counts[also] += len(found)

    async def _administer(self, rng: random.Random, user: str) -> None:
        async with self._client(AsyncAdmin, rng, user, default_api_timeout_ms=4_000) as admin:
            while not self.stopping:
                await self._change(rng, admin)
                self.counts[ADMINISTERED] += 1
                await asyncio.sleep(rng.expovariate(1 / 0.4))

    async def _change(self, rng: random.Random, admin: AsyncAdmin) -> None:
        name = f"{_SIDE}{rng.randrange(3)}"
        size = {"max.message.bytes": str(rng.randrange(10**5, 10**6))}
        rule = AclContent(ResourceType.TOPIC, name, 3, "User:nobody", "*", Operation.READ, 3)
        asked: tuple[Callable[[], Awaitable[Any]], ...] = (
            partial(admin.create_acls, [rule]),
            partial(admin.alter_client_quotas, [QuotaChange({"client-id": name}, {REQUEST_PERCENTAGE: 50.0})]),
            partial(admin.alter_configs, rng.choice(SHARED_TOPICS), size),
        )
        await rng.choice(asked)()

    def _client(self, kind: Any, rng: random.Random, user: str, **options: Any) -> Any:
        return kind(
            self._transport(user),
            clock=self._clock,
            rng=random.Random(rng.random()),
            bootstrap_servers=self._bootstrap(),
            client_id=rng.choice(("shared-client", f"{user}-client")),
            **{**_FAST, **options},
        )
