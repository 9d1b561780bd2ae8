"""What a membership is made of, what it asks its shell to do, and what it asks the application to do."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from quorumlog.ids import TopicPartition, Uuid

TopicPartitions = frozenset[TopicPartition]
NOTHING: TopicPartitions = frozenset()
CALL_TIMEOUT_MS = 5_000  # of heartbeats and of leaving, which do not wait for anybody


class State(Enum):
    UNJOINED = "unjoined"  # it joins when the application polls
    JOINING = "joining"
    ASSIGNING = "assigning"  # it leads the group, and waits for the number of partitions of each topic
    SYNCING = "syncing"
    STABLE = "stable"
    FENCED = "fenced"  # another process has its instance id
    LEFT = "left"


class GroupSettings(NamedTuple):
    """strategies: names, the preferred one first. rebalance_timeout_ms: also the longest time between two polls."""

    group_id: str
    instance_id: str | None = None
    strategies: tuple[str, ...] = ("range", "cooperative-sticky")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    remote_assignor: str | None = None  # of the consumer protocol; None: the coordinator's choice
    rack: str | None = None  # where this member runs


# --- to the shell ---


class Send(NamedTuple):
    """Send to the coordinator; report the answer, or that there is none, under this number."""

    number: int
    request: Any
    timeout_ms: int
    leaves: bool = False  # nothing else is sent afterwards


class CountPartitions(NamedTuple):
    """Report how many partitions each of these topics has, or that it cannot be found out, under this number."""

    number: int
    topics: tuple[str, ...]


class NameTopics(NamedTuple):
    """Report the names of these topics, or that they cannot be found out, under this number."""

    number: int
    topic_ids: tuple[Uuid, ...]


Effect = Send | CountPartitions | NameTopics


# --- to the application, in one of its polls ---


class GiveUp(NamedTuple):
    """Stop reading these partitions. lost: others may read them already, so what was read cannot be committed."""

    partitions: TopicPartitions
    lost: bool = False


class TakeOver(NamedTuple):
    """A new assignment: stop reading the ones and begin to read the others."""

    revoked: TopicPartitions
    added: TopicPartitions


Change = GiveUp | TakeOver
