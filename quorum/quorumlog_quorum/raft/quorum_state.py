"""The file `quorum-state`: a node's epoch, its vote, and the leader that it knows.

Format: Kafka's `QuorumStateData`, version 1, one line of JSON. We add a `crc32c` over the same line without it. Files
of version 0 or without a checksum are read too: Kafka writes them. A node without the file has promised nothing. A file
that cannot be read is fatal, and so is one that is missing beside a log: a node that guesses its promises could vote
twice.

The way out (`renew_quorum_state`) makes no guess. A candidate notes its epoch on its own disk before it asks this node
for a vote. So no vote of this node lies in an epoch after the largest one in the files of all other voters, as they are
while this node is stopped. From the next epoch on it may promise anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from quorumlog.ids import NO_NODE, ZERO_UUID, Epoch, NodeId, Uuid, format_uuid, parse_uuid
from quorumlog.records.format.crc import crc32c
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing

QUORUM_STATE_NAME = "quorum-state"
MAX_FILE_BYTES = 2048  # some 200 are usual; JSON makes objects of two bytes each
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """leader_id: None while none is known. voted: the voter that got this node's vote in `epoch`; None: none did."""

    epoch: Epoch = 0
    leader_id: NodeId | None = None
    voted: VoterKey | None = None

    def __post_init__(self) -> None:
        assert self.epoch >= 0


class CorruptQuorumState(Exception):
    """The file cannot be read, or is missing where there must be one."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; this node does not know its votes any more and could vote twice: leave it stopped, "
            "look up the largest leaderEpoch in the quorum-state files of all other voters, and run "
            "quorumlog storage renew-quorum-state -c FILE --epoch THAT_EPOCH"
        )
        self.path, self.reason = path, reason


class QuorumStateNotRenewed(Exception):
    """Nothing was changed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is not renewed: {reason}")
        self.path, self.reason = path, reason


def read_quorum_state(disk: Disk, path: str, has_records: bool = False) -> QuorumState:
    """has_records: of the log beside it. Raises CorruptQuorumState, DiskError."""
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        if has_records:
            raise CorruptQuorumState(path, "is missing beside a log with records") from None
        return QuorumState()
    return decode_quorum_state(path, content)


def write_quorum_state(disk: Disk, path: str, state: QuorumState) -> None:
    """The state is durable when this returns. Raises DiskError."""
    write_atomically(disk, path, encode_quorum_state(state))


def renew_quorum_state(disk: Disk, path: str, others_epoch: Epoch, last_epoch: Epoch) -> QuorumState:
    """Promise anew in the epoch after `others_epoch`. A file that cannot be read is kept as `quorum-state.unreadable`.

    others_epoch: the largest one in the files of all other voters, read while this node is stopped. last_epoch: of the
    last record of this node's log; -1 for none. Raises QuorumStateNotRenewed, DiskError.
    """
    if others_epoch < last_epoch:
        reason = f"epoch {others_epoch} is below {last_epoch}, that of the last record here: ask all other voters"
        raise QuorumStateNotRenewed(path, reason)
    try:
        found = read_quorum_state(disk, path, has_records=True)
    except CorruptQuorumState:
        if disk.exists(path):
            disk.rename(path, f"{path}.unreadable")
    else:
        raise QuorumStateNotRenewed(path, f"it is there and can be read: epoch {found.epoch}")
    renewed = QuorumState(epoch=others_epoch + 1)
    write_quorum_state(disk, path, renewed)
    return renewed


def encode_quorum_state(state: QuorumState) -> bytes:
    fields: dict[str, Any] = {
        "leaderId": NO_NODE if state.leader_id is None else state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": NO_NODE if state.voted is None else state.voted.node_id,
        "votedDirectoryId": format_uuid(ZERO_UUID if state.voted is None else state.voted.directory_id),
        "data_version": 1,
    }
    return _line({**fields, "crc32c": crc32c(_line(fields))})


def decode_quorum_state(path: str, content: bytes) -> QuorumState:
    """Raises CorruptQuorumState, and nothing else, whatever the bytes are."""
    fields = _parse(path, content)
    version = _number(path, fields, "data_version", 0, 1)
    epoch = _number(path, fields, "leaderEpoch", 0, _INT32_MAX)
    leader_id = _number(path, fields, "leaderId", NO_NODE, _INT32_MAX)
    voted_id = _number(path, fields, "votedId", NO_NODE, _INT32_MAX)
    directory_id = _directory(path, fields) if version == 1 else ZERO_UUID
    return QuorumState(
        epoch=epoch,
        leader_id=None if leader_id == NO_NODE else leader_id,
        voted=None if voted_id == NO_NODE else VoterKey(voted_id, directory_id),
    )


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _parse(path: str, content: bytes) -> dict[str, Any]:
    if len(content) > MAX_FILE_BYTES:
        raise CorruptQuorumState(path, f"{len(content)} bytes, at most {MAX_FILE_BYTES} are expected")
    try:
        fields = json.loads(content.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise CorruptQuorumState(path, f"is not one line of JSON ({error})") from error
    if not isinstance(fields, dict):
        raise CorruptQuorumState(path, "is not a JSON object")
    stated = fields.pop("crc32c", None)
    if stated is not None and stated != crc32c(_line(fields)):
        raise CorruptQuorumState(path, f"its checksum is {crc32c(_line(fields))}, it states {stated!r}")
    return fields


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is there twice")
    return fields


def _number(path: str, fields: dict[str, Any], name: str, low: int, high: int) -> int:
    value = fields.get(name)
    if type(value) is not int or not low <= value <= high:
        raise CorruptQuorumState(path, f"{name} is {value!r}, not a number from {low} to {high}")
    return value


def _directory(path: str, fields: dict[str, Any]) -> Uuid:
    value = fields.get("votedDirectoryId")
    try:
        return parse_uuid(value if isinstance(value, str) else "")
    except ValueError as error:
        raise CorruptQuorumState(path, f"votedDirectoryId is {value!r} ({error})") from error
