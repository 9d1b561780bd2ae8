"""WriteTxnMarkers: ends transactions in the partitions that this broker leads, each with a result of its own.

All markers are appended before the first is awaited, some in each turn of the loop; so are their results gathered,
which one move of a high watermark may have settled together. A partition of `__consumer_offsets` belongs to the core of
a group coordinator, which has to know what the transaction has committed before its marker is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import (
    TransactionMarker,
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.slices import Pace, Sliced
from quorumlog.turn import in_turns
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.transactional import EndTransaction

OFFSETS_TOPIC = "__consumer_offsets"
MAX_MARKERS = 50_000  # of one request; ours send far fewer (transactions/markers.py)
MARKERS_A_TURN = 128  # begun in one turn of the loop
RESULTS_A_TURN = 512  # gathered in one, and named in the answer
_OF_COORDINATORS = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)

EndInGroups = Callable[[int, EndTransaction], Awaitable[object]]
"""Ends a transaction in a partition of `__consumer_offsets`: begun when it is called, done when it was awaited. Both
raise ApiError."""


class EndMarkers:
    """timeout_ms: how long a marker may wait for the in-sync replicas. The coordinator sends it again then."""

    def __init__(self, path: ProducePath, end_in_groups: EndInGroups, *, timeout_ms: int) -> None:
        self._path, self._end_in_groups, self._timeout_ms = path, end_in_groups, timeout_ms

    async def write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Raises ApiError: INVALID_REQUEST for too many markers."""
        count = sum(len(topic.partitions) for marker in request.markers for topic in marker.topics)
        if count > MAX_MARKERS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{count} markers in a request; {MAX_MARKERS} are allowed")
        begun = await in_turns(self._begin_all(request.markers))
        return await in_turns(_response(request.markers, iter(await _codes(begun))))

    def _begin_all(self, markers: Sequence[TransactionMarker]) -> Sliced[list[Awaitable[object] | ErrorCode]]:
        begun, pace = [], Pace(MARKERS_A_TURN)
        for marker in markers:
            ending = _ending(marker)
            for topic in marker.topics:
                for index in topic.partitions:
                    begun.append(self._begin(ending, topic.name, index))
                    if pace.is_over():
                        yield
        return begun

    def _begin(self, ending: EndTransaction, topic: str, index: int) -> Awaitable[object] | ErrorCode:
        try:
            if topic == OFFSETS_TOPIC:
                return self._end_in_groups(index, ending)
            return self._path.append_end_txn_marker(topic, index, ending, timeout_ms=self._timeout_ms)
        except ApiError as error:
            return _of_leader(error.code)


async def _codes(begun: Sequence[Awaitable[object] | ErrorCode]) -> list[ErrorCode]:
    codes, pace = [], Pace(RESULTS_A_TURN)
    for one in begun:
        codes.append(await _code(one))
        if pace.is_over():
            await asyncio.sleep(0)
    return codes


def _response(markers: Sequence[TransactionMarker], codes: Iterator[ErrorCode]) -> Sliced[WriteTxnMarkersResponse]:
    """codes: in the order of the markers' partitions."""
    written, pace = [], Pace(RESULTS_A_TURN)
    for marker in markers:
        topics = []
        for topic in marker.topics:
            results = []
            for index in topic.partitions:
                results.append(TransactionPartitionResult(index=index, error_code=next(codes)))
                if pace.is_over():
                    yield
            topics.append(TransactionTopicResult(name=topic.name, partitions=tuple(results)))
        written.append(WrittenMarker(producer_id=marker.producer_id, topics=tuple(topics)))
    return WriteTxnMarkersResponse(markers=tuple(written))


async def _code(begun: Awaitable[object] | ErrorCode) -> ErrorCode:
    if isinstance(begun, ErrorCode):
        return begun
    try:
        await begun
    except ApiError as error:
        return _of_leader(error.code)
    return ErrorCode.NONE


def _of_leader(code: ErrorCode) -> ErrorCode:
    """As Kafka's leaders tell it to a coordinator of transactions, which knows no errors of group coordinators."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _OF_COORDINATORS else code


def _ending(marker: TransactionMarker) -> EndTransaction:
    """A tool that aborts tells -1 for the epoch of a coordinator that it does not know; Kafka takes 0 for it."""
    return EndTransaction(
        marker.producer_id,
        marker.producer_epoch,
        marker.committed,
        max(marker.coordinator_epoch, 0),
        marker.transaction_version,
    )
