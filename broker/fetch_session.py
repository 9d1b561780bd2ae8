"""One incremental fetch session (KIP-227): what a reader asks for, and what it was told of each partition last. Pure.

A reader names its partitions once; later requests name only what changes, and answers tell only what has changed. Both
sides count requests in an epoch, so that neither works on a state that the other has not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset, Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest

FULL_EPOCH, FINAL_EPOCH = 0, -1  # of a request: begin a session; no session, and end the one that is named
NO_SESSION = 0
MAX_EPOCH = 2**31 - 1
MAX_PARTITIONS = 100_000  # of one session

Topic = Uuid | str
Key = tuple[Topic, int]
Wanted = tuple[Topic, FetchPartition]
Answered = tuple[Topic, FetchPartitionResponse]


def next_epoch(epoch: int) -> int:
    """1 follows the largest: 0 and below mean something else."""
    return 1 if epoch >= MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class _Known:
    """What the reader asks of one partition, and what it knows: -1 nothing."""

    wanted: FetchPartition
    high_watermark: Offset = -1
    log_start: Offset = -1


@dataclass(slots=True, eq=False)
class FetchSession:
    """epoch: of the next request. by_id: topics are named by their ids. of_replica: a follower's."""

    id: int
    by_id: bool
    of_replica: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    _partitions: dict[Key, _Known] = field(default_factory=dict)  # in the order in which they are looked at

    def __len__(self) -> int:
        return len(self._partitions)

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        """Take a request's changes. Raises ApiError(INVALID_REQUEST): nothing was changed."""
        changes = [((topic, partition.index), partition) for topic, partition in wanted]
        added = sum(key not in self._partitions for key, _ in changes)
        if len(self) + added > MAX_PARTITIONS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"a fetch session holds at most {MAX_PARTITIONS} partitions")
        for key, partition in changes:
            known = self._partitions.setdefault(key, _Known(partition))
            known.wanted = partition
        for key in forgotten:
            self._partitions.pop(key, None)

    def wanted(self) -> list[Wanted]:
        return [(topic, known.wanted) for (topic, _), known in self._partitions.items()]

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
