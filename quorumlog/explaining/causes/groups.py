"""Causes about groups. An offset that no member reads is shown and is nobody's alarm (Burrow's old trouble)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from quorumlog.explaining.causes.away import read
from quorumlog.explaining.causes.table import LAG, Cause
from quorumlog.explaining.facts import Facts, GroupFact
from quorumlog.explaining.finding import Finding, Severity, evidence, listed
from quorumlog.explaining.thresholds import Thresholds

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_BEGUN = re.compile(r"(?:generation|group epoch) (\d+) with ")
OFFSETS = "OffsetFetch and CountRecords, of an Apache Kafka ListOffsets"


def _coordinator(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.groups:
        if one.coordinator_error:
            loading = "LOAD" in one.coordinator_error.upper()
            yield Finding(
                cause="group.coordinator-loading" if loading else "group.no-coordinator",
                subject=f"group/{one.group_id}",
                severity=Severity.WARNING,
                state=f"group {one.group_id} has no coordinator that serves"
                + (": it LOADS its offsets" if loading else ""),
                why=evidence(read(facts, one.coordinator_error, "DescribeGroups")),
                next="members wait and go on with their partitions; commits are repeated",
                do="quorumlog partition list __consumer_offsets",
            )


def _loading(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return (one for one in _coordinator(facts, limits) if one.cause == "group.coordinator-loading")


def _none(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return (one for one in _coordinator(facts, limits) if one.cause == "group.no-coordinator")


def _rebalancing(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in facts.groups:
        if one.state not in REBALANCING:
            continue
        subject = f"group/{one.group_id}"
        events = facts.events_of(subject, "group.rebalance")
        long = bool(events) and facts.at_ms - events[-1].at_ms > limits.rebalance_ms
        told = f"group {one.group_id} is {one.state}, with {len(one.members)} members: {listed(one.members)}"
        state = f"group {one.group_id} REBALANCES"
        if long:
            waited = (facts.at_ms - events[-1].at_ms) // 1000
            state = f"group {one.group_id} is STUCK in a rebalance for {waited} s: a member does not answer"
        yield Finding(
            cause="group.member-does-not-rejoin" if long else "group.rebalancing",
            subject=subject,
            severity=Severity.WARNING if long else Severity.NOTICE,
            state=state,
            why=evidence(*events[-2:], read(facts, told, "DescribeGroups")),
            next="members that have not joined when their rebalance time-out ends lose their place; the others go on",
            do=f"quorumlog group describe {quote(one.group_id)} --members",
        )


def _stuck_rebalance(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return (one for one in _rebalancing(facts, limits) if one.cause == "group.member-does-not-rejoin")


def _calm_rebalance(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return (one for one in _rebalancing(facts, limits) if one.cause == "group.rebalancing")


def _storming(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    """Also where the group is stable at the moment of the reading: between two rebalances it always is."""
    for one in facts.groups:
        subject = f"group/{one.group_id}"
        events = facts.events_of(subject, "group.rebalance", since_ms=facts.at_ms - limits.recent_ms)
        begun = {int(found[1]): each for each in events if (found := _BEGUN.match(each.text))}
        if len(begun) > limits.rebalances:
            told = f"group {one.group_id} is {one.state}, with {len(one.members)} members: {listed(one.members)}"
            yield Finding(
                cause="group.rebalances-often",
                subject=subject,
                severity=Severity.WARNING,
                state=f"group {one.group_id} REBALANCES AGAIN AND AGAIN: {len(begun)} times in the last "
                f"{limits.recent_ms // 1000} s",
                why=evidence(*list(begun.values())[-3:], read(facts, told, "DescribeGroups")),
                next="its members read little between two of them; it goes on while members come and go, as one does "
                "that is restarted again and again or polls too rarely",
                do=f"quorumlog group describe {quote(one.group_id)} --members",
            )


def _lag_texts(facts: Facts, one: GroupFact) -> list[str]:
    worst = max(one.samples[-1].lag, key=lambda key: one.samples[-1].lag[key], default=None)
    texts = [f"group {one.group_id} is {each.total} records behind" for each in one.samples]
    if worst is not None:
        texts.append(f"most of it, {one.samples[-1].lag[worst]} records, on {worst[0]}-{worst[1]}")
    return texts


def _with_members(facts: Facts) -> Iterator[GroupFact]:
    return (one for one in facts.groups if one.members and one.samples and one.state not in REBALANCING)


def _is_stuck(one: GroupFact, limits: Thresholds) -> bool:
    first, last = one.samples[0], one.samples[-1]
    return (
        last.at_ms - first.at_ms >= limits.stuck_ms
        and first.total > 0
        and last.total > 0
        and first.committed == last.committed
    )


def _stuck(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in _with_members(facts):
        if _is_stuck(one, limits):
            seconds, lag = (one.samples[-1].at_ms - one.samples[0].at_ms) / 1000, one.samples[-1].total
            told = f"group {one.group_id} committed nothing in {seconds:.0f} s, and has members {listed(one.members)}"
            yield Finding(
                cause="group.commits-nothing",
                subject=f"group/{one.group_id}",
                severity=Severity.WARNING,
                state=f"group {one.group_id} is STUCK: it commits nothing and is {lag} records behind",
                why=evidence(
                    facts.last_event(f"group/{one.group_id}", "group.rebalance"),
                    *(read(facts, text, OFFSETS) for text in (told, *_lag_texts(facts, one))),
                ),
                next="its lag grows with what is produced; a member that does not poll in time loses its partitions",
                do=f"quorumlog group describe {quote(one.group_id)} --members",
            )


def _far(facts: Facts, limits: Thresholds) -> Iterator[tuple[GroupFact, bool]]:
    for one in _with_members(facts):
        lag = one.samples[-1].total
        if lag > limits.lag and not _is_stuck(one, limits):
            yield one, lag > one.samples[0].total


def _behind(facts: Facts, one: GroupFact, cause: str, state: str, coming: str) -> Finding:
    return Finding(
        cause=cause,
        subject=f"group/{one.group_id}",
        severity=Severity.WARNING,
        state=state,
        why=evidence(*(read(facts, text, OFFSETS) for text in _lag_texts(facts, one))),
        next=coming,
        do=f"quorumlog group describe {quote(one.group_id)} --offsets",
    )


def _grows(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, grows in _far(facts, limits):
        if grows:
            lag = one.samples[-1].total
            state = f"the lag of group {one.group_id} GROWS: {lag} records behind"
            coming = (
                "it grows on while more is produced than the group reads; more members read up to one partition each"
            )
            yield _behind(facts, one, "group.lag-grows", state, coming)


def _lags(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one, grows in _far(facts, limits):
        if not grows:
            lag = one.samples[-1].total
            state = f"group {one.group_id} is FAR BEHIND: {lag} records"
            yield _behind(
                facts, one, "group.lag", state, "it catches up, as long as it reads faster than others produce"
            )


def _no_members(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.groups:
        if one.state == "Empty" and not one.members and one.samples and one.samples[-1].total > 0:
            lag = one.samples[-1].total
            yield Finding(
                cause="group.no-members",
                subject=f"group/{one.group_id}",
                severity=Severity.NOTICE,
                state=f"group {one.group_id} has NO MEMBERS, and {lag} records wait for it",
                why=evidence(
                    facts.last_event(f"group/{one.group_id}", "group.rebalance"),
                    read(facts, f"group {one.group_id} is Empty", "DescribeGroups"),
                    *(read(facts, text, OFFSETS) for text in _lag_texts(facts, one)[-2:]),
                ),
                next="its offsets are deleted offsets.retention.minutes after its last member left",
                do=f"quorumlog group describe {quote(one.group_id)} --offsets",
            )


GROUPS = (
    Cause("group.coordinator-loading", LAG, "its coordinator reads its partition still", _loading),
    Cause("group.no-coordinator", LAG, "no broker coordinates it now", _none),
    Cause("group.member-does-not-rejoin", LAG, "a rebalance waits for a member", _stuck_rebalance),
    Cause("group.rebalancing", LAG, "a rebalance has just begun, or nothing tells when it did", _calm_rebalance),
    Cause("group.rebalances-often", LAG, "members come and go, so it rebalances again and again", _storming),
    Cause("group.commits-nothing", LAG, "it has members, is behind, and commits nothing", _stuck),
    Cause("group.lag-grows", LAG, "it is far behind, and more and more so", _grows),
    Cause("group.lag", LAG, "it is far behind", _lags),
    Cause("group.no-members", LAG, "nobody reads for it", _no_members),
)
