"""What the nodes' metadata logs say, read from their files after the run, and whether it agrees with the clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from jepsen.checkers.findings import Finding
from jepsen.live.controllers.changes import KEY, TOPIC_RESOURCE, Change, Outcome
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.metadata_records import ConfigRecord, TopicRecord
from quorumlog.records.control import LeaderChange, decode_control
from quorumlog_cli.offline.batches import FoundBatch, log_files, read_batches
from quorumlog_quorum.metadata.frame import decode_record


@dataclass(slots=True)
class Log:
    """One node's metadata log. leaders: epoch, leader and time (ms, wall clock) of each LeaderChange record, in order.

    values: of each topic's setting; created: new topics; both in the order of the log.
    """

    node: str
    epochs: list[Epoch] = field(default_factory=list)  # of the batches
    leaders: list[tuple[Epoch, NodeId, int]] = field(default_factory=list)
    values: dict[str, list[int]] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    end: Offset = 0


def read_log(node: str, directory: Path) -> Log:
    """A torn batch at the end of the last file ends it."""
    log = Log(node)
    for path in log_files(directory):
        for found in read_batches(path):
            if not isinstance(found, FoundBatch):
                return log
            _add(log, found)
    return log


def _add(log: Log, batch: FoundBatch) -> None:
    log.epochs.append(batch.header.leader_epoch)
    for record in batch.records():
        log.end = record.offset + 1
        if batch.header.is_control:
            control = decode_control(record.key, record.value)
            if isinstance(control, LeaderChange):
                log.leaders.append((batch.header.leader_epoch, control.leader_id, record.timestamp_ms))
            continue
        meaning = decode_record(record.value or b"")
        if isinstance(meaning, TopicRecord):
            log.created.append(meaning.name)
        elif isinstance(meaning, ConfigRecord) and (meaning.resource_type, meaning.name) == (TOPIC_RESOURCE, KEY):
            log.values.setdefault(meaning.resource_name, []).append(int(meaning.value or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One fault. epoch: that the node led, as a read confirmed just before. before, after: acknowledged changes since
    the last fault, and until the next one. at_s: wall clock."""

    kind: str
    node_id: NodeId
    epoch: Epoch
    at_s: float
    before: int
    after: int


def check_logs(logs: Sequence[Log]) -> list[Finding]:
    """One leader for each epoch, in all logs together, and epochs that never fall."""
    findings = []
    leaders: dict[Epoch, NodeId] = {}
    for log in logs:
        for epoch, leader, _ in log.leaders:
            first = leaders.setdefault(epoch, leader)
            if first != leader:
                findings.append(
                    Finding("one-leader", f"epoch {epoch} was led by {first}, and {log.node} says {leader}")
                )
        if any(later < earlier for earlier, later in pairwise(log.epochs)):
            findings.append(Finding("epochs-rise", f"an epoch in the log of {log.node} is below the one before it"))
        if [epoch for epoch, _, _ in log.leaders] != sorted({epoch for epoch, _, _ in log.leaders}):
            findings.append(Finding("epochs-rise", f"{log.node} has two LeaderChange records of one epoch"))
    return findings


def check_changes(log: Log, changes: Iterable[Change]) -> list[Finding]:
    """Each acknowledged change is in the log once, in the order in which its key was changed. Others at most once."""
    findings = []
    by_topic: dict[str, list[Change]] = {}
    for change in changes:
        by_topic.setdefault(change.topic, []).append(change)
    for topic, sent in by_topic.items():
        made = log.created.count(topic)
        settings = [change for change in sent if change.value is not None]
        acked = [change.value for change in settings if change.outcome is Outcome.ACKNOWLEDGED]
        kept = log.values.get(topic, [])
        lost = [value for value in acked if value not in kept]
        if lost or (made == 0 and any(c.value is None and c.outcome is Outcome.ACKNOWLEDGED for c in sent)):
            findings.append(
                Finding("lost-change", f"{topic}: acknowledged and not in {log.node}: {lost or 'the topic'}")
            )
        if made > 1 or len(set(kept)) < len(kept):
            findings.append(Finding("change-twice", f"{topic}: a change was carried out twice"))
        if [value for value in kept if value in set(acked)] != acked and not lost:
            findings.append(
                Finding("changes-in-order", f"{topic}: acknowledged changes are in another order in the log")
            )
    return findings


def check_strikes(log: Log, strikes: Iterable[Strike], least: int) -> list[Finding]:
    """Each fault hit the leader of that time, a later epoch followed, and changes were acknowledged around it."""
    findings = []
    led = {epoch: leader for epoch, leader, _ in log.leaders}
    for number, strike in enumerate(strikes, 1):
        name = f"fault {number}, {strike.kind} of node {strike.node_id}"
        if led.get(strike.epoch) != strike.node_id:
            findings.append(Finding("struck-the-leader", f"{name}: epoch {strike.epoch} is of {led.get(strike.epoch)}"))
        later = [at_ms for epoch, _, at_ms in log.leaders if epoch > strike.epoch]
        if not later or later[0] < strike.at_s * 1000:
            findings.append(Finding("struck-the-leader", f"{name}: another leader was there already, or none followed"))
        if min(strike.before, strike.after) < least:
            text = f"{name}: {strike.before} changes acknowledged before it and {strike.after} after, {least} wanted"
            findings.append(Finding("enough-changes", text))
    return findings
