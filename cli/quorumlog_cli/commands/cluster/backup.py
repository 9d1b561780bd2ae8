"""`quorumlog backup`: a copy of a running cluster, for `quorumlog restore` (decision 151)."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.cluster.backup_reading import in_words, open_transactions, read, reading
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.profiles.client_security import with_secrets
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit, exit_code
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from quorumlog.backup.manifest import Manifest
    from quorumlog.client.admin import AsyncAdmin
    from quorumlog_cli.commands.cluster.backup_writing import BackupFolder, Begun
    from quorumlog_cli.profiles.profile import Target

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Copy a running cluster; show and verify a copy.")
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the backup.")]
API_TIMEOUT_MS = 60_000  # a leader may be dead meanwhile, and another one elected


@app.command()
def create(
    folder: FolderArgument,
    rate: Annotated[
        int, typer.Option("--rate", min=0, metavar="BYTES", help="Copy no faster than this, in bytes a second; 0: any.")
    ] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a backup that was interrupted.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Copy a running cluster into an empty folder: metadata, records, groups, transactions.

    Producers and groups run on; commits of transactions wait for a moment, 10 s at most, and compaction is paused. All
    that was acknowledged before the command began is in the copy, no group is beyond its records, and each transaction
    is there as a whole or not at all; those that are open are named, and a restore aborts them. The manifest is written
    last: a folder without it is no whole backup. Passwords are in the folder as verifiers, so only its owner can read
    it.
    """
    output.use(output_format)
    target = find_target(servers, profile, options)
    with connected(target):  # it answers, and is the cluster that is meant
        manifest = asyncio.run(_create(target, folder, rate, resume))
    _show(manifest)
    output.say(f"{folder} holds verifiers of passwords: only its owner can read it; keep it so")


async def _create(target: Target, folder: Path, rate: int, resume: bool) -> Manifest:
    from quorumlog import __version__
    from quorumlog.backup.compaction_pause import PauseEnded
    from quorumlog.client.asynchronous import AsyncAdmin
    from quorumlog_cli.commands.cluster.backup_copying import Copying, Pace
    from quorumlog_cli.commands.cluster.backup_writing import BackupFolder

    options = {"default_api_timeout_ms": API_TIMEOUT_MS, "client_id": "quorumlog-cli", **target.options}
    admin = AsyncAdmin(bootstrap_servers=target.bootstrap_servers, **with_secrets(options))
    try:
        if resume:
            made, begun = BackupFolder.resume(folder)
            found = (await admin.describe_cluster()).cluster_id
            if found != begun.cluster_id:
                raise CliError(Exit.PRECONDITION, f"{folder} was begun on cluster {begun.cluster_id}, this is {found}")
            made.check_pause(begun, _now_ms())
        else:
            made = BackupFolder.make(folder)
            begun = await _begin(admin, made)
        with Progress("copying", "partitions") as progress:
            left_out = await Copying(admin, made, begun, Pace(rate), _now_ms, progress.show).run()
    except PauseEnded as error:
        raise CliError(Exit.FAILED, str(error)) from error
    except OSError as error:  # a full disk, as a rule; what is copied stays
        if error.errno is None:
            raise  # a time-out of the cluster
        text = f"{folder}: {error.strerror or error}"
        raise CliError(exit_code(error), text, "once that is mended, --resume goes on") from error
    finally:
        await admin.close()
    return made.finish(begun, left_out, _now_ms(), f"quorumlog {__version__}")


async def _begin(admin: AsyncAdmin, made: BackupFolder) -> Begun:
    from quorumlog.client.administration.backup_cut import CutFailed
    from quorumlog_cli.commands.cluster.backup_writing import Begun
    from quorumlog_server.restoring.cut_topics import compacted_topics, cut_topics

    began_ms = _now_ms()
    try:
        await made.pause.keep(_now_ms(), admin.pause_compaction)
        cut = await admin.take_cut(cut_topics, lambda: os.urandom(16), API_TIMEOUT_MS)
        begun = Begun(
            cluster_id=(await admin.describe_cluster()).cluster_id,
            metadata_offset=cut.metadata_offset,
            began_ms=began_ms,
            cut_ms=_now_ms(),
            held_ms=cut.held_ms,
            topics={name: topic_id for name, (topic_id, _) in cut.topics.topics.items()},
            compacted=compacted_topics(cut.snapshot),
            ends=cut.ends,
            producers=cut.producers,
        )
        made.begin(begun, cut.snapshot)
    except CutFailed as error:
        made.drop()
        raise CliError(Exit.UNHEALTHY, str(error)) from error
    except BaseException:
        made.drop()
        raise
    return begun


@app.command()
def verify(folder: FolderArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Read a backup whole, and compare every checksum. Exit code 4: it is damaged, or not whole."""
    from quorumlog_server.restoring.backup_folder import verify as verify_all

    output.use(output_format)
    backup = read(folder)
    with reading():
        size = verify_all(backup)
    count = len(backup.manifest.partitions)
    output.tell(
        f"{folder} is whole: {count} partitions, {size:,} bytes of records",
        {"whole": True, "partitions": count, "bytes": size},
    )


@app.command()
def show(folder: FolderArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Show what a backup holds, from its manifest; `verify` reads the records, too."""
    output.use(output_format)
    _show(read(folder).manifest)


def _show(manifest: Manifest) -> None:
    opened = open_transactions(manifest)
    by_topic = [_topic_row(manifest, name) for name in sorted(manifest.topics)]
    document = {
        "cluster_id": manifest.cluster_id,
        "metadata_offset": manifest.metadata_offset,
        "began_ms": manifest.began_ms,
        "cut_ms": manifest.cut_ms,
        "ended_ms": manifest.ended_ms,
        "commits_held_ms": manifest.held_ms,
        "made_by": manifest.made_by,
        "topics": by_topic,
        "open_transactions": opened,
        "left_out": dict(manifest.left_out),
    }
    output.show(("TOPIC", "PARTITIONS", "BYTES"), [list(row.values()) for row in by_topic], document)
    if output.is_json():
        return
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.began_ms / 1000))
    output.say(f"cluster {manifest.cluster_id}: all that was acknowledged before {when}")
    output.say(f"commits of transactions waited {manifest.held_ms} ms for the cut")
    for one in opened:
        output.say(f"open     {in_words(one)}: a restore aborts it")
    for name, why in manifest.left_out.items():
        output.say(f"left out {name}: {why}")


def _topic_row(manifest: Manifest, name: str) -> dict[str, Any]:
    parts = [one for one in manifest.partitions if one.topic == name]
    return {"topic": name, "partitions": len(parts), "bytes": sum(one.size for one in parts)}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
