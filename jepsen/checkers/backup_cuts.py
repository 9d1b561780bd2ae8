"""What has to hold of each cut of a backup, judged by whole logs after everything has ended.

- backup-misses-acknowledged: what was acknowledged before the backup began lies before the cut: a record, a transaction
  with all its values, an offset of a group.
- backup-splits-a-transaction: a transaction lies before the cut in all its partitions, or in none.
- backup-offsets-apart: and so do its output and the offsets that it commits.
- backup-group-beyond-data: no group has come further before the cut than the partition that it reads.
- backup-open-unnamed: each transaction that is open at the cut has the name of its transactional id.

A record of a transaction counts from its commit marker on, because a restore aborts what is open at the cut. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jepsen.checkers.findings import Finding
from jepsen.checkers.transactional.events import writer_of
from jepsen.checkers.transactional.logs import DataBatch
from quorumlog.ids import Offset

Partition = tuple[str, int]
GroupKey = tuple[str, str, int]  # a group, and the partition that it reads


class CutTaken(NamedTuple):
    """began_ns: when the backup began. ends: exclusive. producers: transactional ids, by producer id."""

    began_ns: int
    ends: Mapping[Partition, Offset]
    producers: Mapping[int, str]


class Value(NamedTuple):
    """A committed value of a transaction. settled: exclusive end of its commit marker."""

    value: int
    settled: Offset


class GroupOffset(NamedTuple):
    """settled: exclusive end of its record; in a transaction, of the commit marker."""

    key: GroupKey
    offset: Offset
    settled: Offset


class Record(NamedTuple):
    """An acknowledged record."""

    partition: Partition
    offset: Offset
    acked_ns: int


class GroupCommit(NamedTuple):
    """An acknowledged offset of a group."""

    key: GroupKey
    offset: Offset
    acked_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """values, offsets: of the logs of transactional data and of groups, in the order in which they settle. batches: of
    both. records, commits: as clients were told. committed: transactions, with the time of the answer. taken: group's
    partition, transaction and the offset that it commits with its output."""

    values: Mapping[Partition, Sequence[Value]]
    offsets: Mapping[Partition, Sequence[GroupOffset]]
    batches: Mapping[Partition, Sequence[DataBatch]]
    records: Sequence[Record]
    commits: Sequence[GroupCommit]
    committed: Mapping[int, int]
    taken: Sequence[tuple[GroupKey, int, Offset]]


def check_cuts(cuts: Iterable[CutTaken], seen: Evidence) -> tuple[list[Finding], dict[str, int]]:
    """Returns findings, and what was looked at."""
    findings: list[Finding] = []
    counts = {"backup cuts": 0, "transactions open at cuts": 0, "transactions before cuts": 0, "groups at cuts": 0}
    for number, cut in enumerate(cuts):
        one = _Check(f"cut {number}", cut, seen)
        findings += one.findings()
        counts["backup cuts"] += 1
        counts["transactions open at cuts"] += len(one.open)
        counts["transactions before cuts"] += len(one.inside)
        counts["groups at cuts"] += len(one.groups)
    return findings, counts


class _Check:
    """inside, behind: transactions of which a value lies before, or behind, the cut. groups: how far each has come
    before it. open: producers with an open transaction."""

    def __init__(self, name: str, cut: CutTaken, seen: Evidence) -> None:
        self._name, self._cut, self._seen = name, cut, seen
        sides: dict[bool, set[int]] = defaultdict(set)
        for partition, values in seen.values.items():
            for one in values:
                sides[one.settled <= self._end(partition)].add(writer_of(one.value))
        self.inside, self._behind = sides[True], sides[False]
        self._offsets = [
            one for partition, all_of in seen.offsets.items() for one in all_of if one.settled <= self._end(partition)
        ]
        self.groups = {one.key: one.offset for one in self._offsets}
        self.open = {
            producer for partition, batches in seen.batches.items() for producer in _open(batches, self._end(partition))
        }

    def _end(self, partition: Partition) -> Offset:
        return self._cut.ends.get(partition, 0)

    def findings(self) -> Iterator[Finding]:
        for part in (self._misses, self._splits, self._groups, self._names):
            yield from part()

    def _misses(self) -> Iterator[Finding]:
        began_ns = self._cut.began_ns
        known = {(one.key, one.offset) for one in self._offsets}
        for record in self._seen.records:
            if record.acked_ns < began_ns and record.offset >= self._end(record.partition):
                yield self._finding("misses-acknowledged", f"{record}: it ends at {self._end(record.partition)}")
        for number, ended_ns in self._seen.committed.items():
            if ended_ns < began_ns and number not in self.inside:
                yield self._finding("misses-acknowledged", f"transaction {number} was committed at {ended_ns} ns")
        for commit in self._seen.commits:
            if commit.acked_ns < began_ns and (commit.key, commit.offset) not in known:
                yield self._finding("misses-acknowledged", f"{commit}")

    def _splits(self) -> Iterator[Finding]:
        for number in sorted(self.inside & self._behind):
            yield self._finding("splits-a-transaction", f"transaction {number} is there in part")
        furthest: dict[GroupKey, Offset] = {}
        for key, number, end in self._seen.taken:
            if number in self.inside:
                furthest[key] = max(furthest.get(key, 0), end)
        for key in sorted({key for key, _, _ in self._seen.taken}):
            if furthest.get(key) != self.groups.get(key):
                text = f"{key} is at {self.groups.get(key)}, and its output goes to {furthest.get(key)}"
                yield self._finding("offsets-apart", text)

    def _groups(self) -> Iterator[Finding]:
        for (group, topic, index), offset in sorted(self.groups.items()):
            if offset > self._end((topic, index)):
                text = f"{group} is at {offset} of {topic}-{index}, which ends at {self._end((topic, index))}"
                yield self._finding("group-beyond-data", text)

    def _names(self) -> Iterator[Finding]:
        for producer in sorted(self.open - self._cut.producers.keys()):
            yield self._finding("open-unnamed", f"nobody knows whose producer {producer} is")

    def _finding(self, name: str, text: str) -> Finding:
        return Finding(f"backup-{name}", f"{self._name}, begun at {self._cut.began_ns} ns: {text}")


def _open(batches: Iterable[DataBatch], end: Offset) -> set[int]:
    found: set[int] = set()
    for one in batches:
        if one.offset >= end:
            break
        if one.commits is None:
            found.add(one.producer_id)
        else:
            found.discard(one.producer_id)
    return found
