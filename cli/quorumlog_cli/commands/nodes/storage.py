"""`quorumlog storage`: formats a node's directories before its first start, and repairs those of a stopped node."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.ids import format_uuid, parse_uuid
from quorumlog_cli.commands.nodes.storage_recovery import adopt_command, incarnation_of, recover_command
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.password import warn_in_clear

if TYPE_CHECKING:
    from quorumlog.cluster_incarnation import ClusterIncarnation
    from quorumlog_server.config.config import NodeConfig
    from quorumlog_server.directories.first_metadata import FirstUser
    from quorumlog_server.directories.first_voters import FirstVoters

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Format a node's directories and show their owner.")
app.command("recover")(recover_command)
app.command("adopt")(adopt_command)

ConfigsOption = Annotated[
    list[Path], typer.Option("-c", "--config", metavar="FILE", help="server.properties or .toml; may be repeated.")
]

VotersOption = Annotated[
    str | None,
    typer.Option(
        "--initial-controllers",
        "-I",
        metavar="ID@HOST:PORT:DIRECTORY_ID,…",
        help="The first voters, this controller among them; the same list on all of them.",
    ),
]

UsersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-scram",
        "-S",
        metavar="MECHANISM=[name=USER,password=env:NAME]",
        help="A user of the new cluster; the same on all controllers; may be repeated.",
    ),
]

StoppedOption = Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="Of the node, which must not run.")]


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
    cluster_incarnation: Annotated[
        str,
        typer.Option("--cluster-incarnation", metavar="NUMBER.ID", help="Of a recovered cluster; see: storage info"),
    ] = "0",
    standalone: Annotated[bool, typer.Option("--standalone", "-s", help="This controller is the first voter.")] = False,
    initial_controllers: VotersOption = None,
    no_initial_controllers: Annotated[
        bool,
        typer.Option("--no-initial-controllers", "-N", help="This controller joins later; see: quorum add-controller"),
    ] = False,
    release_version: Annotated[
        int | None,
        typer.Option("--release-version", "-r", metavar="LEVEL", help="First level of metadata.version."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="metadata.version=LEVEL: the same."),
    ] = None,
    add_scram: UsersOption = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Skip directories that this node has already formatted.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Format the directories of one node, or of several nodes on this machine.

    A controller without controller.quorum.voters needs --standalone, --initial-controllers or --no-initial-controllers.

    --add-scram names users whom a new cluster begins with, so that nodes and clients can log in at its first start. Its
    parts: name, and password, or saltedpassword with salt (base64); iterations. A password of env:NAME or @FILE is read
    from there; what stands on the command line, every user of the machine can read.

    All nodes of a cluster need the same cluster id and the same secret. Format the first node, copy its cluster.secret
    to the other machines, and pass it there as --secret-file. A formatted directory is never overwritten.
    """
    output.use(output_format)
    configs = [_read(path) for path in config]
    identity = checked_cluster_id(cluster_id) if cluster_id else format_uuid(_random_uuid())
    secret = secret_of(secret_file)
    incarnation = incarnation_of(cluster_incarnation)
    first_voters = _first_voters(standalone, initial_controllers, no_initial_controllers)
    first_level = _first_level(release_version, feature or [])
    first_users = [_first_user(text) for text in add_scram or ()]
    if first_voters.standalone and sum(node.is_controller for node in configs) > 1:
        raise CliError(Exit.USAGE, "--standalone is for one controller", "say --initial-controllers")
    _check_certificates(configs, identity)
    rows = [
        row
        for node in configs
        for row in _format(
            node, identity, secret, incarnation, first_voters, first_level, first_users, ignore_formatted
        )
    ]
    document = {"cluster_id": identity, "directories": rows}
    output.say(f"cluster {identity}")
    output.show(
        ("NODE", "DIRECTORY", "DIRECTORY ID", "FORMATTED"),
        [[row["node_id"], row["path"], row["directory_id"], row["formatted"]] for row in rows],
        document,
    )


