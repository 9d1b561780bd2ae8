"""Causes about partitions without a leader, and about one that should not have led."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from quorumlog.explaining.causes.away import bring_back, read
from quorumlog.explaining.causes.table import SEGMENT, Cause
from quorumlog.explaining.facts import Facts, PartitionFact
from quorumlog.explaining.finding import Evidence, Finding, Severity, evidence, listed
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event

CALL = "Metadata"
ALL_DEAD, ELR_ONLY, OFFLINE, UNCLEAN = (
    "leader.all-replicas-dead",
    "leader.eligible-replicas-dead",
    "leader.directory-offline",
    "leader.unclean-needed",
)


def cause_of(facts: Facts, one: PartitionFact) -> str:
    """Why it has no leader. Who may lead: the ISR, then the eligible replicas, then the last leader."""
    if any(facts.live(node) and _offline(facts, node) for node in _may_lead(facts, one)):
        return OFFLINE
    if not any(facts.live(node) for node in one.replicas):
        return ALL_DEAD
    return ELR_ONLY if one.elr and not any(facts.live(node) for node in one.elr) else UNCLEAN


def _may_lead(facts: Facts, one: PartitionFact) -> tuple[int, ...]:
    """A replica whose directory fails leaves the ISR and is not eligible. If it was the only one, no list has it."""
    live = tuple(node for node in one.replicas if facts.live(node))
    lost = live if all(_offline(facts, node) for node in live) else ()
    return one.isr or one.elr or one.last_known_elr or lost


def _offline(facts: Facts, node: int) -> bool:
    return any(one.node_id == node and one.error for one in facts.directories)


def _without(wanted: str, facts: Facts) -> Iterator[PartitionFact]:
    return (one for one in facts.partitions if one.leader < 0 and cause_of(facts, one) == wanted)


def _finding(
    facts: Facts, one: PartitionFact, cause: str, state: str, more: list[Evidence | Event | None], coming: str, do: str
) -> Finding:
    subject = f"partition/{one.name}"
    told = f"{one.name}: leader none, ISR {list(one.isr)}, eligible {list(one.elr)}, replicas {list(one.replicas)}"
    return Finding(
        cause=cause,
        subject=subject,
        severity=Severity.CRITICAL,
        state=f"{one.name} has NO LEADER, so nobody reads or writes it: {state}",
        why=evidence(facts.last_event(subject, "partition.leader"), *more, read(facts, told, CALL)),
        next=coming,
        do=do,
        also=(f"topic/{one.topic}",),
    )


def _fenced_events(facts: Facts, nodes: tuple[int, ...]) -> list[Evidence | Event | None]:
    return [facts.last_event(f"broker/{node}", "broker.fenced") for node in nodes]


def _all_dead(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in _without(ALL_DEAD, facts):
        text = f"brokers {list(one.replicas)} are fenced or not registered"
        more = [*_fenced_events(facts, one.replicas), read(facts, text, "DescribeCluster")]
        who = one.isr or one.elr or one.last_known_elr or one.replicas
        coming = f"the first of brokers {listed(who)} that comes back leads it, without loss"
        state = f"all of its brokers {list(one.replicas)} are away"
        yield _finding(facts, one, ALL_DEAD, state, more, coming, bring_back(facts, who))


def _elr_only(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in _without(ELR_ONLY, facts):
        live = [node for node in one.replicas if facts.live(node)]
        more = [*_fenced_events(facts, one.elr), read(facts, f"brokers {list(one.elr)} are fenced", "DescribeCluster")]
        state = (
            f"only brokers {list(one.elr)} hold every acknowledged record, and they are away; {live} live and lack some"
        )
        coming = f"the first of brokers {listed(one.elr)} that comes back leads it, without loss"
        yield _finding(facts, one, ELR_ONLY, state, more, coming, bring_back(facts, one.elr))


def _directory(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in _without(OFFLINE, facts):
        may_lead = _may_lead(facts, one)
        broken = [each for each in facts.directories if each.error and each.node_id in may_lead]
        more: list[Evidence | Event | None] = [
            facts.last_event(f"directory/{each.path}", "directory.offline") for each in broken
        ]
        more += [
            read(facts, f"{each.path}: {each.error}", f"DescribeLogDirs of broker {each.node_id}") for each in broken
        ]
        first = broken[0]
        state = f"broker {first.node_id} has it in a directory that is offline, {first.path}"
        coming = "nothing by itself; once the directory is back and verified, it leads again"
        do = f"quorumlog log-dirs online --node {first.node_id} {quote(first.path)}"
        yield _finding(facts, one, OFFLINE, state, more, coming, do)


def _unclean(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in _without(UNCLEAN, facts):
        live = [node for node in one.replicas if facts.live(node)]
        last = tuple(dict.fromkeys((*one.isr, *one.elr, *one.last_known_elr)))
        gone = tuple(node for node in last if not facts.live(node))
        who = f"brokers {list(gone)}, which were in sync last, are away" if gone else "no replica in sync is known"
        more = [*_fenced_events(facts, gone), read(facts, f"brokers {live} live", "DescribeCluster")]
        coming = "if one of them comes back, it leads without loss; an unclean election loses what the others lack"
        do = bring_back(facts, gone) if gone else f"quorumlog partition elect-leader --unclean --dry-run {one.name}"
        yield _finding(facts, one, UNCLEAN, f"{who}; {live} live and may lack records", more, coming, do)


def _elected(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    events = facts.events_of("", "partition.unclean", since_ms=facts.at_ms - limits.unclean_ms)
    for event in {one.subject: one for one in events}.values():
        name = event.subject.partition("/")[2]
        yield Finding(
            cause="leader.unclean-election",
            subject=event.subject,
            severity=Severity.WARNING,
            state=f"{name} got its leader by an UNCLEAN election in the last hour: acknowledged records may be lost",
            why=evidence(event),
            next="nothing brings lost records back; consumers may read other records at offsets that they know",
            do=f"quorumlog topic describe {name.rpartition('-')[0]}",
            also=(f"topic/{name.rpartition('-')[0]}",),
        )


LEADERS = (
    Cause(ALL_DEAD, SEGMENT, "no leader: every replica's broker is away", _all_dead),
    Cause(ELR_ONLY, SEGMENT, "no leader: only replicas that are away hold every acknowledged record", _elr_only),
    Cause(OFFLINE, SEGMENT, "no leader: the replica that could lead lies in an offline directory", _directory),
    Cause(UNCLEAN, SEGMENT, "no leader: who lives may lack records, so it takes an operator's word", _unclean),
    Cause("leader.unclean-election", SEGMENT, "a leader outside the ISR was elected a short while ago", _elected),
)
