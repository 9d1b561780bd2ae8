"""Quotas of clients at this broker: what they produce and fetch, by the metadata's quotas (KIP-13).

Other brokers count for themselves. Nodes of the cluster have no quota. What a client has used is in memory only.
"""

from __future__ import annotations

import asyncio

from quorumlog.clock import Clock
from quorumlog.rpc.transport import Context
from quorumlog.security.quota.clients import Use
from quorumlog.security.quota.entity import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from quorumlog.security.quota.node_quotas import NodeQuotas


class BrokerQuotas:
    """quotas: of the node. The index follows the metadata (`quotas_in_force.py`)."""

    def __init__(self, quotas: NodeQuotas, clock: Clock) -> None:
        self._quotas, self._clock = quotas, clock
        self._use = quotas.clients

    def limits(self, context: Context) -> bool:
        """False: there is no quota of clients, or a node calls; then the others need not be asked."""
        return self._quotas.index.has_clients and context.peer is None

    def produced(self, context: Context, size_bytes: int) -> int:
        """For how many ms the client is to be held back, once it has its answer."""
        return self._counted(context, PRODUCER_BYTE_RATE, size_bytes)

    def before_fetch(self, context: Context) -> int:
        """For how many ms the client is to be held back, without records. 0: it may fetch."""
        if not self.limits(context):
            return 0
        return self._use.wait_ms(CONSUMER_BYTE_RATE, *_who(context), self._clock.now_ms())

    async def free(self, context: Context) -> None:
        """Returns once the client may fetch, in the step in which it may."""
        while wait_ms := self.before_fetch(context):  # noqa: ASYNC110 - a deadline moves as others of its bucket fetch
            await asyncio.sleep(wait_ms / 1000)

    def most_fetched(self, context: Context, max_bytes: int) -> int:
        """max_bytes, or less: how much one fetch may read."""
        if not self.limits(context):
            return max_bytes
        most = self._use.most(CONSUMER_BYTE_RATE, *_who(context), self._clock.now_ms())
        return max_bytes if most is None else int(min(most, max_bytes))

    def fetched(self, context: Context, size_bytes: int) -> int:
        """For how many ms the client is to be held back, once it has its records."""
        return self._counted(context, CONSUMER_BYTE_RATE, size_bytes)

    def most_used(self, count: int) -> list[Use]:
        """So many of those that use most of their quota, the first one most."""
        return self._use.most_used(count, self._clock.now_ms())

    @property
    def exempt_percentage(self) -> float:
        """What requests without a quota take of the loop, while some client has one."""
        return self._quotas.exempt_time.a_second(self._clock.now_ms())

    @property
    def limits_mutations(self) -> bool:
        """Some client has a quota of what it makes and deletes, which the controller counts."""
        return self._quotas.index.limits(CONTROLLER_MUTATION_RATE)

    def _counted(self, context: Context, key: str, size_bytes: int) -> int:
        if not self.limits(context):
            return 0
        return self._use.use(key, *_who(context), size_bytes, self._clock.now_ms())


def _who(context: Context) -> tuple[str, str]:
    return context.principal.name, context.client_id
