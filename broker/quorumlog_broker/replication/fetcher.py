"""The fetch loop of a follower: one for each pair of leader broker and own log directory.

A round is one fetch for all partitions of the pair, the appends of its response in one turn of the directory's writer,
and, once these are durable, the next fetch, whose offsets acknowledge them. So a slow disk delays only its own
directory, and a round covers everything that came meanwhile. Fetches belong to a session: a round names, and costs,
only what has moved (`leader_session.py`).

A partition that is added while a fetch waits at the leader cancels that fetch, so that a new leader is asked at once.
The next request then names all positions. Partitions that are added right after it (a new topic, or the partitions of a
leader that died) do not cancel again: for a while fetches wait only GATHER_MS, and each names what was added meanwhile.
(When each of 1,000 partitions that were opened one by one had all others named again, three nodes took 9 s of processor
time.)

While nothing comes, fetches wait ever longer at the leader (`quorumlog/idle_backoff.py`). The leader answers a waiting
fetch at once when something comes, so that costs no latency. It also counts a follower as caught up until its last
fetch only: the longest wait is a part of `replica.lag.time.max.ms`, and the first wait after any news is the usual one,
so that the high watermark of the newest record is known here as soon as ever.

This module decides what a request says; `follower.py` does what the response requires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.idle_backoff import IdleBackoff
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from quorumlog.rpc.transport import Cancel, RpcError
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.turn import Turn
from quorumlog_broker.partition.follower_progress import NEVER_MS
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.throttle import ReplicationThrottle
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_broker.replication.leader_end_point import RemoteLeaderEndPoint
from quorumlog_broker.replication.leader_session import LeaderSession, SessionRequest

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # the next request begins a new session at once

GATHER_MS = 20  # the longest wait of a fetch at the leader while partitions are being added
GATHER_FOR_MS = 500  # for so long after the last one was added


Take = Callable[[FetchPosition, FetchPartitionResponse, Callable[[FetchPosition], None]], None]
"""`Follower.take`"""


class Fetcher:
    """Everything runs on the loop: `add` and `remove` at any time, `stop` once.

    A round has two parts, of which at most one is under way: the fetch, and the appends of its response. What happens
    to a fetcher is noted at once and looked at when the callback of the loop ends (`_go`), so that a round begins after
    all that one turn of the writer has made durable.
    """

    def __init__(
        self,
        *,
        node_id: NodeId,
        leader: RemoteLeaderEndPoint,
        take: Take,
        clock: Clock,
        turn: Turn,
        config: ReplicationConfig,
        broker_epoch: Callable[[], BrokerEpoch],
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """throttle: of what this broker fetches; None: none."""
        self._node_id = node_id
        self._leader = leader
        self._take_one = take
        self._clock = clock
        self._turn = turn
        self._config = config
        self._broker_epoch = broker_epoch
        self._throttle = throttle
        self._positions: dict[PartitionKey, FetchPosition] = {}
        self._session = LeaderSession()
        self._asked: SessionRequest | None = None  # by the fetch under way
        self._taken: list[FetchPosition] = []  # of the last response
        self._added = False  # since the last request was made
        self._gathers_until_ms = 0
        self._gathers = False  # partitions were being added when the fetch under way was made
        self._is_fetching = self._is_due = self._stopped = False
        self._cancel: Cancel | None = None  # of the fetch under way
        self._timer: asyncio.TimerHandle | None = None  # of the next end of a backoff
        self.heard_ms = NEVER_MS  # when the leader has last answered, with no error of the whole fetch
        self._rest = IdleBackoff(config.fetch_wait_max_ms, max(config.fetch_wait_max_ms, config.fetch_rest_max_ms))

    def __len__(self) -> int:
        return len(self._positions)

    def max_lag(self) -> int:
        """Any thread may ask."""
        return max([position.lag for position in list(self._positions.values())], default=0)

    def add(self, position: FetchPosition) -> None:
        self._positions[position.key] = position
        self._session.touch(position.key)
        self._added = True
        self._gathers_until_ms = self._clock.now_ms() + GATHER_FOR_MS
        self._go_soon()

    def remove(self, key: PartitionKey) -> None:
        """A response that is on its way, or being written, does not move the position any more."""
        self._positions.pop(key, None)
        self._session.touch(key)
        self._go_soon()

    def stop(self) -> None:
        """Give up the fetch under way, and begin no other."""
        self._stopped = True
        self._give_up()
        self._cancel_timer()

    # --- the rounds ---

    def _go_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._turn.later(self._go)

    def _go(self) -> None:
        """Begin the next round, unless one is under way."""
        self._is_due = False
        if self._stopped:
            return
        if self._is_fetching:
            if self._gathers or not self._added:
                return
            self._give_up()
            self._session.restart()
            self._rest.news()
        elif self._is_writing:
            return
        self._begin_round()

    def _begin_round(self) -> None:
        self._added = False
        self._taken.clear()
        self._cancel_timer()
        now_ms = self._clock.now_ms()
        self._hold_back(now_ms)
        request = self._session.next_request(self._positions, now_ms, self._broker_epoch())
        if request is None:
            self._go_after_backoff(now_ms)
            return
        self._gathers = now_ms < self._gathers_until_ms
        message = self._message(request, now_ms)
        self._is_fetching, self._asked = True, request
        cancel = self._leader.fetch(message, message.max_wait_ms + self._config.rpc_timeout_ms, self._ended)
        if self._is_fetching:
            self._cancel = cancel

    def _hold_back(self, now_ms: int) -> None:
        """Leave out, until the throttle has something left, what it holds back; like a position that backs off."""
        if self._throttle is None or not self._throttle.is_on:
            return
        for position in self._positions.values():
            held_ms = self._throttle.held_back_ms(position.key, self._node_id) if position.is_ready(now_ms) else 0
            if held_ms:
                position.not_before_ms = now_ms + held_ms
                self._session.touch(position.key)

    @property
    def _is_writing(self) -> bool:
        """Something of this round is being written; positions that were removed meanwhile do not count."""
        return any(one.busy and self._positions.get(one.key) is one for one in self._taken)

    def _give_up(self) -> None:
        cancel, self._cancel, self._is_fetching = self._cancel, None, False
        if cancel is not None:
            cancel()

    def _go_after_backoff(self, now_ms: int) -> None:
        waits_ms = [position.not_before_ms for position in self._positions.values() if not position.busy]
        if waits_ms:
            delay_s = max(0, min(waits_ms) - now_ms) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._go_soon)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- the request ---

    def _message(self, request: SessionRequest, now_ms: int) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=self._longest_wait_ms(now_ms) if request.may_wait else 0,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_response_max_bytes,
            topics=self._topics(request.named),
            replica=ReplicaState(replica_id=self._node_id, broker_epoch=self._broker_epoch()),
            session_id=request.session_id,
            session_epoch=request.epoch,
            forgotten=_forgotten_topics(request.forgotten),
        )

    def _topics(self, named: Sequence[FetchPosition]) -> tuple[FetchTopic, ...]:
        topics: dict[Uuid, list[FetchPartition]] = {}
        for position in named:
            topics.setdefault(position.key[0], []).append(
                FetchPartition(
                    index=position.key[1],
                    fetch_offset=position.offset,
                    max_bytes=self._config.fetch_max_bytes,
                    current_leader_epoch=position.leader_epoch,
                    last_fetched_epoch=position.last_epoch,
                    log_start_offset=position.log_start,
                )
            )
        return tuple(FetchTopic(topic_id=topic, partitions=tuple(parts)) for topic, parts in topics.items())

    def _longest_wait_ms(self, now_ms: int) -> int:
        """At most until the next position that backs off may be fetched; less while partitions are being added."""
        touched = [self._positions[key] for key in self._session.touched if key in self._positions]
        waits_ms = [one.not_before_ms - now_ms for one in touched if one.not_before_ms > now_ms]
        return min([self._rest.interval_ms, *([GATHER_MS] if self._gathers else []), *waits_ms])

    def _back_off_all(self) -> None:
        now_ms = self._clock.now_ms()
        for position in self._positions.values():
            if position.is_ready(now_ms):
                position.back_off(now_ms, self._config.fetch_backoff_ms)

    # --- the response ---

    def _ended(self, response: FetchResponse | None, error: Exception | None) -> None:
        self._is_fetching, self._cancel = False, None
        if error is not None and not isinstance(error, RpcError):
            raise error  # a mistake of ours: the loop's handler stops the node
        accepted = self._accepted(response)
        self._note(accepted)
        if accepted is not None:
            self._taken = self._take(accepted)
        if not self._is_writing:
            self._go_soon()

    def _note(self, response: FetchResponse | None) -> None:
        """A round is quiet if neither side had anything to say."""
        asked, self._asked = self._asked, None
        if response is None or response.topics or asked is None or asked.named or asked.forgotten:
            self._rest.news()
        else:
            self._rest.quiet()

    def _accepted(self, response: FetchResponse | None) -> FetchResponse | None:
        if response is not None and response.error_code == ErrorCode.NONE:
            self.heard_ms = self._clock.now_ms()
            self._session.answered(response.session_id)
            return response
        self._session.restart()
        if response is None or response.error_code not in SESSION_ERRORS:
            self._back_off_all()
        return None

    def _take(self, response: FetchResponse) -> list[FetchPosition]:
        """Hand the partitions of the response to the sink. Returns their positions."""
        taken = []
        for topic in response.topics:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.index)
                position = self._positions.get(key)
                if position is None or self._session.position_of(key) is not position:
                    continue  # the answer is for an older leadership
                self._session.touch(key)
                if len(answer.records):
                    self._rotate(position)
                if self._throttle is not None and self._throttle.is_on:
                    self._throttle.spend(key, self._node_id, len(answer.records))
                self._take_one(position, answer, self._done)
                taken.append(position)
        return taken

    def _rotate(self, position: FetchPosition) -> None:
        """A partition that got records is named last in the next full request, so that none is starved by its limit."""
        del self._positions[position.key]
        self._positions[position.key] = position

    def _done(self, _position: FetchPosition) -> None:
        self._go_soon()


def _forgotten_topics(keys: Sequence[PartitionKey]) -> tuple[ForgottenTopic, ...]:
    topics: dict[Uuid, list[int]] = {}
    for topic, index in keys:
        topics.setdefault(topic, []).append(index)
    return tuple(ForgottenTopic(topic_id=topic, partitions=tuple(indexes)) for topic, indexes in topics.items())
