"""What is wrong in a sample, as far as one look can tell: top and the console say the same of a cluster. Pure.

From where on something is told is what `quorumlog check` has (`Thresholds`), which asks for more, and for longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.explaining.thresholds import Thresholds
from quorumlog.ids import NodeId
from quorumlog.watch.sample import Broker, BrokerState, Directory, Quorum, QuorumMember, Sample

LIMITS = Thresholds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """offline, under_replicated: partitions; one without a leader is not under-replicated, too."""

    has_no_leader: bool
    offline: int
    under_replicated: int
    silent_voters: tuple[NodeId, ...]
    fenced: tuple[NodeId, ...]
    stopping: tuple[NodeId, ...]
    dead: tuple[tuple[NodeId, Directory], ...]
    nearly_full: tuple[tuple[NodeId, Directory], ...]


def health_of(sample: Sample) -> Health:
    topics, quorum = sample.topics.values(), sample.quorum
    disks = [(broker.node_id, one) for broker in sample.brokers for one in broker.directories]
    return Health(
        has_no_leader=quorum is not None and quorum.leader_id < 0,
        offline=sum(one.offline for one in topics),
        under_replicated=sum(one.under_replicated for one in topics),
        silent_voters=() if quorum is None else tuple(one.node_id for one in quorum.voters if is_silent(quorum, one)),
        fenced=_in_state(sample.brokers, BrokerState.FENCED),
        stopping=_in_state(sample.brokers, BrokerState.STOPPING),
        dead=tuple((node_id, one) for node_id, one in disks if one.error),
        nearly_full=tuple((node_id, one) for node_id, one in disks if not one.error and is_nearly_full(one)),
    )


def is_silent(quorum: Quorum, member: QuorumMember) -> bool:
    """It has not fetched for a while, as far as there is a leader that would know."""
    if member.node_id == quorum.leader_id or quorum.leader_id < 0:
        return False
    return member.end < 0 or member.since_fetch_ms > LIMITS.voter_silent_ms


def is_nearly_full(directory: Directory) -> bool:
    free = directory.free_share
    return free is not None and 100 * free < LIMITS.free_percent


def _in_state(brokers: tuple[Broker, ...], state: BrokerState) -> tuple[NodeId, ...]:
    return tuple(one.node_id for one in brokers if one.state is state)
