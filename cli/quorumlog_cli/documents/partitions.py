"""What `partition` prints."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict


class PartitionRow(TypedDict):
    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    last_known_leader: int | None
    size_bytes: int | None
    state: str
    preferred_leader: bool
    adding: list[int]
    removing: list[int]


class Elected(TypedDict):
    """failed: why, by TOPIC-PARTITION."""

    elected: list[str]
    not_needed: list[str]
    failed: dict[str, str]


class WouldElect(TypedDict):
    """With --dry-run."""

    would_elect: list[str]


class Assigned(TypedDict):
    topic: str
    partition: int
    replicas: list[int]
    log_dirs: NotRequired[Annotated[list[str], "one for each replica, or any"]]


class Plan(TypedDict):
    """As kafka-reassign-partitions reads it."""

    version: int
    partitions: list[Assigned]


class CarriedOut(TypedDict):
    plan: Plan
    rollback: Plan
    bytes_copied: int
    replicas_added: int
    between_directories: int
    leaders_changed: int
    notes: list[str]
    dry_run: bool
    failed: dict[str, str]


class Copy(TypedDict):
    topic: str
    partition: int
    node_id: int
    path: str
    done_bytes: int
    total_bytes: int


class MovesStatus(TypedDict):
    partitions: Annotated[int, "that are being moved between brokers"]
    copies: list[Copy]
    done_bytes: int
    total_bytes: int
    bytes_per_second: int
    left_seconds: float | None
    waits_for_brokers: list[int]
    not_as_planned: list[str]
    throttles_removed: int | None


class MovesCancelled(TypedDict):
    cancelled: list[str]
    failed: dict[str, str]
    dry_run: bool
