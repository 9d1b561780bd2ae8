"""The records of groups in a partition of `__consumer_offsets`, in their order, and what has to hold of them.

A number is a classic group's generation or a consumer group's epoch: a group that changes its protocol goes on with it.
What is in one batch was decided in one turn, so a group that loses one record and gets another in a batch has changed
its protocol; one that has none at a batch's end is gone, and may begin anew. So may a classic group without members.

- group-number-falls (6): the number never falls while there is a group, over failovers and changes of the protocol.
- group-generation-twice (7): in a generation there is one leader, one protocol and one list of members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.checkers.findings import Finding


class Generation(NamedTuple):
    """A classic group with members. Of static members the instance ids, of others the member ids."""

    leader: str | None
    protocol: str | None
    members: frozenset[str]


class Step(NamedTuple):
    """One record. number: None for a tombstone. generation: None for a consumer group, and without members."""

    group: str
    is_classic: bool
    number: int | None
    generation: Generation | None = None


@dataclass(slots=True)
class _Seen:
    number: int = 0
    records: set[bool] = field(default_factory=set)  # the kinds that it has now: is_classic
    is_empty: bool = False  # by its last record, which is that of a classic group
    generations: dict[int, Generation] = field(default_factory=dict)


def check_log(batches: Iterable[list[Step]]) -> Iterator[Finding]:
    groups: dict[str, _Seen] = {}
    for batch in batches:
        for step in batch:
            seen = groups.setdefault(step.group, _Seen())
            if step.number is None:
                seen.records.discard(step.is_classic)
                if step.is_classic and seen.is_empty:
                    groups[step.group] = _Seen()
                continue
            seen.records.add(step.is_classic)
            seen.is_empty = step.is_classic and step.generation is None
            if step.number < seen.number:
                yield Finding("group-number-falls", f"{step} behind {seen.number}")
            seen.number = step.number
            if step.generation is not None:
                known = seen.generations.setdefault(step.number, step.generation)
                if not _agree(known, step.generation):
                    yield Finding("group-generation-twice", f"{step}, and before {known}")
        for name in dict.fromkeys(step.group for step in batch):
            if not groups[name].records:
                del groups[name]


def _agree(known: Generation, later: Generation) -> bool:
    """A group that has just changed its protocol has no leader: its generation only sends the members to join."""
    return known.leader is None or later.leader is None or known == later
