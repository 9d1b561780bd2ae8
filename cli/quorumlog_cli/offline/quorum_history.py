"""Elections and changes of the voters, from the control records of a metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.records.control import KRaftVersion, LeaderChange, Voters
from quorumlog_cli.offline.metadata_log import read_control


@dataclass(frozen=True, slots=True)
class Event:
    """voters: the ids of the set in force from this record on; empty if the record does not tell."""

    offset: Offset
    epoch: Epoch
    timestamp_ms: int
    event: str
    voters: tuple[NodeId, ...]
    leader: NodeId | None = None
    granted_by: tuple[NodeId, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
            "epoch": self.epoch,
            "event": self.event,
            "voters": list(self.voters),
        }
        if self.leader is not None:
            document |= {"leader": self.leader, "granted_by": list(self.granted_by)}
        return document


def read_history(directory: Path) -> Iterator[Event]:
    """In the order of offsets. Raises CliError(DATA_INVALID) at damage."""
    for offset, epoch, timestamp_ms, record in read_control(directory):
        match record:
            case LeaderChange(leader_id, voters, granting):
                yield Event(offset, epoch, timestamp_ms, "elected", voters, leader_id, granting)
            case Voters(voters):
                ids = tuple(voter.id for voter in voters)
                yield Event(offset, epoch, timestamp_ms, "voters changed", ids)
            case KRaftVersion(level):
                yield Event(offset, epoch, timestamp_ms, f"kraft.version {level}", ())
