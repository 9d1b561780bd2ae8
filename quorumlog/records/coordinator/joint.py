"""What `__transaction_state` holds of joint transactions: a group's last decision, batches that a run has given up, and
whose child an id is.

None of it is Kafka's (decision 112). The first two have keys of types that Kafka does not know; a child's state is a
tagged field of the ordinary record of its transactional id. Kafka's software passes over all of them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from quorumlog.records.coordinator.fields import FieldReader, FieldWriter
from quorumlog.records.coordinator.layout import BYTE, BYTES, INT, LONG, TEXT, Field, Kind, Layout, array
from quorumlog.records.format.corrupt import CorruptRecords

CHILD = Struct(">ih")  # slot and epoch; without padding
CHILD_TAG = 10_000  # in the value of a transactional id: far above those that Kafka gives out
GROUP_TYPE = 10_000  # of the key, for the same reason
GIVEN_UP_TYPE = 10_001


class JointKind(IntEnum):
    """What follows a decision: the next number, any higher one, nothing."""

    STREAM = 0
    VERSIONED = 1
    SINGLE = 2


class Cause(IntEnum):
    """Why a child aborts."""

    NONE = 0
    TIMED_OUT = 1
    ABORTED = 2
    NOT_NAMED = 3


class JointKey(NamedTuple):
    """Type 10000."""

    group: str


class GivenUpKey(NamedTuple):
    """Type 10001: a batch that its run has aborted as a whole, and so never decides."""

    group: str
    run: str
    sequence: int


@dataclass(frozen=True, slots=True)
class GivenUpValue:
    """at_ms: since 1970."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class JointValue:
    """A group's last decision. superseded: runs, the oldest first. children: those that commit, as `pack` makes them.

    decided_at_ms: since 1970.
    """

    kind: int
    location: str
    run: str
    superseded: tuple[str, ...]
    sequence: int
    facts: tuple[Fact, ...]
    children: bytes
    decided_at_ms: int


@dataclass(frozen=True, slots=True)
class JointChild:
    """Whose child a transactional id is: of its newest transaction. cause: why that aborts."""

    group: str
    slot: int
    token: bytes
    run: str
    sequence: int
    location: str
    cause: int = Cause.NONE


def pack(children: Iterable[tuple[int, int]]) -> bytes:
    """(slot, epoch) of each, in 6 bytes."""
    return b"".join(CHILD.pack(slot, epoch) for slot, epoch in children)


def unpack(children: bytes) -> Iterator[tuple[int, int]]:
    """The opposite of `pack`."""
    return CHILD.iter_unpack(children)


def _read_children(reader: FieldReader, _version: int) -> bytes:
    found = reader.blob()
    if len(found) % CHILD.size:
        raise CorruptRecords(0, f"{len(found)} bytes of children are no multiple of {CHILD.size}")
    return found


def _write_children(writer: FieldWriter, _version: int, value: bytes) -> None:
    writer.blob(value)


_CHILDREN = Kind(_read_children, _write_children, lambda _version, value: b64encode(value).decode())
_FACT = Layout(Fact, Field("name", TEXT), Field("value", LONG))

JOINT = Layout(
    JointValue,
    Field("kind", BYTE),
    Field("location", TEXT),
    Field("run", TEXT),
    Field("superseded", array(TEXT)),
    Field("sequence", LONG),
    Field("facts", array(_FACT.kind)),
    Field("children", _CHILDREN),
    Field("decided_at_ms", LONG),
)
GIVEN_UP = Layout(GivenUpValue, Field("at_ms", LONG))
JOINT_CHILD = Layout(
    JointChild,
    Field("group", TEXT),
    Field("slot", INT),
    Field("token", BYTES),
    Field("run", TEXT),
    Field("sequence", LONG),
    Field("location", TEXT),
    Field("cause", BYTE),
)
