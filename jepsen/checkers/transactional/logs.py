"""The logs of a cluster after everything has ended: what the coordinators decided against what partitions hold.

Of the records of transactional ids (numbers: invariants of the design):
- transaction-status (21): statuses follow one another as they may, and within a producer id epochs never fall.
- producer-id-of-two-ids (30).

Of each partition with data of transactions, offsets of groups included:
- marker-undecided (22): each marker is what some decision about this partition says, in the order of the decisions.
- marker-missing (23): each decision has its marker in each of its partitions.
- transaction-open (23, 24): at the end no transaction is open.
- data-behind-its-marker (27): no data of an epoch below that of a marker of its producer in front of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jepsen.checkers.findings import Finding

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
_IDLE = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
_FROM_IDLE = {EMPTY, ONGOING, PREPARE_ABORT}  # an empty one may be aborted for its epoch (KIP-890)
_MOVES: dict[int | None, set[int]] = {
    None: {EMPTY},
    **dict.fromkeys(_IDLE, _FROM_IDLE),
    ONGOING: {ONGOING, PREPARE_COMMIT, PREPARE_ABORT},
    PREPARE_COMMIT: {COMPLETE_COMMIT},
    PREPARE_ABORT: {COMPLETE_ABORT},
}
Partition = tuple[str, int]
"""(topic, index)"""


class IdRecord(NamedTuple):
    """A state of a transactional id, in the order of the log. is_child: of a joint transaction, which begins open."""

    transactional_id: str
    producer_id: int
    epoch: int
    status: int
    partitions: frozenset[Partition]
    is_child: bool = False


class DataBatch(NamedTuple):
    """A transactional batch of a partition; of a marker, whether it commits."""

    offset: int
    producer_id: int
    epoch: int
    commits: bool | None = None


class _Decision(NamedTuple):
    epoch: int
    commits: bool


def check_logs(
    ids: Iterable[Sequence[IdRecord]], data: Mapping[Partition, Sequence[DataBatch]]
) -> tuple[list[Finding], dict[str, int]]:
    """ids: of each partition of the transactions' topic. Returns findings, and what was looked at."""
    findings: list[Finding] = []
    decisions: dict[tuple[Partition, int], list[_Decision]] = defaultdict(list)
    owners: dict[int, str] = {}
    records = 0
    for log in ids:
        records += len(log)
        _check_ids(log, owners, decisions, findings)
    markers = 0
    for partition, batches in data.items():
        markers += sum(batch.commits is not None for batch in batches)
        _check_data(partition, batches, decisions, findings)
    for partition, producer_id in decisions:
        if partition not in data:
            findings.append(Finding("marker-missing", f"{partition} has no log, and producer {producer_id} used it"))
    return findings, {"transaction records checked": records, "markers checked": markers}


def _check_ids(
    log: Sequence[IdRecord],
    owners: dict[int, str],
    decisions: dict[tuple[Partition, int], list[_Decision]],
    findings: list[Finding],
) -> None:
    newest: dict[str, IdRecord] = {}
    epochs: dict[tuple[str, int], int] = {}
    for one in log:
        before = newest.get(one.transactional_id)
        begins_open = before is None and one.is_child and one.status == ONGOING
        if one.status not in _MOVES[None if before is None else before.status] and not begins_open:
            findings.append(Finding("transaction-status", f"{before} is followed by {one}"))
        highest = epochs.get((one.transactional_id, one.producer_id), -1)
        if one.epoch < highest:
            findings.append(Finding("transaction-status", f"{one}, and the epoch was {highest}"))
        epochs[one.transactional_id, one.producer_id] = max(one.epoch, highest)
        owner = owners.setdefault(one.producer_id, one.transactional_id)
        if owner != one.transactional_id:
            findings.append(Finding("producer-id-of-two-ids", f"{one}: {owner} has it"))
        newest[one.transactional_id] = one
        if one.status in (PREPARE_COMMIT, PREPARE_ABORT):
            for partition in one.partitions:
                decision = _Decision(one.epoch, one.status == PREPARE_COMMIT)
                decisions[partition, one.producer_id].append(decision)


def _check_data(
    partition: Partition,
    batches: Sequence[DataBatch],
    decisions: Mapping[tuple[Partition, int], list[_Decision]],
    findings: list[Finding],
) -> None:
    by_producer: dict[int, list[DataBatch]] = defaultdict(list)
    for batch in batches:
        by_producer[batch.producer_id].append(batch)
    expected = {producer_id for where, producer_id in decisions if where == partition}
    for producer_id in sorted({*by_producer, *expected}):
        found = by_producer[producer_id]
        where = f"{partition[0]}-{partition[1]}, producer {producer_id}"
        findings += _check_producer(where, found, decisions.get((partition, producer_id), []))


def _check_producer(where: str, batches: Sequence[DataBatch], decisions: Sequence[_Decision]) -> list[Finding]:
    """A marker that is written again looks like that of a next, equal decision: every possibility is followed."""
    findings: list[Finding] = []
    possible = {0}  # how many decisions have had their marker
    opened: DataBatch | None = None
    newest_marker = -1
    for batch in batches:
        if batch.commits is None:
            if batch.epoch < newest_marker:
                text = f"{where}: {batch}, behind a marker of epoch {newest_marker}"
                findings.append(Finding("data-behind-its-marker", text))
            opened = opened or batch
            continue
        said = _Decision(batch.epoch, batch.commits)
        following = {count + 1 for count in possible if count < len(decisions) and decisions[count] == said}
        if opened is None:
            following |= {count for count in possible if count > 0 and decisions[count - 1] == said}
        if not following:
            findings.append(Finding("marker-undecided", f"{where}: {batch}; decided was {list(decisions)}"))
            return findings
        possible, opened, newest_marker = following, None, max(newest_marker, batch.epoch)
    if opened is not None:
        findings.append(Finding("transaction-open", f"{where}: {opened} has no marker"))
    elif len(decisions) not in possible:
        missing = decisions[max(possible) :]
        findings.append(Finding("marker-missing", f"{where}: no marker for {missing}"))
    return findings
