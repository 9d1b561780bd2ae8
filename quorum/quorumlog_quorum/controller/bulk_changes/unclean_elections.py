"""Tells elections of leaders that may lack acknowledged records, whatever asked for them.

Elects the replicas with the longest logs, as `unclean_recovery` found them, unless something has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quorumlog.messages.metadata_records import MetadataRecord, PartitionChangeRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.raised_durability import rules_of
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_TOPIC, Draft
from quorumlog_quorum.controller.partitions.election import Wish, awaits_recovery, partition_change
from quorumlog_quorum.controller.partitions.unclean_recovery import Longest
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import RECOVERING

MAX_TOLD = 100  # of one batch of records, each in a line of the log; the others in one line


@dataclass(slots=True)
class UncleanElections:
    """Tells them. untold: lines for the log."""

    untold: list[str] = field(default_factory=list)

    def note(self, records: Sequence[MetadataRecord], image: Image) -> None:
        """image: with these records."""
        found = [
            one for one in records if isinstance(one, PartitionChangeRecord) and one.leader_recovery_state == RECOVERING
        ]
        self.untold += [_line(one, image) for one in found[:MAX_TOLD]]
        if len(found) > MAX_TOLD:
            self.untold.append(f"and {len(found) - MAX_TOLD} more unclean elections in the same batch")

    def take_lines(self) -> list[str]:
        lines, self.untold = self.untold, []
        return lines


def _line(record: PartitionChangeRecord, image: Image) -> str:
    topic = image.topics.get(record.topic_id)
    name = "a deleted topic" if topic is None else topic.name
    return (
        f"unclean election: broker {record.leader} leads {name}-{record.partition}; "
        "acknowledged records that it had not copied are lost"
    )


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
