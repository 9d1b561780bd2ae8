"""What was read of a cluster at one moment. What could not be read is in `unknown`; nothing is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from quorumlog.events.identity import identity
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset, TopicPartition
from quorumlog.in_sync import is_under_replicated
from quorumlog.messages.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFact:
    """leaving: in controlled shutdown; None: this cluster does not tell. directories: how many are online, None as
    before. silent: why it did not answer; empty: it did, or it was not asked."""

    node_id: NodeId
    fenced: bool = False
    leaving: bool | None = False
    directories: int | None = 1
    cordoned: bool = False
    silent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFact:
    """elr: eligible leader replicas. lags: of replicas in records, by broker, where the broker tells it.

    adding, removing: by a reassignment under way. throttled: its topic has a replication throttle.
    """

    topic: str
    index: int
    leader: NodeId = NO_NODE
    leader_epoch: Epoch = 0
    replicas: tuple[NodeId, ...] = ()
    isr: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    recovering: bool = False
    min_isr: int = 1
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()
    throttled: bool = False
    lags: Mapping[NodeId, int] = field(default_factory=dict)

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.index

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def is_under_replicated(self) -> bool:
        return is_under_replicated(self.replicas, self.isr, self.adding)

    @property
    def missing(self) -> tuple[NodeId, ...]:
        """Replicas that should be in sync and are not: one that is being added is not missed yet."""
        return tuple(one for one in self.replicas if one not in self.isr and one not in self.adding)

    @property
    def wanted(self) -> tuple[NodeId, ...]:
        """The replicas that it has now or will keep, without those that are being added."""
        return tuple(one for one in self.replicas if one not in self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFact:
    """error: why it is offline; empty: it is online. total, usable: bytes, -1: not known. reserve: below it producers
    are refused; -1: not known. One that is offline tells nothing of its space, unless it is so for want of room."""

    node_id: NodeId
    path: str
    error: str = ""
    total: int = -1
    usable: int = -1
    reserve: int = -1

    @property
    def is_offline_for_want_of_room(self) -> bool:
        return bool(self.error) and self.usable == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterFact:
    """since_fetch_ms: -1: never in this epoch, or not told."""

    node_id: NodeId
    end_offset: Offset = -1
    since_fetch_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumFact:
    leader: NodeId = NO_NODE
    epoch: Epoch = -1
    high_watermark: Offset = -1
    voters: tuple[VoterFact, ...] = ()

    @property
    def end_offset(self) -> Offset:
        return max((one.end_offset for one in self.voters), default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample:
    """Of what its members read, or all that it has committed where nobody can tell. committed: offsets by partition.
    lag: readable records behind, or the distance of offsets where only that is known."""

    at_ms: int
    committed: Mapping[TopicPartition, Offset]
    lag: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        return sum(self.lag.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFact:
    """members: names for people. coordinator_error: why its coordinator did not answer for it; empty: it did.

    samples: the oldest first.
    """

    group_id: str
    state: str = "Stable"
    members: tuple[str, ...] = ()
    coordinator: NodeId = NO_NODE
    coordinator_error: str = ""
    samples: tuple[GroupSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransactionFact:
    """One that is open on a partition. name: the transactional id; None: no coordinator knows the producer.

    known: its coordinator lists this partition, so it will end it. started_ms: as the coordinator says, -1: unknown.
    last_ms: when its producer wrote here last. timeout_ms: the producer's own, 0: unknown.
    start_offset: of its first record here; stable: the partition's last stable offset; high_watermark: its end.
    """

    topic: str
    index: int
    producer_id: int
    producer_epoch: int = 0
    name: str | None = None
    known: bool = False
    state: str = ""
    started_ms: int = -1
    last_ms: int = -1
    timeout_ms: int = 0
    start_offset: Offset = -1
    stable: Offset = -1
    high_watermark: Offset = -1

    @property
    def since_ms(self) -> int:
        """Since when it is open, at least, ms since 1970."""
        return self.started_ms if self.started_ms >= 0 else self.last_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFact:
    """A bucket of clients at one broker. rate, quota: a second."""

    node_id: NodeId
    key: str
    who: str
    rate: float
    quota: float
    throttled_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsFact:
    """How far ends of partitions moved between two looks. seconds: between them. grown: by how many bytes the leaders'
    replicas grew meanwhile; only if one partition took most of a topic's records."""

    seconds: float
    moved: Mapping[TopicPartition, int]
    grown: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """at_ms: of the reading, ms since 1970. has_events: the cluster keeps events (an Apache Kafka does not).

    unreachable: why no broker answered; empty: one did. unknown: by what was asked, why it is not known. is_local: the
    nodes are those of `quorumlog up` here, so that its commands reach their processes.
    asked: what was looked at, in words, in the order of the looks.
    """

    at_ms: int
    unreachable: str = ""
    brokers: tuple[BrokerFact, ...] = ()
    partitions: tuple[PartitionFact, ...] = ()
    directories: tuple[DirectoryFact, ...] = ()
    quorum: QuorumFact | None = None
    groups: tuple[GroupFact, ...] = ()
    transactions: tuple[OpenTransactionFact, ...] = ()
    quotas: tuple[QuotaFact, ...] = ()
    ends: EndsFact | None = None
    events: tuple[Event, ...] = ()
    has_events: bool = True
    is_local: bool = False
    unknown: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    def broker(self, node_id: NodeId) -> BrokerFact | None:
        return next((one for one in self.brokers if one.node_id == node_id), None)

    def partition(self, key: TopicPartition) -> PartitionFact | None:
        return next((one for one in self.partitions if one.key == key), None)

    def live(self, node_id: NodeId) -> bool:
        """The broker is registered and not fenced."""
        found = self.broker(node_id)
        return found is not None and not found.fenced

    def last_event(self, subject: str, *kinds: str, since_ms: int = 0) -> Event | None:
        """The newest of these kinds about the subject."""
        fitting = self.events_of(subject, *kinds, since_ms=since_ms)
        return fitting[-1] if fitting else None

    def events_of(self, subject: str, *kinds: str, since_ms: int = 0) -> list[Event]:
        """By time; of all subjects where it is empty."""
        found = self._by_subject.get(subject, ()) if subject else self.events
        return [one for one in found if one.kind in kinds and one.at_ms >= since_ms]

    @cached_property
    def _by_subject(self) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for one in self.events:
            found.setdefault(one.subject, []).append(one)
        return found


def merged_events(by_node: Iterable[Iterable[Event]]) -> tuple[Event, ...]:
    """The events of all nodes by time; what many tell counts once."""
    found: dict[tuple[object, ...], Event] = {}
    for events in by_node:
        for one in events:
            found.setdefault(identity(one), one)
    return tuple(sorted(found.values(), key=lambda one: (one.at_ms, one.offset, one.number)))
