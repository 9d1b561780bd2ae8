"""Leaders that may just have died: this broker suspects them before the metadata says so.

The evidence is this broker's own: a connection on which a leader had answered broke. Clients see their connections
break at the same moment, and ask at once for the new leader. A Metadata response waits while it would name a suspected
leader: a client that is sent back to the dead one asks again only after its own timer (librdkafka: up to a second). The
response cannot say "no leader" either: librdkafka 2.4 and 2.5 never return to a leader that comes back in the same
epoch.

A suspicion ends when an image names another leader, when the leader's process answers a probe, or after SUSPICION_MS.
The next one begins only after the leader has answered a fetch again. So a wrong suspicion costs a response a few
milliseconds, and at worst SUSPICION_MS once per broken connection.

A process that dies closes its connections one after the other, over a millisecond or two, so a client may notice before
this broker does. Therefore every response that names other leaders waits DETECTION_MS first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorumlog.clock import Clock
from quorumlog.ids import NodeId
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Answered, Transport
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration

SUSPICION_MS = 500  # a death is proven and its partitions have new leaders within 20-400 ms
DETECTION_MS = 5
RECHECK_MS = 20  # a response checks again after this time if no image comes, then after twice the time, and so on


class SuspectedLeaders:
    """Core: which leaders are suspected, and for how long."""

    def __init__(self) -> None:
        self._until_ms: dict[NodeId, int] = {}  # exclusive

    def begin(self, leader: NodeId, now_ms: int) -> bool:
        """Suspect it for SUSPICION_MS. False: it is suspected already; that is not prolonged."""
        if self.left_ms([leader], now_ms):
            return False
        self._until_ms[leader] = now_ms + SUSPICION_MS
        return True

    def end(self, leader: NodeId) -> None:
        self._until_ms.pop(leader, None)

    def left_ms(self, leaders: Iterable[NodeId], now_ms: int) -> int:
        """The time until none of `leaders` is suspected any more; 0: none is."""
        if not self._until_ms:
            return 0
        self._until_ms = {leader: until_ms for leader, until_ms in self._until_ms.items() if until_ms > now_ms}
        return max((self._until_ms[leader] - now_ms for leader in leaders if leader in self._until_ms), default=0)


class LeaderProber:
    """Shell: suspects a leader whose connection broke, and probes it at once.

    Only an answer of that very process ends the suspicion: one that is dying may still accept a connection.
    """

    def __init__(
        self,
        suspected: SuspectedLeaders,
        *,
        image: Callable[[], Image],
        internal_listener: str,
        transport: Transport,
        clock: Clock,
        nursery: Nursery,
    ) -> None:
        self._suspected, self._image, self._listener = suspected, image, internal_listener
        self._transport, self._clock, self._nursery = transport, clock, nursery

    def on_lost(self, leader: NodeId) -> None:
        """A connection on which the leader had answered broke."""
        broker = self._image().brokers.get(leader)
        if broker is not None and not broker.fenced and self._suspected.begin(leader, self._clock.now_ms()):
            self._nursery.start(self._probe(broker), f"probe broker {leader}")

    async def _probe(self, broker: BrokerRegistration) -> None:
        endpoint = broker.endpoint(self._listener)
        if endpoint is not None:
            found = await self._transport.probe(Address(endpoint.host, endpoint.port), SUSPICION_MS)
            if found == Answered(broker.broker_id, broker.incarnation_id):
                self._suspected.end(broker.broker_id)
