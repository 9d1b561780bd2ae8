from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records import murmur2, partition_for_key

GOLDEN = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"abc", 479470107),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
]  # Kafka's `UtilsTest`


@pytest.mark.parametrize(("key", "want"), GOLDEN)
def test_murmur2(key: bytes, want: int) -> None:
    assert murmur2(key) == want
    assert partition_for_key(key, 7) == (want & 0x7FFFFFFF) % 7


@given(st.binary(max_size=40), st.integers(1, 100))
def test_a_partition_exists(key: bytes, partitions: int) -> None:
    assert -(2**31) <= murmur2(key) < 2**31
    assert 0 <= partition_for_key(key, partitions) < partitions
