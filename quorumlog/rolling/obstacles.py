"""Why no node may be restarted now: each obstacle as a sentence. None: every node is there and every ISR is whole.

Restarting a node takes one replica from each of its partitions. That is harmless only where all others are in sync, so
whatever is short, fenced, behind or moving is in the way, also where it has nothing to do with the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quorumlog.rolling.picture import Node, Picture

MOST_NAMED = 5  # partitions in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a roll waits, and what counts as caught up.

    command_ms: for a restart command, which is ended then. life_ms: from the end of the command until the node is seen
    in a new life. whole_ms: from then on until nothing is in the way any more. settle_ms: for how long all must look
    whole where the protocol does not tell of which metadata an answer is. max_lag: of a voter, in records. silent_ms: a
    voter that has not fetched for longer is missing. turn_ms: from the mark of a roll (`turn.py`) until its first
    restart, if something is in the way meanwhile. away_ms: a node that tells no epoch was away if it did not fetch
    for so long, which a start takes and a slow fetch does not.
    """

    command_ms: int = 300_000
    life_ms: int = 120_000
    whole_ms: int = 900_000
    settle_ms: int = 3_000
    max_lag: int = 1_000
    silent_ms: int = 5_000
    turn_ms: int = 10_000
    away_ms: int = 1_500


def obstacles(picture: Picture, limits: Limits) -> list[str]:
    """Empty: a node may be restarted."""
    return [*_stale(picture), *_of_nodes(picture, limits), *_of_partitions(picture)]


def _stale(picture: Picture) -> Iterator[str]:
    """Partitions as an older image has them show an ISR of before a node was away."""
    if 0 <= picture.topics_offset < picture.nodes_offset:
        yield (
            f"a broker is behind: it told the partitions as of metadata offset {picture.topics_offset}, and the nodes "
            f"are known as of {picture.nodes_offset}"
        )


def _of_nodes(picture: Picture, limits: Limits) -> Iterator[str]:
    if picture.leader < 0:
        yield "the quorum has no leader, or does not answer"
    if picture.is_changing_voters:
        yield "the voters of the quorum are being changed"
    for node in picture.nodes.values():
        if not node.is_serving:
            yield f"node {node.node_id} does not serve: it is fenced, stopping, or not registered"
        elif node.voter is not None and picture.leader >= 0 and node.node_id != picture.leader:
            yield from _of_voter(node, limits)


def _of_voter(node: Node, limits: Limits) -> Iterator[str]:
    assert node.voter is not None
    if node.voter.lag < 0:
        yield f"controller {node.node_id} has not fetched from the quorum's leader"
    elif node.voter.since_fetch_ms > limits.silent_ms:
        yield f"controller {node.node_id} has been silent for {node.voter.since_fetch_ms / 1000:.0f} s"
    elif node.voter.lag > limits.max_lag:
        yield f"controller {node.node_id} is {node.voter.lag} records behind; {limits.max_lag} are allowed"


def _of_partitions(picture: Picture) -> Iterator[str]:
    if picture.moving:
        yield f"{_some(picture.moving)} {_is(picture.moving)} being moved"
    leaderless = [one.name for one in picture.partitions if one.leader < 0]
    if leaderless:
        yield f"{_some(leaderless)} {'has' if len(leaderless) == 1 else 'have'} no leader"
    short = [one for one in picture.partitions if one.leader >= 0 and one.missing]
    if short:
        absent = sorted({node_id for one in short for node_id in one.missing})
        named = _some([one.name for one in short])
        yield f"{named} {'lacks' if len(short) == 1 else 'lack'} node {', '.join(map(str, absent))} in the ISR"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
