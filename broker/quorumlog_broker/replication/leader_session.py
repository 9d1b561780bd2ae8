"""The follower's side of a fetch session (KIP-227): positions that were sent, and those to send next. Pure.

The first request names every position, the following ones only those that differ from what was sent. After any failure
(a response that is lost or refused, a partition added meanwhile, a new broker epoch) the next request names all again:
both sides start over and nothing has to be repaired.

Invariant: a position that was sent and not withdrawn is durable here, because the leader counts it as acknowledged
again with every request (`fetch_path.py`). So a position that moves back is named at once, like any other move. A
position of another leadership has another epoch, by which the leader refuses it. A position that backs off is
withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.ids import BrokerEpoch, Epoch, Offset
from quorumlog_broker.fetch.session import FULL_EPOCH, NO_SESSION, next_epoch
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replication.fetch_position import FetchPosition


class SessionRequest(NamedTuple):
    """One request. may_wait: False if the request after it has to name a position that this one withdraws."""

    session_id: int
    epoch: int
    named: tuple[FetchPosition, ...]
    forgotten: tuple[PartitionKey, ...] = ()
    may_wait: bool = True


class _Sent(NamedTuple):
    """A position as it was sent to the leader. not_before_ms: of the position at that time."""

    position: FetchPosition
    offset: Offset
    last_epoch: Epoch
    log_start: Offset
    not_before_ms: int

    @property
    def has_backed_off(self) -> bool:
        """The position has backed off since: it may not have taken what the leader sent."""
        return self.position.not_before_ms != self.not_before_ms

    @property
    def is_current(self) -> bool:
        now = self.position
        return (now.offset, now.last_epoch, now.log_start) == (self.offset, self.last_epoch, self.log_start)


class LeaderSession:
    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._broker_epoch: BrokerEpoch = -1
        self._sent: dict[PartitionKey, _Sent] = {}
        self._touched: dict[PartitionKey, None] = {}  # may differ from `_sent`; includes every position that backs off

    @property
    def touched(self) -> Iterable[PartitionKey]:
        """Partitions that may have to be named, now or after a backoff. The leader is up to date about all others."""
        return self._touched

    def touch(self, key: PartitionKey) -> None:
        """The position was added or removed, or may have changed."""
        self._touched[key] = None

    def restart(self) -> None:
        """The leader may or may not have received the last request: the next one names all."""
        self._epoch = FULL_EPOCH

    def position_of(self, key: PartitionKey) -> FetchPosition | None:
        """The position that an answer about this partition is for."""
        sent = self._sent.get(key)
        return None if sent is None else sent.position

    def next_request(
        self, positions: Mapping[PartitionKey, FetchPosition], now_ms: int, broker_epoch: BrokerEpoch
    ) -> SessionRequest | None:
        """None: there is nothing to fetch now."""
        if self._epoch == FULL_EPOCH or broker_epoch != self._broker_epoch:
            return self._full_request(positions, now_ms, broker_epoch)
        named: list[FetchPosition] = []
        forgotten: list[PartitionKey] = []
        kept: dict[PartitionKey, None] = {}
        for key in self._touched:
            position, sent = positions.get(key), self._sent.get(key)
            ready = position is not None and position.is_ready(now_ms)
            withdrawn = sent is not None and not (ready and sent.position is position and not sent.has_backed_off)
            if withdrawn:
                forgotten.append(key)
            elif ready and position is not None and (sent is None or not sent.is_current):
                named.append(position)
            if position is not None and (withdrawn or not ready):
                kept[key] = None
        if len(self._sent) == len(forgotten) and not named:
            return self._full_request(positions, now_ms, broker_epoch)
        self._touched = kept
        for key in forgotten:
            del self._sent[key]
        self._note_sent(named)
        may_wait = not any(positions[key].is_ready(now_ms) for key in kept)
        return SessionRequest(self._id, self._epoch, tuple(named), tuple(forgotten), may_wait)

    def answered(self, session_id: int) -> None:
        """A response without an error has come. session_id: NO_SESSION if the leader keeps none."""
        if self._epoch == FULL_EPOCH:
            self._id, self._epoch = session_id, FULL_EPOCH if session_id == NO_SESSION else next_epoch(FULL_EPOCH)
        elif session_id == self._id:
            self._epoch = next_epoch(self._epoch)
        else:
            self.restart()

    def _full_request(
        self, positions: Mapping[PartitionKey, FetchPosition], now_ms: int, broker_epoch: BrokerEpoch
    ) -> SessionRequest | None:
        named = [position for position in positions.values() if position.is_ready(now_ms)]
        self._touched = {key: None for key, position in positions.items() if not position.is_ready(now_ms)}
        self._epoch, self._broker_epoch = FULL_EPOCH, broker_epoch
        self._sent = {}
        self._note_sent(named)
        return SessionRequest(self._id, FULL_EPOCH, tuple(named)) if named else None

    def _note_sent(self, named: Iterable[FetchPosition]) -> None:
        for one in named:
            self._sent[one.key] = _Sent(one, one.offset, one.last_epoch, one.log_start, one.not_before_ms)
