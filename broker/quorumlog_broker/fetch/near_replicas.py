"""Consumers that read from a replica in their rack (KIP-392): whom a leader sends where, and when a follower serves.

A consumer that names its rack is sent from a leader elsewhere to the in-sync replica there that holds its position and
has fetched within `replica.lag.time.max.ms`. A follower serves such a consumer as a leader does, up to its own high
watermark or last stable offset, which never pass its leader's. It sends the consumer back, as a broker that does not
lead, once it is not in the ISR any more, or has heard nothing from its leader for `replica.lag.time.max.ms`. Kafka's
followers serve every consumer that asks; here one that names no rack reads from the leader alone (decision 154).

Sources: KIP-392; Kafka's ReplicaManager.findPreferredReadReplica and RackAwareReplicaSelector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog_broker.partition.follower_progress import UNKNOWN, FollowerProgress
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log


class RackReader(NamedTuple):
    """A consumer that has named its rack. listener: the one whose addresses it can reach."""

    rack: str
    listener: str


class NearReplicas:
    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        heard_ms: Callable[[PartitionKey], int],
        lag_time_max_ms: int,
        *,
        sends_readers: bool,
    ) -> None:
        """heard_ms: when the leader of a partition that this broker follows has last answered.

        sends_readers: `replica.selector.class` is Kafka's RackAwareReplicaSelector.
        """
        self._registry = registry
        self._clock = clock
        self._heard_ms = heard_ms
        self._lag_time_max_ms = lag_time_max_ms
        self._sends_readers = sends_readers

    def log_for(self, found: Replica, epoch: Epoch | None, reader: RackReader | None) -> Log:
        """What a consumer may read here (in `epoch`, if given). Raises ApiError: see `Replica.leading`."""
        if reader is None or not found.core.is_follower:
            return found.leading(epoch)
        log = found.readable(epoch)
        core = found.core
        if core.node_id not in core.isr_state.isr:
            raise _sent_back(found, "is not in its ISR")
        if self._clock.now_ms() - self._heard_ms(found.key) > self._lag_time_max_ms:
            raise _sent_back(found, "has not heard from its leader for replica.lag.time.max.ms")
        return log

    def preferred(self, found: Replica, offset: Offset, reader: RackReader | None) -> NodeId:
        """The follower that the reader at `offset` is to ask in place of this leader; NO_NODE: it reads here."""
        if reader is None or not self._sends_readers or not found.core.is_leader:
            return NO_NODE
        core, brokers = found.core, self._registry.image.brokers
        own = brokers.get(core.node_id)
        if own is not None and own.rack == reader.rack:
            return NO_NODE
        isr = core.isr_state.isr
        near = [
            (progress.end_offset, progress.last_caught_up_ms, node)
            for node, progress in core.followers.items()
            if node in isr and _holds(progress, offset) and self._is_near(node, progress, reader)
        ]
        return max(near)[-1] if near else NO_NODE

    def _is_near(self, node: NodeId, progress: FollowerProgress, reader: RackReader) -> bool:
        """It is alive in the reader's rack, and it is the process that has fetched, of late: else it would send the
        reader back, again and again, for it stays in the ISR while nothing is written."""
        broker = self._registry.image.brokers.get(node)
        return (
            broker is not None
            and broker.active
            and broker.rack == reader.rack
            and broker.broker_epoch == progress.broker_epoch
            and self._clock.now_ms() - progress.last_fetch_ms <= self._lag_time_max_ms
            and broker.endpoint(reader.listener) is not None
        )


def _holds(progress: FollowerProgress, offset: Offset) -> bool:
    """A follower that has not fetched yet holds nothing that is known here."""
    return progress.end_offset != UNKNOWN and progress.log_start <= offset <= progress.end_offset


def _sent_back(found: Replica, why: str) -> ApiError:
    text = f"broker {found.core.node_id} {why}, so {found.name} is read from broker {found.core.leader}, which leads it"
    return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
