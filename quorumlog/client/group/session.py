"""Carries out what a membership decides: calls to the coordinator, partition counts, and the timers.

It runs in tasks of the client. Whatever the application has to do waits in the core; `on_news` wakes its poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import AuthenticationFailed, QuorumlogError, RequestFailed
from quorumlog.client.group.consumer_membership import ConsumerMembership
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.client.group.effects import CALL_TIMEOUT_MS, CountPartitions, GroupSettings, NameTopics, Send
from quorumlog.client.group.membership import Membership
from quorumlog.client.group.racks import NOWHERE, Racks, racks_of
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse, TopicQuery
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import NotAuthenticated, RpcError

Core = Membership | ConsumerMembership
LOOK_EVERY_MS = 3_000  # while a call waits for other members: does its node still coordinate?
MISSING_TOPIC_MS = 1_000  # how often the leader looks for a topic that does not exist yet


class Session:
    """on_denied: told when a broker refuses this client; the session tries again, as the group may still be there.
    of_pattern: the topics of a subscription by pattern, of all topic names; None: it is by names."""

    def __init__(
        self,
        link: Link,
        settings: GroupSettings,
        core: Core,
        nursery: Nursery,
        on_news: Callable[[], None],
        on_denied: Callable[[AuthenticationFailed], None] = lambda _: None,
    ) -> None:
        self._on_denied = on_denied
        self.core = core
        self.coordinator = GroupCoordinator(link, settings.group_id)
        self.of_pattern: Callable[[MetadataResponse], tuple[str, ...]] | None = None
        self._link, self._nursery, self._on_news = link, nursery, on_news
        self._wake = asyncio.Event()
        self._look = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None
        self._started = False
        self._racks: dict[NodeId, str] = {}  # of brokers

    def start(self) -> None:
        """Idempotent."""
        if not self._started:
            self._started = True
            self._nursery.start(self._run(), "consumer group's timers")
            self._nursery.start(self._watch_topics(), "consumer group's topics")

    def carry_out(self) -> None:
        """After each step of the core."""
        for effect in self.core.take():
            match effect:
                case Send(leaves=True):
                    self._leaving = self._nursery.start(self._leave(effect), "leaving the group")
                case Send():
                    self._nursery.start(self._send(effect), type(effect.request).__name__)
                case CountPartitions():
                    self._nursery.start(self._count(effect), "partitions of the group's topics")
                case NameTopics():
                    self._nursery.start(self._find_names(effect), "names of assigned topics")
        self._wake.set()
        if self.core.has_news:
            self._on_news()

    async def left(self) -> None:
        """The last call that leaves was answered, or given up."""
        if self._leaving is not None:
            await asyncio.shield(self._leaving)

    async def _leave(self, effect: Send) -> None:
        """Asked again while the coordinator moves, loads or is not reached: a member that only stays away holds its
        partitions until the session's end. After CALL_TIMEOUT_MS that is left to tell the others."""

        async def ask() -> None:
            response = await self.coordinator.once(effect.request, effect.timeout_ms)
            code = ErrorCode(response.error_code)
            if code.retriable:
                raise RequestFailed(code, "the coordinator is not ready")

        try:
            async with asyncio.timeout(CALL_TIMEOUT_MS / 1000):
                await self._link.until(ask, CALL_TIMEOUT_MS)
        except (QuorumlogError, RpcError, TimeoutError):
            pass

    async def find_topics(self) -> None:
        """Subscribe to what the pattern matches now. Raises RequestFailed, Unavailable."""
        if self.of_pattern is not None:
            response = await self._link.metadata([], all_topics=True)
            self._link.take(response)
            self.core.subscribe(self.of_pattern(response))
            self.carry_out()

    async def _run(self) -> None:
        clock = self._link.clock
        while True:
            self._wake.clear()
            self.core.tick(clock.now_ms())
            self.carry_out()
            self._wake.clear()
            due_ms = self.core.next_ms()
            try:
                async with asyncio.timeout(None if due_ms is None else max(due_ms - clock.now_ms(), 1) / 1000):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _send(self, effect: Send) -> None:
        await self.left()  # of the consumer protocol: the member that joins again has the id of the one that leaves
        try:
            async with asyncio.timeout(None) as limit:
                watch = None
                node_id = await self.coordinator.find()
                if effect.timeout_ms > CALL_TIMEOUT_MS:
                    watch = self._nursery.start(self._watch_coordinator(node_id, limit), "the group's coordinator")
                try:
                    response = await self.coordinator.once(effect.request, effect.timeout_ms)
                finally:
                    if watch is not None:
                        watch.cancel()
        except RequestFailed as error:
            if error.code.retriable:
                self.core.failed(effect.number, self._link.clock.now_ms())
            else:
                self.core.refused(effect.number, error.code)
        except (QuorumlogError, RpcError, TimeoutError) as error:
            self._tell_denial(error)
            self.core.failed(effect.number, self._link.clock.now_ms())
        else:
            self.core.answered(effect.number, response, self._link.clock.now_ms())
        self.carry_out()

    def _tell_denial(self, error: Exception) -> None:
        if isinstance(error, NotAuthenticated):
            self._on_denied(error if isinstance(error, AuthenticationFailed) else AuthenticationFailed(str(error)))

    async def _watch_coordinator(self, node_id: NodeId, limit: asyncio.Timeout) -> None:
        """A call that waits for other members waits long. End it early if another node coordinates meanwhile."""
        while True:
            await asyncio.sleep(LOOK_EVERY_MS / 1000)
            try:
                if await self.coordinator.find(anew=True) != node_id:
                    limit.reschedule(asyncio.get_running_loop().time())
                    return
            except (QuorumlogError, RpcError):
                pass  # the call itself has a time-out

    async def _count(self, effect: CountPartitions) -> None:
        try:
            counts, racks = await self._counts(effect.topics)
        except (QuorumlogError, RpcError) as error:
            self._tell_denial(error)
            self.core.failed(effect.number, self._link.clock.now_ms())
        else:
            self.core.counted(effect.number, counts, racks)
            self._look.set()
        self.carry_out()

    async def _find_names(self, effect: NameTopics) -> None:
        topics = tuple(TopicQuery(topic_id=one) for one in effect.topic_ids)
        request = MetadataRequest(
            all_topics=False, topics=topics, allow_auto_topic_creation=False, wants_metadata_offset=True
        )
        try:
            response: MetadataResponse = await self._link.call_any(request)
            check(response)
        except (QuorumlogError, RpcError) as error:
            self._tell_denial(error)
            self.core.failed(effect.number, self._link.clock.now_ms())
        else:
            self._link.take(response)
            names = {one.topic_id: one.name for one in response.topics if one.error_code == ErrorCode.NONE}
            self.core.named(effect.number, names, self._link.clock.now_ms())
        self.carry_out()

    async def _counts(self, topics: tuple[str, ...]) -> tuple[Mapping[str, int], Racks]:
        if not topics:
            return {}, NOWHERE
        response = await self._link.metadata(topics)
        self._link.take(response)
        known = self._link.cache.topics  # a broker that is behind may name fewer partitions, or a former topic
        counts = {name: known[name].partition_count for name in topics if name in known}
        return counts, racks_of(response, self._racks)

    async def _watch_topics(self) -> None:
        """The leader sees partitions and topics that come and go; a subscription by pattern sees topics."""
        missing = False
        while True:
            self._look.clear()
            age_ms = max(self._link.options.metadata_max_age_ms, self._link.options.retry_backoff_ms, 1)
            try:
                async with asyncio.timeout((min(age_ms, MISSING_TOPIC_MS) if missing else age_ms) / 1000):
                    await self._look.wait()
            except TimeoutError:
                pass
            try:
                await self.find_topics()
                topics = self.core.watched_topics
                counts, racks = await self._counts(topics)
            except (QuorumlogError, RpcError):
                continue  # no node answered for long; the next look comes
            missing = any(topic not in counts for topic in topics)
            if topics == self.core.watched_topics:
                self.core.counts_seen(counts, racks)
            self.carry_out()
