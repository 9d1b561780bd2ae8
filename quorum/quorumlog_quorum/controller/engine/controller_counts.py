"""What a controller has done since the start of its process, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from quorumlog.histogram import Histogram
from quorumlog.ids import NO_NODE
from quorumlog.messages.metadata_records import MetadataRecord, PartitionChangeRecord
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import RECOVERING

USUAL, PREFERRED, UNCLEAN = "usual", "preferred", "unclean"


@dataclass(slots=True)
class ControllerCounts:
    """elections: of leaders, by kind. heartbeats_timed_out: brokers that were fenced because they said nothing.
    brokers_lost: these, and those whose process was proven to be dead, without any that was in controlled shutdown.
    events: how long operations took, from their submission to their last record, waiting included; in steps of a
    millisecond."""

    elections: Counter[str] = field(default_factory=Counter)
    heartbeats_timed_out: int = 0
    brokers_lost: int = 0
    events: Histogram = field(default_factory=lambda: Histogram("event"))

    def note(self, records: Sequence[MetadataRecord], image: Image) -> None:
        """image: with these records. An election without a new leader is none."""
        for one in records:
            if isinstance(one, PartitionChangeRecord) and one.leader not in (None, NO_NODE):
                self.elections[_kind(one, image)] += 1


def _kind(record: PartitionChangeRecord, image: Image) -> str:
    """Preferred: the first replica leads now, whoever asked for it."""
    if record.leader_recovery_state == RECOVERING:
        return UNCLEAN
    partition = image.partition(record.topic_id, record.partition)
    return PREFERRED if partition is not None and partition.replicas[0] == record.leader else USUAL
