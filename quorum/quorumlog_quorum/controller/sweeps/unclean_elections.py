"""Counts and tells elections of leaders that may lack acknowledged records, whatever asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quorumlog.messages.metadata_records import PartitionChangeRecord
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import RECOVERING

MAX_TOLD = 100  # of one batch of records, each in a line of the log; the others in one line


@dataclass(slots=True)
class UncleanElections:
    """count: that this process appended as the active controller. untold: lines for the log."""

    count: int = 0
    untold: list[str] = field(default_factory=list)

    def note(self, records: Sequence[MetadataRecord], image: Image) -> None:
        """image: with these records."""
        found = [
            one for one in records if isinstance(one, PartitionChangeRecord) and one.leader_recovery_state == RECOVERING
        ]
        self.count += len(found)
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
