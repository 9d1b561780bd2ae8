"""The follower's side of a fetch session (KIP-227): what its source has been told, and what is told next. Pure.

The first request names every position, the following ones only what is different from what was told. Whatever goes
wrong (an answer that is lost or refused, a partition added meanwhile, a new broker epoch) ends in a request that names
all again, so that both sides agree by beginning anew, not by repairing.

Invariant: what was told of a partition and not taken back is durable here and still so, since the source acknowledges
it again, unasked, whenever it has to know (`fetch_path.py`). So a position that moves back is told at once, as any
other move; a position of another leadership has another epoch, by which the source refuses it; and who backs off is
taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.fetch.session import FULL_EPOCH, NO_SESSION, next_epoch
from broker.replicas.reconciler import PartitionKey
from broker.replication.fetch_position import FetchPosition
from quorumlog.ids import BrokerEpoch, Epoch, Offset


class Ask(NamedTuple):
    """One request. waits: False: somebody is taken back who wants to be named by the request after this one."""

    session_id: int
    epoch: int
    named: tuple[FetchPosition, ...]
    forgotten: tuple[PartitionKey, ...] = ()
    waits: bool = True


class _Told(NamedTuple):
    """not_before_ms: if the position has another one now, it backed off since: it has not taken what it was told."""

    position: FetchPosition
    offset: Offset
    last_epoch: Epoch
    log_start: Offset
    not_before_ms: int

    @property
    def is_taken(self) -> bool:
        return self.position.not_before_ms == self.not_before_ms

    @property
    def is_current(self) -> bool:
        now = self.position
        return (now.offset, now.last_epoch, now.log_start) == (self.offset, self.last_epoch, self.log_start)


class LeaderSession:
    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._broker_epoch: BrokerEpoch = -1
        self._told: dict[PartitionKey, _Told] = {}
        self._touched: dict[PartitionKey, None] = {}  # may differ from what was told; who backs off is among them

    @property
    def touched(self) -> Iterable[PartitionKey]:
        """Who may have something to tell or be waiting to. Of all others the source knows what there is."""
        return self._touched

    def touch(self, key: PartitionKey) -> None:
        self._touched[key] = None

    def lost(self) -> None:
        """The source may or may not have taken the last request: the next one names all."""
        self._epoch = FULL_EPOCH

    def told(self, key: PartitionKey) -> FetchPosition | None:
        """Whom an answer is for."""
        told = self._told.get(key)
        return None if told is None else told.position

    def ask(
        self, positions: Mapping[PartitionKey, FetchPosition], now_ms: int, broker_epoch: BrokerEpoch
    ) -> Ask | None:
        """What the next request says; None: there is nobody to ask for now."""
        if self._epoch == FULL_EPOCH or broker_epoch != self._broker_epoch:
            return self._ask_for_all(positions, now_ms, broker_epoch)
        named: list[FetchPosition] = []
        forgotten: list[PartitionKey] = []
        kept: dict[PartitionKey, None] = {}
        for key in self._touched:
            position, told = positions.get(key), self._told.get(key)
            ready = position is not None and position.is_ready(now_ms)
            taken_back = told is not None and not (ready and told.position is position and told.is_taken)
            if taken_back:
                forgotten.append(key)
            elif ready and position is not None and (told is None or not told.is_current):
                named.append(position)
            if position is not None and (taken_back or not ready):
                kept[key] = None
        if len(self._told) == len(forgotten) and not named:
            return self._ask_for_all(positions, now_ms, broker_epoch)
        self._touched = kept
        for key in forgotten:
            del self._told[key]
        self._tell(named)
        waits = not any(positions[key].is_ready(now_ms) for key in kept)
        return Ask(self._id, self._epoch, tuple(named), tuple(forgotten), waits)

    def answered(self, session_id: int) -> None:
        """An answer without an error has come. session_id: NO_SESSION: the source keeps none."""
        if self._epoch == FULL_EPOCH:
            self._id, self._epoch = session_id, FULL_EPOCH if session_id == NO_SESSION else next_epoch(FULL_EPOCH)
        elif session_id == self._id:
            self._epoch = next_epoch(self._epoch)
        else:
            self.lost()

    def _ask_for_all(
        self, positions: Mapping[PartitionKey, FetchPosition], now_ms: int, broker_epoch: BrokerEpoch
    ) -> Ask | None:
        named = [position for position in positions.values() if position.is_ready(now_ms)]
        self._touched = {key: None for key, position in positions.items() if not position.is_ready(now_ms)}
        self._epoch, self._broker_epoch = FULL_EPOCH, broker_epoch
        self._told = {}
        self._tell(named)
        return Ask(self._id, FULL_EPOCH, tuple(named)) if named else None

    def _tell(self, named: Iterable[FetchPosition]) -> None:
        for one in named:
            self._told[one.key] = _Told(one, one.offset, one.last_epoch, one.log_start, one.not_before_ms)
