"""A client's link to the cluster: bootstrap, metadata, one connection per broker, calls with retries.

A shell shared by producer, consumer and admin. It works with any transport. A client that means one cluster asks each
node for its cluster's id before anything else: an address is no proof, since another cluster may take the ports of one
that has stopped. Calls to one node keep their order.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorumlog.client.cluster.metadata_cache import MetadataCache
from quorumlog.client.errors import (
    AuthenticationFailed,
    ClientClosed,
    NoProtocol,
    NoSuchTopic,
    QuorumlogError,
    RequestFailed,
    Unavailable,
    WrongCluster,
)
from quorumlog.client.options import CommonOptions, parse_bootstrap
from quorumlog.client.security.in_clear import check_request, warn_of_login
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse, TopicQuery
from quorumlog.rpc.transport import (
    Address,
    Connection,
    NotAuthenticated,
    NotDelivered,
    NotServed,
    RpcError,
    Transport,
)


@dataclass(slots=True)
class _Proof:
    """waiting: calls that were begun before the proof was there, and have not been sent."""

    is_proven: bool = False
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Proofs:
    """Of the addresses that a client has used. wanted: the id of the cluster that is meant."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._by_address: dict[Address, _Proof] = {}

    def call(self, connection: Connection, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Like `Connection.call`. Raises WrongCluster before `request` is sent to a node of another cluster."""
        proof = self._by_address.setdefault(connection.address, _Proof())
        if proof.is_proven and not proof.waiting:
            return connection.call(request, timeout_ms)
        proof.waiting += 1
        return self._call_once_proven(proof, connection, request, timeout_ms)

    async def _call_once_proven(self, proof: _Proof, connection: Connection, request: Any, timeout_ms: int) -> Any:
        try:
            async with proof.lock:  # first come, first served
                if not proof.is_proven:
                    await self._prove(connection, timeout_ms)
                    proof.is_proven = True
        finally:
            proof.waiting -= 1
        return await connection.call(request, timeout_ms)

    async def _prove(self, connection: Connection, timeout_ms: int) -> None:
        """A node that says no id is believed, as before there were ids in its answers."""
        try:
            response: MetadataResponse = await connection.call(
                MetadataRequest(all_topics=False, allow_auto_topic_creation=False), timeout_ms
            )
        except NotAuthenticated:
            raise
        except RpcError as error:
            raise NotDelivered(str(error)) from error  # the request itself was not sent
        if response.cluster_id and response.cluster_id != self._wanted:
            raise WrongCluster(str(connection.address), response.cluster_id, self._wanted)


NODE_TIMEOUT_MS = 1_000  # of a node that is asked what every node can answer; doubled in each round over the nodes
UNKNOWN_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
MIN_METADATA_AGE_MS = 100  # metadata are not fetched more often for their age alone


class Link:
    """Connections and metadata of one client.

    clock, rng: the time source, and the randomness of the back-off.
    """

    def __init__(self, transport: Transport, options: CommonOptions, *, clock: Clock, rng: random.Random) -> None:
        self.cache = MetadataCache()
        self.clock = clock
        self.rng = rng
        self.options = options
        self._transport = transport
        self._bootstrap = parse_bootstrap(options.bootstrap_servers)
        warn_of_login(options, self._bootstrap)
        self._connections: dict[Address, Connection] = {}
        self._refreshes: dict[tuple[bool, tuple[str, ...]], asyncio.Future[None]] = {}
        self._proofs = Proofs(options.cluster_id) if options.cluster_id else None
        self._closed = False
        self._next = 0  # index of the broker that the next `call_any` asks first
        self._answered: Address | None = None  # who answered the last one
        self.requests = 0  # that were begun

    def backoff_ms(self, attempt: int) -> int:
        """Exponential, with jitter over its upper half. attempt: 1 for the first retry."""
        top = min(self.options.retry_backoff_max_ms, self.options.retry_backoff_ms << min(attempt - 1, 10))
        return top // 2 + self.rng.randrange(top // 2 + 1)

    def connection(self, address: Address) -> Connection:
        """The connection to an address, created on first use."""
        if self._closed:
            raise ClientClosed("the client is closed")
        connection = self._connections.get(address)
        if connection is None:
            connection = self._transport.connect(address, internal=False, client_id=self.options.client_id)
            self._connections[address] = connection
        return connection

    def metrics(self) -> dict[str, int]:
        """By Kafka's names. connection-count: addresses that were dialled."""
        return {"request-total": self.requests, "connection-count": len(self._connections)}

    def call_node(self, node_id: NodeId, request: Any, timeout_ms: int | None = None) -> Awaitable[Any]:
        """Send to one broker, in the order of the calls. Raises NotDelivered if its address is not known."""
        address = self.cache.brokers.get(node_id)
        if address is None:
            live = ", ".join(map(str, sorted(self.cache.brokers))) or "none"
            raise NotDelivered(f"broker {node_id} is fenced or not registered; those in service are {live}")
        return self._call(address, request, timeout_ms or self.options.request_timeout_ms)

    def _call(self, address: Address, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Raises WrongCluster before anything is asked of a node that is not of the cluster that is meant, ConfigError
        for what must not go in clear."""
        check_request(self.options, address, request)
        connection = self.connection(address)
        self.requests += 1
        if self._proofs is None:
            return connection.call(request, timeout_ms)
        return self._proofs.call(connection, request, timeout_ms)

    async def call_any(
        self,
        request: Any,
        timeout_ms: int | None = None,
        on_unknown: Callable[[], None] = lambda: None,
        *,
        node_timeout_ms: int | None = None,
        avoid: Collection[NodeId] = (),
        first: NodeId | None = None,
    ) -> Any:
        """Ask one broker after the other until one answers. Only for requests that may be carried out twice.

        on_unknown: called when a broker may have carried it out without answering, before the next one is asked.
        node_timeout_ms: how long each broker has in the first round, doubled in each further round; at most, and
        without it, the request timeout. avoid: brokers that are asked last. first: one that is asked first.

        Raises AuthenticationFailed if nodes of a round refused this client, and none answered; WrongCluster if nodes of
        another cluster answered in a round, and none of the one that is meant; NoProtocol if no address of a round
        serves such a request; Unavailable when the time is over.
        """
        deadline_ms = self.clock.now_ms() + (timeout_ms or self.options.default_api_timeout_ms)
        attempt = 0
        last: Exception | None = None
        foreign: WrongCluster | AuthenticationFailed | None = None
        while True:
            patience_ms = self.options.request_timeout_ms
            if node_timeout_ms is not None:
                patience_ms = min(patience_ms, node_timeout_ms << min(attempt, 10))
            is_served = False  # by some node, as far as is known
            for address in self._candidates(avoid, first):
                left_ms = deadline_ms - self.clock.now_ms()
                if left_ms <= 0:
                    break
                try:
                    answer = await self._call(address, request, min(left_ms, patience_ms))
                    self._answered = address
                    return answer
                except WrongCluster as error:
                    foreign = error  # another address may be of the right one
                    self._next += 1
                except NotAuthenticated as error:
                    foreign = AuthenticationFailed(str(error))  # another broker may know this client already
                    self._next += 1
                except RpcError as error:
                    last = error
                    self._next += 1
                    is_served = is_served or not isinstance(error, NotServed)
                    if not isinstance(error, NotDelivered):
                        on_unknown()
            if foreign is not None:
                raise foreign
            if isinstance(last, NotServed) and not is_served:
                raise NoProtocol(str(last)) from last
            attempt += 1
            left_ms = deadline_ms - self.clock.now_ms()
            if left_ms <= 0:
                raise Unavailable(f"no broker answered; tried {self._tried()}; last: {last}") from last
            await asyncio.sleep(min(self.backoff_ms(attempt), left_ms) / 1000)

    async def keep_fresh(self) -> None:
        """Fetch the metadata of all topics in use again when they are `metadata_max_age_ms` old. Creates no topic."""
        while True:
            await asyncio.sleep(max(self.options.metadata_max_age_ms, MIN_METADATA_AGE_MS) / 1000)
            if not self.cache.topics:
                continue
            try:
                self.take(await self.metadata(list(self.cache.topics), create=False))
            except (QuorumlogError, RpcError):
                pass  # no node answered for long; calls that fail fetch the metadata on their own

    async def refresh(self, topics: Sequence[str], *, create: bool = True, avoid: Collection[NodeId] = ()) -> None:
        """Fetch the metadata of `topics` (empty: of every topic). Concurrent calls for the same topics share one
        request. create: a topic that does not exist is made, where brokers do that. avoid: as in `call_any`."""
        key = (create, tuple(sorted(topics)))
        waiting = self._refreshes.get(key)
        if waiting is not None:
            await asyncio.shield(waiting)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshes[key] = future
        try:
            self.take(await self.metadata(topics, create=create, avoid=avoid))
        finally:
            del self._refreshes[key]
            future.set_result(None)

    def ask_another(self) -> None:
        """The broker that answered last may be behind: what it said was refused. The next question goes elsewhere."""
        if self._candidates()[0] == self._answered:
            self._next += 1

    def take(self, response: MetadataResponse) -> None:
        """Into the cache."""
        if not self.cache.update(response):
            self.ask_another()

    async def metadata(
        self,
        topics: Sequence[str],
        *,
        all_topics: bool = False,
        create: bool = True,
        avoid: Collection[NodeId] = (),
    ) -> MetadataResponse:
        """Raises RequestFailed for an error of the whole response; errors of single topics stay in it.

        avoid: as in `call_any`.
        """
        request = MetadataRequest(
            all_topics=all_topics,
            topics=tuple(TopicQuery(name=name) for name in topics),
            allow_auto_topic_creation=create,
            wants_metadata_offset=True,
        )
        response: MetadataResponse = await self.call_any(request, node_timeout_ms=NODE_TIMEOUT_MS, avoid=avoid)
        check(response)
        return response

    async def topic_ready(self, topic: str, timeout_ms: int, *, create: bool = True) -> None:
        """Wait until the topic and its partition count are known. create: as in `refresh`.

        Raises NoSuchTopic, Unavailable, RequestFailed.
        """
        deadline_ms = self.clock.now_ms() + timeout_ms
        attempt = 0
        while topic not in self.cache.topics:
            response = await self.metadata([topic], create=create)
            self.take(response)
            code = next((t.error_code for t in response.topics if t.name == topic), ErrorCode.NONE)
            if topic in self.cache.topics:
                return
            if code and not ErrorCode(code).retriable:
                raise RequestFailed(ErrorCode(code), f"topic {topic!r}")
            attempt += 1
            if self.clock.now_ms() >= deadline_ms:
                kind = NoSuchTopic if code in UNKNOWN_TOPIC else Unavailable
                raise kind(f"topic {topic!r} did not appear within {timeout_ms} ms: {ErrorCode(code).name}")
            await asyncio.sleep(self.backoff_ms(attempt) / 1000)

    async def until(self, ask: Callable[[], Awaitable[Any]], timeout_ms: int) -> Any:
        """Repeat `ask` while it raises a retriable RequestFailed or an RpcError but NotServed, until the timeout.

        Raises AuthenticationFailed at once."""
        deadline_ms = self.clock.now_ms() + timeout_ms
        attempt = 0
        while True:
            try:
                return await ask()
            except NotAuthenticated as error:
                raise AuthenticationFailed(str(error)) from error
            except (RequestFailed, RpcError) as error:
                if isinstance(error, NotServed) or (isinstance(error, RequestFailed) and not error.code.retriable):
                    raise
                if isinstance(error, RequestFailed) and error.code in UNKNOWN_TOPIC:
                    self.ask_another()
                attempt += 1
                wait_ms = self.backoff_ms(attempt)
                if self.clock.now_ms() + wait_ms >= deadline_ms:
                    raise
                await asyncio.sleep(wait_ms / 1000)

    async def close(self) -> None:
        self._closed = True
        for connection in list(self._connections.values()):
            await connection.close()
        self._connections.clear()

    def _candidates(self, avoid: Collection[NodeId] = (), first: NodeId | None = None) -> list[Address]:
        known = list(dict.fromkeys([*self.cache.brokers.values(), *self._bootstrap]))
        turn = self._next % len(known)
        avoided = [self.cache.brokers.get(node_id) for node_id in avoid]
        preferred = None if first is None else self.cache.brokers.get(first)
        return sorted(known[turn:] + known[:turn], key=lambda one: (one != preferred, one in avoided))

    def _tried(self) -> str:
        return ", ".join(str(address) for address in self._candidates())


def check(response: Any) -> None:
    """Raises RequestFailed if the whole response is an error."""
    if response.error_code != ErrorCode.NONE:
        raise RequestFailed(ErrorCode(response.error_code), response.error_message)
