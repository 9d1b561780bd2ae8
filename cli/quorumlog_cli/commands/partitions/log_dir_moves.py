"""`quorumlog log-dirs move` and `cancel`: a replica goes to another log directory of its broker (KIP-113)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.messages.admin import LogDirDescription, LogDirPartition

POLL_S = 0.5
TOLD_EVERY_S = 5.0

PartitionArgument = Annotated[str, typer.Argument(metavar="TOPIC-PARTITION", help="Such as orders-3.")]
NodeOption = Annotated[
    int | None, typer.Option("--node", metavar="ID", help="The broker of the replica.", show_default=False)
]


class Place(NamedTuple):
    """Where a replica lies on a broker, and its copy, if it is being moved."""

    path: str
    own: LogDirPartition
    copy_path: str = ""
    copy: LogDirPartition | None = None


def move(
    partition: PartitionArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A log directory of that broker.")],
    node: NodeOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it has moved.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Move a replica to another log directory of its broker, while it serves.

    Without --node, one broker only may have the directory PATH and the replica. A move survives a restart of the
    broker; `log-dirs list` shows it, `log-dirs cancel` ends it. Exit code 5: the replica did not move.
    """
    output.use(output_format)
    topic, index = split(partition)
    with connected(find_target(servers, profile, options)) as cluster:
        node_id = node if node is not None else only_node(cluster.admin, topic, index, path)
        cluster.admin.alter_replica_log_dirs({(topic, index, node_id): path})
        if no_wait:
            output.tell(
                f"{partition} of node {node_id} moves to {path}", document_of(topic, index, node_id, path, "moves")
            )
            return
        wait(cluster.admin, node_id, topic, index, path)
    output.tell(f"{partition} of node {node_id} is in {path}", document_of(topic, index, node_id, path, "moved"))


def cancel(
    partition: PartitionArgument,
    node: NodeOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """End the move of a replica: its copy is deleted, and it stays where it is."""
    output.use(output_format)
    topic, index = split(partition)
    with connected(find_target(servers, profile, options)) as cluster:
        found = {
            node_id: place
            for node_id, place in places(cluster.admin, topic, index).items()
            if place.copy is not None and node in (None, node_id)
        }
        if not found:
            raise CliError(
                Exit.NOT_FOUND, f"no replica of {partition} is being moved; quorumlog log-dirs list shows moves"
            )
        if len(found) > 1:
            raise CliError(Exit.PRECONDITION, f"{partition} is being moved on brokers {sorted(found)}; give --node ID")
        ((node_id, place),) = found.items()
        cluster.admin.alter_replica_log_dirs({(topic, index, node_id): place.path})
    output.tell(
        f"{partition} of node {node_id} stays in {place.path}", document_of(topic, index, node_id, place.path, "stays")
    )


def document_of(topic: str, index: int, node_id: int, path: str, state: str) -> dict[str, Any]:
    """What became of a replica, for programs."""
    return {"topic": topic, "partition": index, "node_id": node_id, "path": path, "state": state}


def split(partition: str) -> tuple[str, int]:
    """Topic and number. Raises CliError."""
    topic, _, number = partition.rpartition("-")
    if not topic or not (number.isascii() and number.isdigit()):
        raise CliError(Exit.USAGE, f"{partition} is not a topic and a partition, such as orders-3")
    return topic, int(number)


def only_node(admin: Admin, topic: str, index: int, path: str) -> int:
    """The one broker that holds the replica and has the directory. Raises CliError."""
    described = admin.describe_log_dirs(silent={})
    holds = places_in(described, topic, index)
    fits = [node_id for node_id in holds if any(one.path == path for one in described[node_id])]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise CliError(
            Exit.NOT_FOUND,
            f"no broker holds {topic}-{index} and has a log directory {path}; see quorumlog log-dirs list",
        )
    raise CliError(Exit.PRECONDITION, f"brokers {fits} hold {topic}-{index} and have {path}; give --node ID")


def wait(admin: Admin, node_id: int, topic: str, index: int, path: str) -> None:
    """Until the replica lies in `path`, telling how far it is. Raises CliError where the move ends otherwise."""
    told_s, before = 0.0, (time.monotonic(), 0)
    while True:
        described = admin.describe_log_dirs(silent={})
        place = places_in(described, topic, index).get(node_id)
        if node_id not in described:
            why = "it is fenced, or does not answer; the move goes on when it is back: quorumlog log-dirs list"
            raise CliError(Exit.UNREACHABLE, f"node {node_id} does not tell how far it is: {why}")
        if place is None:
            raise CliError(Exit.UNHEALTHY, f"node {node_id} holds no replica of {topic}-{index} any more")
        if place.path == path:
            return
        if place.copy is None:
            why = f"its move has ended; the log of node {node_id} says why"
            raise CliError(Exit.UNHEALTHY, f"{topic}-{index} stays in {place.path}: {why}")
        now_s = time.monotonic()
        if now_s - told_s >= TOLD_EVERY_S:
            output.say(progress(place, now_s - before[0], place.copy.size_bytes - before[1]))
            told_s, before = now_s, (now_s, place.copy.size_bytes)
        time.sleep(POLL_S)


def progress(place: Place, passed_s: float, copied: int) -> str:
    """copied: bytes in the last `passed_s` seconds."""
    assert place.copy is not None
    whole, size = max(place.own.size_bytes, 1), place.copy.size_bytes
    if place.copy.offset_lag == 0:
        return "caught up; the controller is told"
    text = f"{min(100, 100 * size // whole)} %, {size:,} of {whole:,} bytes"
    if copied <= 0 or passed_s <= 0 or size == copied:
        return text
    return f"{text}, {int((whole - size) / (copied / passed_s))} s left"


def places(admin: Admin, topic: str, index: int) -> dict[int, Place]:
    """By broker."""
    return places_in(admin.describe_log_dirs(silent={}), topic, index)


def places_in(described: dict[int, tuple[LogDirDescription, ...]], topic: str, index: int) -> dict[int, Place]:
    found: dict[int, Place] = {}
    for node_id, directories in described.items():
        held = [
            (directory.path, partition)
            for directory in directories
            for one in directory.topics
            if one.name == topic
            for partition in one.partitions
            if partition.index == index
        ]
        own = [pair for pair in held if not pair[1].is_future]
        copy = [pair for pair in held if pair[1].is_future]
        if own:
            found[node_id] = Place(*own[0], *(copy[0] if copy else ()))
    return found
