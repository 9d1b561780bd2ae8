"""The steps of a roll: pictures of the cluster and ends of commands go in, what is to be done comes out. Pure.

Invariants:
- A node is restarted only upon a picture without obstacles, so no two nodes are away by this roll, and no ISR is short.
- Of several rolls one goes (`turn.py`). What is left of this one's mark is taken away before it ends.
- Pictures count in the order of the metadata: one that is older than another that was seen is not looked at.
- A node is done once it was seen in a new life and nothing has been in the way since. A command's word does not count.
- What fails ends the roll. It says at which node, and which nodes are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from quorumlog.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from quorumlog.rolling.obstacles import Limits, obstacles
from quorumlog.rolling.picture import Node, Picture
from quorumlog.rolling.plan import Cost, costs_of, in_order, loses_majority
from quorumlog.rolling.turn import Claim, Release, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """Nobody has answered. reason: a sentence."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnded:
    """failure: why the node could not be restarted, with what the command said; empty: it says that it did."""

    node_id: NodeId
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFailed:
    """reason: a sentence. is_unknown: the cluster does not know of marks; otherwise it may have the mark or not."""

    reason: str
    is_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """Restart no further node."""


Event = Looked | Blind | CommandEnded | ClaimFailed | Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectPreferred:
    """Give a node back what it led. Others lead as well, so a failure does not end the roll."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    text: str


class Ending(Enum):
    DONE = "done"
    REFUSED = "refused"  # something was in the way before the first restart, or a restart takes too much
    COMMAND_FAILED = "command failed"
    NOT_RESTARTED = "not restarted"
    NOT_WHOLE = "not whole"
    ELSEWHERE = "restarted elsewhere"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """done, left: nodes, in the order of the roll; a node that was begun and is not whole again is the first one left.

    at: the node that was under way; None: none.
    """

    ending: Ending
    reason: str = ""
    at: NodeId | None = None
    done: tuple[NodeId, ...] = ()
    left: tuple[NodeId, ...] = ()


Effect = Claim | Restart | ElectPreferred | Tell | Release | End


@dataclass(slots=True, kw_only=True)
class _UnderWay:
    """A node from its restart until it is whole.

    ended_ms: of the command; -1: it runs. reborn_ms: when the new life was seen; -1: not yet. whole_ms: since when
    nothing has been in the way; -1: something is.
    """

    node: Node
    began_ms: int
    was_away: bool = False
    ended_ms: int = -1
    reborn_ms: int = -1
    whole_ms: int = -1
    missing: str = ""


class Roll:
    """wanted: nodes to restart. may_take: partitions may go below their minimum, and the quorum lose its majority.

    elects: preferred leaders are elected after each node. turn: of several rolls; without a mark none is looked for.
    """

    def __init__(
        self,
        wanted: Iterable[NodeId],
        limits: Limits,
        *,
        may_take: bool = False,
        elects: bool = True,
        turn: Turn | None = None,
    ) -> None:
        self._limits, self._may_take, self._elects = limits, may_take, elects
        self._turn = Turn("") if turn is None else turn
        self._left = list(dict.fromkeys(wanted))
        self._done: list[NodeId] = []
        self._epochs: dict[NodeId, BrokerEpoch] = {}  # of the life that each node is in, as far as this roll knows
        self._seen: Offset = -1
        self._now: _UnderWay | None = None
        self._waits_since_ms = -1  # for obstacles between two nodes
        self._interrupted = False
        self._ended = False

    @property
    def under_way(self) -> NodeId | None:
        return None if self._now is None else self._now.node.node_id

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        assert not self._ended, "the roll has ended"
        match event:
            case Looked():
                effects = self._on_look(event.picture, now_ms)
            case Blind():
                effects = self._on_blind(event.reason, now_ms)
            case CommandEnded():
                effects = self._on_command(event, now_ms)
            case ClaimFailed():
                effects = self._on_claim_failed(event)
            case Interrupted():
                effects = self._on_interrupt()
            case _:
                assert_never(event)
        self._ended = any(isinstance(effect, End) for effect in effects)
        if self._ended and self._turn.is_claimed:
            return [*effects[:-1], Release(mark=self._turn.mark), effects[-1]]
        return effects

    def end(self, ending: Ending, reason: str = "") -> End:
        """Also for a caller that cannot go on."""
        return End(ending=ending, reason=reason, at=self.under_way, done=tuple(self._done), left=tuple(self._left))

    # --- looks ---

    def _on_look(self, picture: Picture, now_ms: int) -> list[Effect]:
        if picture.nodes_offset < self._seen:
            return self._on_blind(f"a broker is behind: it tells metadata offset {picture.nodes_offset}", now_ms)
        self._seen = picture.nodes_offset
        stranger = self._restarted_elsewhere(picture)
        if stranger is not None:
            reason = f"node {stranger} was restarted, but not by this roll: it crashed, or somebody else rolls, too"
            return [self.end(Ending.ELSEWHERE, reason)]
        if self._now is None:
            return self._next(picture, now_ms)
        return self._look_at(self._now, picture, now_ms)

    def _restarted_elsewhere(self, picture: Picture) -> NodeId | None:
        """Another node than the one under way that is in another life than it was."""
        for node_id, node in picture.nodes.items():
            if (
                node_id != self.under_way
                and node.epoch >= 0
                and node.epoch > self._epochs.setdefault(node_id, node.epoch)
            ):
                return node_id
        return None

    def _on_blind(self, reason: str, now_ms: int) -> list[Effect]:
        if self._now is None:
            return self._wait(reason, now_ms)
        self._now.whole_ms = -1
        self._now.missing = reason
        return self._check_time(self._now, now_ms)

    # --- between two nodes ---

    def _next(self, picture: Picture, now_ms: int) -> list[Effect]:
        if not self._left:
            return [self.end(Ending.DONE)]
        if self._interrupted:
            return [self.end(Ending.INTERRUPTED)]
        if self._turn.is_claimed and (not_now := self._turn.look(picture)) is not None:
            if not_now.is_over:
                return [self.end(Ending.ELSEWHERE if self._done else Ending.REFUSED, not_now.reason)]
            return self._wait(not_now.reason, now_ms, self._limits.turn_ms)
        found = obstacles(picture, self._limits)
        if found:
            return self._wait("; ".join(found), now_ms)
        gone = [one for one in self._left if one not in picture.nodes]
        if gone:
            return [self.end(Ending.REFUSED, f"node {gone[0]} is not of the cluster any more")]
        first = in_order(picture, self._left)[0]
        if taken := self._too_much(picture, first):
            return [self.end(Ending.REFUSED, taken)]
        self._waits_since_ms = -1
        if (claim := self._turn.claim()) is not None:
            return [claim]
        node = picture.nodes[first]
        self._now = _UnderWay(node=node, began_ms=now_ms)
        self._left.remove(first)
        self._left.insert(0, first)
        return [Restart(node=node)]

    def _too_much(self, picture: Picture, node_id: NodeId) -> str:
        """Topics may have been made, and settings changed, since the plan was shown."""
        if self._may_take:
            return ""
        if loses_majority(picture, node_id):
            return f"without node {node_id} the quorum has no majority"
        costs: list[Cost] = costs_of(picture, node_id)
        more = f" (and {len(costs) - 1} more)" if len(costs) > 1 else ""
        return f"{costs[0]}{more}" if costs else ""

    def _wait(self, reason: str, now_ms: int, limit_ms: int | None = None) -> list[Effect]:
        """limit_ms: None: of what is in the way of a restart. Before the first one it ends the roll, because the
        operator decides; only a roll that has left its mark looks again, because what it saw may be old."""
        if limit_ms is None:
            limit_ms = self._limits.whole_ms if self._done else self._limits.turn_ms if self._turn.is_claimed else 0
        if self._interrupted:
            return [self.end(Ending.INTERRUPTED)]
        if self._waits_since_ms < 0:
            self._waits_since_ms = now_ms
        if now_ms - self._waits_since_ms < limit_ms:
            return []
        if not self._done:
            return [self.end(Ending.REFUSED, reason)]
        return [self.end(Ending.NOT_WHOLE, f"after {limit_ms / 1000:g} s: {reason}")]

    # --- the node that is under way ---

    def _look_at(self, now: _UnderWay, picture: Picture, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        node = picture.nodes.get(now.node.node_id)
        now.was_away = now.was_away or self._is_away(node, picture)
        if now.reborn_ms < 0 and self._is_reborn(now, node, picture):
            now.reborn_ms = now_ms
            effects.append(Tell(text=f"node {now.node.node_id} is back; waiting until every replica is in sync"))
        found = obstacles(picture, self._limits)
        now.missing = "; ".join(found)
        if found or now.reborn_ms < 0:
            now.whole_ms = -1
        elif now.whole_ms < 0:
            now.whole_ms = now_ms
        is_dated = min(picture.nodes_offset, picture.topics_offset) >= 0
        needed_ms = 0 if is_dated else self._limits.settle_ms
        if now.ended_ms >= 0 and now.whole_ms >= 0 and now_ms - now.whole_ms >= needed_ms:
            assert node is not None
            return [*effects, *self._finish(now, node, picture, now_ms)]
        return [*effects, *self._check_time(now, now_ms)]

    def _is_away(self, node: Node | None, picture: Picture) -> bool:
        if node is None or not node.is_serving:
            return True
        if node.voter is None or node.is_broker:
            return False
        if picture.leader < 0:
            return True  # nobody is left to say more
        return node.node_id != picture.leader and (
            node.voter.lag < 0 or node.voter.since_fetch_ms >= self._limits.away_ms
        )

    def _is_reborn(self, now: _UnderWay, node: Node | None, picture: Picture) -> bool:
        """A registration of its own is proof. Where none is told, it must have been seen away and be back."""
        if node is None or not node.is_serving:
            return False
        if node.epoch >= 0 and now.node.epoch >= 0:
            return node.epoch > now.node.epoch
        return now.was_away and not self._is_away(node, picture)

    def _finish(self, now: _UnderWay, node: Node, picture: Picture, now_ms: int) -> list[Effect]:
        node_id = node.node_id
        self._epochs[node_id] = node.epoch
        self._left.remove(node_id)
        self._done.append(node_id)
        self._now = None
        took_s = (now_ms - now.began_ms) / 1000
        effects: list[Effect] = [Tell(text=f"node {node_id} is whole again after {took_s:.1f} s")]
        preferred = tuple(
            one.key for one in picture.partitions if one.replicas[:1] == (node_id,) and one.leader != node_id
        )
        if self._elects and preferred:
            effects.append(ElectPreferred(partitions=preferred))
        return effects

    def _check_time(self, now: _UnderWay, now_ms: int) -> list[Effect]:
        """While the command runs, it has a limit of its own."""
        limits, node_id = self._limits, now.node.node_id
        if now.ended_ms < 0:
            return []
        if now.reborn_ms < 0:
            if now_ms - now.ended_ms < limits.life_ms:
                return []
            seen = "it was away, and has not come back" if now.was_away else "it still serves in the life it was in"
            waited = f"{limits.life_ms / 1000:g} s after its restart was reported"
            return [self.end(Ending.NOT_RESTARTED, f"node {node_id} has not begun a new life {waited}: {seen}")]
        if now_ms - max(now.reborn_ms, now.ended_ms) < limits.whole_ms:
            return []
        return [
            self.end(Ending.NOT_WHOLE, f"{limits.whole_ms / 1000:g} s after node {node_id} came back: {now.missing}")
        ]

    # --- other events ---

    def _on_command(self, event: CommandEnded, now_ms: int) -> list[Effect]:
        assert self._now is not None and event.node_id == self._now.node.node_id, f"no command runs for {event.node_id}"
        assert self._now.ended_ms < 0, "it has ended already"
        if event.failure:
            return [self.end(Ending.COMMAND_FAILED, event.failure)]
        self._now.ended_ms = now_ms
        return []

    def _on_claim_failed(self, event: ClaimFailed) -> list[Effect]:
        if not event.is_unknown:
            return [self.end(Ending.REFUSED, event.reason)]
        self._turn.give_up()
        return [Tell(text=f"other rolls are not kept away: {event.reason}")]

    def _on_interrupt(self) -> list[Effect]:
        self._interrupted = True
        if self._now is None:
            return [self.end(Ending.INTERRUPTED)]
        text = f"interrupted: no further node is restarted; waiting until node {self.under_way} is whole again"
        return [Tell(text=f"{text} (again: leave at once)")]
