"""How many connections of clients a node lets in a second (KIP-612, Kafka's ConnectionQuotas).

Settings bound that, of all listeners of the node and of one (`max.connection.creation.rate`), and quotas of addresses
(`connection_creation_rate`). Ten seconds' worth of each may come at once. Who comes above the rate of the node waits
for its turn, one behind the other, and is let in; who is above the quota of its address is turned away after a while,
and does not count.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.security.quota.clients import MAX_BUCKETS
from quorumlog.security.quota.entity import CONNECTION_CREATION_RATE
from quorumlog.security.quota.rate import KEPT_MS, SAMPLE_MS, Rate
from quorumlog.security.quota.resolution import QuotaIndex

MAX_WAIT_MS = SAMPLE_MS  # as in Kafka


class Arrivals:
    """Of one node's listeners for clients. index: of the quotas in force. of_node, of_listener: connections a second;
    None: as many as come."""

    def __init__(
        self,
        index: Callable[[], QuotaIndex],
        of_node: Callable[[], int | None],
        of_listener: Callable[[str], int | None],
    ) -> None:
        self._index, self._of_node, self._of_listener = index, of_node, of_listener
        self._node = Rate()
        self._listeners: dict[str, Rate] = {}
        self._addresses: dict[str, Rate] = {}
        self._swept_ms = 0

    def limits(self, listener: str) -> bool:
        """Something bounds who comes to this listener."""
        return self._index().limits_addresses or self._of_node() is not None or self._of_listener(listener) is not None

    def of_address(self, address: str, now_ms: int) -> int:
        """One has come. After how many ms it is to be turned away; 0: it may come in, and was counted."""
        limit = self._index().address_limit(CONNECTION_CREATION_RATE, address)
        if limit is None:
            return 0
        self._sweep(now_ms)
        rate = self._addresses.get(address)
        if rate is None:
            if len(self._addresses) >= MAX_BUCKETS:
                del self._addresses[next(iter(self._addresses))]
            rate = self._addresses[address] = Rate()
        wait_ms = _counted(rate, limit, now_ms)
        if wait_ms:
            rate.use(-1, now_ms)
        return wait_ms

    def turn(self, listener: str, now_ms: int) -> int:
        """The next one to this listener. For how many ms it waits yet, and those behind it; it was counted."""
        of_node, of_listener = self._of_node(), self._of_listener(listener)
        wait_ms = 0
        if of_node is not None:
            wait_ms = _counted(self._node, of_node, now_ms)
        if of_listener is not None:
            rate = self._listeners.setdefault(listener, Rate())
            wait_ms = max(wait_ms, _counted(rate, of_listener, now_ms))
        return wait_ms

    def __len__(self) -> int:
        """Addresses that are remembered."""
        return len(self._addresses)

    def _sweep(self, now_ms: int) -> None:
        if now_ms - self._swept_ms >= KEPT_MS:
            self._swept_ms = now_ms
            for address in [one for one, rate in self._addresses.items() if rate.is_idle(now_ms)]:
                del self._addresses[address]


def _counted(rate: Rate, limit: float, now_ms: int) -> int:
    rate.use(1, now_ms)
    return min(MAX_WAIT_MS, rate.wait_ms(limit, now_ms))
