"""Markers on their way to the leaders of partitions: one queue for each leader, one request to each at a time.

Of all coordinators of a node, since transactions of many ids end on the same leaders. A marker is sent again until its
leader has confirmed it, at the leader that the metadata names then (Kafka's TransactionMarkerChannelManager). What is
not confirmed is not forgotten, so the queues are as long as the open transactions of the node have partitions.

The owner calls `due`, sends what it gives, and tells the answer or the failure of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple

from broker.coordinator.transactions.completion import DecidedTransaction
from broker.coordinator.transactions.table import Partition, by_topic
from broker.produce.transactional import EndTransaction
from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, NodeId
from quorumlog.messages.transactions import TransactionMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse

RETRY_MS = 100
MAX_MARKERS = 5_000  # of one request: 0.1 MB where the names are short, 1.3 MB at most

STOPS = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""A newer coordinator or producer is there. Every other error may pass."""


class Owner(NamedTuple):
    """A coordinator: its partition of `__transaction_state`, and the leader epoch in which it leads that."""

    coordinator: int
    leader_epoch: Epoch


class Marker(NamedTuple):
    owner: Owner
    transactional_id: str
    ending: EndTransaction
    partition: Partition


class MarkerRequest(NamedTuple):
    """number: for `answered` and `failed`."""

    number: int
    broker: NodeId
    message: WriteTxnMarkersRequest


class MarkerResult(NamedTuple):
    """For the coordinator that owns the marker: `marker_written`, or `marker_refused`."""

    marker: Marker
    is_written: bool


class MarkerQueues:
    """leader_of: None while a partition has no leader. partition_exists: in this broker's metadata, which is not older
    than the leadership of any coordinator here: a partition that is not there was deleted, and needs no marker.
    """

    def __init__(
        self, leader_of: Callable[[str, int], NodeId | None], partition_exists: Callable[[str, int], bool]
    ) -> None:
        self._leader_of, self._exists = leader_of, partition_exists
        self._epochs: dict[int, Epoch] = {}  # of the owners that lead
        self._queues: dict[NodeId, dict[Marker, None]] = {}
        self._in_flight: dict[int, tuple[NodeId, tuple[Marker, ...]]] = {}
        self._retries: list[tuple[int, int, Marker]] = []
        self._order = count()
        self._numbers = count(1)

    def __len__(self) -> int:
        """Markers that are not confirmed."""
        waiting = sum(len(queue) for queue in self._queues.values()) + len(self._retries)
        return waiting + sum(len(markers) for _, markers in self._in_flight.values())

    # --- what has to be sent ---

    def add(self, owner: Owner, decided: DecidedTransaction) -> None:
        """The owner's earlier leader epochs count no more."""
        if self._epochs.get(owner.coordinator) != owner.leader_epoch:
            self._epochs[owner.coordinator] = owner.leader_epoch
            self._drop_disowned()
        for partition in sorted(decided.partitions):
            self._retry(Marker(owner, decided.transactional_id, decided.ending, partition), 0)

    def remove(self, owner: Owner) -> None:
        """It leads no more: the next leader sends its markers."""
        if self._epochs.get(owner.coordinator) == owner.leader_epoch:
            del self._epochs[owner.coordinator]
            self._drop_disowned()

    def _drop_disowned(self) -> None:
        for queue in self._queues.values():
            for marker in [one for one in queue if not self._is_owned(one)]:
                del queue[marker]
        self._retries = [one for one in self._retries if self._is_owned(one[2])]
        self._retries.sort()

    def _is_owned(self, marker: Marker) -> bool:
        return self._epochs.get(marker.owner.coordinator) == marker.owner.leader_epoch

    def _retry(self, marker: Marker, at_ms: int) -> None:
        heappush(self._retries, (at_ms, next(self._order), marker))

    # --- sending ---

    def due(self, now_ms: int) -> tuple[list[MarkerRequest], list[MarkerResult]]:
        """Requests to send now, and markers that are not needed any more."""
        results = list(self._place(now_ms))
        busy = {broker for broker, _ in self._in_flight.values()}
        return [
            self._request(broker) for broker, queue in self._queues.items() if queue and broker not in busy
        ], results

    def _place(self, now_ms: int) -> Iterator[MarkerResult]:
        again: list[Marker] = []
        while self._retries and self._retries[0][0] <= now_ms:
            marker = heappop(self._retries)[2]
            if not self._exists(*marker.partition):
                yield MarkerResult(marker, is_written=True)
                continue
            leader = self._leader_of(*marker.partition)
            if leader is None:
                again.append(marker)
            else:
                self._queues.setdefault(leader, {})[marker] = None
        for marker in again:
            self._retry(marker, now_ms + RETRY_MS)

    def _request(self, broker: NodeId) -> MarkerRequest:
        queue, number = self._queues[broker], next(self._numbers)
        markers = tuple(islice(queue, MAX_MARKERS))
        for marker in markers:
            del queue[marker]
        self._in_flight[number] = broker, markers
        partitions: dict[EndTransaction, list[Partition]] = {}
        for marker in markers:
            partitions.setdefault(marker.ending, []).append(marker.partition)
        message = WriteTxnMarkersRequest(
            markers=tuple(
                TransactionMarker(
                    producer_id=ending.producer_id,
                    producer_epoch=ending.producer_epoch,
                    committed=ending.committed,
                    topics=by_topic(found),
                    coordinator_epoch=ending.coordinator_epoch,
                    transaction_version=ending.transaction_version,
                )
                for ending, found in partitions.items()
            )
        )
        return MarkerRequest(number, broker, message)

    def next_ms(self) -> int | None:
        """When `due` has something to do; None: not before an answer or another transaction."""
        busy = {broker for broker, _ in self._in_flight.values()}
        if any(queue and broker not in busy for broker, queue in self._queues.items()):
            return 0
        return self._retries[0][0] if self._retries else None

    # --- what came back ---

    def answered(self, number: int, response: WriteTxnMarkersResponse, now_ms: int) -> list[MarkerResult]:
        """A marker that the answer does not name is sent again."""
        codes = {
            (marker.producer_id, topic.name, one.index): one.error_code
            for marker in response.markers
            for topic in marker.topics
            for one in topic.partitions
        }
        results: list[MarkerResult] = []
        for marker in self._in_flight.pop(number)[1]:
            code = codes.get((marker.ending.producer_id, *marker.partition), ErrorCode.NETWORK_EXCEPTION)
            if not self._is_owned(marker):
                continue
            if code == ErrorCode.NONE or code in STOPS:
                results.append(MarkerResult(marker, is_written=code == ErrorCode.NONE))
            else:
                self._retry(marker, now_ms + RETRY_MS)
        return results

    def failed(self, number: int, now_ms: int) -> None:
        """No answer came. The markers may have been written or not."""
        for marker in self._in_flight.pop(number)[1]:
            if self._is_owned(marker):
                self._retry(marker, now_ms + RETRY_MS)
