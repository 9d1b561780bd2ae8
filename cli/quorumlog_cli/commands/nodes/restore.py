"""`quorumlog restore`: a new cluster from a backup, made while nothing of it runs (decision 151)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.cluster.backup_reading import in_words, open_transactions, read
from quorumlog_cli.commands.cluster.hold import is_held, let_go
from quorumlog_cli.commands.nodes.roll import node_ids
from quorumlog_cli.commands.nodes.storage import checked_cluster_id, secret_of
from quorumlog_cli.commands.nodes.up import key_and_value
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from quorumlog.testing.layout import Layout
    from quorumlog_server.config.config import NodeConfig
    from quorumlog_server.directories.first_voters import FirstVoters
    from quorumlog_server.restoring.backup_folder import Backup
    from quorumlog_server.restoring.restore import RestorePlan

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Make a new cluster from a backup; let retention go."
)
BackupArgument = Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder that `backup create` has made.")]
_OWNER_ONLY = 0o600


@app.command()
def local(
    backup: BackupArgument,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Of the new cluster; empty or not there.")] = Path(
        ".quorumlog"
    ),
    nodes: Annotated[int, typer.Option("-n", "--nodes", min=1, help="How many nodes.")] = 3,
    options: Annotated[
        list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="A key for every node's server.properties.")
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make a local cluster of a backup, as `quorumlog up` makes an empty one; `quorumlog up` then starts it.

    It has a cluster id of its own, so nodes of the old cluster are refused. Nothing is swept until `restore release`.
    """
    from quorumlog.testing.nodes import LocalNodes
    from quorumlog.testing.ports import PortPicker

    output.use(output_format)
    found = read(backup)
    changes = dict(key_and_value(text) for text in options or ())
    picker = PortPicker()
    try:
        cluster = LocalNodes.create(data.absolute(), nodes, changes, picker, lambda layout: _fill(layout, found))
    finally:
        picker.close()
    where = "" if data == Path(".quorumlog") else f" --data {shlex.quote(str(data))}"
    _told(found, cluster.layout.cluster_id, f"quorumlog up -d{where} starts it")


def _fill(layout: Layout, backup: Backup) -> None:
    from quorumlog.testing.nodes import node_environment
    from quorumlog_server.config.config import read_config
    from quorumlog_server.directories.first_voters import STATIC
    from quorumlog_server.directories.secret import SECRET_BYTES, new_secret

    configs = [read_config(str(node.config), (), node_environment()) for node in layout.nodes]
    secret = new_secret(os.urandom(SECRET_BYTES))
    _restore(backup, layout.cluster_id, secret, [node.node_id for node in layout.nodes], configs, STATIC)


@app.command()
def node(
    backup: BackupArgument,
    config: Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="Of the node, which must not run.")],
    cluster_id: Annotated[
        str, typer.Option("-t", "--cluster-id", help="Of the new cluster: quorumlog storage random-uuid makes one.")
    ],
    secret_file: Annotated[
        Path, typer.Option("--secret-file", metavar="FILE", help="The new cluster's secret; the same for all nodes.")
    ],
    nodes: Annotated[str, typer.Option("--nodes", metavar="ID,…", help="Ids of all brokers of the new cluster.")],
    standalone: Annotated[bool, typer.Option("--standalone", "-s", help="This controller is the first voter.")] = False,
    no_initial_controllers: Annotated[
        bool,
        typer.Option("--no-initial-controllers", "-N", help="This controller joins later; see: quorum add-controller"),
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make one node's directories of a backup. Run it for each node, with the same ids and the same secret.

    Without controller.quorum.voters, one controller needs --standalone, and the others --no-initial-controllers.
    """
    from quorumlog_server.config.config import read_config
    from quorumlog_server.directories.first_voters import FirstVoters

    output.use(output_format)
    ids, secret = sorted(set(node_ids(nodes))), secret_of(secret_file)
    checked_cluster_id(cluster_id)
    found = read(backup)
    if cluster_id == found.manifest.cluster_id:
        raise CliError(Exit.PRECONDITION, f"{cluster_id} is the old cluster's id: its nodes could join", "take another")
    if standalone and no_initial_controllers:
        raise CliError(Exit.USAGE, "--standalone and --no-initial-controllers exclude each other")
    voters = FirstVoters(standalone=standalone, later=no_initial_controllers)
    _restore(found, cluster_id, secret, ids, [read_config(str(config), (), os.environ)], voters)
    _told(found, cluster_id, "start the nodes once all are restored")


def _restore(
    backup: Backup,
    cluster_id: str,
    secret: str,
    ids: Sequence[int],
    configs: Sequence[NodeConfig],
    first_voters: FirstVoters,
) -> None:
    from quorumlog_server.restoring.restore import RestorePlan, RestoreRefused, check_empty
    from quorumlog_storage.edge.disk import RealDisk

    plan = RestorePlan(backup=backup, cluster_id=cluster_id, secret=secret, nodes=tuple(ids), first_voters=first_voters)
    disk = RealDisk()
    try:
        for config in configs:
            check_empty(disk, config)
        _restore_each(plan, configs)
    except RestoreRefused as error:
        raise CliError(Exit.PRECONDITION, str(error)) from error


def _restore_each(plan: RestorePlan, configs: Sequence[NodeConfig]) -> None:
    from quorumlog.backup.manifest import BadBackup
    from quorumlog_server.edge.random_uuid import random_uuid
    from quorumlog_server.restoring.restore import restore_node
    from quorumlog_storage.edge.disk import RealDisk
    from quorumlog_storage.files.disk import DiskError

    sizes = {(one.topic, one.index): one.size for one in plan.backup.manifest.partitions}
    here = {config.node_id for config in configs}
    total = sum(sizes[key] for key, nodes in plan.places.items() for node_id in nodes if node_id in here)
    written = 0
    with Progress("restoring") as progress:

        def count(size: int) -> None:
            nonlocal written
            written += size
            progress.show(written, total)

        try:
            for config in configs:
                protect = lambda path: os.chmod(path, _OWNER_ONLY)  # noqa: E731
                restore_node(RealDisk(), config, plan, new_uuid=random_uuid, protect=protect, on_bytes=count)
        except (BadBackup, DiskError) as error:
            raise CliError(Exit.DATA_INVALID, f"{error}; remove the node's directories before the next try") from error


@app.command()
def release(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """End the hold of a restored cluster: retention, compaction and expiry act as usual from now on."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        if not is_held(cluster):
            raise CliError(Exit.PRECONDITION, "retention.paused is not on for all brokers: nothing is held")
        if not yes and not confirmed("Delete for good what retention and expiry have come to since the backup?"):
            raise CliError(Exit.FAILED, "the hold stays", "--yes skips the question")
        let_go(cluster)
    output.tell("retention, compaction and expiry act as usual from now on", {"released": True})


def _told(backup: Backup, cluster_id: str, next_step: str) -> None:
    opened = open_transactions(backup.manifest)
    document = {
        "cluster_id": cluster_id,
        "restored_from": backup.manifest.cluster_id,
        "began_ms": backup.manifest.began_ms,
        "aborted_transactions": opened,
    }
    if output.is_json():
        output.show_json(document)
        return
    output.say(f"restored cluster {backup.manifest.cluster_id} as {cluster_id}")
    for one in opened:
        output.say(f"aborted  {in_words(one)}")
    output.say("held     retention, compaction and expiry, until quorumlog restore release")
    output.say(f"next     {next_step}")
