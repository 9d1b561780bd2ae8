"""Elects the replicas with the longest logs, as `unclean_recovery` found them, unless something has changed since."""

from __future__ import annotations

from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.partitions.election import Wish, awaits_recovery, partition_change
from quorumlog_quorum.controller.partitions.unclean_recovery import Longest
from quorumlog_quorum.controller.sweeps.raised_durability import rules_of


def elect_longest(draft: Draft, found: list[Longest]) -> Sliced[None]:
    for one in found:
        if draft.full:
            yield
        draft.spend(WORK_OF_A_TOPIC)
        _elect(draft, one)


def _elect(draft: Draft, found: Longest) -> None:
    topic_id, index = found.key
    topic = draft.image.topics.get(topic_id)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None or partition.leader_epoch != found.leader_epoch:
        return
    rules = rules_of(draft, topic.name)
    broker = draft.brokers.get(found.leader)
    if broker is None or broker.broker_epoch != found.broker_epoch or not awaits_recovery(partition, rules):
        return
    record = partition_change(topic_id, index, partition, draft.brokers, rules, Wish(longest=found.leader))
    if record is not None:
        draft.add(record)
