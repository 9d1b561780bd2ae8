"""Causes about replicas that are not in sync, and about what that costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from quorumlog.explaining.causes.away import Away, bring_back, read, since_ms, why_away
from quorumlog.explaining.causes.table import DISK, SEGMENT, Cause
from quorumlog.explaining.facts import Facts, PartitionFact
from quorumlog.explaining.finding import Evidence, Finding, Severity, evidence, listed
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event

CALL = "Metadata"
_ISR = re.compile(r"ISR \[([\d,]*)\] -> \[([\d,]*)\]")
AWAY, OFFLINE, SLOW, THROTTLED, LAGGING = (
    "replica.broker-away",
    "replica.directory-offline",
    "replica.slow-disk",
    "replica.throttled",
    "replica.lagging",
)


def cause_of(facts: Facts, one: PartitionFact, node: int, limits: Thresholds) -> str:
    """Why this replica is out of the ISR: what is certain comes before what is likely."""
    if not facts.live(node):
        return AWAY
    if any(each.node_id == node and each.error for each in facts.directories):
        return OFFLINE
    if _slow(facts, node, limits) is not None:
        return SLOW
    return THROTTLED if one.throttled and (one.adding or one.removing) else LAGGING


def _slow(facts: Facts, node: int, limits: Thresholds) -> Event | None:
    events = facts.events_of("", "disk.slow", since_ms=facts.at_ms - limits.recent_ms)
    return next((one for one in reversed(events) if one.node_id == node), None)


def _missing(facts: Facts, wanted: str, limits: Thresholds) -> Iterator[tuple[PartitionFact, int]]:
    for one in facts.partitions:
        if one.leader >= 0:
            for node in one.missing:
                if cause_of(facts, one, node, limits) == wanted:
                    yield one, node


def _finding(
    facts: Facts,
    one: PartitionFact,
    cause: str,
    who: str,
    more: list[Evidence | Event | None],
    *,
    severity: Severity,
    coming: str,
    do: str,
    node: int,
) -> Finding:
    subject = f"partition/{one.name}"
    told = f"{one.name}: ISR {list(one.isr)}, replicas {list(one.wanted)}, min.insync.replicas {one.min_isr}"
    return Finding(
        cause=cause,
        subject=subject,
        severity=severity,
        state=f"{one.name} is UNDER-REPLICATED: ISR {list(one.isr)} of {list(one.wanted)}{_cost(one)}; {who}",
        why=evidence(_left(facts, subject, node), *more, read(facts, told, CALL)),
        next=coming,
        do=do,
        also=(f"topic/{one.topic}", f"broker/{node}"),
    )


def _left(facts: Facts, subject: str, node: int) -> Event | None:
    """The newest event by which this replica left the ISR."""
    for one in reversed(facts.events_of(subject, "partition.isr")):
        found = _ISR.fullmatch(one.text)
        if found is not None and str(node) in found[1].split(",") and str(node) not in found[2].split(","):
            return one
    return None


def _cost(one: PartitionFact) -> str:
    spare = len(one.isr) - _minimum(one)
    if spare < 0:
        return ", fewer than min.insync.replicas"
    return ", one more loss stops writes" if spare == 0 else f", {spare} more may be lost before writes stop"


def _minimum(one: PartitionFact) -> int:
    """As Kafka counts: never more than there are replicas."""
    return min(one.min_isr, len(one.wanted))


def _away(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, node in _missing(facts, AWAY, limits):
        broker = facts.broker(node)
        if broker is None:
            events: tuple[Event, ...] = ()
            who, calm = f"broker {node} is not registered", False
            told = read(facts, f"broker {node} is not registered", "DescribeCluster")
        else:
            away, events = why_away(facts, broker, limits)
            who = f"broker {node} is fenced: {away.value}"
            in_order = away in (Away.SHUT_DOWN, Away.STARTING)
            calm = in_order and since_ms(facts, events) <= limits.under_replicated_ms
            told = read(facts, f"broker {node} is fenced", "DescribeCluster")
        yield _finding(
            facts, one, AWAY, who, [*events, told],
            severity=Severity.NOTICE if calm else Severity.WARNING,
            coming=f"once broker {node} is back, it copies what it lacks and comes into the ISR",
            do=bring_back(facts, (node,)), node=node,
        )  # fmt: skip


def _offline(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, node in _missing(facts, OFFLINE, limits):
        broken = next(each for each in facts.directories if each.node_id == node and each.error)
        event = facts.last_event(f"directory/{broken.path}", "directory.offline")
        told = read(facts, f"{broken.path}: {broken.error}", f"DescribeLogDirs of broker {node}")
        yield _finding(
            facts, one, OFFLINE, f"broker {node} has a directory that is offline, {broken.path}", [event, told],
            severity=Severity.WARNING,
            coming="once the directory is back and verified, the replica copies what it lacks",
            do=f"quorumlog log-dirs online --node {node} {quote(broken.path)}", node=node,
        )  # fmt: skip


def _slow_disk(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, node in _missing(facts, SLOW, limits):
        yield _finding(
            facts, one, SLOW, f"the disk of broker {node} is slow", [_slow(facts, node, limits)],
            severity=Severity.WARNING,
            coming="it comes back into the ISR once its disk keeps up with the leader",
            do=f"quorumlog broker describe {node}", node=node,
        )  # fmt: skip


def _throttled(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, node in _missing(facts, THROTTLED, limits):
        told = read(
            facts,
            f"{one.name} is being reassigned, and {one.topic} has a replication throttle",
            "ListPartitionReassignments",
        )
        yield _finding(
            facts, one, THROTTLED, f"broker {node} is held back by the throttle of a reassignment", [told],
            severity=Severity.WARNING,
            coming="it catches up as fast as the throttle lets it",
            do="quorumlog partition status", node=node,
        )  # fmt: skip


def _lagging(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, node in _missing(facts, LAGGING, limits):
        up = facts.last_event(f"broker/{node}", "broker.unfenced", since_ms=facts.at_ms - limits.starting_ms)
        out = facts.last_event(f"partition/{one.name}", "partition.isr")
        fresh = out is not None and facts.at_ms - out.at_ms <= limits.follower_ms
        lag = one.lags.get(node)
        behind = "" if lag is None else f" and is {lag} records behind"
        live = read(facts, f"broker {node} is not fenced", "DescribeCluster")
        figure = (
            None
            if lag is None
            else read(facts, f"{one.name} is {lag} records behind", f"DescribeLogDirs of broker {node}")
        )
        who = f"broker {node} lives{behind}" + (", it has just come back" if up is not None else "")
        yield _finding(
            facts, one, LAGGING, who, [up, live, figure],
            severity=Severity.NOTICE if up is not None or fresh else Severity.WARNING,
            coming="it comes back into the ISR once it has reached the leader's end",
            do=f"quorumlog partition list {one.name}", node=node,
        )  # fmt: skip


def _below(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.partitions:
        if one.leader >= 0 and len(one.isr) < _minimum(one):
            subject = f"partition/{one.name}"
            told = f"{one.name}: ISR {list(one.isr)}, min.insync.replicas {one.min_isr}"
            gone = tuple(node for node in one.missing if not facts.live(node))
            yield Finding(
                cause="isr.below-minimum",
                subject=subject,
                severity=Severity.CRITICAL,
                state=f"{one.name} REJECTS acks=all: {len(one.isr)} in sync, min.insync.replicas {one.min_isr}",
                why=evidence(facts.last_event(subject, "partition.isr"), read(facts, told, CALL)),
                next=f"writes are taken again once {_minimum(one)} replicas are in sync",
                do=bring_back(facts, gone) if gone else f"quorumlog partition list {one.name}",
                also=(f"topic/{one.topic}",),
            )


def _moving(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.partitions:
        if one.adding or one.removing:
            subject = f"partition/{one.name}"
            told = f"{one.name}: adding {list(one.adding)}, removing {list(one.removing)}"
            yield Finding(
                cause="reassignment.running",
                subject=subject,
                severity=Severity.NOTICE,
                state=f"{one.name} is being REASSIGNED: brokers {listed(one.adding) or 'none'} are added, "
                f"{listed(one.removing) or 'none'} removed",
                why=evidence(
                    facts.last_event(subject, "partition.reassignment"),
                    read(facts, told, "ListPartitionReassignments"),
                ),
                next="it ends by itself once those that are added are in sync",
                do="quorumlog partition status",
                also=(f"topic/{one.topic}",),
            )


def _cannot_end(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.partitions:
        gone = tuple(node for node in one.adding if not facts.live(node))
        if gone:
            subject = f"partition/{one.name}"
            told = f"{one.name}: adding {list(one.adding)}, removing {list(one.removing)}"
            yield Finding(
                cause="reassignment.cannot-end",
                subject=subject,
                severity=Severity.WARNING,
                state=f"the reassignment of {one.name} CANNOT END: brokers {listed(gone)}, which are being added, are "
                "away",
                why=evidence(
                    facts.last_event(subject, "partition.reassignment"),
                    *(facts.last_event(f"broker/{node}", "broker.fenced") for node in gone),
                    read(facts, told, "ListPartitionReassignments"),
                    read(facts, f"brokers {list(gone)} are fenced or not registered", "DescribeCluster"),
                ),
                next="the replicas that it has go on; it ends once those brokers are back and in sync",
                do=bring_back(facts, gone),
                also=(f"topic/{one.topic}", *(f"broker/{node}" for node in gone)),
            )


REPLICAS = (
    Cause("isr.below-minimum", SEGMENT, "fewer replicas are in sync than writes with acks=all need", _below),
    Cause(AWAY, SEGMENT, "a replica's broker is fenced or not registered", _away),
    Cause(OFFLINE, DISK, "a replica's broker lives and has a directory that is offline", _offline),
    Cause(SLOW, DISK, "a replica's broker has a slow disk", _slow_disk),
    Cause(THROTTLED, SEGMENT, "the throttle of a reassignment holds a replica back", _throttled),
    Cause(LAGGING, SEGMENT, "a replica's broker lives and does not keep up", _lagging),
    Cause("reassignment.cannot-end", SEGMENT, "a replica is being added on a broker that is away", _cannot_end),
    Cause("reassignment.running", SEGMENT, "replicas are being added or removed", _moving),
)
