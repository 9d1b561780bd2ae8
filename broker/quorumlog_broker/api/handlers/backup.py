"""ReadMetadata and HoldCommits (not in Kafka): what a backup asks of a broker (decision 151)."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.backup import (
    CoordinatedPartition,
    HoldCommitsRequest,
    HoldCommitsResponse,
    ReadMetadataRequest,
    ReadMetadataResponse,
)
from quorumlog.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse
from quorumlog.rpc.transport import Context
from quorumlog.slices import Sliced
from quorumlog.turn import in_turns
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.snapshot_records import slices_of
from quorumlog_quorum.snapshots import SnapshotEncoder, SnapshotHeading
from quorumlog_storage.rules.fetch_rule import SnapshotId

MAX_WAIT_MS = 30_000


async def handle_read_metadata(
    services: Services, context: Context, request: ReadMetadataRequest
) -> ReadMetadataResponse:
    """The quorum's leader says what was committed when it was asked: it knows once a majority has followed it since."""
    timeout_ms = min(max(0, request.timeout_ms), MAX_WAIT_MS)
    told: DescribeQuorumResponse = await forward(services.controller_for(context), DescribeQuorumRequest(), timeout_ms)
    if told.error_code:
        return ReadMetadataResponse(error_code=told.error_code, error_message=told.error_message)
    await until_image(services, lambda image: image.offset >= told.high_watermark, timeout_ms)
    image = services.caught_up_image()
    if image.offset < told.high_watermark:
        text = f"broker {services.node_id} is at offset {image.offset} of the metadata, not {told.high_watermark}"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
    return ReadMetadataResponse(offset=image.offset, snapshot=await in_turns(metadata_snapshot(image)))


def metadata_snapshot(image: Image) -> Sliced[bytes]:
    """As a snapshot file of epoch 0."""
    encoder = SnapshotEncoder(SnapshotHeading(id=SnapshotId(image.offset, 0), last_contained_timestamp_ms=0))
    parts = [encoder.begin()]
    for values in slices_of(image):
        parts.append(encoder.values(values))
        yield
    parts.append(encoder.end())
    return b"".join(parts)


async def handle_hold_commits(
    services: Services, _context: Context, request: HoldCommitsRequest
) -> HoldCommitsResponse:
    """is_drained is found out after the hold began, so nothing follows it."""
    gate, coordinators = services.transactions.commits, services.transactions.coordinators
    was_held = gate.hold(request.holder, request.lease_ms)
    coordinators.check_all_taken_up()
    is_drained = gate.inside == 0
    partitions = []
    for index, coordinator in coordinators.all_by_index:
        is_drained = is_drained and not await coordinator.commits_under_way()
        partitions.append(CoordinatedPartition(index=index, leader_epoch=coordinator.leader_epoch))
    return HoldCommitsResponse(
        was_held=was_held,
        is_drained=is_drained,
        partitions=tuple(partitions),
        compaction_paused_ms=services.compactions.paused_ms,
    )
