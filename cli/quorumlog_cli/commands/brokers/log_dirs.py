"""`quorumlog log-dirs`: the log directories of the brokers, moves between them, and how a repaired one comes back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.partitions import log_dir_moves
from quorumlog_cli.commands.partitions.partition_reading import ASK_TIMEOUT_MS
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.messages.admin import LogDirDescription

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show log directories, move replicas between them, bring a repaired one back online.",
)
POLL_S = 0.5
ONLINE, OFFLINE, VERIFYING, UNKNOWN = "online", "offline", "verifying", "unknown"

app.command()(log_dir_moves.move)
app.command()(log_dir_moves.cancel)

NodeOption = Annotated[int | None, typer.Option("--node", metavar="ID", help="Only this broker.", show_default=False)]


@app.command("list")
def list_(
    node: NodeOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show each log directory: its state, partitions, bytes, free space, and why it is offline or gets no new ones.

    Replicas that move into it are shown with how far they are behind.

    A broker that is fenced or does not answer has one row, without a path. Exit code 5: one is not online.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        rows = _rows(cluster.admin, node)
    columns = ("NODE", "PATH", "STATE", "PARTITIONS", "BYTES", "FREE", "MOVING IN", "WHY")
    output.show(columns, [[value for name, value in row.items() if name != "cordoned"] for row in rows], rows)
    if any(row["state"] != ONLINE for row in rows):
        raise typer.Exit(Exit.UNHEALTHY)


@app.command()
def online(
    path: Annotated[str, typer.Argument(metavar="PATH", help="As log.dirs of that node names it.")],
    node: NodeOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the end of the verification.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Bring a repaired log directory back online, without a restart of its node.

    Every log in it is verified from its first byte before it serves; its replicas come back as followers. Without
    --node, PATH must be offline on one broker only.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        admin = cluster.admin
        node_id = node if node is not None else _only_node(_rows(admin, None), path)
        admin.bring_log_dir_online(node_id, path)
        if no_wait:
            output.tell(f"node {node_id} verifies {path}", {"node_id": node_id, "path": path, "state": VERIFYING})
            return
        _wait(admin, node_id, path)
    output.tell(f"{path} of node {node_id} is online", {"node_id": node_id, "path": path, "state": ONLINE})


def _wait(admin: Admin, node_id: int, path: str) -> None:
    told = ""
    while True:
        rows = [row for row in _rows(admin, node_id) if row["path"] in (path, None)]
        if not rows or rows[0]["state"] == UNKNOWN:
            why = rows[0]["why"] if rows else f"it has no log directory {path}"
            raise CliError(Exit.UNHEALTHY, f"node {node_id} does not tell about {path} any more: {why}")
        row = rows[0]
        if row["state"] == ONLINE:
            return
        if row["state"] == OFFLINE:
            raise CliError(Exit.UNHEALTHY, f"{path} of node {node_id} stays offline: {row['why']}")
        if row["why"] != told:
            told = row["why"]
            output.say(told)
        time.sleep(POLL_S)


def _only_node(rows: list[dict[str, Any]], path: str) -> int:
    found = [row["node_id"] for row in rows if row["path"] == path and row["state"] != ONLINE]
    if len(found) == 1:
        return int(found[0])
    known = any(row["path"] == path for row in rows)
    if not known:
        raise CliError(Exit.NOT_FOUND, f"no broker has a log directory {path}; quorumlog log-dirs list shows them")
    what = "is online on every broker that has it" if not found else f"is offline on brokers {found}; give --node ID"
    raise CliError(Exit.PRECONDITION, f"{path} {what}")


def _rows(admin: Admin, node: int | None) -> list[dict[str, Any]]:
    silent: dict[int, str] = {}
    described = admin.describe_log_dirs(timeout_ms=ASK_TIMEOUT_MS if node is None else None, silent=silent)
    silent |= {one.node_id: "it is fenced" for one in admin.describe_cluster().brokers if one.fenced}
    known = described.keys() | silent.keys()
    if node is not None and node not in known:
        raise CliError(Exit.NOT_FOUND, f"there is no broker {node}; the brokers are {sorted(known)}")
    rows = [_row(node_id, one) for node_id, directories in described.items() for one in directories]
    rows += [_unknown(node_id, why) for node_id, why in silent.items() if node_id not in described]
    return sorted((row for row in rows if node in (None, row["node_id"])), key=lambda row: row["node_id"])


def _unknown(node_id: int, why: str) -> dict[str, Any]:
    """In place of the directories of a broker that says nothing of them."""
    sizes: dict[str, Any] = dict.fromkeys(("partitions", "bytes", "free_bytes"))
    head = {"node_id": node_id, "path": None, "state": UNKNOWN}
    return {**head, **sizes, "moving_in": "", "why": why, "cordoned": False}


def _row(node_id: int, one: LogDirDescription) -> dict[str, Any]:
    held = [(topic.name, partition) for topic in one.topics for partition in topic.partitions]
    sizes = [partition.size_bytes for _, partition in held if not partition.is_future]
    moves = [f"{name}-{copy.index}: {copy.offset_lag} offsets behind" for name, copy in held if copy.is_future]
    state = ONLINE if not one.error_code else VERIFYING if one.error_message.startswith(VERIFYING) else OFFLINE
    return {
        "node_id": node_id,
        "path": one.path,
        "state": state,
        "partitions": len(sizes) if state == ONLINE else None,
        "bytes": sum(sizes) if state == ONLINE else None,
        "free_bytes": one.usable_bytes if state == ONLINE else None,
        "moving_in": ", ".join(moves),
        "why": one.error_message or ("cordoned: it gets no new partitions" if one.is_cordoned else ""),
        "cordoned": one.is_cordoned,
    }
