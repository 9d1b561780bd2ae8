"""`quorumlog quorum add-controller | remove-controller | replication`: the voters, changed one at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Uuid, format_uuid, parse_uuid
from quorumlog.watch.words import duration
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.client.errors import RequestFailed
    from quorumlog.messages.common import Endpoint
    from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica, VoterChange

TRY_MS = 5_000  # for which the leader waits in one request; between them the progress is shown
PAUSE_S = 0.5
TimeoutOption = Annotated[float, typer.Option("--timeout", help="Seconds.")]
NodeIdOption = Annotated[int | None, typer.Option("--node-id", metavar="ID", help="Of the controller.")]
DirectoryOption = Annotated[
    str | None, typer.Option("--directory-id", metavar="ID", help="Of its metadata log's directory: storage info.")
]


def add_controller(
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", metavar="FILE", help="The controller's configuration, on its own machine."),
    ] = None,
    node_id: NodeIdOption = None,
    directory_id: DirectoryOption = None,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="HOST:PORT", help="Of the controller's internal listener.")
    ] = None,
    listener: Annotated[str, typer.Option("--listener", metavar="NAME", help="Its name.")] = "INTERNAL",
    timeout_s: TimeoutOption = 120.0,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make a running controller a voter. It copies the metadata log first; the progress is shown.

    The controller must be formatted and started, and know the quorum (controller.quorum.bootstrap.servers). Name it by
    its configuration file (-c), or by --node-id, --directory-id and --endpoint. Exit code 10: it is too slow.
    """
    output.use(output_format)
    node, directory, where = _candidate(config, node_id, directory_id, endpoint, listener)
    deadline = time.monotonic() + timeout_s
    with connected(find_target(servers, profile, options)) as cluster:
        while not _try_to_add(cluster.admin, node, directory, where, deadline):
            time.sleep(PAUSE_S)
        document = _voters(cluster.admin.describe_quorum())
    _show_voters(f"node {node} is a voter", document)


