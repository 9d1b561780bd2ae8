"""Leaders that may just have died, as far as this broker can tell before the metadata does.

The evidence is its own: a connection on which a leader had answered has broken. Clients see theirs break at the same
moment, and ask at once who leads now. The answer waits while there is doubt, so that it is not the dead one: a client
that is told so again asks next when its timer says so (librdkafka: up to a second later). It is not told `no leader`
either: some versions of librdkafka (2.4, 2.5) never return to a leader that comes back in the same epoch.

Doubt ends with the image that names another leader, when the leader's process answers, or after DOUBT_MS, whichever
is first. It begins anew only after the leader has answered a fetch again. So a wrong one costs an answer a few
milliseconds, and the worst is DOUBT_MS once per broken connection.

A process that dies closes its connections one after the other, over a millisecond or two: a client may know before this
broker does. So every answer that names other leaders is given NOTICE_MS to become doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorum.metadata.image import Image
from quorum.metadata.registration import BrokerRegistration
from quorumlog.clock import Clock
from quorumlog.ids import NodeId
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Answered, Transport

DOUBT_MS = 500  # a death is proven and its partitions have new leaders in 20-400 ms
NOTICE_MS = 5
LOOK_AGAIN_MS = 20  # after that the end of a doubt is looked for where no image comes, then after twice the time


class Doubts:
    """Core. Who is doubted, and how long still."""

    def __init__(self) -> None:
        self._until_ms: dict[NodeId, int] = {}  # exclusive

    def begin(self, leader: NodeId, now_ms: int) -> bool:
        """False: it is doubted already, and for no longer than it was."""
        if self.left_ms([leader], now_ms):
            return False
        self._until_ms[leader] = now_ms + DOUBT_MS
        return True

    def end(self, leader: NodeId) -> None:
        self._until_ms.pop(leader, None)

    def left_ms(self, leaders: Iterable[NodeId], now_ms: int) -> int:
        """Until none of them is doubted any more; 0: none is."""
        if not self._until_ms:
            return 0
        self._until_ms = {leader: until_ms for leader, until_ms in self._until_ms.items() if until_ms > now_ms}
        return max((self._until_ms[leader] - now_ms for leader in leaders if leader in self._until_ms), default=0)


class SuspectedLeaders:
    """Shell. Doubts whoever is lost, and asks at once who is there. Only that very process ends the doubt: one that is
    dying may still take a connection."""

    def __init__(
        self,
        doubts: Doubts,
        *,
        image: Callable[[], Image],
        internal_listener: str,
        transport: Transport,
        clock: Clock,
        nursery: Nursery,
    ) -> None:
        self._doubts, self._image, self._listener = doubts, image, internal_listener
        self._transport, self._clock, self._nursery = transport, clock, nursery

    def on_lost(self, leader: NodeId) -> None:
        """A connection on which it had answered broke."""
        broker = self._image().brokers.get(leader)
        if broker is not None and not broker.fenced and self._doubts.begin(leader, self._clock.now_ms()):
            self._nursery.start(self._look(broker), f"who is at broker {leader}")

    async def _look(self, broker: BrokerRegistration) -> None:
        endpoint = broker.endpoint(self._listener)
        if endpoint is not None:
            found = await self._transport.probe(Address(endpoint.host, endpoint.port), DOUBT_MS)
            if found == Answered(broker.broker_id, broker.incarnation_id):
                self._doubts.end(broker.broker_id)