@app.command("random-uuid")
def random_uuid_command(output_format: OutputOption = Format.TABLE) -> None:
    """Print a new cluster id."""
    output.use(output_format)
    made = format_uuid(_random_uuid())
    if output.is_json():
        output.show_json({"cluster_id": made})
    else:
        print(made)


@app.command()
def info(config: ConfigsOption, output_format: OutputOption = Format.TABLE) -> None:
    """Show the cluster and node of each configured directory. Exit code 6 if one is not formatted."""
    output.use(output_format)
    rows = [row for path in config for row in _info(_read(path))]
    output.show(
        ("DIRECTORY", "CLUSTER", "INCARNATION", "NODE", "DIRECTORY ID"),
        [
            [row["path"], row["cluster_id"], row["cluster_incarnation"], row["node_id"], row["directory_id"]]
            for row in rows
        ],
        {"directories": rows},
    )
    if any(row["cluster_id"] is None for row in rows):
        raise typer.Exit(Exit.PRECONDITION)


@app.command("renew-quorum-state")
def renew_quorum_state_command(
    config: StoppedOption,
    epoch: Annotated[
        int, typer.Option(min=0, help="The largest leaderEpoch in the quorum-state files of ALL other voters.")
    ],
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Let a stopped voter vote again whose quorum-state file is missing or cannot be read.

    Read the epochs of the other voters after this node has stopped. It may have voted in any of them, so it starts in
    the next one. A smaller epoch than the real one can elect two leaders. A file that cannot be read is kept as
    quorum-state.unreadable; one that can be read is never replaced.
    """
    from quorumlog_server.directories.metadata_repair import renew
    from quorumlog_storage.edge.disk import RealDisk

    output.use(output_format)
    state = renew(RealDisk(), _read(config), epoch)
    output.show(("EPOCH",), [[state.epoch]], {"epoch": state.epoch})


@app.command("accept-metadata-loss")
def accept_metadata_loss(
    config: StoppedOption,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Yes: committed metadata may be lost, such as topics and their records.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Let a stopped voter vote with what is left of its metadata log, though it has lost records.

    Without this, such a voter waits until the other voters have elected a leader and it has caught up: prefer that.
    It is for a voter that is alone, or for a majority that is damaged.
    """
    from quorumlog_server.directories.metadata_repair import accept_loss
    from quorumlog_storage.edge.disk import RealDisk

    output.use(output_format)
    if not unsafe:
        raise CliError(Exit.USAGE, "committed metadata may be lost for ever", "say --unsafe to accept that")
    lost_before = accept_loss(RealDisk(), _read(config))
    if not lost_before:
        output.say("nothing was lost, and nothing was changed")
    output.show(("LOST BEFORE OFFSET",), [[lost_before]], {"lost_before": lost_before})


@app.command("refetch-metadata")
def refetch_metadata(config: StoppedOption, output_format: OutputOption = Format.TABLE) -> None:
    """Let a stopped node fetch all of the cluster's metadata anew at its next start.

    For a metadata log that begins behind a damaged snapshot. The log's segments are kept as .cut files. A voter votes
    again once it has caught up with a leader that the other voters elect; where they cannot elect one, it waits.
    """
    from quorumlog_server.directories.metadata_repair import refetch
    from quorumlog_storage.edge.disk import RealDisk

    output.use(output_format)
    end_offset = refetch(RealDisk(), _read(config))
    output.show(("VOTES AGAIN FROM OFFSET",), [[end_offset]], {"votes_again_from": end_offset})


def _read(path: Path) -> NodeConfig:
    from quorumlog_server.config.config import read_config

    return read_config(str(path), (), os.environ)


def _random_uuid() -> bytes:
    from quorumlog_server.edge.random_uuid import random_uuid

    return random_uuid()


def checked_cluster_id(cluster_id: str) -> str:
    try:
        parse_uuid(cluster_id)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"-t {cluster_id}: {error}", "quorumlog storage random-uuid prints one") from error
    return cluster_id


