"""Causes about the metadata quorum, and about a cluster that nobody reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quorumlog.explaining.causes.away import bring_back, read
from quorumlog.explaining.causes.table import QUORUM, Cause
from quorumlog.explaining.facts import Facts, QuorumFact, VoterFact
from quorumlog.explaining.finding import Finding, Severity, evidence, listed
from quorumlog.explaining.thresholds import Thresholds

CALL = "DescribeQuorum"
SETTLE_MS = 10_000  # after an election, before a voter that has not fetched counts as silent
_EPOCH = re.compile(r"in epoch (\d+)")


def _unreachable(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    if facts.unreachable:
        yield Finding(
            cause="cluster.unreachable",
            subject="cluster",
            severity=Severity.CRITICAL,
            state="NO BROKER ANSWERS",
            why=evidence(read(facts, facts.unreachable, "the client's connections")),
            next="unknown: nothing could be asked",
            do="quorumlog status" if facts.is_local else "look at the brokers' processes, and at the way to them",
        )


def _silent(quorum: QuorumFact, facts: Facts, limits: Thresholds) -> list[VoterFact]:
    """Voters that do not fetch. One that never has in this epoch counts once the epoch has settled."""
    last = facts.last_event("quorum", "quorum.leader")
    settled = not facts.has_events or last is None or facts.at_ms - last.at_ms > SETTLE_MS
    return [
        one
        for one in quorum.voters
        if one.node_id != quorum.leader
        and (one.since_fetch_ms > limits.voter_silent_ms or (one.since_fetch_ms < 0 and settled))
    ]


def _no_leader(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    quorum, why = facts.quorum, facts.unknown.get("quorum", "")
    if facts.unreachable or (quorum is not None and quorum.leader >= 0) or (quorum is None and not why):
        return
    yield Finding(
        cause="quorum.no-leader",
        subject="quorum",
        severity=Severity.CRITICAL,
        state="the quorum has NO LEADER that answers: no topic can be made and no partition gets another leader",
        why=evidence(facts.last_event("quorum", "quorum.leader"), read(facts, why or "the leader's id is -1", CALL)),
        next="a majority of voters that reach each other elects one within seconds; records flow meanwhile",
        do="quorumlog status" if facts.is_local else "start enough of the controllers again for a majority",
    )


def _no_majority(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    quorum = facts.quorum
    if quorum is None or quorum.leader < 0:
        return
    silent = _silent(quorum, facts, limits)
    if 2 * (len(quorum.voters) - len(silent)) <= len(quorum.voters):
        yield Finding(
            cause="quorum.no-majority",
            subject="quorum",
            severity=Severity.CRITICAL,
            state=f"the quorum has NO MAJORITY: {len(silent)} of {len(quorum.voters)} voters do not fetch from leader "
            f"{quorum.leader}, so nothing is committed",
            why=evidence(*(read(facts, _fetched(one), CALL) for one in silent)),
            next="the leader resigns; one is elected once a majority reach each other",
            do=bring_back(facts, tuple(one.node_id for one in silent)),
        )


def _dead(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    quorum = facts.quorum
    if quorum is None or quorum.leader < 0:
        return
    for one in _silent(quorum, facts, limits):
        yield Finding(
            cause="quorum.voter-silent",
            subject="quorum",
            severity=Severity.WARNING,
            state=f"voter {one.node_id} is SILENT: it does not fetch from leader {quorum.leader}",
            why=evidence(read(facts, _fetched(one), CALL)),
            next=f"once it is back it copies {max(0, quorum.end_offset - one.end_offset)} records, or a snapshot",
            do=bring_back(facts, (one.node_id,)),
            also=(f"broker/{one.node_id}",),
        )


def _lagging(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    quorum = facts.quorum
    if quorum is None or quorum.leader < 0:
        return
    silent = {one.node_id for one in _silent(quorum, facts, limits)}
    for one in quorum.voters:
        lag = quorum.end_offset - one.end_offset
        if one.node_id not in silent and one.end_offset >= 0 and lag > limits.voter_lag:
            text = f"voter {one.node_id} ends at {one.end_offset}, the leader at {quorum.end_offset}"
            yield Finding(
                cause="quorum.voter-lagging",
                subject="quorum",
                severity=Severity.WARNING,
                state=f"voter {one.node_id} LAGS by {lag} metadata records",
                why=evidence(read(facts, text, CALL)),
                next="it catches up, unless its disk or its network is slower than the changes",
                do="quorumlog quorum status",
                also=(f"broker/{one.node_id}",),
            )


def _fetched(one: VoterFact) -> str:
    if one.since_fetch_ms < 0:
        return f"voter {one.node_id} has not fetched in this epoch"
    return f"voter {one.node_id} fetched {one.since_fetch_ms} ms ago"


def _churning(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    events = facts.events_of("quorum", "quorum.leader", since_ms=facts.at_ms - limits.epochs_ms)
    by_epoch = {int(found[1]): one for one in events if (found := _EPOCH.search(one.text))}
    if len(by_epoch) > limits.epochs:
        yield Finding(
            cause="quorum.epochs-churn",
            subject="quorum",
            severity=Severity.WARNING,
            state=f"the quorum's epochs CHURN: {len(by_epoch)} elections in {limits.epochs_ms // 60_000} minutes, "
            f"epochs {listed(sorted(by_epoch))}",
            why=evidence(*by_epoch.values()),
            next="each election stops changes of metadata for a moment; it goes on until its cause is gone",
            do="quorumlog quorum status",
        )


OF_QUORUM = (
    Cause("cluster.unreachable", QUORUM, "no broker answers", _unreachable),
    Cause("quorum.no-leader", QUORUM, "no leader of the quorum is known", _no_leader),
    Cause("quorum.no-majority", QUORUM, "too few voters fetch for a commit", _no_majority),
    Cause("quorum.voter-silent", QUORUM, "a voter does not fetch: dead, hung, or cut off", _dead),
    Cause("quorum.voter-lagging", QUORUM, "a voter fetches and is far behind", _lagging),
    Cause("quorum.epochs-churn", QUORUM, "leaders of the quorum change again and again", _churning),
)
