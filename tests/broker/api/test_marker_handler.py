"""WriteTxnMarkers: what only a coordinator may have written, and what a client may end (KIP-664)."""

from __future__ import annotations

import asyncio

import pytest
from broker_fakes import CLIENT, INTERNAL, FakeContext, Fakes

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import TransactionMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quorumlog.rpc.transport import Listener
from quorumlog_broker.api.handlers import HANDLERS


@pytest.mark.parametrize(
    ("listener", "committed", "version", "is_taken"),
    [
        (CLIENT, False, 0, True),
        (CLIENT, True, 0, False),
        (CLIENT, False, 2, False),
        (INTERNAL, True, 2, True),
        (INTERNAL, False, 0, True),
    ],
)
def test_which_markers_a_client_may_have_written(
    listener: Listener, committed: bool, version: int, is_taken: bool
) -> None:
    """A client that could commit would end the transactions of others."""
    marker = TransactionMarker(
        producer_id=7, producer_epoch=0, committed=committed, coordinator_epoch=-1, transaction_version=version
    )
    request = WriteTxnMarkersRequest(markers=(marker,))

    async def ask() -> WriteTxnMarkersResponse:
        handler = HANDLERS[WriteTxnMarkersRequest]
        response: WriteTxnMarkersResponse = await handler(Fakes().services(), FakeContext(listener=listener), request)
        return response

    if is_taken:
        assert [one.producer_id for one in asyncio.run(ask()).markers] == [7]
        return
    with pytest.raises(ApiError) as refusal:
        asyncio.run(ask())
    assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
