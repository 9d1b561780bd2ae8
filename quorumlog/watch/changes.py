"""What differs between two samples of a cluster, in sentences.

It is what can be seen from outside, so it needs nothing but the protocol. What comes and goes between two samples is
not seen; a node's own events (`DescribeEvents`) have that, with their causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorumlog.watch.sample import Broker, BrokerState, Part, Partition, Sample, Topic

PER_SAMPLE = 100  # the rest is one sentence


@dataclass(frozen=True, slots=True)
class Change:
    """at_ms: ms since 1970 of the sample that first showed it. kind: one word. subject: `explain` takes it."""

    at_ms: int
    kind: str
    subject: str
    text: str


def changes(before: Sample, after: Sample) -> list[Change]:
    """At most PER_SAMPLE + 1. A part that one of both could not read shows none."""
    found: list[Change] = []
    for kind, subject, text in _all(before, after):
        if len(found) == PER_SAMPLE:
            found.append(
                Change(after.wall_ms, "more", "", f"more than {PER_SAMPLE} changes at once: the rest is not listed")
            )
            break
        found.append(Change(after.wall_ms, kind, subject, text))
    return found


def _all(before: Sample, after: Sample) -> Iterator[tuple[str, str, str]]:
    gone = {*before.missing, *after.missing}
    if Part.QUORUM not in gone:
        yield from _of_quorum(before, after)
    if Part.BROKERS not in gone:
        yield from _of_brokers(before, after)
    if Part.TOPICS not in gone:
        yield from _of_topics(before, after)
    if Part.GROUPS not in gone:
        yield from _of_groups(before, after)


def _of_quorum(before: Sample, after: Sample) -> Iterator[tuple[str, str, str]]:
    old, new = before.quorum, after.quorum
    if old is None or new is None or (old.epoch, old.leader_id) == (new.epoch, new.leader_id):
        return
    if new.leader_id < 0:
        yield "election", "quorum", f"the quorum has no leader in epoch {new.epoch}"
    elif old.leader_id == new.leader_id:
        yield "election", "quorum", f"node {new.leader_id} leads the quorum again, epoch {old.epoch} to {new.epoch}"
    else:
        was = f"node {old.leader_id}" if old.leader_id >= 0 else "no node"
        yield "election", "quorum", f"node {new.leader_id} leads the quorum, epoch {new.epoch}; before it, {was} did"


def _of_brokers(before: Sample, after: Sample) -> Iterator[tuple[str, str, str]]:
    old, new = _brokers(before), _brokers(after)
    for node_id in sorted({*old, *new}):
        was, now = old.get(node_id), new.get(node_id)
        subject = f"broker/{node_id}"
        if now is None:
            yield "broker", subject, f"broker {node_id} is not in the cluster any more"
        elif was is None:
            yield "broker", subject, f"broker {node_id} is in the cluster"
        elif was.state is not now.state:
            word = {BrokerState.FENCED: "is fenced", BrokerState.STOPPING: "is stopping", BrokerState.SERVING: "serves"}
            yield "broker", subject, f"broker {node_id} {word[now.state]}"
        if was is not None and now is not None:
            yield from _of_directories(was, now, subject)


def _of_directories(was: Broker, now: Broker, subject: str) -> Iterator[tuple[str, str, str]]:
    before = {one.path: one for one in was.directories}
    for one in now.directories:
        if one.path in before and bool(before[one.path].error) != bool(one.error):
            state = f"is offline: {one.error}" if one.error else "is online again"
            yield "disk", subject, f"directory {one.path} of broker {now.node_id} {state}"


def _of_topics(before: Sample, after: Sample) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*before.topics, *after.topics}):
        old, new = before.topics.get(name), after.topics.get(name)
        subject = f"topic/{name}"
        if new is None:
            yield "topic", subject, f"topic {name} is gone"
        elif old is None:
            yield "topic", subject, f"topic {name} is there, with {len(new.partitions)} partitions"
        elif old.topic_id != new.topic_id:
            yield "topic", subject, f"topic {name} was deleted and made again"
        else:
            if len(old.partitions) != len(new.partitions):
                yield (
                    "topic",
                    subject,
                    f"topic {name} has {len(new.partitions)} partitions; it had {len(old.partitions)}",
                )
            yield from _of_partitions(old, new)


def _of_partitions(old: Topic, new: Topic) -> Iterator[tuple[str, str, str]]:
    before = {one.index: one for one in old.partitions}
    for now in new.partitions:
        was = before.get(now.index)
        if was is not None and was != now:
            yield from _of_partition(was, now, f"{new.name}-{now.index}")


def _of_partition(was: Partition, now: Partition, name: str) -> Iterator[tuple[str, str, str]]:
    subject = f"partition/{name}"
    if was.leader != now.leader:
        if now.is_offline:
            yield "leader", subject, f"{name} has no leader; broker {was.leader} led it"
        else:
            led = "nobody" if was.is_offline else f"broker {was.leader}"
            yield "leader", subject, f"broker {now.leader} leads {name}; before it, {led} did"
    if set(was.isr) != set(now.isr):
        yield "isr", subject, f"in sync for {name}: {_ids(now.isr)}; before: {_ids(was.isr)}"
    if set(was.replicas) != set(now.replicas):
        yield "move", subject, f"replicas of {name}: {_ids(now.replicas)}; before: {_ids(was.replicas)}"


def _of_groups(before: Sample, after: Sample) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*before.groups, *after.groups}):
        old, new = before.groups.get(name), after.groups.get(name)
        subject = f"group/{name}"
        if new is None:
            yield "group", subject, f"group {name} is gone"
        elif old is None:
            yield "group", subject, f"group {name} is there, {new.state or 'in no known state'}"
        elif old.state != new.state:
            yield "group", subject, f"group {name} is {new.state}; it was {old.state}"


def _brokers(sample: Sample) -> dict[int, Broker]:
    return {one.node_id: one for one in sample.brokers}


def _ids(nodes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "nobody"
