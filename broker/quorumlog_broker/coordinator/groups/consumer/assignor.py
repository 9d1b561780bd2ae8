"""What an assignor is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog.slices import Sliced

SLICE = 4_000
"""Members or partitions that are looked at between two steps: about 2 ms."""

Assignment = dict[str, dict[Uuid, list[int]]]
"""member id -> topic id -> indexes"""


class Subject(NamedTuple):
    """A member. topics: ids of those that it subscribes to; members may share one object. owned: its last target."""

    member_id: str
    instance_id: str | None
    topics: frozenset[Uuid]
    owned: Mapping[Uuid, Sequence[int]]


Assignor = Callable[[Sequence[Subject], Mapping[Uuid, int]], Sliced[Assignment]]
"""(members, partitions of each topic that a member subscribes to). Each of these is assigned once, to a subscriber."""
