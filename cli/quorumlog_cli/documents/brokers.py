"""What `broker`, `log-dirs` and `feature` print."""

from __future__ import annotations

from typing import Annotated, TypedDict


class Listener(TypedDict):
    name: str
    host: str
    port: int


class BrokerDirectory(TypedDict):
    """All but the id is null where the broker was not asked or did not answer."""

    directory_id: str | None
    path: str | None
    state: str | None
    cordoned: bool
    partitions: int | None
    bytes: int | None
    free_bytes: int | None


class LevelRange(TypedDict):
    name: str
    min_level: int
    max_level: int


class Broker(TypedDict):
    """null: not known, as over Kafka's protocol."""

    broker_id: int
    state: str
    rack: str | None
    listeners: list[Listener]
    address: str
    leaders: int | None
    replicas: int | None
    cordoned: bool
    directory_count: int
    bytes: int | None
    directories: list[BrokerDirectory]
    features: list[LevelRange]
    broker_epoch: int | None


class Unregistered(TypedDict):
    dry_run: bool
    broker_id: int
    broker_epoch: int
    state: str
    replicas: Annotated[list[str], "TOPIC-PARTITION that are still assigned to it"]
    without_other_copy: list[str]


class LogDirectory(TypedDict):
    node_id: int
    path: str | None
    state: str
    partitions: int | None
    bytes: int | None
    free_bytes: int | None
    moving_in: str
    why: str
    cordoned: bool


class DirectoryOnline(TypedDict):
    node_id: int
    path: str
    state: str


class ReplicaMove(TypedDict):
    """state: moves, moved or stays."""

    topic: str
    partition: int
    node_id: int
    path: str
    state: str


class Feature(TypedDict):
    name: str
    finalized_level: int
    min_level: int
    max_level: int


class NodeFeatures(TypedDict):
    node_id: int
    features: list[LevelRange]


class Features(TypedDict):
    epoch: int
    features: list[Feature]
    brokers: list[NodeFeatures]
    controllers: list[NodeFeatures]


class FeatureLevel(TypedDict):
    name: str
    level: int


class MappedLevels(TypedDict):
    metadata_version: int
    features: list[FeatureLevel]


class Dependency(TypedDict):
    name: str
    level: int
    requires: list[FeatureLevel]


class Dependencies(TypedDict):
    features: list[Dependency]


FeatureChange = TypedDict("FeatureChange", {"name": str, "from": int, "to": int})


class FeatureChanges(TypedDict):
    dry_run: bool
    changes: list[FeatureChange]
