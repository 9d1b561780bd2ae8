"""One node's part in the quorum: opens the metadata log, runs the core on it, and stops when something fails.

A failure of the metadata log, of a listener or of the core stops the node: it is raised in a task of the nursery, whose
`on_crash` ends the process. Some cases leave the quorum in good order, because the process itself is sound: metadata of
newer software, and a metadata log that cannot be read (the node is asked to stop, by `on_fatal`); and a log directory
that failed elsewhere or whose disk hangs (`on_directory_failed`; the node stops by itself).

Voters and observers run the same driver; `voters` decides which of them this node is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.histogram import Histogram
from quorumlog.ids import Epoch, NodeId, Offset, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    VoteRequest,
)
from quorumlog.nursery import Nursery
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog.rpc.transport import Context, Transport
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog_quorum.disk.metadata_directory import METADATA_LOG, MetadataDirectory, OpenedMetadata, settle
from quorumlog_quorum.disk.metadata_log import NOTE_INTERVAL_MS, MetadataLog
from quorumlog_quorum.metadata.listener import RaftListener
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.node.announcements import Announcements
from quorumlog_quorum.node.candidate_probe import CandidateProbe
from quorumlog_quorum.node.committed import Delivery
from quorumlog_quorum.node.death_proof import DeathProof
from quorumlog_quorum.node.open_asks import OpenAsks
from quorumlog_quorum.node.peers import Peers
from quorumlog_quorum.node.raft_loop import RaftLoop
from quorumlog_quorum.node.request_check import check_request
from quorumlog_quorum.raft import (
    ConfirmationRequested,
    Core,
    LogState,
    Membership,
    NotLeader,
    PeerProvenDead,
    Raft,
    RaftConfig,
    RaftEvent,
    RaftRole,
    RequestReceived,
    Started,
    UpgradeRequested,
    VoterKey,
    VoterSet,
    follower_lags,
)
from quorumlog_quorum.snapshot_service.own_snapshots import OwnSnapshots
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshot_service.snapshot_taker import Slices
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.worker import Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import Outcome


class Driver:
    """One node's part in the quorum. `start` once, `stop` once; everything on one event loop.

    What the quorum's state is, is read in `core`, as this node's Raft has it, and in `announcements`, as the listeners
    have been told.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        directory_id: Uuid,
        cluster_id: str,
        voters: VoterSet,
        membership: Membership | None = None,
        transport: Transport,
        worker: Worker,
        disk: Disk,
        clock: Clock,
        rng: Random,
        nursery: Nursery,
        on_fatal: Callable[[str], None],
        listeners: Sequence[RaftListener] = (),
        config: RaftConfig | None = None,
        log_config: LogConfig = METADATA_LOG,
        snapshots: SnapshotConfig | None = None,
        slices: Callable[[], Slices | None] | None = None,
        note_interval_ms: int = NOTE_INTERVAL_MS,
        older_points: OffsetFile | None = None,
        clean: bool = False,
    ) -> None:
        """directory_id: of the log directory that holds the metadata log. worker: of the metadata log's directory.

        voters: the static set, in force until the log names another one. membership: what is configured about this node
        as a voter; its records and its mark are read from the disk.

        on_fatal: called once with the reason why this node must be stopped and upgraded; then no metadata is delivered.
        snapshots, slices: when to take one, and the committed metadata as values of records; None: none is taken.
        note_interval_ms: see MetadataLog. older_points: see MetadataDirectory. clean: as for `Log.open`.
        """
        self.node_id = node_id
        self._key = VoterKey(node_id, directory_id)
        self._cluster_id, self._voters, self._membership = cluster_id, voters, membership or Membership()
        self._clock, self._rng, self._nursery = clock, rng, nursery
        self._listeners, self._on_fatal = tuple(listeners), on_fatal
        self._config = config or RaftConfig()
        self._directory = MetadataDirectory(
            worker=worker,
            disk=disk,
            log_config=log_config,
            older_points=older_points,
            clean=clean,
        )
        self._peers = Peers(node_id=node_id, endpoint_of=self._endpoint_of, transport=transport, nursery=nursery)
        self._candidates = CandidateProbe(transport, nursery)
        self._note_interval_ms = note_interval_ms
        self._snapshot_config, self._slices = snapshots or SnapshotConfig(), slices
        self._own_snapshots: OwnSnapshots | None = None  # until started
        self._proof = DeathProof(transport=transport, peers=self._peers, nursery=nursery, on_dead=self._on_dead)
        self._loop: RaftLoop | None = None  # until started
        self.core: Core | None = None  # likewise; others only read it
        self.opened: OpenedMetadata | None = None  # what opening the log found
        self.snapshots: SnapshotStore | None = None  # until started
        self.announcements = Announcements(node_id, self._endpoint_of, self._proof.learn_incarnation)
        self._asks = OpenAsks(self._step)
        self.errors = 0  # that end this node's part in the quorum
        self._stopped = False
        self._directory_failed = False

    # --- for the node ---

    @property
    def is_leader(self) -> bool:
        """Appends are accepted, though they may never be committed."""
        return not self._stopped and self.core is not None and self.core.role.role is RaftRole.LEADER

    @property
    def commit_times(self) -> Histogram | None:
        """How long the batches waited that this node has appended as the leader; None before the start."""
        return None if self._loop is None else self._loop.commit_times.histogram

    def follower_lags(self) -> dict[str, int]:
        """Of the leader: by node, how many offsets of its log the node has not fetched. Any thread may ask."""
        return {} if self.core is None else follower_lags(self.core)

    # --- for the controller (MetadataDriver) ---

    @property
    def high_watermark(self) -> Offset:
        """Exclusive, as the listeners know it; -1: not known yet."""
        return self.announcements.high_watermark

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of the own log, including records whose write is queued."""
        return 0 if self.core is None else self.core.log.accepted_end

    @property
    def voter_ids(self) -> tuple[NodeId, ...]:
        """Of the voters in force, ascending; before the start of the static ones."""
        return tuple(self._voters if self.core is None else self.core.voters)

    @property
    def kraft_version(self) -> int:
        """0: the voters are configured; 1: they are in the log. 0 before the start."""
        return 0 if self.core is None else self.core.history.level

    async def upgrade_kraft_version(self, *, validate_only: bool = False) -> None:
        """Put the voters into the log, as the leader: kraft.version 1. Raises ApiError, which says why it cannot."""
        if self._loop is None or self._stopped:
            raise ApiError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} is starting or shutting down")
        await self._asks.ask(lambda token: UpgradeRequested(token, validate_only))

    def confirm_leadership(self) -> asyncio.Future[None]:
        """Done when a majority of the voters has followed this leader since the call: what it knew then is not stale.

        It raises ApiError if this node does not lead, or stops leading first (at the latest by check-quorum).
        """
        if self._loop is None or self._stopped:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is starting or shutting down")
        return self._asks.ask(ConfirmationRequested)

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """Append one atomic batch as the leader of `epoch`. Returns its exclusive end; listeners learn of the commit.

        Raises NotLeader, ApiError(RECORD_LIST_TOO_LARGE); then nothing was appended.
        """
        if self._loop is None or self._stopped:
            raise NotLeader(epoch, self.announcements.leader_id, self.announcements.epoch)
        size = sum(len(value) for value in values)
        if size > self._config.max_batch_bytes:
            text = f"{size} bytes in one batch of metadata, at most {self._config.max_batch_bytes} are allowed"
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, text)
        return self._loop.append(epoch, values)

    # --- start, requests, stop ---

    async def start(self) -> None:
        """Open the log and take part. Raises CorruptQuorumState, SnapshotMissing, DiskError, DirectoryOffline."""
        assert self._loop is None, "start is called once"
        self.opened = opened = await self._directory.open()
        self._log = MetadataLog(
            opened.checkpointed, self._directory.worker, self._fail, self._clock, self._note_interval_ms, opened.starts
        )
        self.snapshots = self._make_store(opened)
        self._own_snapshots = own = self._make_own_snapshots(self.snapshots)
        start = opened.log.start_offset
        delivery = Delivery(
            self._log, start, self._listeners, self._fail, self.snapshots, own.on_delivered, own.on_lost
        )
        self.announcements.start(delivery)
        raft = self._make_raft(opened)
        self.core = raft.core
        self._loop = RaftLoop(
            raft,
            log=self._log,
            snapshots=self.snapshots,
            served=own.served,
            directory=self._directory,
            peers=self._peers,
            proof=self._proof,
            candidates=self._candidates,
            asks=self._asks,
            announcements=self.announcements,
            clock=self._clock,
            on_error=self._fail,
        )
        delivery.start()
        self._loop.step(Started())
        self._nursery.start(own.run(), "retention of the metadata log")

    async def hand_over(self) -> None:
        """Hand leadership over to a voter that has caught up, and take part in no election from now on."""
        if self._loop is not None and not self._stopped:
            await self._loop.hand_over(2 * self._config.request_timeout_ms)

    async def stop(self, graceful: bool = True) -> bool:
        """graceful: hand leadership over first. Returns True if the log was open and is now synced and closed."""
        if graceful:
            await self.hand_over()
        was_stopped, self._stopped = self._stopped, True
        self._end(ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is shutting down"))
        await self._peers.close()
        return not was_stopped and self._loop is not None and await self._close_log()

    def on_directory_failed(self) -> None:
        """The log directory that holds the metadata log is offline. Resign now, so that others elect; stop soon.

        Nothing waits for the disk any more. A vote that is being persisted is never told.
        """
        self._directory_failed = True
        if self._loop is not None and not self._stopped:
            self._loop.give_up_disk()

    async def handle(self, context: Context, request: Any) -> Any:
        """Answer a request of the quorum, one of `ReceivedRequest`."""
        if self._loop is None or self._stopped:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is starting or shutting down")
        if isinstance(request, VoteRequest):
            self._peers.approach(request.candidate_id)  # it may lead soon; opening takes its time beside the disk's
        self._check_cluster(request)
        checked = check_request(context.peer, request)
        if isinstance(checked, DescribeQuorumRequest):
            await self.confirm_leadership()
        response = await self._asks.ask(lambda token: RequestReceived(token, checked))
        if isinstance(response, DescribeQuorumResponse):
            return replace(response, cluster_id=self._cluster_id)
        return response

    def _check_cluster(self, request: Any) -> None:
        """Raises ApiError."""
        if not isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            return
        if request.cluster_id not in ("", self._cluster_id):
            text = f"this is the cluster {self._cluster_id}, the request is for {request.cluster_id}"
            raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)

    def _make_raft(self, opened: OpenedMetadata) -> Raft:
        log = opened.log
        return Raft(
            key=self._key,
            voters=self._voters,
            config=self._config,
            rng=self._rng,
            log=LogState(
                start=log.start_offset,
                end=log.end_offset,
                epochs=log.epochs.entries,
                snapshots=[one.id for one in opened.snapshots.stored],
            ),
            saved=opened.state,
            is_whole=not opened.lost_before,
            membership=replace(self._membership, records=opened.members, has_joined=opened.has_joined),
        )

    # --- snapshots ---

    def _make_store(self, opened: OpenedMetadata) -> SnapshotStore:
        return SnapshotStore(
            disk=self._directory.disk,
            worker=self._directory.worker,
            rng=self._rng,
            on_error=self._fail,
            stored=opened.snapshots.stored,
            damaged=len(opened.snapshots.damaged),
        )

    def _make_own_snapshots(self, store: SnapshotStore) -> OwnSnapshots:
        return OwnSnapshots(
            store=store,
            log=self._log,
            config=self._snapshot_config,
            clock=self._clock,
            slices=self._slices,
            voters_at=self._voters_at,
            delivered=lambda: self.announcements.delivered,
            applied=lambda: self.announcements.applied,
            step=self._step,
            on_error=self._fail,
        )

    def _endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        """Where a node of the quorum listens, as far as this one knows."""
        return (self._voters if self.core is None else self.core).endpoint_of(node_id)

    def _voters_at(self, offset: Offset) -> tuple[KRaftVersion | None, Voters | None]:
        assert self.core is not None
        return self.core.voter_records_at(offset)

    def _step(self, event: RaftEvent) -> None:
        if self._loop is not None:
            self._loop.step(event)

    def _on_dead(self, node_id: NodeId, epoch: Epoch) -> None:
        if self._loop is not None:
            self._loop.step(PeerProvenDead(node_id, epoch))

    # --- the end ---

    async def _close_log(self) -> bool:
        """Returns False if the log was not closed; the next start recovers it."""
        if self._directory_failed:
            return False
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        try:
            self._log.close(lambda outcome: settle(done, outcome))
        except (WorkerFull, WorkerClosed):
            return False
        return (await done).error is None

    def _fail(self, error: Exception) -> None:
        """Announce and answer nothing more, and stop the node."""
        if self._stopped or (self._directory_failed and isinstance(error, DirectoryOffline)):
            return
        self.errors += 1
        if isinstance(error, UnsupportedMetadata | LogUnreadable):
            self.announcements.end()
            if isinstance(error, LogUnreadable):
                self.on_directory_failed()
            self._on_fatal(str(error))
            return
        self._stopped = True
        self._end(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"node {self.node_id} has failed"))

        async def fail() -> None:
            raise error

        self._nursery.start(fail(), "the quorum's driver")

    def _end(self, error: ApiError) -> None:
        """End driver and loop. error: for the requests that wait."""
        if self._loop is not None:
            self._loop.stop()
        self.announcements.end()
        if self._own_snapshots is not None:
            self._own_snapshots.stop()
        self._asks.fail(error)
