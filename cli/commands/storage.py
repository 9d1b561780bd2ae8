"""`quorumlog storage`: formats a node's directories before its first start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import output
from cli.errors import CliError, Exit
from cli.output import Format, OutputOption
from quorumlog.ids import format_uuid, parse_uuid

if TYPE_CHECKING:
    from cli.server.config import NodeConfig

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Format a node's directories and show their owner.")

ConfigsOption = Annotated[
    list[Path], typer.Option("-c", "--config", metavar="FILE", help="server.properties or .toml; may be repeated.")
]


@app.command("format")
def format_storage(
    config: ConfigsOption,
    cluster_id: Annotated[
        str | None,
        typer.Option("-t", "--cluster-id", metavar="ID", help="The same on all nodes; see: storage random-uuid"),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option("--secret-file", metavar="FILE", help="cluster.secret of a node that is already formatted."),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Skip directories that this node has already formatted.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Format the directories of one node, or of several nodes on this machine.

    All nodes of a cluster need the same cluster id and the same secret. Format the first node, copy its cluster.secret
    to the other machines, and pass it there as --secret-file. A formatted directory is never overwritten.
    """
    output.use(output_format)
    configs = [_read(path) for path in config]
    identity = _checked(cluster_id) if cluster_id else format_uuid(_random_uuid())
    secret = _secret(secret_file)
    rows = [row for node in configs for row in _format(node, identity, secret, ignore_formatted)]
    document = {"cluster_id": identity, "directories": rows}
    output.say(f"cluster {identity}")
    output.show(
        ("NODE", "DIRECTORY", "DIRECTORY ID", "FORMATTED"),
        [[row["node_id"], row["path"], row["directory_id"], row["formatted"]] for row in rows],
        document,
    )


@app.command("random-uuid")
def random_uuid_command() -> None:
    """Print a new cluster id."""
    print(format_uuid(_random_uuid()))


@app.command()
def info(config: ConfigsOption, output_format: OutputOption = Format.TABLE) -> None:
    """Show the cluster and node of each configured directory. Exit code 6 if one is not formatted."""
    output.use(output_format)
    rows = [row for path in config for row in _info(_read(path))]
    output.show(
        ("DIRECTORY", "CLUSTER", "NODE", "DIRECTORY ID"),
        [[row["path"], row["cluster_id"], row["node_id"], row["directory_id"]] for row in rows],
        {"directories": rows},
    )
    if any(row["cluster_id"] is None for row in rows):
        raise typer.Exit(Exit.PRECONDITION)


def _read(path: Path) -> NodeConfig:
    from cli.server.config_file import read_config

    return read_config(str(path), (), os.environ)


def _random_uuid() -> bytes:
    from cli.server.random_uuid import random_uuid

    return random_uuid()


def _checked(cluster_id: str) -> str:
    try:
        parse_uuid(cluster_id)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"-t {cluster_id}: {error}", "quorumlog storage random-uuid prints one") from error
    return cluster_id


def _secret(path: Path | None) -> str:
    from cli.server.secret import MIN_SECRET_CHARACTERS, SECRET_BYTES, new_secret

    if path is None:
        return new_secret(os.urandom(SECRET_BYTES))
    secret = path.read_text().strip()
    if len(secret) < MIN_SECRET_CHARACTERS:
        raise CliError(Exit.USAGE, f"{path} holds {len(secret)} characters, fewer than {MIN_SECRET_CHARACTERS}")
    return secret


def _format(config: NodeConfig, cluster_id: str, secret: str, ignore_formatted: bool) -> list[dict[str, Any]]:
    from cli.server.format_here import format_here

    done = format_here(config, cluster_id, secret, ignore_formatted=ignore_formatted)
    return [
        {
            "node_id": config.node_id,
            "path": directory.path,
            "directory_id": format_uuid(directory.directory_id),
            "formatted": directory.fresh,
        }
        for directory in done
    ]


def _info(config: NodeConfig) -> list[dict[str, Any]]:
    from storage.directory import NotFormatted, read_meta
    from storage.edge.disk import RealDisk

    rows: list[dict[str, Any]] = []
    for path in config.directories:
        try:
            meta = read_meta(RealDisk(), path)
        except NotFormatted:
            rows.append({"path": path, "cluster_id": None, "node_id": None, "directory_id": None})
            continue
        identity = format_uuid(meta.directory_id)
        rows.append({"path": path, "cluster_id": meta.cluster_id, "node_id": meta.node_id, "directory_id": identity})
    return rows
