"""An operator throttles replication while partitions move, changes the rate, and lifts the throttle again (KIP-73).

Now for all brokers, now for one. Topics name all their replicas, and now and then those of one partition. What a
throttle lets pass is looked at by invariants/placement/throttles.py. At the end none is left, so that reassignments end
in time.

The logs hold some thousand bytes, so the rates are a small part of that a second: most moves meet the throttle. There
is a rate from the beginning, and it is lifted seldom.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

from jepsen.sim.truth.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError

SET, LIFTED = "throttles set", "throttles lifted"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4  # Kafka's numbers
ALL_BROKERS = ""
_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_BYTES_PER_S = ("100", "300", "1000", "3000")
_BEGINS_S, _GAP_S = (0.1, 0.5), (1.0, 6.0)
_RETRY_S = 0.3
_LIMIT_S = 5.0  # for one request
_LIFT_SHARE, _LIST_SHARE, _ONE_SHARE = 0.1, 0.2, 0.3


class ThrottleChore:
    """counts: acknowledged changes of rates."""

    def __init__(
        self, rng: random.Random, admin: Callable[[], AsyncAdmin], brokers: Callable[[], list[NodeId]]
    ) -> None:
        """brokers: those in service now."""
        self._rng, self._admin, self._brokers = rng, admin, brokers
        self.stopping = False
        self.counts = {SET: 0, LIFTED: 0}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`, and until no broker has a rate. topics: those that exist now."""
        gap_s = _BEGINS_S
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*gap_s))
            if self.stopping or not (open_topics := topics()):
                continue
            if gap_s is _BEGINS_S:
                gap_s = _GAP_S if await self._set_rates(ALL_BROKERS, self._rng.choice(_BYTES_PER_S)) else gap_s
                continue
            known = [str(broker) for broker in self._brokers()]
            brokers = self._rng.choice(known) if self._rng.random() < _ONE_SHARE else ALL_BROKERS
            if self._rng.random() < _LIFT_SHARE:
                self.counts[LIFTED] += await self._set_rates(brokers, None)
                continue
            if self._rng.random() < _LIST_SHARE:
                topic = self._rng.choice(open_topics)
                index = self._rng.randrange(topic.partitions)
                listed = ",".join(f"{index}:{broker}" for broker in known)
                await self._alter(topic.name, dict.fromkeys(_REPLICAS, listed), TOPIC_RESOURCE)
            self.counts[SET] += await self._set_rates(brokers, self._rng.choice(_BYTES_PER_S))
        left = [ALL_BROKERS, *map(str, self._brokers())]
        while left:
            left = [brokers for brokers in left if not await self._set_rates(brokers, None)]
            left = [brokers for brokers in left if brokers in (ALL_BROKERS, *map(str, self._brokers()))]
            await asyncio.sleep(_RETRY_S)

    async def _set_rates(self, brokers: str, rate: str | None) -> bool:
        return await self._alter(brokers, dict.fromkeys(_RATES, rate), BROKER_RESOURCE)

    async def _alter(self, name: str, changes: Mapping[str, str | None], resource_type: int) -> bool:
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await admin.alter_configs(name, changes, resource_type=resource_type)
            except (QuorumlogError, RpcError, TimeoutError):
                return False
        return True
