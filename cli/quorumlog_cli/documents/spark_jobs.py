"""What `spark` prints."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from quorumlog_cli.documents.common import TopicPartition
from quorumlog_cli.documents.schema import Opaque


class Diagnosis(TypedDict):
    check: str
    state: str
    found: str
    advice: str


class Pin(TypedDict):
    pin: str
    written_ms: int
    offset: dict[str, Annotated[Any, Opaque("the offset of a stream, as the connector writes it into a checkpoint")]]


class Deleted(TypedDict):
    deleted: str


class SparkShell(TypedDict):
    command: list[str]
    environment: dict[str, str]


class Load(TypedDict):
    """offsets: next ones, by topic and partition. lost: topic, partition, first offset and end of what was deleted."""

    load: int
    ended: str
    was_pending: bool
    rows: int
    bytes: int
    files: list[str]
    offsets: dict[str, dict[str, int]]
    lost: list[tuple[str, int, int, int]]


class Loads(TypedDict):
    loads: list[Load]


class LoadVerified(TypedDict):
    """With --verify."""

    commits: int
    files: int
    rows: int
    lost: list[tuple[str, int, int, int]]
    faults: list[str]
    pending: int | None


class MirrorBatch(TypedDict):
    event: Literal["batch"]
    batch: int
    records: int
    lag: dict[str, int]


class MirrorGroups(TypedDict):
    event: Literal["groups"]
    set: list[str]
    busy: list[str]


class MirrorWarning(TypedDict):
    event: Literal["warning"]
    text: str


class SinkGroup(TypedDict):
    group: str
    kind: str | None
    batch: int | None
    decided_at_ms: int | None
    run: str | None
    open: int
    open_ms: int | None
    ending: int
    location: str | None
    totals: dict[str, int]


class OpenChild(TypedDict):
    """With --open."""

    group: str
    batch: int
    run: str
    transactional_id: str
    open_ms: int
    timeout_ms: int
    partitions: list[TopicPartition]


class SinkAborted(TypedDict):
    group: str
    aborted: int


class SinkForgotten(TypedDict):
    forgotten: str
