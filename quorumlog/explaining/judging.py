"""One judgement with two faces: all findings for `check`, those about a subject for `explain`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from quorumlog.explaining.causes import CAUSES
from quorumlog.explaining.causes.away import read
from quorumlog.explaining.facts import Facts, OpenTransactionFact
from quorumlog.explaining.finding import Evidence, Finding, Severity
from quorumlog.explaining.thresholds import Thresholds

SORTS = ("partition", "broker", "group", "quorum", "transaction", "topic", "cluster", "directory", "listener", "client")


class UnknownSubject(ValueError):
    """The cluster has no such thing, or the name means several. The message says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """state: in one sentence. read: what it was taken from where nothing is wrong. findings: the worst first, and its
    own before those of others that touch it."""

    subject: str
    state: str
    read: tuple[Evidence, ...]
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "state": self.state,
            "read": [one.document() for one in self.read],
            "findings": [one.document() for one in self.findings],
        }


def judge(facts: Facts, limits: Thresholds, areas: Collection[str] = ()) -> list[Finding]:
    """The worst first, then by cause. areas: of `causes/table.py`; none: all."""
    found = [finding for cause in CAUSES if not areas or cause.area in areas for finding in cause.find(facts, limits)]
    order = {cause.name: number for number, cause in enumerate(CAUSES)}
    return sorted(found, key=lambda one: (-one.severity, order[one.cause], one.subject))


def worst(findings: Iterable[Finding]) -> Severity:
    """NOTICE: nothing is to be done."""
    return max((one.severity for one in findings), default=Severity.NOTICE)


def subject_of(text: str, facts: Facts) -> str:
    """The subject that a person means, with or without its sort. Raises UnknownSubject."""
    sort, _, name = text.partition("/")
    if sort in SORTS and (name or sort in ("quorum", "cluster")):
        if text in _known(facts) or sort not in _READ:
            return text
        raise UnknownSubject(f"there is no {sort} {name}")
    if text in ("quorum", "cluster"):
        return text
    fitting = [one for one in _known(facts) if one.partition("/")[2] == text]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownSubject(f"{text} may mean {' or '.join(fitting)}; write which")
    raise UnknownSubject(f"there is no {text}; write partition/orders-4, broker/3, group/NAME, topic/NAME or quorum")


_READ = ("partition", "broker", "group", "topic")  # of which all are read, so that one that is missing is not there


def _known(facts: Facts) -> list[str]:
    return [
        *(f"partition/{one.name}" for one in facts.partitions),
        *dict.fromkeys(f"topic/{one.topic}" for one in facts.partitions),
        *(f"broker/{one.node_id}" for one in facts.brokers),
        *(f"group/{one.group_id}" for one in facts.groups),
        *dict.fromkeys(f"transaction/{one.name}" for one in facts.transactions if one.name is not None),
    ]


def explain(subject: str, facts: Facts, findings: Sequence[Finding]) -> Explanation:
    """subject: of `subject_of`. findings: of all areas."""
    about = [one for one in findings if subject == one.subject or subject in one.also]
    own = tuple(sorted(about, key=lambda one: (-one.severity, one.subject != subject)))
    healthy, evidence = _healthy(subject, facts)
    state = own[0].state if own else healthy
    return Explanation(subject=subject, state=state, read=evidence, findings=own)


def _healthy(subject: str, facts: Facts) -> tuple[str, tuple[Evidence, ...]]:
    """What it is like as far as it was read, and from what."""
    sort, _, name = subject.partition("/")
    texts: list[Evidence] = []
    if sort == "partition":
        texts = [
            read(facts, f"{one.name}: leader {one.leader}, ISR {list(one.isr)} of {list(one.replicas)}", "Metadata")
            for one in facts.partitions
            if one.name == name
        ]
    elif sort == "topic":
        own = [one for one in facts.partitions if one.topic == name]
        without = sum(one.leader < 0 for one in own)
        behind = sum(bool(one.missing) for one in own)
        text = f"{name}: {len(own)} partitions, {without} without a leader, {behind} with replicas out of sync"
        texts = [read(facts, text, "Metadata")]
    elif sort == "broker":
        led = sum(str(one.leader) == name for one in facts.partitions)
        fenced = any(str(one.node_id) == name and one.fenced for one in facts.brokers)
        text = f"broker {name} is {'fenced' if fenced else 'not fenced'} and leads {led} partitions"
        texts = [read(facts, text, "DescribeCluster")]
    elif sort == "group":
        texts = [
            read(
                facts,
                f"group {name} is {one.state} with {len(one.members)} members{_lag_of(one.samples)}",
                "DescribeGroups",
            )
            for one in facts.groups
            if one.group_id == name
        ]
    elif sort == "quorum" and facts.quorum is not None:
        quorum = facts.quorum
        text = f"leader {quorum.leader} in epoch {quorum.epoch}, {len(quorum.voters)} voters"
        texts = [read(facts, text, "DescribeQuorum")]
    elif sort == "transaction":
        texts = [_open(facts, one) for one in facts.transactions if one.name == name]
        texts = texts or [read(facts, f"transaction {name} holds no reader back", "ListOffsets of all partitions")]
    if not texts:
        return f"{subject}: nothing of it was read", ()
    return f"{texts[0].text}; nothing is wrong with it that was looked for", tuple(texts)


def _open(facts: Facts, one: OpenTransactionFact) -> Evidence:
    seconds = max(0, facts.at_ms - one.since_ms) // 1000
    held = f"{one.high_watermark - one.stable} records of {one.topic}-{one.index} wait for it for {seconds} s"
    return read(
        facts, f"transaction {one.name} is {one.state}, {held}, its time-out is {one.timeout_ms} ms", "ListOffsets"
    )


def _lag_of(samples: Sequence[Any]) -> str:
    return f", {samples[-1].total} records behind" if samples else ""
