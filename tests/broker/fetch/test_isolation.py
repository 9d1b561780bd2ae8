"""How far a reader may read: follower or consumer, and at which isolation level."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from quorumlog_broker.fetch.isolation import READ_COMMITTED, READ_UNCOMMITTED, isolation_of
from quorumlog_storage.rules.isolation import Isolation, upper_bound
from tests.rules import rule


@dataclass
class Offsets:
    """What is read of a partition."""

    last_stable_offset: int = 3
    high_watermark: int = 5
    end_offset: int = 9


CASES = [
    ("a follower", READ_UNCOMMITTED, True, Isolation.LOG_END, 9),
    ("a follower's level does not matter", READ_COMMITTED, True, Isolation.LOG_END, 9),
    ("a consumer", READ_UNCOMMITTED, False, Isolation.HIGH_WATERMARK, 5),
    ("a consumer of committed transactions", READ_COMMITTED, False, Isolation.LAST_STABLE_OFFSET, 3),
]


@rule("storage 1.24", "log 3.2")
@pytest.mark.parametrize(("level", "is_replica", "isolation", "end"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_how_far_a_reader_may_read(level: int, is_replica: bool, isolation: Isolation, end: int) -> None:
    assert isolation_of(level, is_replica=is_replica) is isolation
    assert upper_bound(isolation, Offsets()) == end
