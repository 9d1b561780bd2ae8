"""All partitions of one broker: what handlers, the lifecycle and the metadata subscription may ask of them.

The manager is a shell. What a partition may do is decided by `partition.py`; which partitions there shall be by
`reconciler.py`; bytes go through the directories' workers. Everything here runs on the node's loop; nothing here
touches a disk by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from broker.replication_config import ReplicationConfig
from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorumlog.clock import Clock
from quorumlog.ids import BrokerEpoch, NodeId, Offset, Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.controller import DirectoryAssignment
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    ListOffsetsPartitionResponse,
    ReplicaState,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Transport
from storage.disk import Disk
from storage.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """One entry of `log.dirs`, opened and locked by the composition root.

    clean: its last stop was clean (the marker was there, and has been removed since).
    online: False where opening failed; its partitions are offline until a restart.
    """

    directory_id: Uuid
    path: str
    disk: Disk
    worker: Worker
    clean: bool = False
    online: bool = True


class ControllerCalls(Protocol):
    """The way to the active controller (broker/controller_channel.py)."""

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """Raises RpcError or ApiError once it gives up; NOT_CONTROLLER is followed, not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """base_offset: of the first record. log_append_time_ms: -1 unless the topic uses LogAppendTime."""

    base_offset: Offset
    log_start_offset: Offset
    log_append_time_ms: int = -1


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """One partition of a fetch. topic: 16 bytes of topic id, or a name."""

    topic: Uuid | str
    partition: FetchPartition


class ReplicaManager:
    """Raises nothing but ApiError from what handlers call, for reasons that a client may be told."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        directories: Sequence[LogDirectory],
        clock: Clock,
        rng: Random,
        nursery: Nursery,
        transport: Transport,
        controller: ControllerCalls,
        broker_epoch: Callable[[], BrokerEpoch],
        config: ReplicationConfig,
        on_directory_failed: Callable[[Uuid, Exception], None] = lambda _id, _error: None,
        on_assignments_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """broker_epoch: the epoch of this broker's registration as it is now; -1 before it is registered."""
        raise NotImplementedError

    async def start(self) -> None:
        """List what the directories hold and read their checkpoints, in their workers. Before the first `apply`."""
        raise NotImplementedError

    def apply(self, delta: Delta, image: Image) -> None:
        """A MetadataListener: follow the metadata. Logs are opened and leadership is taken up in the background."""
        raise NotImplementedError

    def append(
        self, topic: Uuid | str, index: int, records: Buffer, *, acks: int, timeout_ms: int
    ) -> Awaitable[AppendResult]:
        """Validate and enqueue now, in the order of calls; the awaitable is for the answer only.

        records: whole batches as produced; kept until written. acks: 0 and 1 wait for the leader's disk, -1 for every
        in-sync replica. Raises ApiError now where nothing was appended; the awaitable raises ApiError where something
        may have been: NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        raise NotImplementedError

    async def fetch(
        self,
        targets: Sequence[FetchTarget],
        *,
        replica: ReplicaState | None,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
    ) -> list[FetchPartitionResponse]:
        """One answer per target, in their order; an error concerns its partition alone.

        replica: set by a following broker (internal listener only); its fetch offsets acknowledge what lies below them.
        Waits up to max_wait_ms while fewer than min_bytes are there and nothing has an error to tell.
        """
        raise NotImplementedError

    async def list_offset(
        self,
        topic: Uuid | str,
        index: int,
        timestamp_ms: int,
        *,
        current_leader_epoch: int = -1,
        replica_id: NodeId = -1,
    ) -> ListOffsetsPartitionResponse:
        """timestamp_ms: a time, or -1 latest, -2 earliest, -3 of the largest timestamp. Errors are in the answer."""
        raise NotImplementedError

    def pending_assignments(self) -> list[DirectoryAssignment]:
        """Replicas whose directory is not the one that the metadata says, in order of topic id and index."""
        raise NotImplementedError

    def leader_count(self) -> int:
        """Partitions that this broker leads now."""
        raise NotImplementedError

    async def close(self) -> bool:
        """Stop following and serving, sync and close every log, write the checkpoints.

        True where every directory was stopped cleanly: only then may a clean-shutdown marker be written.
        """
        raise NotImplementedError
