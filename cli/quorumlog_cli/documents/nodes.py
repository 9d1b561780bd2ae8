"""What commands of local nodes, their files and profiles print."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from quorumlog_cli.documents.common import TopicPartition, Where
from quorumlog_cli.documents.schema import Opaque, has_more


class LeaderOf(TypedDict):
    leader: int
    epoch: int


class StartedNode(TypedDict):
    node_id: int
    client: Annotated[str, "HOST:PORT for clients"]
    internal_port: int
    admin_port: int


class Up(TypedDict):
    """user and what follows: with --tls."""

    cluster_id: str
    data_dir: str
    bootstrap_servers: str
    quorum: LeaderOf
    nodes: list[StartedNode]
    user: NotRequired[str]
    password_file: NotRequired[str]
    truststore: NotRequired[str]
    client_files: NotRequired[dict[str, str]]


class NodeStatus(TypedDict):
    """recovery, offline, problems, opening, index_checks: what the node tells of its disks, in words."""

    node_id: int
    state: str
    ready: bool
    pid: int | None
    client: str
    admin_port: int
    recovery: list[str]
    offline: list[str]
    problems: list[str]
    opening: list[str]
    index_checks: list[str]
    reason: str


class HeldPartition(TopicPartition):
    stable: Annotated[int | None, "last stable offset"]
    open_ms: int


class HeldBack(TypedDict):
    group: str
    batch: int
    open: int
    open_ms: int
    partitions: list[HeldPartition]


class ClusterStatus(TypedDict):
    cluster_id: str
    leader: int
    epoch: int
    high_watermark: int
    topics: int
    partitions: int
    under_replicated: int
    without_leader: int
    readers_held_back: list[HeldBack]
    retention_held: Annotated[bool, "a backup or a restore holds back retention and expiry"]


class ClusterSilent(TypedDict):
    """Nothing could be read."""

    error: str


class Status(Where):
    healthy: bool
    problems: list[str]
    nodes: list[NodeStatus]
    cluster: ClusterStatus | ClusterSilent


class LogLine(TypedDict):
    """request: the id of the request that the line is about; empty: of none."""

    node: int
    time: str
    level: str
    logger: str
    request: str
    text: str


class Killed(Where):
    killed: int


class Paused(Where):
    paused: int


class Resumed(TypedDict):
    resumed: int


class Restarted(Where):
    restarted: int


class Down(Where):
    stopped: list[int]
    killed: list[int]


class Purged(Where):
    removed: Annotated[str, "the folder"]


class Links(Where):
    """cut: pairs of nodes."""

    cut: list[list[int]]
    healed: NotRequired[list[list[int]]]


class RollTurn(TypedDict):
    node: int
    host: str
    port: int
    broker: bool
    controller: bool
    active_controller: bool
    leads: Annotated[int, "partitions"]


class BelowMinimum(TypedDict):
    node: int
    topic: str
    partition: int
    replicas: list[int]
    isr: list[int]
    min_isr: int
    left: int


class RollPlan(TypedDict):
    """With --dry-run."""

    plan: list[RollTurn]
    below_minimum: list[BelowMinimum]
    majority_lost: list[int]
    dry_run: bool


class Rolled(TypedDict):
    plan: list[RollTurn]
    below_minimum: list[BelowMinimum]
    majority_lost: list[int]
    ending: str
    reason: str
    at: Annotated[int | None, "the node at which it stopped"]
    restarted: list[int]
    left: list[int]


class Address(TypedDict):
    url: str


class FormattedDirectory(TypedDict):
    node_id: int
    path: str
    directory_id: str
    formatted: Annotated[bool, "false: it was already"]


class Formatted(TypedDict):
    cluster_id: str
    directories: list[FormattedDirectory]


class MadeId(TypedDict):
    cluster_id: str


class DirectoryInfo(TypedDict):
    """All but the path is null where it is not formatted."""

    path: str
    cluster_id: str | None
    cluster_incarnation: str | None
    node_id: int | None
    directory_id: str | None


class StorageInfo(TypedDict):
    directories: list[DirectoryInfo]


class RenewedState(TypedDict):
    epoch: int


class AcceptedLoss(TypedDict):
    lost_before: Annotated[int, "an offset; 0: nothing was lost"]


class Refetched(TypedDict):
    votes_again_from: int


class Recovered(TypedDict):
    cluster_id: str
    cluster_incarnation: str
    end_offset: int
    last_epoch: int
    resumed: bool


class Adopted(TypedDict):
    directories: list[str]
    set_aside: str


class Linted(TypedDict):
    valid: bool
    warnings: list[str]


Setting = Annotated[Any, Opaque("the setting's own type, as docs/settings.md has it")]


class ExplainedSetting(TypedDict):
    key: str
    meaning: NotRequired[str]
    default: NotRequired[Setting]
    minimum: NotRequired[float | str | None]
    maximum: NotRequired[float | str | None]
    effect: NotRequired[str]


class ProfileRow(TypedDict):
    name: str
    servers: str
    current: bool
    cluster_id: str | None
    data_dir: str | None


ShownProfile = TypedDict(
    "ShownProfile",
    {
        "bootstrap_servers": str,
        "cluster_id": str | None,
        "from": str,
        "options": dict[str, Annotated[Any, Opaque("the option's own type, as docs/client-options.md has it")]],
        "data_dir": str | None,
        "file": str,
    },
)


class ProfileUsed(TypedDict):
    current: str
    file: str


class ProfileCreated(ProfileUsed):
    cluster_id: str | None


class ProfileDeleted(TypedDict):
    deleted: str
    file: str


class CompletionScript(TypedDict):
    shell: str
    script: str


class Page(TypedDict):
    topic: str
    title: str
    part: str


class Pages(TypedDict):
    pages: list[Page]


class PageText(Page):
    """With a topic."""

    text: str


class FoundLine(TypedDict):
    """number: of the line, from 1."""

    topic: str
    heading: str
    number: int
    text: str


class FoundLines(TypedDict):
    """With --find."""

    found: list[FoundLine]


class Site(TypedDict):
    """With --browser."""

    site: str


Versions = TypedDict(
    "Versions",
    {
        "quorumlog": str,
        "python": str,
        "system": str,
        "grpcio": str,
        "protobuf": str,
        "google-crc32c": str,
        "immutables": str,
        "pyarrow": str,
        "pyspark": str,
    },
)


class DescribedCommand(TypedDict):
    command: str
    lines: Annotated[bool, "one document on each line"]


class DescribedCommands(TypedDict):
    commands: list[DescribedCommand]


JsonSchema = dict[str, Annotated[Any, Opaque("JSON Schema 2020-12, whose own schema describes it")]]


@has_more("more that the event tells")
class NodeLine(TypedDict):
    """On stderr, as the node runs."""

    timestamp: str
    level: str
    logger: str
    node: int
    event: str
    request: NotRequired[Annotated[str, "NODE:CONNECTION:CORRELATION of the request that it is about"]]
