"""Which life of the cluster a node belongs to. A recovery after the loss of the majority begins a new one.

The number counts the recoveries, so two nodes know which of them is of the earlier life. The id is random, so that two
recoveries of one cluster, each on another survivor, are told apart. A cluster that was never recovered is in
incarnation 0, and so is each directory that was formatted before there were incarnations.

Text form: the number, a dot, and the id as Kafka prints ids: `1.Vr3zmHkSQ7a1bXbV0vQJ2w`. Incarnation 0 has no id: `0`.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import ZERO_UUID, Uuid, format_uuid, parse_uuid

MAX_NUMBER = 2**31 - 1
_MAX_DIGITS = 10


class ClusterIncarnation(NamedTuple):
    number: int
    id: Uuid

    @property
    def is_first(self) -> bool:
        """The cluster was never recovered."""
        return self.number == 0

    def __str__(self) -> str:
        return "0" if self.is_first else f"{self.number}.{format_uuid(self.id)}"


FIRST = ClusterIncarnation(0, ZERO_UUID)


def parse_incarnation(text: str) -> ClusterIncarnation:
    """The inverse of `str`. Raises ValueError."""
    if text == "0":
        return FIRST
    number, dot, identifier = text.partition(".")
    is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS and number[0] != "0"
    if not dot or not is_number or int(number) > MAX_NUMBER:
        raise ValueError(f"not a cluster incarnation such as 1.{format_uuid(bytes(range(16)))}: {text[:60]!r}")
    found = ClusterIncarnation(int(number), parse_uuid(identifier))
    if found.id == ZERO_UUID:
        raise ValueError(f"the id of a cluster incarnation is zero: {text!r}")
    return found


def next_incarnation(before: ClusterIncarnation, new_id: Uuid) -> ClusterIncarnation:
    """That of a cluster which is recovered now. new_id: random."""
    assert new_id != ZERO_UUID and before.number < MAX_NUMBER
    return ClusterIncarnation(before.number + 1, new_id)
