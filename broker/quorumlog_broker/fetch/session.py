"""One incremental fetch session (KIP-227): what a reader asks for, and what it knows of each partition. Pure.

A reader names its partitions once; later requests name only what changes, and responses hold only what has changed.
Both sides count requests in an epoch, so that neither works on a state that the other does not have.

A session by topic id learns what happens to its partitions (`changed`), and its requests read only those that are not
caught up: a request costs what it names and what has changed, not what the session holds. Invariant: a partition that
is CAUGHT_UP leaves this state with the first event that could change its response, or what the leader concludes from
a fetch of it. For a CAUGHT_UP partition each request of the session counts as a fetch from where its reader stands.
`cached_partition.py` has the states; this module keeps the order of service.

A session by topic name (clients before version 13) reads all its partitions with each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, ReplicaState
from quorumlog.topic_name import MAX_NAME_CHARACTERS
from quorumlog_broker.fetch.cached_partition import (
    IN_REQUEST,
    NO_FETCH_MS,
    TO_READ,
    CachedPartition,
    Happened,
    ReadState,
    answered,
)
from quorumlog_broker.fetch.targets import FetchTarget, Key, TopicResponse, is_too_long

FULL_EPOCH, FINAL_EPOCH = 0, -1  # of a request: begin a session; use no session, and end the named one
NO_SESSION = 0
MAX_EPOCH = 2**31 - 1
MAX_PARTITIONS = 100_000  # of one session


_Queue = dict[Key, CachedPartition]  # in an order that matters
_CAUGHT_UP, _DIRTY = ReadState.CAUGHT_UP, ReadState.DIRTY
_CHANGED, _OVERTAKEN = Happened.CHANGED, Happened.OVERTAKEN
_FIRST_READ, _NEXT_READ = Happened.FIRST_READ, Happened.NEXT_READ


def next_epoch(epoch: int) -> int:
    """1 follows the largest epoch: 0 and below mean something else."""
    return 1 if epoch >= MAX_EPOCH else epoch + 1


@dataclass(slots=True, eq=False)
class FetchSession:
    """epoch: of the next request. by_id: topics are named by their ids. replica: the follower whose session it is; None
    for a consumer's. used_ms: when its last request arrived.

    wake: set while a request waits; called when something has changed, or the request was overtaken.
    """

    id: int
    by_id: bool
    replica: ReplicaState | None
    created_ms: int
    used_ms: int
    epoch: int = 1
    wake: Callable[[], None] | None = None
    _partitions: _Queue = field(default_factory=dict)  # by name: in the order of service
    _to_read: _Queue = field(default_factory=dict)  # DIRTY and STALE, in the order of service
    _in_request: _Queue = field(default_factory=dict)  # READ, STALE, REREAD, in the order of the response

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._partitions)

    @property
    def of_replica(self) -> bool:
        return self.replica is not None

    @property
    def targets(self) -> list[FetchTarget]:
        """All partitions, in the order of service of a session by name."""
        return [cached.target for cached in self._partitions.values()]

    # --- a request: update, begin_read, read_changed as often as it is woken, answer

    def check_added(self, keys: Sequence[Key]) -> int:
        """How many of `keys` are new to the session. Raises ApiError(INVALID_REQUEST): too many for one session, or
        names that no topic has."""
        added = sum(key not in self._partitions for key in keys)
        if len(self) + added > MAX_PARTITIONS:
            text = f"a fetch session holds at most {MAX_PARTITIONS} partitions, not {len(self) + added}; use several"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if added and any(map(is_too_long, keys)):
            text = f"a fetch session holds no topic with a name of more than {MAX_NAME_CHARACTERS} characters"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        return added

    def update(self, named: Iterable[FetchTarget], forgotten: Iterable[Key]) -> None:
        """Take over what a request changes; `check_added` has allowed it. A request before it was overtaken."""
        self._overtake()
        for target in named:
            self._name(target)
        for key in forgotten:
            self._partitions.pop(key, None)
            self._to_read.pop(key, None)

    def begin_read(self) -> None:
        """The request reads all that is DIRTY."""
        for cached in self._to_read.values():
            cached.step(_FIRST_READ)
        self._in_request, self._to_read = self._to_read, {}

    def read_changed(self) -> list[FetchTarget]:
        """The request, which has waited, also reads what has changed since it arrived; what that is now."""
        changed = list(self._to_read.values())
        for cached in changed:
            cached.step(_NEXT_READ)
        self._in_request.update(self._to_read)
        self._to_read.clear()
        return [cached.target for cached in changed]

    @property
    def has_changed(self) -> bool:
        """Something has changed that the request has not read yet."""
        return bool(self._to_read)

    @property
    def in_request(self) -> list[FetchTarget]:
        """What the request reads, in the order of its response."""
        return [cached.target for cached in self._in_request.values()]

    def answer(self, responses: Iterable[TopicResponse], has_more: Iterable[bool]) -> None:
        """The request has its responses, one per target of `in_request`, in this order.

        has_more: there is more to read than the reader has, whether or not the response holds it. Order of service of
        the next request: partitions that got nothing, then those that have changed meanwhile, then those that got
        records.
        """
        unserved: _Queue = {}
        served: _Queue = {}
        for (key, cached), (_, response), more in zip(self._in_request.items(), responses, has_more, strict=True):
            assert key[1] == response.index, f"a response to partition {response.index} in place of {key[1]}"
            if cached.step(answered(response, more)) is _DIRTY:
                (served if len(response.records) else unserved)[key] = cached
        self._in_request.clear()
        self._to_read = unserved | self._to_read | served

    def changed(self, key: Key) -> None:
        """Something has happened to a partition of this session that could change its response."""
        cached = self._partitions[key]
        before = cached.state
        if before is _CAUGHT_UP:
            cached.fetched_ms = self.used_ms
        if cached.step(_CHANGED) is not before:
            self._to_read[key] = cached

    def _overtake(self) -> None:
        """The reader got no response to the session's request: nothing that it read counts as known to the reader."""
        for cached in self._in_request.values():
            cached.step(_OVERTAKEN)
        self._to_read = self._in_request | self._to_read
        self._in_request = {}

    def _name(self, target: FetchTarget) -> None:
        key = target.key
        cached = self._partitions.get(key)
        if cached is None or cached.target.partition.current_leader_epoch != target.partition.current_leader_epoch:
            self._partitions[key] = cached = CachedPartition(target)  # what it knew was of another leadership
            if self.by_id:
                self._to_read[key] = cached
            return
        if self.by_id:
            self.changed(key)
        cached.target = target
        if self.of_replica:
            cached.forget_high_watermark()  # it may have truncated without taking the high watermark of the response

    # --- fetches of partitions that a follower's requests do not name ---

    def unnamed_fetches(self) -> Iterator[tuple[Key, FetchPartition, int]]:
        """Each partition with the position and the time (ms) of its last fetch by a request that did not name it."""
        for key, cached in self._partitions.items():
            at_ms = self._unnamed_fetch_ms(cached)
            if at_ms != NO_FETCH_MS:
                yield key, cached.target.partition, at_ms

    def take_unnamed_fetch_ms(self, key: Key) -> int:
        """When a request last counted as a fetch without naming the partition; NO_FETCH_MS: not since the last take, or
        the session does not hold the partition."""
        cached = self._partitions.get(key)
        if cached is None:
            return NO_FETCH_MS
        at_ms = self._unnamed_fetch_ms(cached)
        cached.fetched_ms = NO_FETCH_MS
        return at_ms

    def _unnamed_fetch_ms(self, cached: CachedPartition) -> int:
        return self.used_ms if cached.state is _CAUGHT_UP else cached.fetched_ms

    # --- responses ---

    def update_responses(self, responses: Iterable[TopicResponse]) -> list[TopicResponse]:
        """The responses that have to be sent; the reader counts as knowing all of them from now on."""
        return [(topic, one) for topic, one in responses if self._update_response((topic, one.index), one)]

    def _update_response(self, key: Key, response: FetchPartitionResponse) -> bool:
        cached = self._partitions.get(key)
        if cached is None:
            return True  # forgotten by a request that overtook this response
        if len(response.records) > 0 and not self.by_id:
            del self._partitions[key]  # a partition that got records is served last
            self._partitions[key] = cached
        return cached.update_response(response)

    def check_invariants(self) -> None:
        """Each queue holds exactly the partitions whose states belong to it."""
        states = {key: cached.state for key, cached in self._partitions.items() if self.by_id}
        assert self._to_read.keys() == {key for key, state in states.items() if state in TO_READ}, states
        assert self._in_request.keys() == {key for key, state in states.items() if state in IN_REQUEST}, states
