"""What one node gives out: effects in order, and requests that have no answer yet."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId
from quorumlog_quorum.raft.effects import PersistQuorumState, RaftEffect, Reply, Send, SentRequest, SentResponse
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.roles import VoteRound


@dataclass(frozen=True, slots=True)
class InFlightRequest:
    """A request that has no answer yet. votes: for a vote request, the round that it belongs to."""

    to: NodeId
    message: SentRequest
    votes: VoteRound | None = None


class Outbox:
    """in_flight: by correlation. saved: the promises that are on disk already."""

    def __init__(self, saved: QuorumState) -> None:
        self.in_flight: dict[int, InFlightRequest] = {}
        self._effects: list[RaftEffect] = []
        self._persist_at: int | None = None  # the place of PersistQuorumState among the effects
        self._last_number = 0
        self._persisted = saved

    def add(self, effect: RaftEffect) -> None:
        self._effects.append(effect)

    def take(self) -> list[RaftEffect]:
        """The effects since the last call."""
        taken, self._effects, self._persist_at = self._effects, [], None
        return taken

    def persist(self, state: QuorumState) -> None:
        """Nothing to do if it is what was persisted last.

        A step persists one state at most: its last one, in the place of its first one. It holds all promises that the
        states before it held, and is durable no later than they would have been.
        """
        if state == self._persisted:
            return
        self._persisted = state
        if self._persist_at is None:
            self._persist_at = len(self._effects)
            self.add(PersistQuorumState(state))
        else:
            self._effects[self._persist_at] = PersistQuorumState(state)

    def send(self, request: InFlightRequest, timeout_ms: int) -> int:
        """Returns the correlation."""
        correlation = self.next_number()
        self.in_flight[correlation] = request
        self.add(Send(request.to, request.message, correlation, timeout_ms))
        return correlation

    def next_number(self) -> int:
        """A number that was not used before."""
        self._last_number += 1
        return self._last_number

    def finish(self, correlation: int) -> InFlightRequest | None:
        """The request has its answer, or none will come. None: no such request is in flight."""
        return self.in_flight.pop(correlation, None)

    def reply(self, token: int, message: SentResponse) -> None:
        self.add(Reply(token, message))
