"""Causes about brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quorumlog.explaining.causes.away import Away, bring_back, read, since_ms, why_away
from quorumlog.explaining.causes.clients import is_expired
from quorumlog.explaining.causes.table import PERF, SEGMENT, Cause
from quorumlog.explaining.facts import BrokerFact, Facts
from quorumlog.explaining.finding import Finding, Severity, evidence
from quorumlog.explaining.thresholds import Thresholds

_MS = re.compile(r"(\d+) ms")
CALL = "DescribeCluster"


def _away(wanted: Away, facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for broker in facts.brokers:
        if not broker.fenced:
            continue
        away, events = why_away(facts, broker, limits)
        if away is not wanted:
            continue
        long = since_ms(facts, events) > limits.fenced_ms
        calm = away is Away.STARTING or (away is Away.SHUT_DOWN and not long)
        yield Finding(
            cause=_NAMES[away],
            subject=f"broker/{broker.node_id}",
            severity=Severity.NOTICE if calm else Severity.WARNING,
            state=f"broker {broker.node_id} is FENCED, it leads nothing and is in no ISR: {away.value}",
            why=evidence(*events, read(facts, f"broker {broker.node_id} is fenced", CALL)),
            next=_NEXT[away],
            do=f"quorumlog broker describe {broker.node_id}"
            if away is Away.STARTING
            else bring_back(facts, (broker.node_id,)),
        )


_NAMES = {
    Away.STARTING: "broker.starting",
    Away.SHUT_DOWN: "broker.shut-down",
    Away.LOST: "broker.lost",
    Away.UNKNOWN: "broker.fenced",
}
_NEXT = {
    Away.STARTING: "it is unfenced once it has caught up with the metadata and opened its logs",
    Away.SHUT_DOWN: "nothing: it stays away until its process is started",
    Away.LOST: "if its process lives, it registers again and catches up; else it stays away until it is started",
    Away.UNKNOWN: "it serves again once it has sent heartbeats and caught up",
}


def _starting(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return _away(Away.STARTING, facts, limits)


def _shut_down(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return _away(Away.SHUT_DOWN, facts, limits)


def _lost(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return _away(Away.LOST, facts, limits)


def _fenced(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return _away(Away.UNKNOWN, facts, limits)


def _leaving(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for broker in facts.brokers:
        if broker.leaving and not broker.fenced:
            last = facts.last_event(f"broker/{broker.node_id}", "broker.leaving")
            yield Finding(
                cause="broker.leaving",
                subject=f"broker/{broker.node_id}",
                severity=Severity.NOTICE,
                state=f"broker {broker.node_id} is SHUTTING DOWN in order: it hands over what it leads",
                why=evidence(last, read(facts, f"broker {broker.node_id} is in controlled shutdown", CALL)),
                next="it is fenced once it leads nothing any more",
                do=f"quorumlog broker describe {broker.node_id}",
            )


def _silent(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for broker in facts.brokers:
        if broker.silent and not broker.fenced and not is_expired(broker.silent):  # which is a cause of its own
            yield Finding(
                cause="broker.silent",
                subject=f"broker/{broker.node_id}",
                severity=Severity.WARNING,
                state=f"broker {broker.node_id} does NOT ANSWER, and the controller does not know it as lost yet",
                why=evidence(
                    read(facts, f"broker {broker.node_id} is not fenced", CALL),
                    read(facts, broker.silent, f"DescribeLogDirs of broker {broker.node_id}"),
                ),
                next="if it is dead, the controller fences it when its session ends (broker.session.timeout.ms)",
                do=bring_back(facts, (broker.node_id,)),
            )


def _cordoned(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for broker in facts.brokers:
        if broker.cordoned:
            last = facts.last_event(f"broker/{broker.node_id}", "broker.cordoned")
            text = f"each online directory of broker {broker.node_id} is cordoned"
            yield Finding(
                cause="broker.cordoned",
                subject=f"broker/{broker.node_id}",
                severity=Severity.NOTICE,
                state=f"broker {broker.node_id} is CORDONED: it serves, and gets no new replicas",
                why=evidence(last, read(facts, text, CALL)),
                next="nothing: it stays so until cordoned.log.dirs changes",
                do=f"quorumlog config unset --entity-type broker {broker.node_id} cordoned.log.dirs",
            )


def _stalled(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for broker in facts.brokers or (BrokerFact(node_id=-1),):
        events = facts.events_of(f"node/{broker.node_id}", "loop.stall", since_ms=facts.at_ms - limits.recent_ms)
        long = [one for one in events if _ms_in(one.text) > limits.stall_ms]
        if long:
            most = max(_ms_in(one.text) for one in long)
            yield Finding(
                cause="node.stalled",
                subject=f"broker/{broker.node_id}",
                severity=Severity.WARNING,
                state=f"node {broker.node_id} STALLED for up to {most} ms, {len(long)} times in the last minute",
                why=evidence(*long[-3:]),
                next="clients waited for that long; a longer one costs leaderships",
                do=f"quorumlog logs {broker.node_id}" if facts.is_local else "look at the node's log and its processor",
            )


def _ms_in(text: str) -> int:
    found = _MS.search(text)
    return 0 if found is None else int(found[1])


BROKERS = (
    Cause("broker.starting", SEGMENT, "it has registered and is fenced until it has caught up", _starting),
    Cause("broker.shut-down", SEGMENT, "it was stopped in order; an operator's restart looks so, too", _shut_down),
    Cause("broker.lost", SEGMENT, "it was fenced without a shutdown: dead, hung, or cut off", _lost),
    Cause("broker.fenced", SEGMENT, "it is fenced, and the cluster tells no more, as an Apache Kafka", _fenced),
    Cause("broker.leaving", SEGMENT, "it is in controlled shutdown", _leaving),
    Cause("broker.silent", SEGMENT, "it is not fenced and does not answer", _silent),
    Cause("broker.cordoned", SEGMENT, "it gets no new replicas", _cordoned),
    Cause("node.stalled", PERF, "its event loop was held up", _stalled),
)
