"""One change of the voters, from its request to its answer. A leader works on one at a time.

add:     probe -> catch-up -> commit          remove, update, upgrade:     commit
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from quorumlog_quorum.raft.effects import KRaftVersionAnswered, Reply, VoterRequest, VoterResponse
from quorumlog_quorum.raft.voters import Voter, VoterKey


class ChangeKind(Enum):
    ADD = "add"
    REMOVE = "remove"
    UPDATE = "update"
    UPGRADE = "upgrade"  # of kraft.version


class ChangePhase(Enum):
    PROBE = "probe"  # the candidate is asked who it is
    CATCH_UP = "catch-up"  # it copies the log as an observer
    COMMIT = "commit"  # the new set is in the log and in force, and waits for its majority


@dataclass(slots=True)
class VoterChange:
    number: int
    kind: ChangeKind
    key: VoterKey
    deadline_ms: int
    token: int | None  # of the request; None once it is answered
    phase: ChangePhase = ChangePhase.PROBE
    ack_when_committed: bool = True
    voter: Voter | None = None  # that is added
    end_offset: Offset = -1  # in the last phase: exclusive end of its records

    def answered(self) -> None:
        self.token = None

    def found(self, voter: Voter) -> None:
        self.phase, self.voter = ChangePhase.CATCH_UP, voter

    def appended(self, end_offset: Offset) -> None:
        self.phase, self.end_offset = ChangePhase.COMMIT, end_offset


KIND_OF: dict[type, ChangeKind] = {
    AddRaftVoterRequest: ChangeKind.ADD,
    RemoveRaftVoterRequest: ChangeKind.REMOVE,
    UpdateRaftVoterRequest: ChangeKind.UPDATE,
}
_RESPONSES: dict[ChangeKind, type[VoterResponse]] = {
    ChangeKind.ADD: AddRaftVoterResponse,
    ChangeKind.REMOVE: RemoveRaftVoterResponse,
    ChangeKind.UPDATE: UpdateRaftVoterResponse,
}


def kind_of(request: VoterRequest) -> ChangeKind:
    return KIND_OF[type(request)]


def answer_to(
    kind: ChangeKind, token: int, code: ErrorCode, text: str, leader_id: NodeId, epoch: Epoch
) -> Reply | KRaftVersionAnswered:
    """leader_id: -1 if none is known."""
    if kind is ChangeKind.UPGRADE:
        return KRaftVersionAnswered(token, code, text)
    response = _RESPONSES[kind](error_code=code, error_message=text, leader_id=leader_id, leader_epoch=epoch)
    return Reply(token, response)
