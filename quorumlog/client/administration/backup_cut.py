"""The cut of a backup: where each partition ends, so that what lies before is a state the cluster could have been in.

Commits of transactions are held at every broker meanwhile, for some 50 ms and 10 s at most (decision 151):

1. Hold the commits at every broker.
2. Read the metadata, confirmed by the quorum's leader; and wait until every partition of `__transaction_state` is led
   by a broker that holds, with no commit under way: each one that was decided has its markers everywhere. By then
   compaction is paused at every broker, as the caller has asked for (`quorumlog/backup/compaction_pause.py`).
3. Take the high watermarks of the internal topics, `__consumer_offsets` among them; then those of all others. So no
   group has committed what lies behind the cut.
4. Read the metadata again: the coordinators are those of step 2. Give the holds back: each was held without a gap.

Invariants of a cut: everything acknowledged before step 1 lies before it. A transaction has its markers before the cut
in every partition that it has written to, or in none. No compaction that runs later, while the pause lasts, takes a
record of before the cut for one behind it. If one of the steps fails, nothing of it counts: it is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quorumlog.backup.compaction_pause import LEAST_PAUSE_MS
from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.offsets import LATEST, resolve_offsets
from quorumlog.ids import Epoch, NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.backup import (
    HoldCommitsRequest,
    HoldCommitsResponse,
    ReadMetadataRequest,
    ReadMetadataResponse,
)
from quorumlog.messages.transactions import ListTransactionsRequest, ListTransactionsResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.topic_name import INTERNAL_TOPICS

LEASE_MS = 9_000
STEP_MS = 2_000  # that one call within a hold may take
DRAIN_MS = 3_000  # that commits under way may take, before the cut is given up and tried again
POLL_MS = 10
PAUSE_MS = 500  # between two tries: commits go on meanwhile

Answer = TypeVar("Answer")


class CutFailed(QuorumlogError):
    """No cut was taken, or this try came to nothing. Nothing was changed, and nothing is held any more."""


@dataclass(frozen=True, slots=True)
class CutTopics:
    """Of metadata at one offset. topics: id and partitions, by name. coordinators: leader and its epoch, by partition
    of `__transaction_state`. brokers: those that are not fenced."""

    topics: Mapping[str, tuple[Uuid, tuple[int, ...]]]
    coordinators: Mapping[int, tuple[NodeId, Epoch]]
    brokers: frozenset[NodeId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """snapshot, metadata_offset: of ReadMetadata. ends: exclusive, of every partition in it. producers: transactional
    ids, by producer id. held_ms: how long commits were held. tries: 1 or more."""

    snapshot: bytes
    metadata_offset: Offset
    topics: CutTopics
    ends: Mapping[TopicPartition, Offset]
    producers: Mapping[int, str]
    held_ms: int
    tries: int


@dataclass(slots=True)
class CutTaker:
    """understand: the topics of a snapshot. new_holder: 16 random bytes."""

    link: Link
    understand: Callable[[bytes], CutTopics]
    new_holder: Callable[[], bytes]
    _last: str = field(default="", init=False)

    async def take(self, timeout_ms: int) -> Cut:
        """Raises CutFailed at the time-out, RequestFailed where a broker refuses for good, Unavailable."""
        deadline_ms = self.link.clock.now_ms() + timeout_ms
        tries = 0
        while True:
            tries += 1
            try:
                return await self._try(tries)
            except (CutFailed, RpcError, RequestFailed) as error:
                if isinstance(error, RequestFailed) and not error.code.retriable:
                    raise
                self._last = str(error)
            if self.link.clock.now_ms() + PAUSE_MS >= deadline_ms:
                raise CutFailed(
                    f"no cut in {timeout_ms} ms and {tries} tries; the last one: {self._last}. Nothing was changed; "
                    "quorumlog check says what is wrong, then run the backup again"
                )
            await asyncio.sleep(PAUSE_MS / 1000)

    async def _try(self, tries: int) -> Cut:
        await self.link.refresh([])
        nodes, holder = sorted(self.link.cache.brokers), self.new_holder()
        await self._hold_all(nodes, holder, 0)  # nothing is held: connections are made, and a silent broker is noticed
        began_ms = self.link.clock.now_ms()
        try:
            await self._hold_all(nodes, holder, LEASE_MS)
            told, topics = await self._drained(nodes, holder)
            ends = await self._ends(topics)
            _, again = await self._metadata()
            if again.coordinators != topics.coordinators or not again.brokers <= set(nodes):
                raise CutFailed("transactions got another coordinator meanwhile")
            producers = await self._producers(nodes)
        except BaseException:
            await self._let_go(nodes, holder)
            raise
        released = await self._hold_all(nodes, holder, 0)
        if not all(one.was_held for one in released.values()) or _coordinators(released) != topics.coordinators:
            raise CutFailed("a hold of commits ended too early, or its broker started again")
        return Cut(
            snapshot=told.snapshot,
            metadata_offset=told.offset,
            topics=topics,
            ends=ends,
            producers=producers,
            held_ms=self.link.clock.now_ms() - began_ms,
            tries=tries,
        )

    async def _drained(self, nodes: list[NodeId], holder: bytes) -> tuple[ReadMetadataResponse, CutTopics]:
        deadline_ms = self.link.clock.now_ms() + DRAIN_MS
        while True:
            told, topics = await self._metadata()
            if not topics.brokers <= set(nodes):
                raise CutFailed("a broker has started meanwhile")
            held = await self._hold_all(nodes, holder, LEASE_MS)
            if not all(one.was_held for one in held.values()):
                raise CutFailed("a hold of commits ended too early, or its broker started again")
            compacts = [node for node, one in held.items() if one.compaction_paused_ms < LEAST_PAUSE_MS]
            is_drained = all(one.is_drained for one in held.values()) and _coordinators(held) == topics.coordinators
            if is_drained and not compacts:
                return told, topics
            if self.link.clock.now_ms() >= deadline_ms:
                if is_drained:
                    raise CutFailed(
                        f"brokers {compacts} have not paused compaction for {LEAST_PAUSE_MS} ms: they do not follow "
                        "the metadata, or their clocks are wrong"
                    )
                busy = ", ".join(str(node) for node, one in held.items() if not one.is_drained)
                raise CutFailed(
                    f"commits are under way for {DRAIN_MS} ms at broker {busy or 'without a coordinator'}: a partition "
                    "of a transaction has no leader, or lacks in-sync replicas"
                )
            await asyncio.sleep(POLL_MS / 1000)

    async def _ends(self, topics: CutTopics) -> dict[TopicPartition, Offset]:
        internal = [name for name in topics.topics if name in INTERNAL_TOPICS]
        others = [name for name in topics.topics if name not in INTERNAL_TOPICS]
        ends: dict[TopicPartition, Offset] = {}
        for names in (internal, others):  # in this order
            wanted = {(name, index): LATEST for name in names for index in topics.topics[name][1]}
            if not wanted:
                continue
            found = await resolve_offsets(self.link, wanted, STEP_MS)
            for key, one in found.items():
                if one.topic_id != topics.topics[key[0]][0]:
                    raise CutFailed(f"topic {key[0]} was deleted and created again meanwhile")
                ends[key] = one.offset
        return ends

    async def _metadata(self) -> tuple[ReadMetadataResponse, CutTopics]:
        told: ReadMetadataResponse = await self.link.call_any(ReadMetadataRequest(timeout_ms=STEP_MS), STEP_MS)
        check(told)
        return told, self.understand(told.snapshot)

    async def _producers(self, nodes: list[NodeId]) -> dict[int, str]:
        found: dict[int, str] = {}
        answers: dict[NodeId, ListTransactionsResponse] = await self._each(nodes, ListTransactionsRequest())
        for answer in answers.values():
            check(answer)
            found |= {one.producer_id: one.transactional_id for one in answer.transactions}
        return found

    async def _hold_all(self, nodes: list[NodeId], holder: bytes, lease_ms: int) -> dict[NodeId, HoldCommitsResponse]:
        answers: dict[NodeId, HoldCommitsResponse] = await self._each(
            nodes, HoldCommitsRequest(holder=holder, lease_ms=lease_ms)
        )
        for node, answer in answers.items():
            try:
                check(answer)
            except RequestFailed as error:
                raise RequestFailed(error.code, f"broker {node}: {answer.error_message}") from error
        return answers

    async def _let_go(self, nodes: list[NodeId], holder: bytes) -> None:
        """As far as brokers answer; the lease ends at the others."""
        for node in nodes:
            with suppress(RpcError):
                await self.link.call_node(node, HoldCommitsRequest(holder=holder, lease_ms=0), STEP_MS)

    async def _each(self, nodes: list[NodeId], request: object) -> dict[NodeId, Answer]:
        """Raises what the first one that failed has raised."""
        nursery = Nursery(lambda _name, _error: None)  # an error is raised where its answer is awaited
        try:
            calls = {node: nursery.start(self._ask(node, request), f"ask {node}") for node in nodes}
            return {node: await call for node, call in calls.items()}
        finally:
            await nursery.close()

    async def _ask(self, node: NodeId, request: object) -> Any:
        return await self.link.call_node(node, request, STEP_MS)


def _coordinators(held: Mapping[NodeId, HoldCommitsResponse]) -> dict[int, tuple[NodeId, Epoch]]:
    """Two that claim one partition make the map differ from the metadata's, which names one."""
    found: dict[int, tuple[NodeId, Epoch]] = {}
    for node, answer in held.items():
        for one in answer.partitions:
            if one.index not in found or found[one.index][1] < one.leader_epoch:
                found[one.index] = (node, one.leader_epoch)
    return found
