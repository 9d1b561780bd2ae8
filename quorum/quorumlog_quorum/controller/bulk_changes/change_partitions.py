"""Changes many partitions, slice by slice, so that each fits the brokers, the settings and a wish of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.ids import NO_NODE, Uuid
from quorumlog.messages.metadata_records import PartitionChangeRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.partitions.election import (
    NOTHING,
    Brokers,
    TopicRules,
    Wish,
    awaits_recovery,
    partition_change,
)
from quorumlog_quorum.metadata.image import Image, TopicImage
from quorumlog_quorum.metadata.partition_index import Partitions, indexes_in
from quorumlog_quorum.metadata.registration import PartitionRegistration

WishFor = Callable[[PartitionRegistration, TopicRules], Wish]
Concerns = Callable[[PartitionRegistration], bool]


def no_wish(_partition: PartitionRegistration, _rules: TopicRules) -> Wish:
    return NOTHING


def change_partitions(draft: Draft, which: Partitions, concerns: Concerns, wish_for: WishFor = no_wish) -> Sliced[None]:
    """In order of topic name and index. which: the partitions at the start; the caller ensures that later ones fit.

    concerns: whether a partition is to be looked at more closely.
    """
    for topic_id in _by_name(draft, which):
        found = _Found(draft, topic_id)
        for index in indexes_in(which[topic_id]):
            if draft.full:
                yield
                found = _Found(draft, topic_id)  # other operations may have changed it
            draft.spend(1)
            partition = None if found.topic is None else found.topic.partitions.get(index)
            if partition is not None and concerns(partition):
                wish = wish_for(partition, found.rules)
                record = partition_change(topic_id, index, partition, found.brokers, found.rules, wish)
                if record is not None:
                    draft.add(record)
                    want_recovery(draft, partition, record, found.rules)
                elif awaits_recovery(partition, found.rules):
                    draft.state.recoveries.want((topic_id, index), partition.leader_epoch, draft.now_ms)


def want_recovery(
    draft: Draft, before: PartitionRegistration, record: PartitionChangeRecord, rules: TopicRules
) -> None:
    """Have the replicas asked for their logs where `record` leaves a partition without a leader."""
    leader = before.leader if record.leader is None else record.leader
    if leader == NO_NODE and rules.balanced:
        draft.state.elections_wanted = True  # that pass finds out whether it is to be recovered


@dataclass(slots=True)
class _Found:
    """One topic in one slice. topic: None where it was deleted."""

    draft: Draft
    topic: TopicImage | None
    brokers: Brokers
    _rules: TopicRules | None

    def __init__(self, draft: Draft, topic_id: Uuid) -> None:
        draft.spend(1)
        self.draft = draft
        self.topic = draft.image.topics.get(topic_id)
        self.brokers = draft.brokers
        self._rules = None

    @property
    def rules(self) -> TopicRules:
        if self._rules is None:
            assert self.topic is not None
            self.draft.spend(WORK_OF_A_TOPIC)
            self._rules = rules_of(self.draft, self.topic.name)
        return self._rules


def _by_name(draft: Draft, which: Partitions) -> list[Uuid]:
    image: Image = draft.image
    draft.spend(len(which))
    return sorted((topic_id for topic_id in which if topic_id in image.topics), key=lambda one: image.topics[one].name)
