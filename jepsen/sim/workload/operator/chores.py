"""What an operator does while clients work: topics made, deleted and made anew, records deleted, settings changed.

Each chore waits for its outcome, and the history notes what was asked and what was acknowledged. A chore whose outcome
is not known is repeated, or leaves the history open in that point.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

from jepsen.checkers.history import Deletion, History
from jepsen.sim.cluster import SimCluster
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.truth.topics import Topic
from jepsen.sim.workload.operator.voter_chore import VoterChore
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.ids import Uuid
from quorumlog.rpc.transport import RpcError

CHORES = ("topics-anew", "delete-records", "settings", "partitions-added")
DURABILITY = "durability"  # the operator changes `durability`: of the profile with late settings
VOTERS = "voters"  # the operator changes the voters (voter_chore.py): a chore with a profile of its own
PARTITIONS, MAX_PARTITIONS, REPLICAS = 3, 5, 3
TOPICS = 3
_GAP_S = (0.5, 4.0)
_AT_ONCE_NS = NS_PER_S  # the client has tried once, if it took no longer
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "internal.segment.bytes": ("300", "2000", "1000000"),
    "index.interval.bytes": ("0", "4096"),
    "min.insync.replicas": ("1", "2"),
    "retention.ms": ("1", "-1"),
    "max.message.bytes": ("100000", "1048588"),
}
_DURABILITIES = ("synced", "replicated")


class Chores:
    """kinds: those of CHORES, DURABILITY, VOTERS that this run draws. counts: by kind, how often one was acknowledged.

    late_requests: the network may deliver a request a second time, or much later. A request that was not answered at
    once may have been sent again, and its first try may still be on its way. Such a request can reach the next life of
    its topic, or undo a later one; so less is checked then.
    """

    def __init__(
        self,
        cluster: SimCluster,
        history: History,
        rng: random.Random,
        admin: Callable[[], AsyncAdmin],
        kinds: tuple[str, ...],
        *,
        late_requests: bool,
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.counts = dict.fromkeys(kinds, 0)
        self.stopping = False
        self._unchecked: set[tuple[str, str]] = set()  # topics and settings; never iterated
        self._cluster, self._history, self._rng = cluster, history, rng
        self._admin, self._kinds, self._late_requests = admin, kinds, late_requests
        self._chores: Mapping[str, Callable[[Topic], Awaitable[None]]] = {
            "topics-anew": self._make_anew,
            "delete-records": self._delete_records,
            "settings": self._change_settings,
            "partitions-added": self._add_partitions,
            VOTERS: self._change_voters,
            DURABILITY: self._change_durability,
        }
        self._voters = VoterChore(cluster, rng, admin)

    @property
    def open(self) -> list[Topic]:
        return [topic for topic in self.topics.values() if topic.is_open]

    async def make_topics(self) -> None:
        for number in range(TOPICS):
            if self.stopping:
                return
            await self._create(Topic(f"t{number}", PARTITIONS))
            await asyncio.sleep(self._rng.uniform(5, 15))

    async def do_chores(self) -> None:
        while not self.stopping and self._kinds:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            kind = self._rng.choice(self._kinds)
            if self.open and not self.stopping:
                await self._chores[kind](self._rng.choice(self.open))

    # --- topics ---

    async def _create(self, topic: Topic) -> None:
        """Until it is certain that the topic exists."""
        settings = self._cluster.sizes.topic
        while True:
            async with self._admin() as admin:
                try:
                    await admin.create_topic(topic.name, topic.partitions, REPLICAS, settings, exist_ok=True)
                    found = await admin.describe_topic(topic.name)
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)
                    continue
            if not topic.ids or found.topic_id != topic.ids[-1]:  # else the node that answered has old metadata
                break
            await asyncio.sleep(0.1)
        self._begin(topic, found.topic_id, len(found.partitions))

    def _begin(self, topic: Topic, topic_id: Uuid, partitions: int) -> None:
        earlier = [asked for asked in self._history.deletions if (asked.key[0], asked.life) == (topic.name, topic.life)]
        topic.begin(topic_id, partitions)
        self.topics[topic.name] = topic
        history = self._history
        history.created.append(topic.name)
        if topic.name in history.deleted:
            history.deleted.remove(topic.name)
        history.lives[topic.name] = topic.life
        history.partitions[topic.name] = partitions
        history.configs[topic.name] = {}
        for deletion in earlier:
            if self._may_come_late(deletion):
                self._ask(topic, deletion.key[1], deletion.before)

    async def _make_anew(self, topic: Topic) -> None:
        topic.is_open = False
        self._history.created.remove(topic.name)
        while True:
            async with self._admin() as admin:
                try:
                    (result,) = await admin.delete_topics_by_id([topic.ids[-1]])
                    if result.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                        break  # UNKNOWN_TOPIC_ID: an earlier try did it
                except (QuorumlogError, RpcError):
                    pass
            await asyncio.sleep(0.5)
        self._history.deleted.append(topic.name)
        if self._rng.random() < 0.5:
            await asyncio.sleep(self._rng.uniform(0, 3))
        topic.partitions = self._rng.randint(1, PARTITIONS)
        await self._create(topic)
        self.counts["topics-anew"] = self.counts.get("topics-anew", 0) + 1

    async def _add_partitions(self, topic: Topic) -> None:
        """If the outcome is not known, the number of partitions is not checked."""
        if topic.partitions >= MAX_PARTITIONS:
            return
        self._history.partitions.pop(topic.name, None)
        async with self._admin() as admin:
            try:
                await admin.create_partitions(topic.name, topic.partitions + 1)
            except (QuorumlogError, RpcError):
                return
        topic.partitions += 1
        self._history.partitions[topic.name] = topic.partitions
        self.counts["partitions-added"] += 1

    async def _change_voters(self, _topic: Topic) -> None:
        if await self._voters.change():
            self.counts[VOTERS] += 1

    # --- records and settings ---

    def _ask(self, topic: Topic, index: int, before: int) -> Deletion:
        deletion = Deletion(
            key=(topic.name, index), life=topic.life, before=before, invoked_ns=self._cluster.scheduler.now_ns
        )
        self._history.deletions.append(deletion)
        self._cluster.invariants.on_delete_records(topic, index, before)
        return deletion

    async def _delete_records(self, topic: Topic) -> None:
        if not topic.acked:
            return
        index = self._rng.choice(sorted(topic.acked))
        await self._delete_before(topic, index, self._rng.randint(1, topic.acked[index]))

    async def delete_records(self, name: str, index: int) -> None:
        """What a script asks for: all that is acknowledged."""
        topic = self.topics.get(name)
        if topic is not None and topic.is_open and topic.acked.get(index):
            await self._delete_before(topic, index, topic.acked[index])

    async def make_anew(self, name: str) -> None:
        """What a script asks for; nothing if the topic is being deleted."""
        topic = self.topics.get(name)
        if topic is not None and topic.is_open:
            await self._make_anew(topic)

    async def _delete_before(self, topic: Topic, index: int, before: int) -> None:
        deletion, log = self._ask(topic, index, before), topic.logs(index)[-1]
        async with self._admin() as admin:
            try:
                await admin.delete_records({deletion.key: deletion.before})
            except (QuorumlogError, RpcError):
                return
        deletion.acked_ns = self._cluster.scheduler.now_ns
        self._cluster.invariants.deletions.on_acked(log, before)
        self.counts["delete-records"] = self.counts.get("delete-records", 0) + 1

    def _may_come_late(self, deletion: Deletion) -> bool:
        slow = deletion.acked_ns < 0 or deletion.acked_ns - deletion.invoked_ns >= _AT_ONCE_NS
        return slow or self._late_requests

    async def _change_settings(self, topic: Topic) -> None:
        key = self._rng.choice(tuple(_SETTINGS))
        if await self._set(topic, key, self._rng.choice(_SETTINGS[key])):
            self.counts["settings"] += 1

    async def _change_durability(self, topic: Topic) -> None:
        if await self._set(topic, "durability", self._rng.choice(_DURABILITIES)):
            self.counts[DURABILITY] += 1

    async def alter(self, name: str, settings: Mapping[str, str]) -> None:
        """What a script asks for; nothing if the topic is being deleted."""
        for key, value in settings.items():
            topic = self.topics.get(name)
            if topic is not None and topic.is_open:
                await self._set(topic, key, value)

    async def _set(self, topic: Topic, key: str, value: str) -> bool:
        """Whether it was acknowledged."""
        if key == "min.insync.replicas":
            topic.min_isr = min(topic.min_isr, int(value))
        configs = self._history.configs.setdefault(topic.name, {})
        configs.pop(key, None)
        asked_ns = self._cluster.scheduler.now_ns
        async with self._admin() as admin:
            try:
                await admin.alter_configs(topic.name, {key: value})
            except (QuorumlogError, RpcError):
                self._unchecked.add((topic.name, key))
                return False
        if self._late_requests or self._cluster.scheduler.now_ns - asked_ns >= _AT_ONCE_NS:
            self._unchecked.add((topic.name, key))
        if (topic.name, key) not in self._unchecked:
            configs[key] = value
        return True
