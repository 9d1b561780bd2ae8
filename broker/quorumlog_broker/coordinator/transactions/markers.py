"""Markers on their way to the leaders of partitions: a lane for each leader, one request to each at a time.

Of all coordinators of a node, since transactions of many ids end on the same leaders. A marker is sent again until its
leader has confirmed it, at the leader that the metadata names then (Kafka's TransactionMarkerChannelManager).

1. The Prepare record is the durable state, so nothing needs to be remembered of a decided transaction but its id.
2. A lane holds `max_pending` markers at most. Behind them transactions wait as ids, for each leader apart: one that is
   away holds up what goes to it, and neither the transactions of others nor the other markers of the same ones.
3. As long as a marker of a transaction is not confirmed, the marker is in its lane, or the id of the transaction waits
   in one: whatever the next look at that id finds missing is sent then.
4. `due` and `answered` work in slices; the owner lets the loop have a turn in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple, Protocol

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.transactions import TransactionMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from quorumlog_broker.coordinator.transactions.marker_lanes import RETRY_MS, Lane, Marker, Owner, Work
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition, by_topic
from quorumlog_broker.produce.transactional import EndTransaction

MAX_MARKERS = 250  # of one request: 1 ms to make, some tens of kB
TRANSACTIONS_A_TURN = 32  # that are looked at
PARTITIONS_A_TURN = 256  # of these
RESULTS_A_TURN = 64  # of an answer: each may complete a transaction
TAKEN_AT_ONCE = 16  # of one coordinator, before the next has its turn

STOPS = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""A newer coordinator or producer is there. Every other error may pass."""


class Source(Protocol):
    """A coordinator; see `TransactionShard`.

    It keeps an arrow from running up: `quorumlog_broker.coordinator.runtime`, which has `TransactionCoordinator`,
    stands on this room.
    """

    @property
    def has_decided(self) -> bool: ...

    def take_decided(self, limit: int) -> Sequence[DecidedTransaction]: ...

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None: ...


class MarkerRequest(NamedTuple):
    """number: for `answered` and `failed`."""

    number: int
    broker: NodeId
    message: WriteTxnMarkersRequest


class MarkerResult(NamedTuple):
    """For the coordinator that owns the marker: `marker_written`, or `marker_refused`."""

    marker: Marker
    is_written: bool


class _Look(NamedTuple):
    """A transaction whose missing markers find their lanes. lane: in which it has waited; None: in none."""

    work: Work
    ending: EndTransaction
    partitions: Iterator[Partition]
    lane: Lane | None


