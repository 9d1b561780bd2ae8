"""What one look at a cluster has seen. Values only; `reading.py` takes them, `past.py` keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from quorumlog.ids import Epoch, NodeId, Offset, TopicPartition

UNKNOWN = -1  # of a size, an offset or a duration that nobody told


class BrokerState(Enum):
    SERVING = "serving"
    FENCED = "fenced"
    STOPPING = "stopping"


class Part(Enum):
    """What a sample consists of. A part that could not be read is named in `Sample.missing`."""

    BROKERS = "brokers"
    DISKS = "disks"
    QUORUM = "quorum"
    TOPICS = "topics"
    OFFSETS = "offsets"
    GROUPS = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """total_bytes, usable_bytes: of its file system. size_bytes: of all replicas in it. error: empty while online."""

    path: str
    total_bytes: int = UNKNOWN
    usable_bytes: int = UNKNOWN
    size_bytes: int = 0
    replicas: int = 0
    error: str = ""
    is_cordoned: bool = False

    @property
    def free_share(self) -> float | None:
        """Of its file system, from 0 to 1; None: not told."""
        is_known = self.total_bytes > 0 and self.usable_bytes >= 0
        return self.usable_bytes / self.total_bytes if is_known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """host, port: of its first client listener, which speaks Kafka's protocol unless its operator chose otherwise."""

    node_id: NodeId
    host: str
    port: int
    rack: str = ""
    state: BrokerState = BrokerState.SERVING
    directories: tuple[Directory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumMember:
    """end: log end offset, exclusive. since_fetch_ms: since its last fetch; of the leader 0."""

    node_id: NodeId
    end: Offset = UNKNOWN
    since_fetch_ms: int = UNKNOWN
    since_caught_up_ms: int = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """leader_id: NO_NODE while there is none."""

    leader_id: NodeId
    epoch: Epoch
    high_watermark: Offset
    voters: tuple[QuorumMember, ...] = ()
    observers: tuple[QuorumMember, ...] = ()

    def lag_of(self, member: QuorumMember) -> int:
        """Records of the metadata log that it has not copied; UNKNOWN if it or the leader has told no end."""
        leader = next((one for one in self.voters if one.node_id == self.leader_id), None)
        if leader is None or leader.end < 0 or member.end < 0:
            return UNKNOWN
        return max(0, leader.end - member.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """first, end: the offsets that consumers can read, end exclusive. size_bytes: of its leader's replica.

    leader: NO_NODE if there is none. adding: replicas that a reassignment adds; they are not missed yet.
    """

    index: int
    leader: NodeId
    epoch: Epoch = UNKNOWN
    replicas: tuple[NodeId, ...] = ()
    isr: tuple[NodeId, ...] = ()
    offline: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    first: Offset = UNKNOWN
    end: Offset = UNKNOWN
    size_bytes: int = UNKNOWN

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_under_replicated(self) -> bool:
        """Replicas that should be in sync are not. One without a leader is offline, which is worse, and not this."""
        return not self.is_offline and any(one not in self.isr and one not in self.adding for one in self.replicas)

    @property
    def is_led_by_another(self) -> bool:
        """Than its preferred replica, which is the first one."""
        return not self.is_offline and bool(self.replicas) and self.leader != self.replicas[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: bytes = b""
    is_internal: bool = False
    partitions: tuple[Partition, ...] = ()

    @property
    def replication(self) -> int:
        return max((len(one.replicas) for one in self.partitions), default=0)

    @property
    def offsets(self) -> int:
        """Offsets between the first and the end of its partitions, as far as they are known. Markers and what
        compaction has removed count, so records are at most so many."""
        return sum(one.end - one.first for one in self.partitions if one.first >= 0 and one.end >= one.first)

    @property
    def size_bytes(self) -> int:
        """Of the leaders' replicas; UNKNOWN if none is known."""
        known = [one.size_bytes for one in self.partitions if one.size_bytes >= 0]
        return sum(known) if known else UNKNOWN

    @property
    def under_replicated(self) -> int:
        return sum(one.is_under_replicated for one in self.partitions)

    @property
    def offline(self) -> int:
        return sum(one.is_offline for one in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """What a group has committed of a partition, or reads without having committed (committed: UNKNOWN).

    member_id: who reads it; empty: nobody does. is_read: a member reads the topic, if not now this partition, or nobody
    can tell, as without members. is_of_former_topic: the offset belongs to a deleted topic of this name.
    end: of the partition that has the name now; UNKNOWN if there is none. records: that its readers can read and it has
    not committed, at most so many if is_estimate; UNKNOWN: this cluster does not count them. since_ms: when the first
    of them was written, by the clock of `Sample.at_ms`; None: not known.
    """

    topic: str
    partition: int
    committed: Offset
    end: Offset = UNKNOWN
    member_id: str = ""
    is_of_former_topic: bool = False
    is_read: bool = True
    records: int = UNKNOWN
    is_estimate: bool = False
    since_ms: int | None = None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def distance(self) -> int:
        """Offsets from the committed one to the end, never below 0; UNKNOWN if one of both is, and for an offset of a
        former topic, which says nothing of the one that has its name now."""
        if self.committed < 0 or self.end < 0 or self.is_of_former_topic:
            return UNKNOWN
        return max(0, self.end - self.committed)

    @property
    def lag(self) -> int:
        """The best that the cluster can say, as `quorumlog group lag` has it."""
        return self.distance if self.records == UNKNOWN or self.distance == UNKNOWN else self.records


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str = ""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """group_type: classic, consumer, ...; empty if not told. coordinator: NO_NODE if the group was not described.

    unread: why its members and offsets are not here; empty: they are.
    """

    group_id: str
    state: str = ""
    group_type: str = ""
    protocol_type: str = ""
    assignor: str = ""
    coordinator: NodeId = -1
    members: tuple[Member, ...] = ()
    offsets: tuple[GroupOffset, ...] = ()
    unread: str = ""

    @property
    def distance(self) -> int:
        """Of all partitions that a member reads together; of all partitions where the group has no member."""
        return sum(max(0, one.distance) for one in self.counted)

    @property
    def lag(self) -> int:
        """Records that are to be read, or offsets where the cluster does not count records; summed like `distance`."""
        return sum(max(0, one.lag) for one in self.counted)

    @property
    def counts_records(self) -> bool:
        """False: the lag is a distance of offsets, somewhere at least."""
        return all(one.records >= 0 or one.distance <= 0 for one in self.counted)

    @property
    def is_estimate(self) -> bool:
        """There are at most so many records."""
        return any(one.is_estimate for one in self.counted)

    @property
    def counted(self) -> tuple[GroupOffset, ...]:
        """A group with members is not behind on what none of them reads: such an offset is left over."""
        return tuple(one for one in self.offsets if one.is_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """at_ms: by a clock that never goes back. wall_ms: since 1970. missing: of each part that could not be read, why.

    took_ms: from the first question to the last answer.
    """

    at_ms: int
    wall_ms: int
    took_ms: int = 0
    cluster_id: str = ""
    controller_id: NodeId = -1
    brokers: tuple[Broker, ...] = ()
    quorum: Quorum | None = None
    topics: Mapping[str, Topic] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    missing: Mapping[Part, str] = field(default_factory=dict)
