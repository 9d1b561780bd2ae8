"""Control records, byte for byte as in Kafka (`ControlRecordUtils`).

The key is two int16: a version and a type. The value depends on the type. Transaction markers (ABORT, COMMIT) are
written to partitions, the other types to the metadata log and its snapshots. A record of an unknown type is kept as it
is, because a newer node may have written it and the log stays readable.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from quorumlog.ids import NO_EPOCH, UUID_BYTES, Epoch, NodeId, Offset, Uuid, format_uuid
from quorumlog.records.format.batch import NO_PRODUCER
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.flexible import INT16, INT32, INT64, UINT16, Reader, Writer
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(7)
_KEY_BYTES = 4


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The end of a transaction in one partition. The batch header names the producer."""

    committed: bool
    coordinator_epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """First record of every epoch of the metadata log. Written in version 0, which has no directory ids."""

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """First record of a snapshot."""

    last_contained_log_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """Last record of a snapshot. A file without it is incomplete."""


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """Level of `kraft.version`. 0: static voter set; 1: the voter set is in the log."""

    level: int


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """An address at which a voter listens."""

    name: str  # of the listener
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """One member of a voter set, and the range of kraft.version that it can run (both inclusive)."""

    id: NodeId
    directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class Voters:
    """The voter set from this record on."""

    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class UnknownControl:
    """A control record of a type unknown to this version."""

    type: int
    key: bytes
    value: bytes | None


ControlRecord = EndTxnMarker | LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters | UnknownControl


def encode_control(record: ControlRecord) -> tuple[bytes, bytes | None]:
    """The key and value of a control record."""
    if isinstance(record, UnknownControl):
        return record.key, record.value
    key, value = Writer(), Writer()
    key.number(INT16, 0)
    value.number(INT16, 0)
    key.number(INT16, _write_value(value, record))
    return key.done(), value.done()


def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Decodes a record of a control batch. A version above ours is read as ours, as in Kafka.

    Raises CorruptRecords; its position is counted from the start of the key or of the value.
    """
    if key is None or len(key) < _KEY_BYTES:
        raise CorruptRecords(0, "a control record without version and type in its key")
    kind = int(INT16.unpack_from(key, INT16.size)[0])
    read = _READ.get(kind)
    if read is None:
        return UnknownControl(kind, key, value)
    if value is None:
        raise CorruptRecords(0, f"a control record of type {kind} without a value")
    reader = Reader(value)
    return read(reader, reader.number(INT16))


def describe_control(record: Record) -> dict[str, Any]:
    """The content of a control record for people: {"type": "LeaderChange", "leader_id": ...}, identifiers as text."""
    try:
        said = decode_control(record.key, record.value)
    except CorruptRecords as error:
        return {"type": "unreadable", "reason": str(error)}
    return {"type": type(said).__name__, **{name: _plain(value) for name, value in asdict(said).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return format_uuid(value) if len(value) == UUID_BYTES else value.hex()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def control_batch(
    records: Sequence[ControlRecord],
    *,
    base_offset: Offset,
    timestamp_ms: int,
    leader_epoch: Epoch = NO_EPOCH,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
) -> bytes:
    """One batch of control records at consecutive offsets, uncompressed and without sequence numbers.

    With a producer id the batch is a transaction marker and marked transactional.
    """
    pairs = [encode_control(record) for record in records]
    return encode_batch(
        [Record(base_offset + index, timestamp_ms, key, value) for index, (key, value) in enumerate(pairs)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=producer_id != NO_PRODUCER,
        control=True,
    )


def _write_value(out: Writer, record: ControlRecord) -> int:
    """Write the fields after the version. Returns the type."""
    match record:
        case EndTxnMarker():
            out.number(INT32, record.coordinator_epoch)
            return COMMIT if record.committed else ABORT  # an older format: the only type without tagged fields
        case LeaderChange():
            out.number(INT32, record.leader_id)
            for ids in (record.voters, record.granting_voters):
                out.array(ids, lambda node: _write_voter_id(out, node))
            kind = LEADER_CHANGE
        case SnapshotHeader():
            out.number(INT64, record.last_contained_log_timestamp_ms)
            kind = SNAPSHOT_HEADER
        case SnapshotFooter():
            kind = SNAPSHOT_FOOTER
        case KRaftVersion():
            out.number(INT16, record.level)
            kind = KRAFT_VERSION
        case Voters():
            out.array(record.voters, lambda voter: _write_voter(out, voter))
            kind = KRAFT_VOTERS
        case UnknownControl():
            raise AssertionError("has its key and value already")
    out.no_tags()
    return kind


def _write_voter_id(out: Writer, node: NodeId) -> None:
    out.number(INT32, node)
    out.no_tags()


def _write_voter(out: Writer, voter: Voter) -> None:
    out.number(INT32, voter.id)
    out.uuid(voter.directory_id)
    out.array(voter.endpoints, lambda endpoint: _write_endpoint(out, endpoint))
    out.number(INT16, voter.min_version)
    out.number(INT16, voter.max_version)
    out.no_tags()
    out.no_tags()


def _write_endpoint(out: Writer, endpoint: VoterEndpoint) -> None:
    out.text(endpoint.name)
    out.text(endpoint.host)
    out.number(UINT16, endpoint.port)
    out.no_tags()


def _read_marker(committed: bool) -> Callable[[Reader, int], ControlRecord]:
    return lambda value, _version: EndTxnMarker(committed, value.number(INT32))


def _read_leader_change(value: Reader, version: int) -> LeaderChange:
    def voter_id() -> NodeId:
        node = value.number(INT32)
        if version >= 1:
            value.uuid()
        value.skip_tags()
        return node

    return LeaderChange(value.number(INT32), value.array(voter_id), value.array(voter_id))


def _read_voter(value: Reader) -> Voter:
    node, directory = value.number(INT32), value.uuid()
    endpoints = value.array(lambda: _read_endpoint(value))
    lowest, highest = value.number(INT16), value.number(INT16)
    value.skip_tags()
    value.skip_tags()
    return Voter(node, directory, endpoints, lowest, highest)


def _read_endpoint(value: Reader) -> VoterEndpoint:
    endpoint = VoterEndpoint(value.text(), value.text(), value.number(UINT16))
    value.skip_tags()
    return endpoint


_READ: dict[int, Callable[[Reader, int], ControlRecord]] = {
    ABORT: _read_marker(committed=False),
    COMMIT: _read_marker(committed=True),
    LEADER_CHANGE: _read_leader_change,
    SNAPSHOT_HEADER: lambda value, _version: SnapshotHeader(value.number(INT64)),
    SNAPSHOT_FOOTER: lambda _value, _version: SnapshotFooter(),
    KRAFT_VERSION: lambda value, _version: KRaftVersion(value.number(INT16)),
    KRAFT_VOTERS: lambda value, _version: Voters(value.array(lambda: _read_voter(value))),
}
