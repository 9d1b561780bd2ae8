"""One incremental fetch session (KIP-227): what a reader asks for, and what it was told of each partition last. Pure.

A reader names its partitions once; later requests name only what changes, and answers tell only what has changed. Both
sides count requests in an epoch, so that neither works on a state that the other has not.

A partition is *settled* when the reader stands at the end of all it may read and was told everything that there is to
tell. Invariant: a settled partition becomes unsettled with the first event that could make its answer, or what the
leader concludes from a fetch of it, another one (`changed`). So a request looks at the unsettled ones only; for the
settled ones a request of the session counts as a fetch from where they stand, at `used_ms` (`heard`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset, Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, ReplicaState

FULL_EPOCH, FINAL_EPOCH = 0, -1  # of a request: begin a session; no session, and end the one that is named
NO_SESSION = 0
MAX_EPOCH = 2**31 - 1
MAX_PARTITIONS = 100_000  # of one session
NOT_HEARD_MS = -1

Topic = Uuid | str
Key = tuple[Topic, int]
Wanted = tuple[Topic, FetchPartition]
Answered = tuple[Topic, FetchPartitionResponse]


def next_epoch(epoch: int) -> int:
    """1 follows the largest: 0 and below mean something else."""
    return 1 if epoch >= MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class _Known:
    """What the reader asks of one partition, and what it knows: -1 nothing.

    heard_ms: the last request at which it was settled, if it has not been since; NOT_HEARD_MS once that was taken.
    """

    wanted: FetchPartition
    high_watermark: Offset = -1
    log_start: Offset = -1
    heard_ms: int = NOT_HEARD_MS


@dataclass(slots=True, eq=False)
class FetchSession:
    """epoch: of the next request. by_id: topics are named by their ids, and it is told what happens to its partitions;
    of one by name, all are looked at each time. replica: whose it is, a consumer's if None.

    wake: set while a request waits for news. Who of the unsettled has waited longest comes first.
    """

    id: int
    by_id: bool
    replica: ReplicaState | None
    created_ms: int
    used_ms: int
    epoch: int = 1
    wake: Callable[[], None] | None = None
    _partitions: dict[Key, _Known] = field(default_factory=dict)  # in the order in which they are looked at
    _unsettled: dict[Key, None] = field(default_factory=dict)
    _looked_at: dict[Key, None] = field(default_factory=dict)  # by the request of now, which has not ended
    _changed_since: dict[Key, None] = field(default_factory=dict)  # it arrived: what it acknowledged may not count

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._partitions)

    @property
    def of_replica(self) -> bool:
        return self.replica is not None

    @property
    def has_news(self) -> bool:
        """Something has changed since the last look."""
        return bool(self._unsettled)

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        """Take a request's changes; `check_added` has let them pass."""
        self._look_again()
        for topic, partition in wanted:
            self._want((topic, partition.index), partition)
        for key in forgotten:
            self._partitions.pop(key, None)
            self._unsettled.pop(key, None)
        self._changed_since.clear()

    def check_added(self, keys: Iterable[Key]) -> int:
        """How many of them it does not hold. Raises ApiError(INVALID_REQUEST): they are too many for one session."""
        added = sum(key not in self._partitions for key in keys)
        if len(self) + added > MAX_PARTITIONS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"a fetch session holds at most {MAX_PARTITIONS} partitions")
        return added

    def _want(self, key: Key, partition: FetchPartition) -> None:
        known = self._partitions.get(key)
        if known is None or known.wanted.current_leader_epoch != partition.current_leader_epoch:
            self._partitions[key] = _Known(partition)  # of another leadership nothing is known
            if self.by_id:
                self._unsettled[key] = None
            return
        if self.by_id:
            self.changed(key)
        known.wanted = partition
        if self.of_replica:
            known.high_watermark = -1  # it may have moved by a cut, without taking what it was told

    def wanted(self) -> list[Wanted]:
        return [(topic, known.wanted) for (topic, _), known in self._partitions.items()]

    # --- what has to be looked at ---

    def changed(self, key: Key) -> None:
        """Something happened to a partition of this session."""
        self._changed_since[key] = None
        if key in self._unsettled:
            return
        if key not in self._looked_at:
            self._partitions[key].heard_ms = self.used_ms
        self._unsettled[key] = None

    def look(self) -> None:
        """The request of now looks at what is unsettled, beside what it has looked at already."""
        self._looked_at.update(self._unsettled)
        self._unsettled.clear()

    def looked_at(self) -> list[Wanted]:
        return [(key[0], self._partitions[key].wanted) for key in self._looked_at]

    def settle(self, answers: Iterable[Answered], behind: Iterable[bool]) -> None:
        """The request ends. behind: there is more to be read. Who got records comes last next time.

        What changed while it waited is looked at, and acknowledged, once more by the next.
        """
        waits: list[Key] = []
        served: list[Key] = []
        for (topic, answer), more in zip(answers, behind, strict=True):
            if more or answer.error_code != ErrorCode.NONE or answer.diverging_epoch is not None:
                (served if len(answer.records) else waits).append((topic, answer.index))
        self._looked_at.clear()
        self._unsettled = dict.fromkeys([*waits, *self._unsettled, *self._changed_since, *served])

    def _look_again(self) -> None:
        """A request that never ended has told nothing."""
        self._unsettled = self._looked_at | self._unsettled
        self._looked_at = {}

    # --- what a follower's requests say of partitions that they do not name ---

    def heard(self) -> Iterator[tuple[Key, FetchPartition, int]]:
        """Of each partition, from where and when it was last fetched as a settled one."""
        for key, known in self._partitions.items():
            at_ms = self._heard_ms(key, known)
            if at_ms != NOT_HEARD_MS:
                yield key, known.wanted, at_ms

    def take_heard_ms(self, key: Key) -> int:
        """When it was last fetched as a settled one; NOT_HEARD_MS: not since it was taken, or not in this session."""
        known = self._partitions.get(key)
        if known is None:
            return NOT_HEARD_MS
        heard_ms = self._heard_ms(key, known)
        known.heard_ms = NOT_HEARD_MS
        return heard_ms

    def _heard_ms(self, key: Key, known: _Known) -> int:
        return known.heard_ms if key in self._unsettled or key in self._looked_at else self.used_ms

    # --- what is told ---

    def told(self, answers: Iterable[Answered]) -> list[Answered]:
        """The answers that the reader must have; it knows them from now on. Who got records is looked at last next."""
        return [(topic, answer) for topic, answer in answers if self._tell((topic, answer.index), answer)]

    def _tell(self, key: Key, answer: FetchPartitionResponse) -> bool:
        known = self._partitions.get(key)
        if known is None:
            return True  # forgotten by a request that overtook this answer
        failed = answer.error_code != ErrorCode.NONE
        news = (
            failed
            or len(answer.records) > 0
            or answer.diverging_epoch is not None
            or answer.preferred_read_replica >= 0
            or answer.high_watermark != known.high_watermark
            or answer.log_start_offset != known.log_start
        )
        known.log_start = answer.log_start_offset
        known.high_watermark = -1 if failed else answer.high_watermark  # the end of an error is news too
        if len(answer.records) > 0:
            del self._partitions[key]
            self._partitions[key] = known
        return news


def wanted_of(request: FetchRequest) -> list[Wanted]:
    """Every partition that the request names, in its order."""
    return [(topic.topic_id or topic.name, partition) for topic in request.topics for partition in topic.partitions]


def forgotten_of(request: FetchRequest) -> list[Key]:
    return [(topic.topic_id or topic.name, index) for topic in request.forgotten for index in topic.partitions]
