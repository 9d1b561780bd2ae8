"""WriteTxnMarkers: ends transactions in partitions that this broker leads.

Coordinators send it on the internal listener. A client may abort with it a transaction that hangs, which no coordinator
knows (KIP-664); a commit, or the marker of a producer that has an epoch for each transaction, is a coordinator's alone.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.verifier import EPOCH_PER_TRANSACTION


async def handle_write_txn_markers(
    services: Services, context: Context, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    if not context.listener.internal and any(
        marker.committed or marker.transaction_version >= EPOCH_PER_TRANSACTION for marker in request.markers
    ):
        text = "a client may abort a transaction that hangs, and nothing else: only its coordinator commits it"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    return await services.transactions.markers.write(request)
