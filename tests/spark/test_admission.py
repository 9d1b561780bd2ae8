"""How much a batch takes: no partition is starved, and nothing is taken that is not there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.spark.stream.planning import Patience, offsets_in, share_out

RANGES = st.dictionaries(
    st.tuples(st.just("t"), st.integers(0, 20)),
    st.tuples(st.integers(0, 1000), st.integers(0, 10_000)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    max_size=12,
)


def test_in_proportion() -> None:
    ranges = {("t", 0): (0, 10_000), ("t", 1): (5, 10), ("t", 2): (7, 7)}
    assert share_out(ranges, 100) == {("t", 0): 99, ("t", 1): 6, ("t", 2): 7}
    assert share_out(ranges, 20_000) == {("t", 0): 10_000, ("t", 1): 10, ("t", 2): 7}


@given(RANGES, st.integers(1, 5_000))
def test_every_partition_that_has_records_moves_and_none_too_far(
    ranges: dict[tuple[str, int], tuple[int, int]], most: int
) -> None:
    """SPARK-12073: a limit below the number of partitions is no share of 0, and no range is negative."""
    ends = share_out(ranges, most)
    taken = 0
    for key, (start, end) in ranges.items():
        assert start <= ends[key] <= end
        assert ends[key] > start or start == end
        taken += ends[key] - start
    assert taken <= most + len(ranges)
    assert taken >= min(offsets_in(ranges), most) - len(ranges)


def test_a_batch_waits_for_enough_but_not_for_ever() -> None:
    """As with Spark's Kafka source, the first batch of a run does not wait at all."""
    patience = Patience(max_delay_ms=100)
    assert not patience.waits(5, least=10, now_ms=0)
    assert patience.waits(5, least=10, now_ms=50)
    assert not patience.waits(5, least=10, now_ms=100)
    assert patience.waits(5, least=10, now_ms=199)  # counted from the batch before
    assert not patience.waits(10, least=10, now_ms=199)
