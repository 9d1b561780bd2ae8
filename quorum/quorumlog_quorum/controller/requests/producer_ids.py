"""AllocateProducerIds: a block of producer ids for one broker (KIP-730).

The record is committed before the answer leaves. So no id is ever given out twice, whichever node crashes. Ids that a
broker has not used when it stops are lost; there are 2^63.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quorumlog.messages.metadata_records import ProducerIdsRecord
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.requests.broker_epoch import registered

BLOCK_SIZE = 1_000
MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(draft: Draft, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """Raises ApiError for a stale sender."""
    registered(draft.image, request.broker_id, request.broker_epoch)
    first = draft.image.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"producer ids are used up: the next is {first}")
    draft.add(
        ProducerIdsRecord(
            broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
        )
    )
    return AllocateProducerIdsResponse(first_producer_id=first, count=BLOCK_SIZE)
