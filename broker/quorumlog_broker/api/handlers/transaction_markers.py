"""WriteTxnMarkers: ends transactions in partitions that this broker leads.

Coordinators send it on the internal listener. A client may abort with it a transaction that hangs, which no coordinator
knows (KIP-664); a commit, or the marker of a producer that has an epoch for each transaction, is a coordinator's alone.

A child of a joint transaction is never a client's to end in one partition: the batch would be torn. So all coordinators
are asked. A child that begins after it was asked for has an epoch that is not below the one that its coordinator told,
or a producer id that was never given out before. A marker of a lower epoch, which is all that passes, is refused by the
leader once the child has written, and before that it ends what an earlier child has left there (decision 113).
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import (
    ListedTransaction,
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.verifier import EPOCH_PER_TRANSACTION
from quorumlog_broker.coordinator.transactions.state.table import IDLE, NAMES

MAX_CLIENT_MARKERS = 1_000  # of one request: its producers are looked for among all ids
ENDED = frozenset(NAMES[state] for state in IDLE)


async def handle_write_txn_markers(
    services: Services, context: Context, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    if not context.listener.internal:
        await _check_client(services, request.markers)
    return await services.transactions.markers.write(request)


async def _check_client(services: Services, markers: Sequence[TransactionMarker]) -> None:
    """Raises ApiError: CLUSTER_AUTHORIZATION_FAILED; TRANSACTIONAL_ID_AUTHORIZATION_FAILED of a child;
    COORDINATOR_NOT_AVAILABLE while it is not known whether it is one."""
    if any(marker.committed or marker.transaction_version >= EPOCH_PER_TRANSACTION for marker in markers):
        text = "a client may abort a transaction that hangs, and nothing else: only its coordinator commits it"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    if len(markers) > MAX_CLIENT_MARKERS:
        text = f"{len(markers)} markers in a request; a client may send {MAX_CLIENT_MARKERS}. Send several requests"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    children = await services.transactions.children.among({marker.producer_id for marker in markers})
    for marker in markers:
        child = children.get(marker.producer_id)
        if child is not None and not _has_ended(child, marker.producer_epoch):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _refused(child))


def _has_ended(child: ListedTransaction, epoch: int) -> bool:
    """Its transaction of this epoch has all its markers, and the next one begins above."""
    return child.state in ENDED and epoch < child.producer_epoch


def _refused(child: ListedTransaction) -> str:
    return (
        f"producer {child.producer_id} has {child.transactional_id}, a part of the joint transaction of "
        f"{child.joint_group!r} ({child.state}): a marker in one partition would tear its batch. It ends by its "
        "group's decision or after its own time-out; nothing was written"
    )
