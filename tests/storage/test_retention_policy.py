"""What a policy lets go: Kafka's rules as a table, and as a property against a rule that asks again each time."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.retention.policy import NO_TIMESTAMP, Policy, expired
from tests.rules import rule

NOW = 1_000_000


class Piece(NamedTuple):
    size: int
    age_ms: int | None = 0  # of its newest record; None: no record has a timestamp

    @property
    def largest_timestamp(self) -> int:
        return NO_TIMESTAMP if self.age_ms is None else NOW - self.age_ms


def going(pieces: list[Piece], policy: Policy, high_watermark: int | None = None) -> int:
    """Each segment holds ten offsets, an empty one none."""
    ends, end = [], 0
    for piece in pieces:
        end += 10 if piece.size else 0
        ends.append(end)
    mark = end if high_watermark is None else high_watermark
    return expired(pieces, [piece.size for piece in pieces], ends, policy, high_watermark=mark, now_ms=NOW)


OLD, NEW = Piece(100, 5_001), Piece(100, 4_999)
BY_TIME, BY_SIZE = Policy(retention_ms=5_000), Policy(retention_bytes=250)

CASES = [
    ("nothing is limited", [OLD, OLD, NEW], Policy(), None, 0),
    ("by time, a prefix", [OLD, OLD, NEW], BY_TIME, None, 2),
    ("as old as the limit stays", [Piece(100, 5_000), NEW], BY_TIME, None, 0),
    ("the first that stays keeps the rest", [OLD, NEW, OLD, NEW], BY_TIME, None, 1),
    ("dated ahead keeps the rest", [Piece(100, -9_000_000), OLD, NEW], BY_TIME, None, 0),
    ("all of it", [OLD, OLD], BY_TIME, None, 2),
    ("the active one alone", [OLD], BY_TIME, None, 1),
    ("an empty active one stays", [OLD, OLD, Piece(0, 9_999)], BY_TIME, None, 2),
    ("an empty log", [Piece(0, None)], BY_TIME, None, 0),
    ("an empty one in between goes", [OLD, Piece(0, 9_999), OLD, NEW], BY_TIME, None, 3),
    ("retention.ms=0", [Piece(100, 1), Piece(100, 0)], Policy(retention_ms=0), None, 1),
    ("not above the high watermark", [OLD, OLD, OLD], BY_TIME, 20, 2),
    ("a segment that spans it stays", [OLD, OLD, OLD], BY_TIME, 19, 1),
    ("without a timestamp: as the next one", [Piece(100, None), OLD, NEW], BY_TIME, None, 2),
    ("without a timestamp, before a new one", [Piece(100, None), NEW], BY_TIME, None, 0),
    ("without any timestamp", [Piece(100, None), Piece(100, None)], BY_TIME, None, 0),
    ("the next one's time counts below the mark only", [Piece(100, None), OLD], BY_TIME, 10, 0),
    ("by size, so that the rest holds the limit", [NEW] * 4, BY_SIZE, None, 1),
    ("by size, exactly", [NEW] * 4, Policy(retention_bytes=300), None, 1),
    ("by size, one byte less than exactly", [NEW] * 4, Policy(retention_bytes=301), None, 0),
    ("by size, the large first one stays", [Piece(500), NEW, NEW], Policy(retention_bytes=201), None, 0),
    ("retention.bytes=0", [NEW] * 3, Policy(retention_bytes=0), None, 3),
    ("by size, not above the high watermark", [NEW] * 4, Policy(retention_bytes=0), 20, 2),
    ("by size, then by time", [NEW, OLD, NEW, NEW], Policy(5_000, 300), None, 2),
    ("by time what size keeps", [OLD, OLD, NEW], Policy(5_000, 10_000), None, 2),
]


@rule("storage 8.2", "log 3.22")
@pytest.mark.parametrize(("pieces", "policy", "mark", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_goes(pieces: list[Piece], policy: Policy, mark: int | None, want: int) -> None:
    assert going(pieces, policy, mark) == want


pieces_drawn = st.lists(
    st.builds(Piece, st.integers(1, 500), st.none() | st.integers(-2_000, 10_000)), min_size=1, max_size=8
)


@rule("log 3.22")
@given(pieces_drawn, st.integers(-1, 8_000), st.integers(-1, 2_500), st.integers(0, 80), st.booleans())
def test_one_segment_at_a_time_gives_the_same(
    pieces: list[Piece], retention_ms: int, retention_bytes: int, mark: int, is_empty: bool
) -> None:
    """The dumber answer: drop the oldest, ask again; first by size, until it is kept, then by time."""
    if is_empty:
        pieces = [*pieces, Piece(0, None)]
    rest = list(pieces)

    def may_go() -> bool:
        end = 10 * (sum(1 for piece in pieces if piece.size) - sum(1 for piece in rest[1:] if piece.size))
        return bool(rest) and end <= mark and not (len(rest) == 1 and rest[0].size == 0)

    def age() -> int | None:
        held = 10 * sum(1 for piece in pieces if piece.size) - 10 * sum(1 for piece in rest if piece.size)
        for piece in rest:
            held += 10 if piece.size else 0
            if held > mark:
                return None
            if piece.age_ms is not None:
                return piece.age_ms
        return None

    while retention_bytes >= 0 and may_go() and sum(p.size for p in rest[1:]) >= retention_bytes:
        rest.pop(0)
    while retention_ms >= 0 and may_go() and (oldest := age()) is not None and oldest > retention_ms:
        rest.pop(0)
    assert going(pieces, Policy(retention_ms, retention_bytes), mark) == len(pieces) - len(rest)