def remove_controller(
    node_id: NodeIdOption = None,
    directory_id: DirectoryOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Remove a controller from the voters, running or dead. It stays an observer as long as it runs.

    Without --directory-id the one that the quorum knows is taken.
    """
    output.use(output_format)
    if node_id is None:
        raise CliError(Exit.USAGE, "which controller? Pass --node-id; quorum replication lists them")
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        directory = _directory(directory_id) or _known_directory(cluster.admin.describe_quorum(), node_id)
        cluster.admin.remove_voter(node_id, directory)
        document = _voters(cluster.admin.describe_quorum())
    _show_voters(f"node {node_id} is no voter of {target.name} any more", document)


def replication(
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show every voter and observer with its directory and its progress, and a change of the voters under way."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_quorum()
    end = max((row.log_end_offset for row in (*found.voters, *found.observers)), default=0)
    rows = [_row(row, "leader" if row.replica_id == found.leader_id else "follower", end) for row in found.voters]
    rows += [_row(row, "leader" if row.replica_id == found.leader_id else "observer", end) for row in found.observers]
    change = found.voter_change
    document = {
        "leader": found.leader_id,
        "epoch": found.leader_epoch,
        "kraft_version": found.kraft_version,
        "replicas": rows,
        "change": None if change is None else _change(change),
    }
    if output.is_json():
        output.show_json(document)
        return
    columns = ("NODE", "DIRECTORY ID", "STATUS", "LOG END", "LAG", "FETCHED", "CAUGHT UP")
    output.show_table(columns, [[*list(row.values())[:5], *_since(row)] for row in rows])
    if change is not None:
        output.say(_progress(change))


# --- adding ---


def _candidate(
    config: Path | None, node_id: int | None, directory_id: str | None, endpoint: str | None, listener: str
) -> tuple[NodeId, Uuid, Endpoint]:
    """Who is to be added, from its files or from the options. Raises CliError."""
    from quorumlog.messages.common import Endpoint

    if config is not None:
        return _from_files(config)
    directory = _directory(directory_id)
    if node_id is None or directory is None or endpoint is None:
        raise CliError(Exit.USAGE, "which controller? Pass -c FILE, or --node-id, --directory-id and --endpoint")
    host, found, port = endpoint.rpartition(":")
    if not found or not host or not port.isdigit():
        raise CliError(Exit.USAGE, f"--endpoint {endpoint} is not HOST:PORT")
    return node_id, directory, Endpoint(name=listener.upper(), host=host.strip("[]"), port=int(port))


def _from_files(path: Path) -> tuple[NodeId, Uuid, Endpoint]:
    from quorumlog.messages.common import Endpoint
    from quorumlog_server.config.config import read_config
    from quorumlog_storage.directory.directory import read_meta
    from quorumlog_storage.edge.disk import RealDisk

    config = read_config(str(path), (), os.environ)
    if not config.is_controller:
        text = f"{path}: node {config.node_id} has not the role controller, so it cannot be a voter"
        raise CliError(Exit.PRECONDITION, text, "set process.roles and restart it")
    meta, address = read_meta(RealDisk(), config.metadata_log_dir), config.internal_address
    if not address.port:
        text = f"{path}: the port of {config.internal_listener.name} is 0, so nobody knows it"
        raise CliError(Exit.PRECONDITION, text, "give it a port in `listeners` or `advertised.listeners`")
    endpoint = Endpoint(name=config.internal_listener.name, host=address.host, port=address.port)
    return config.node_id, meta.directory_id, endpoint


def _try_to_add(admin: Admin, node: NodeId, directory: Uuid, where: Endpoint, deadline: float) -> bool:
    """One request. Returns False if the node needs more time, or another change is under way."""
    from quorumlog.client.errors import RequestFailed

    left_ms = int((deadline - time.monotonic()) * 1_000)
    try:
        admin.add_voter(node, directory, (where,), max(1, min(TRY_MS, left_ms)))
    except RequestFailed as error:
        if error.code is ErrorCode.DUPLICATE_VOTER and _is_voter(admin, node, directory):
            return True  # an earlier request was carried out, and its answer was lost
        if error.code is not ErrorCode.REQUEST_TIMED_OUT or left_ms <= TRY_MS:
            raise _explained(error) from error
        output.say(f"waiting: {error.message}")
        return False
    return True


def _is_voter(admin: Admin, node: NodeId, directory: Uuid) -> bool:
    voters = admin.describe_quorum().voters
    return any((voter.replica_id, voter.directory_id) == (node, directory) for voter in voters)


def _explained(error: RequestFailed) -> Exception:
    hints = {
        ErrorCode.DUPLICATE_VOTER: "quorumlog quorum replication shows the voters; remove the old one with "
        "quorumlog quorum remove-controller --node-id ID",
        ErrorCode.UNSUPPORTED_VERSION: "quorumlog quorum replication -o json shows kraft_version",
    }
    hint = hints.get(error.code)
    if hint is None:
        return error
    return CliError(Exit.PRECONDITION, str(error), hint)


# --- words and rows ---


def _directory(text: str | None) -> Uuid | None:
    if text is None:
        return None
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"--directory-id {text}: {error}") from error


def _known_directory(found: DescribeQuorumResponse, node_id: NodeId) -> Uuid:
    for voter in found.voters:
        if voter.replica_id == node_id:
            return voter.directory_id
    names = ", ".join(str(voter.replica_id) for voter in found.voters)
    raise CliError(Exit.NOT_FOUND, f"node {node_id} is not a voter; the voters are {names}")


def _voters(found: DescribeQuorumResponse) -> list[dict[str, Any]]:
    return [
        {"node_id": voter.replica_id, "directory_id": format_uuid(voter.directory_id)}
        for voter in found.voters
        if voter.directory_id
    ]


def _show_voters(done: str, voters: list[dict[str, Any]]) -> None:
    output.say(done)
    output.show(
        ("VOTER", "DIRECTORY ID"), [[row["node_id"], row["directory_id"]] for row in voters], {"voters": voters}
    )


def _row(replica: QuorumReplica, status: str, end: int) -> dict[str, Any]:
    known = replica.log_end_offset >= 0
    return {
        "node_id": replica.replica_id,
        "directory_id": format_uuid(replica.directory_id) if replica.directory_id else None,
        "status": status,
        "log_end": replica.log_end_offset if known else None,
        "lag": max(0, end - replica.log_end_offset) if known else None,
        "since_fetch_ms": replica.since_fetch_ms,
        "since_caught_up_ms": replica.since_caught_up_ms,
    }


def _since(row: dict[str, Any]) -> list[str]:
    if row["status"] == "leader":
        return ["—", "—"]
    return [duration(row[name]) if row[name] >= 0 else "never" for name in ("since_fetch_ms", "since_caught_up_ms")]


def _change(change: VoterChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "node_id": change.voter_id,
        "directory_id": format_uuid(change.voter_directory_id) if change.voter_directory_id else None,
        "phase": change.phase,
        "log_end": change.log_end_offset if change.log_end_offset >= 0 else None,
        "leader_end": change.leader_end_offset,
    }


def _progress(change: VoterChange) -> str:
    text = f"under way: {change.kind} node {change.voter_id}, {change.phase}"
    if change.phase != "catch-up":
        return text
    return f"{text}: {max(0, change.log_end_offset)} of {change.leader_end_offset} records"
