"""Which transactions are late, of those that are open for long.

A child of a joint transaction has a time-out of its own, up to `joint.max.timeout.ms`. Only its coordinator knows that,
and when it began: a mirror's records are dated earlier.

The coordinators are asked when somebody looks and finds a transaction that is late as an ordinary one, once for each:
a child's epoch is its own, so the answer stays true. Without an answer a transaction is late only once it was seen for
the longest time that any may have. So no child is called late before its time, and one that hangs is, a look later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.messages.transactions import ListedTransaction
from quorumlog.nursery import Nursery
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.runtime.joint_children import JointChildren, joint_may_be_used
from quorumlog_broker.coordinator.transactions.state.table import NAMES, ONGOING, PREPARED
from quorumlog_broker.replicas.late_transactions import LATE_BUFFER_MS, Opener, open_for_long
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image

MAX_ASKED = 1_000  # producers of one question; others have their turn at the next look
OPEN, PREPARING = NAMES[ONGOING], frozenset(NAMES[state] for state in PREPARED)
IS_LATE = 0  # in `_until_ms`: no child has it open, so it has lasted for too long


class OpenTimeouts:
    """Used by the node's loop only. It remembers as many producers as partitions have one that is open for long."""

    def __init__(
        self,
        children: JointChildren,
        config: TransactionConfig,
        *,
        image: Callable[[], Image],
        clock: Clock,
        nursery: Nursery,
    ) -> None:
        self._children, self._config = children, config
        self._image, self._clock, self._nursery = image, clock, nursery
        self._until_ms: dict[Opener, int] = {}  # how long each may be open, as told or supposed; wall time
        self._told: set[Opener] = set()
        self._asking: asyncio.Task[None] | None = None
        self._is_closed = False

    def close(self) -> None:
        """The node stops: whoever looks now hears what is known."""
        self._is_closed = True

    def late(self, replicas: Iterable[Replica]) -> int:
        """How many partitions that this broker leads have a late transaction. Begins to ask for what is not known."""
        return self.late_of(self.long_open(replicas))

    def long_open(self, replicas: Iterable[Replica]) -> list[Opener]:
        """Those that are late as ordinary transactions. It only reads, and may be called in any thread."""
        return open_for_long(replicas, self._clock.wall_ms(), self._config.max_timeout_ms)

    def late_of(self, found: Collection[Opener]) -> int:
        """How many of these are late. Begins to ask for what is not known."""
        wall_ms = self._clock.wall_ms()
        if not joint_may_be_used(self._image()):
            return len(found)
        longest_ms = max(self._config.max_timeout_ms, self._config.joint.max_timeout_ms)
        supposed_ms = wall_ms + longest_ms
        self._until_ms = {opener: self._until_ms.get(opener, supposed_ms) for opener in found}
        self._told.intersection_update(self._until_ms)
        unknown = [opener for opener in self._until_ms if opener not in self._told]
        is_asking = self._asking is not None and not self._asking.done()
        if unknown and not is_asking and not self._is_closed:
            asking = self._ask(unknown[:MAX_ASKED])
            self._asking = self._nursery.start(asking, "time-outs of open transactions")
        return sum(self._until_ms[opener] + LATE_BUFFER_MS < wall_ms for opener in found)

    async def _ask(self, openers: Collection[Opener]) -> None:
        try:
            children = await self._children.among({opener.producer_id for opener in openers})
        except ApiError:
            return  # at the next look
        for opener in openers:
            self._until_ms[opener] = _until_ms(children.get(opener.producer_id), opener.epoch)
            self._told.add(opener)


def _until_ms(child: ListedTransaction | None, epoch: int) -> int:
    """Of a child that has a transaction of this epoch open, or whose markers are missing: they have the next epoch."""
    if child is None:
        return IS_LATE
    is_open = child.state == OPEN and child.producer_epoch == epoch
    is_ending = child.state in PREPARING and child.producer_epoch == epoch + 1
    return child.start_time_ms + child.timeout_ms if is_open or is_ending else IS_LATE