class MarkerQueues:
    """leader_of: None while a partition has no leader. partition_exists: in this broker's metadata, which is not older
    than the leadership of any coordinator here: a partition that is not there was deleted, and needs no marker.
    max_pending: markers that are under way to one leader.

    waited: how often a transaction found a lane full.
    """

    def __init__(
        self,
        leader_of: Callable[[str, int], NodeId | None],
        partition_exists: Callable[[str, int], bool],
        max_pending: int,
    ) -> None:
        self._leader_of, self._exists, self._max_pending = leader_of, partition_exists, max_pending
        self._sources: dict[Owner, Source] = {}  # those that lead
        self._offering: deque[Owner] = deque()  # they have decided what was not taken, by turns
        self._looks: deque[_Look] = deque()  # what was taken of them
        self._interrupted: _Look | None = None  # by the end of a slice
        self._lanes: dict[NodeId | None, Lane] = {}
        self._held: dict[Work, dict[Partition, Marker]] = {}  # what is in a lane, and answers that are being told
        self._in_flight: dict[int, tuple[Lane, tuple[Marker, ...]]] = {}
        self._numbers = count(1)
        self.waited = 0

    def __len__(self) -> int:
        """Markers under way, and transactions and coordinators that wait. 0: nothing is left to do."""
        waiting = sum(len(lane.waiting) + len(lane.retrying) for lane in self._lanes.values())
        looks = len(self._looks) + (self._interrupted is not None)
        return sum(map(len, self._held.values())) + waiting + looks + len(self._offering)

    def is_under_way(self, work: Work) -> bool:
        """It was taken, and a marker of it is in a lane, or it waits for one: rule 3."""
        looks = [*self._looks] if self._interrupted is None else [*self._looks, self._interrupted]
        lines = [line for lane in self._lanes.values() for line in (lane.waiting, lane.retrying)]
        return work in self._held or any(one.work == work for one in looks) or any(work in line for line in lines)

    # --- who has something to send ---

    def offer(self, owner: Owner, source: Source) -> bool:
        """It has decided transactions. False: that was known. Its earlier leader epochs count no more."""
        for former in [one for one in self._sources if one.coordinator == owner.coordinator and one != owner]:
            self.remove(former)
        self._sources[owner] = source
        if owner in self._offering:
            return False
        self._offering.append(owner)
        return True

    def remove(self, owner: Owner) -> None:
        """It leads no more: the next leader sends its markers. An answer that comes yet tells nobody anything."""
        if self._sources.pop(owner, None) is None:
            return
        if owner in self._offering:
            self._offering.remove(owner)
        self._looks = deque(one for one in self._looks if one.work.owner != owner)
        if self._interrupted is not None and self._interrupted.work.owner == owner:
            self._interrupted = None
        self._held = {work: markers for work, markers in self._held.items() if work.owner != owner}
        for lane in self._lanes.values():
            lane.waiting.remove(owner)
            lane.retrying.remove(owner)
            lane.queue = deque(one for one in lane.queue if one.work.owner != owner)

    # --- sending ---

    def due(self, now_ms: int) -> tuple[list[MarkerRequest], list[MarkerResult]]:
        """One slice: requests to send now, and markers that are not needed any more. `next_ms` tells whether to come
        again at once."""
        results: list[MarkerResult] = []
        left = PARTITIONS_A_TURN
        for _ in range(TRANSACTIONS_A_TURN):
            look = self._next_look(now_ms) if left else None
            if look is None:
                break
            for partition in look.partitions:
                left -= 1
                self._place(look, partition, now_ms, results)
                if not left:
                    self._interrupted = look
                    break
        return self._requests(now_ms), results

    def _next_look(self, now_ms: int) -> _Look | None:
        if self._interrupted is not None:
            look, self._interrupted = self._interrupted, None
            return self._resumed(look)
        if self._looks:
            return self._looks.popleft()
        for lane in self._lanes.values():
            lane.end_waits(now_ms, MAX_MARKERS)
            while lane.waiting and lane.has_room(now_ms):
                work = lane.waiting.pop()
                decided = self._sources[work.owner].unconfirmed(work.transactional_id)
                if decided is not None:
                    return _Look(work, decided.ending, iter(decided.partitions), lane)
        while self._offering and not self._looks:
            self._take()
        return self._looks.popleft() if self._looks else None

    def _resumed(self, look: _Look) -> _Look:
        """Some of its markers were sent in an earlier slice, and may be confirmed since."""
        decided = self._sources[look.work.owner].unconfirmed(look.work.transactional_id)
        missing = frozenset(() if decided is None else decided.partitions)
        return look._replace(partitions=iter([one for one in look.partitions if one in missing]))

    def _take(self) -> None:
        """The coordinator writes records meanwhile, so it may even have been removed."""
        owner = self._offering.popleft()
        source = self._sources[owner]
        taken = source.take_decided(TAKEN_AT_ONCE)
        if self._sources.get(owner) is source:
            for one in taken:
                self._looks.append(_Look(Work(owner, one.transactional_id), one.ending, iter(one.partitions), None))
            if source.has_decided:
                self.offer(owner, source)

    def _place(self, look: _Look, partition: Partition, now_ms: int, results: list[MarkerResult]) -> None:
        work = look.work
        held = self._held.get(work)
        if held is not None and partition in held:
            return
        marker = Marker(work, look.ending, partition)
        if not self._exists(*partition):
            results.append(MarkerResult(marker, is_written=True))
            return
        lane = self._lane(self._leader_of(*partition))
        if lane is not look.lane and (work in lane.waiting or work in lane.retrying):
            return
        if lane.leader is None:
            lane.retry(work, now_ms)
        elif lane.has_room(now_ms) and (lane is look.lane or not lane.waiting):  # nobody overtakes
            self._held.setdefault(work, {})[partition] = marker
            lane.queue.append(marker)
        else:
            self.waited += 1
            lane.waiting.add(work)

    def _lane(self, leader: NodeId | None) -> Lane:
        lane = self._lanes.get(leader)
        if lane is None:
            lane = self._lanes[leader] = Lane(leader, self._max_pending)
        return lane

    def _requests(self, now_ms: int) -> list[MarkerRequest]:
        """Those of other leaders follow in the next slice, once these have as many markers as one may have."""
        found: list[MarkerRequest] = []
        markers = 0
        for lane in self._lanes.values():
            if markers < MAX_MARKERS and lane.may_send(now_ms):
                found.append(self._request(lane))
                markers += len(lane.in_flight)
        return found

    def _request(self, lane: Lane) -> MarkerRequest:
        assert lane.leader is not None
        number = next(self._numbers)
        lane.in_flight = tuple(lane.queue.popleft() for _ in range(min(MAX_MARKERS, len(lane.queue))))
        self._in_flight[number] = lane, lane.in_flight
        partitions: dict[EndTransaction, list[Partition]] = {}
        for marker in lane.in_flight:
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
        return MarkerRequest(number, lane.leader, message)

    def next_ms(self) -> int | None:
        """When `due` has something to do; None: not before an answer or another transaction."""
        if self._looks or self._offering or self._interrupted is not None:
            return 0
        return min((at_ms for lane in self._lanes.values() if (at_ms := lane.next_ms()) is not None), default=None)

    # --- what came back ---

    def answered(self, number: int, response: WriteTxnMarkersResponse, now_ms: int) -> Iterator[list[MarkerResult]]:
        """In slices, each to be told before the next is taken: a marker is held until its coordinator knows of it, for
        one that is sent twice may be late for its transaction. A marker that the answer does not name is sent again.
        """
        codes = {
            (marker.producer_id, topic.name, one.index): one.error_code
            for marker in response.markers
            for topic in marker.topics
            for one in topic.partitions
        }
        lane, markers = self._ended(number)
        for start in range(0, len(markers), RESULTS_A_TURN):
            results: list[MarkerResult] = []
            for marker in markers[start : start + RESULTS_A_TURN]:
                code = codes.get((marker.ending.producer_id, *marker.partition), ErrorCode.NETWORK_EXCEPTION)
                if not self._let_go(marker):
                    continue
                if code == ErrorCode.NONE or code in STOPS:
                    results.append(MarkerResult(marker, is_written=code == ErrorCode.NONE))
                else:
                    lane.retry(marker.work, now_ms)
            yield results

    def failed(self, number: int, now_ms: int) -> None:
        """No answer came. The markers may have been written or not."""
        lane, markers = self._ended(number)
        for marker in markers:
            if self._let_go(marker):
                lane.retry(marker.work, now_ms)
        lane.paused_until_ms = now_ms + RETRY_MS

    def _ended(self, number: int) -> tuple[Lane, tuple[Marker, ...]]:
        lane, markers = self._in_flight.pop(number)
        lane.in_flight = ()
        return lane, markers

    def _let_go(self, marker: Marker) -> bool:
        """False: of a coordinator that led here when it was sent."""
        held = self._held.get(marker.work)
        if held is None or held.get(marker.partition) is not marker:
            return False
        del held[marker.partition]
        if not held:
            del self._held[marker.work]
        return True
