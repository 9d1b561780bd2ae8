"""What the cores of both protocols have in common: the application's polls, what it owns, and the list of effects.

A core is sans-IO: `take` says what the shell has to do. What the application reads changes in its polls only: `change`
says what, `done` that it was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.effects import (
    NOTHING,
    Change,
    Effect,
    GiveUp,
    GroupSettings,
    Send,
    State,
    TakeOver,
    TopicPartitions,
)
from quorumlog.client.group.protocol import NO_GENERATION
from quorumlog.client.group.racks import NOWHERE, Racks
from quorumlog.ids import Uuid


class MemberCore:
    """backoff_ms: how long to wait before the n-th retry. topics: what it subscribes to now.

    generation: with the consumer protocol, the member's epoch. leads, watched_topics: of the leader of a classic group.
    """

    leads = False

    def __init__(self, settings: GroupSettings, backoff_ms: Callable[[int], int], member_id: str) -> None:
        self.state = State.LEFT
        self.member_id = member_id
        self.generation = NO_GENERATION
        self.owned: TopicPartitions = NOTHING  # what the application reads
        self.topics: tuple[str, ...] = ()
        self._settings, self._backoff_ms = settings, backoff_ms
        self._assigned: TopicPartitions | None = None  # the application has not heard of it
        self._is_lost = False  # others may have what the application reads
        self._error: RequestFailed | None = None
        self._effects: list[Effect] = []
        self._numbers = 0
        self._call: int | None = None  # the one on its way that the next step waits for
        self._failures = 0
        self._polled_ms: int | None = None  # end of the last poll; None: in a poll

    # --- the application ---

    def poll_began(self) -> None:
        self._polled_ms = None

    def poll_ended(self, now_ms: int) -> None:
        self._polled_ms = now_ms

    def take_error(self) -> RequestFailed | None:
        """What the application has to hear, once. A member that is fenced says it each time."""
        error = self._error
        if self.state is not State.FENCED:
            self._error = None
        return error

    @property
    def has_news(self) -> bool:
        """For the next poll."""
        return self._error is not None or self.change() is not None

    def change(self) -> Change | None:
        """What the application has to do in this poll; `done` confirms it. Asked again until it is None."""
        if self._is_lost:
            return GiveUp(self.owned, lost=True)
        if self._assigned is not None:
            return TakeOver(self.owned - self._assigned, self._assigned - self.owned)
        return self._before_joining() if self._error is None else None

    def _before_joining(self) -> GiveUp | None:
        """What it has to give up before it joins; None: it does not join now."""
        raise NotImplementedError

    def _took_over(self, change: TakeOver) -> bool:
        """False: the generation was lost meanwhile, and with it what the application has just taken over."""
        self.owned = (self.owned - change.revoked) | change.added
        if self._assigned is None:
            self._is_lost = bool(self.owned)
            return False
        return True

    def _gave_up(self, change: GiveUp) -> None:
        self.owned -= change.partitions
        self._is_lost = self._is_lost and bool(self.owned)

    def subscribe_regex(self, regex: str) -> bool:
        """False: the coordinator does not find topics; subscribe to those that match now."""
        return False

    # --- commits ---

    @property
    def is_member(self) -> bool:
        """It may commit what the application reads."""
        return self.generation != NO_GENERATION and not self._is_lost

    # --- time and effects ---

    @property
    def _is_joined(self) -> bool:
        """Or joins; an application that does not poll leaves then."""
        raise NotImplementedError

    def _poll_deadline_ms(self) -> int | None:
        if self._polled_ms is None or not self._is_joined:
            return None
        return self._polled_ms + self._settings.rebalance_timeout_ms

    def take(self) -> list[Effect]:
        """What the shell has to do, in this order."""
        effects, self._effects = self._effects, []
        return effects

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _send(self, request: Any, timeout_ms: int, *, leaves: bool = False) -> int:
        self._effects.append(Send(self._number(), request, timeout_ms, leaves))
        return self._numbers

    # --- what one of the protocols alone is told ---

    def counted(self, number: int, counts: Mapping[str, int], racks: Racks = NOWHERE) -> None:
        """The number of partitions by topic, for the leader of a classic group. Missing: it does not exist."""

    def counts_seen(self, counts: Mapping[str, int], racks: Racks = NOWHERE) -> None:
        """Of `watched_topics`, at any time."""

    def named(self, number: int, names: Mapping[Uuid, str], now_ms: int) -> None:
        """Names of topics by their ids, for the consumer protocol. Missing: it does not exist."""

    @property
    def watched_topics(self) -> tuple[str, ...]:
        return ()