def secret_of(path: Path | None) -> str:
    """The text of a cluster's secret; a new one without a file. Raises CliError, OSError."""
    from quorumlog_server.directories.secret import MIN_SECRET_CHARACTERS, SECRET_BYTES, new_secret

    if path is None:
        return new_secret(os.urandom(SECRET_BYTES))
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise CliError(Exit.USAGE, f"{path} is no secret: it is not text") from error
    if len(secret) < MIN_SECRET_CHARACTERS:
        raise CliError(Exit.USAGE, f"{path} holds {len(secret)} characters, fewer than {MIN_SECRET_CHARACTERS}")
    return secret


def _first_voters(standalone: bool, initial: str | None, later: bool) -> FirstVoters:
    from quorumlog_server.directories.first_voters import FirstVoters, parse_initial_controllers

    if standalone + (initial is not None) + later > 1:
        text = "--standalone, --initial-controllers and --no-initial-controllers exclude each other"
        raise CliError(Exit.USAGE, text)
    return FirstVoters(
        standalone=standalone, initial=parse_initial_controllers(initial) if initial is not None else (), later=later
    )


def _first_level(release: int | None, features: list[str]) -> int | None:
    found = [] if release is None else [release]
    for text in features:
        name, _, level = text.partition("=")
        if name != "metadata.version" or not level.isdigit():
            raise CliError(Exit.USAGE, f"--feature {text}: only metadata.version=LEVEL can be given")
        found.append(int(level))
    if len(found) > 1:
        raise CliError(Exit.USAGE, "metadata.version is given twice")
    return found[0] if found else None


def _text_of(path: str) -> str:
    if not os.path.exists(path):
        raise CliError(Exit.NOT_FOUND, f"--add-scram: there is no file {path}")
    return Path(path).read_text("utf-8")


def _first_user(text: str) -> FirstUser:
    """With its password, which may lie in a file or in the environment."""
    from quorumlog.security.sasl.scram_format import InClear, read_password, read_scram_argument

    try:
        argument = read_scram_argument(text)
        if argument.password is None:
            return argument, None
        if isinstance(argument.password, InClear):
            warn_in_clear("password=@FILE or password=env:NAME")
        return argument, read_password(argument.password, _text_of, os.environ)
    except ValueError as error:
        raise CliError(Exit.USAGE, str(error)) from error


def _format(
    config: NodeConfig,
    cluster_id: str,
    secret: str,
    incarnation: ClusterIncarnation,
    first_voters: FirstVoters,
    first_level: int | None,
    first_users: Sequence[FirstUser],
    ignore_formatted: bool,
) -> list[dict[str, Any]]:
    from quorumlog_server.directories.format_here import format_here

    others = os.umask(0o077)  # as a node does, which fills these directories
    try:
        done = format_here(
            config,
            cluster_id,
            secret,
            incarnation=incarnation,
            first_voters=first_voters,
            first_level=first_level,
            first_users=first_users,
            ignore_formatted=ignore_formatted,
        )
    finally:
        os.umask(others)
    return [
        {
            "node_id": config.node_id,
            "path": directory.path,
            "directory_id": format_uuid(directory.directory_id),
            "formatted": directory.fresh,
        }
        for directory in done
    ]


def _check_certificates(configs: Sequence[NodeConfig], cluster_id: str) -> None:
    """Of nodes that show them to each other. Raises ConfigError."""
    shown = [node for node in configs if node.nodes.auth.has_certificates]
    if shown:
        from quorumlog_server.edge.grpc_security import check_before_format

        for node in shown:
            check_before_format(node, cluster_id, time.time_ns() // 1_000_000)


_INFO = ("cluster_id", "cluster_incarnation", "node_id", "directory_id")


def _info(config: NodeConfig) -> list[dict[str, Any]]:
    from quorumlog_storage.directory.directory import NotFormatted, read_meta
    from quorumlog_storage.edge.disk import RealDisk

    rows: list[dict[str, Any]] = []
    for path in config.directories:
        try:
            meta = read_meta(RealDisk(), path)
        except NotFormatted:
            rows.append({"path": path, **dict.fromkeys(_INFO)})
            continue
        values = (meta.cluster_id, str(meta.incarnation), meta.node_id, format_uuid(meta.directory_id))
        rows.append({"path": path, **dict(zip(_INFO, values, strict=True))})
    return rows
