"""Causes about clients and what they ask for: hot partitions, quotas, logins, certificates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from quorumlog.explaining.causes.away import read
from quorumlog.explaining.causes.table import PERF, SEGMENT, Cause
from quorumlog.explaining.facts import Facts
from quorumlog.explaining.finding import Finding, Severity, evidence
from quorumlog.explaining.thresholds import Thresholds

RENEW = "put a renewed one in its place (quorumlog tls renew, or your authority); the node takes it within 10 s"
_DAYS = re.compile(r"expires in (\d+) days")


def _hot(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    ends = facts.ends
    if ends is None or ends.seconds <= 0:
        return
    topics, counts = Counter[str](), Counter[str]()
    for (topic, _), moved in ends.moved.items():
        topics[topic] += moved
        counts[topic] += 1
    for (topic, index), moved in ends.moved.items():
        partitions = counts[topic]
        share = moved / topics[topic] if topics[topic] else 0.0
        if partitions < 3 or share <= limits.hot_share or moved / ends.seconds < limits.hot_records:
            continue
        grown = ends.grown.get((topic, index), 0)
        if grown < limits.hot_bytes:
            continue
        text = f"{topic}-{index} took {moved} of {topics[topic]} records, and {grown} bytes, in {ends.seconds:.1f} s"
        yield Finding(
            cause="partition.hot",
            subject=f"partition/{topic}-{index}",
            severity=Severity.WARNING,
            state=f"{topic}-{index} is HOT: it takes {100 * share:.0f} % of what {partitions} partitions get",
            why=evidence(read(facts, text, "ListOffsets and DescribeLogDirs")),
            next="its leader and its readers carry that load alone; it goes on while most records have one key",
            do=f"quorumlog topic offsets {topic}",
            also=(f"topic/{topic}",),
        )


def _quota(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.quotas:
        if one.quota > 0 and one.rate > one.quota and one.throttled_ms > 0:
            used = f"{one.rate:.0f} of {one.quota:.0f} a second"
            text = f"{one.key} of {one.who}: {used}, held back for {one.throttled_ms} ms"
            yield Finding(
                cause="quota.throttles",
                subject=f"client/{one.who}",
                severity=Severity.NOTICE,
                state=f"client {one.who} is HELD BACK by its quota {one.key} at broker {one.node_id}",
                why=evidence(
                    facts.last_event(f"client/{one.who}", "quota.throttled"),
                    read(facts, text, f"DescribeQuotaUse of broker {one.node_id}"),
                ),
                next="it is served at the rate of its quota",
                do="quorumlog quota top",
            )


def _certificates(facts: Facts, limits: Thresholds, *, expired: bool) -> Iterator[Finding]:
    newest = {}
    for one in facts.events_of("", "tls.expiry", "tls.reloaded"):
        newest[one.node_id, one.subject] = one
    for (node, subject), one in newest.items():
        found = _DAYS.search(one.text)
        if one.kind != "tls.expiry" or (found is None) is not expired:
            continue
        days = -1 if found is None else int(found[1])
        if days < limits.certificate_days:
            name = subject.partition("/")[2]
            says = "has EXPIRED: clients refuse it" if expired else f"EXPIRES SOON: in {days} days"
            yield Finding(
                cause="certificate.expired" if expired else "certificate.expires",
                subject=subject,
                severity=Severity.CRITICAL if expired else Severity.WARNING,
                state=f"the certificate of listener {name} of node {node} {says}",
                why=evidence(one),
                next="connections that are open go on; new ones fail once it has expired",
                do=RENEW,
                also=(f"broker/{node}",),
            )


def _expired(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    yield from _certificates(facts, limits, expired=True)
    if is_expired(facts.unreachable):
        yield Finding(
            cause="certificate.expired",
            subject="cluster",
            severity=Severity.CRITICAL,
            state="a certificate of the brokers has EXPIRED: clients refuse it",
            why=evidence(read(facts, facts.unreachable, "the client's connections")),
            next="no client that checks certificates connects until it is renewed",
            do=RENEW,
        )
    for broker in facts.brokers:  # who refuses it cannot ask the node for its events
        if is_expired(broker.silent):
            yield Finding(
                cause="certificate.expired",
                subject=f"broker/{broker.node_id}",
                severity=Severity.CRITICAL,
                state=f"the certificate of broker {broker.node_id} has EXPIRED: clients refuse it",
                why=evidence(read(facts, broker.silent, f"DescribeLogDirs of broker {broker.node_id}")),
                next="connections that are open go on; new ones fail until it is renewed",
                do=RENEW,
            )


def is_expired(text: str) -> bool:
    """Whether an error of a connection says that a certificate has expired, in our words or in those of OpenSSL."""
    return "certificate" in text.lower() and "has expired" in text


def _expires(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    return _certificates(facts, limits, expired=False)


def _not_taken(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    newest = {(one.node_id, one.subject): one for one in facts.events_of("", "tls.trouble", "tls.reloaded")}
    for (node, subject), one in newest.items():
        if one.kind == "tls.trouble":
            yield Finding(
                cause="certificate.not-taken",
                subject=subject,
                severity=Severity.WARNING,
                state=f"node {node} does NOT TAKE the changed certificate of listener {subject.partition('/')[2]}",
                why=evidence(one),
                next="the one in use goes on until it expires; the node reads the files again each 10 s",
                do="put a certificate in its place that the reason above does not concern; quorumlog tls show FILE "
                "says what is in it",
                also=(f"broker/{node}",),
            )


def _logins(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in facts.events_of("", "login.failed", since_ms=facts.at_ms - limits.recent_ms)[-1:]:
        yield Finding(
            cause="logins.fail",
            subject=one.subject,
            severity=Severity.WARNING,
            state=f"MANY LOGINS FAIL at {one.subject} of node {one.node_id}",
            why=evidence(one),
            next="each failure is answered late; who they are stands in the audit log",
            do=f"quorumlog logs {one.node_id}" if facts.is_local else "look for login in the node's audit log",
        )


CLIENTS = (
    Cause("partition.hot", PERF, "one partition takes most of a topic's records", _hot),
    Cause("quota.throttles", PERF, "a client uses more than its quota", _quota),
    Cause("certificate.expired", SEGMENT, "a node shows a certificate that has expired", _expired),
    Cause("certificate.expires", SEGMENT, "a node's certificate expires soon", _expires),
    Cause("certificate.not-taken", SEGMENT, "a node refuses its changed certificate", _not_taken),
    Cause("logins.fail", SEGMENT, "many logins failed a short while ago", _logins),
)
