"""The bytes that members of a classic group exchange: as Kafka writes them, and read in all versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.group.protocol import (
    Kept,
    Subscription,
    flat,
    read_assignment,
    read_kept,
    read_subscription,
    write_assignment,
    write_kept,
    write_subscription,
)
from quorumlog.records import CorruptRecords

TOPICS = st.lists(st.text(max_size=8), unique=True, max_size=4)
PARTITIONS = st.dictionaries(st.text(max_size=8), st.lists(st.integers(0, 99), unique=True).map(tuple), max_size=4)
V0 = "0000 00000001 000174 ffffffff"
V1 = "0001 00000001 000174 00000002 6869 00000001 000174 00000002 00000000 00000001"
V3 = "0003 00000001 000174 ffffffff 00000001 000174 00000001 00000002 00000007 000161"


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (V0, Subscription(("t",))),
        (V1, Subscription(("t",), frozenset({("t", 0), ("t", 1)}), -1, b"hi")),
        (V3, Subscription(("t",), frozenset({("t", 2)}), 7, b"", "a")),
        (V3.replace("0003", "0009", 1) + "abcdef", Subscription(("t",), frozenset({("t", 2)}), 7, b"", "a")),
    ],
    ids=["version 0", "version 1", "version 3", "a newer one"],
)
def test_every_version_of_a_subscription_is_read(data: str, want: Subscription) -> None:
    assert read_subscription(bytes.fromhex(data)) == want


def test_a_subscription_is_written_in_version_3() -> None:
    given = Subscription(("t",), frozenset({("t", 2)}), 7, b"", "a")
    assert write_subscription(given) == bytes.fromhex(V3)


@given(TOPICS, PARTITIONS, st.integers(-1, 9), st.binary(max_size=5), st.none() | st.text(max_size=3))
def test_a_subscription_comes_back(
    topics: list[str], owned: dict[str, tuple[int, ...]], generation: int, data: bytes, rack: str | None
) -> None:
    given = Subscription(tuple(topics), flat(owned), generation, data, rack)
    assert read_subscription(write_subscription(given)) == given


@given(PARTITIONS)
def test_an_assignment_comes_back(partitions: dict[str, tuple[int, ...]]) -> None:
    assert read_assignment(write_assignment(partitions)) == partitions


@pytest.mark.parametrize("data", ["ffff", "0000 7fffffff", "0000 00000001 0005 74", "00"])
def test_damaged_bytes_are_an_error(data: str) -> None:
    with pytest.raises(CorruptRecords):
        read_subscription(bytes.fromhex(data))


KEPT = "00000001 000174 00000002 00000000 00000002"


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (KEPT + "00000007", Kept(frozenset({("t", 0), ("t", 2)}), 7)),
        (KEPT, Kept(frozenset({("t", 0), ("t", 2)}))),
        ("", Kept()),
        ("00000001 0005 74", Kept()),
    ],
    ids=["version 1", "version 0", "nothing", "damaged"],
)
def test_what_an_eager_sticky_member_had_is_read(data: str, want: Kept) -> None:
    assert read_kept(bytes.fromhex(data)) == want


@given(PARTITIONS.filter(lambda found: any(found.values())), st.integers(-1, 9))
def test_aiokafka_reads_what_an_eager_sticky_member_had(
    partitions: dict[str, tuple[int, ...]], generation: int
) -> None:
    sticky = pytest.importorskip("aiokafka.coordinator.assignors.sticky.sticky_assignor")
    kept = Kept(flat(partitions), generation)
    data = write_kept(kept)
    assert read_kept(data) == kept
    found = sticky.StickyAssignorUserDataV1.decode(data)
    assert (flat(dict(found.previous_assignment)), found.generation) == kept


def test_what_an_eager_sticky_member_had_is_written_as_kafka_does() -> None:
    """The bytes of Kafka 4.3.1's StickyAssignor."""
    kept = Kept(frozenset({("t", 0), ("t", 2)}), 7)
    assert write_kept(kept) == bytes.fromhex("0000000100017400000002000000000000000200000007")
