"""`quorumlog storage recover` and `adopt`: the way out when the majority of the controllers is lost for ever.

docs/operations.md, "Lost majority", says when and in which order.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.cluster_incarnation import ClusterIncarnation
    from quorumlog_server.config.config import NodeConfig

StoppedOption = Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="Of the node, which must not run.")]


def recover_command(
    config: StoppedOption,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Yes: what only the lost controllers hold is lost for ever.")
    ] = False,
    other: Annotated[
        list[Path] | None,
        typer.Option(
            "--other",
            metavar="DIR",
            help="Metadata directory of a lost controller, as far as it can still be read; refuses if it holds more.",
        ),
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make one stopped survivor the whole quorum, after the majority of the controllers was lost for ever.

    What its metadata log holds becomes the truth. The cluster begins a new incarnation: nodes of the earlier one are
    refused until they are formatted or adopted for the new one. Run it again if it was interrupted.
    """
    from quorumlog_server.directories.recover import recover
    from quorumlog_server.edge.random_uuid import random_uuid
    from quorumlog_storage.edge.disk import RealDisk

    output.use(output_format)
    done = recover(
        RealDisk(),
        _read(config),
        new_uuid=random_uuid,
        wall_ms=time.time_ns() // 1_000_000,
        unsafe=unsafe,
        others=[str(path) for path in other or ()],
    )
    incarnation, end, epoch = str(done.intent.incarnation), done.intent.end_offset, done.intent.last_epoch
    for place, found in done.others:
        output.say(f"{place} ends at offset {found.end_offset} of epoch {found.last_epoch}: nothing more than here")
    output.show(
        ("CLUSTER", "INCARNATION", "KEPT BEFORE OFFSET", "LAST EPOCH", "RESUMED"),
        [[done.cluster_id, incarnation, end, epoch, done.was_resumed]],
        {
            "cluster_id": done.cluster_id,
            "cluster_incarnation": incarnation,
            "end_offset": end,
            "last_epoch": epoch,
            "resumed": done.was_resumed,
        },
    )
    output.say("start this node; then, for each other node:")
    output.say(
        f"  quorumlog storage format -c FILE -t {done.cluster_id} --cluster-incarnation {incarnation} "
        "--secret-file cluster.secret   (on empty directories)"
    )
    output.say(
        f"  quorumlog storage adopt -c FILE --cluster-incarnation {incarnation} --end-offset {end} --last-epoch {epoch}"
        "   (a broker with records to keep)"
    )


def adopt_command(
    config: StoppedOption,
    cluster_incarnation: Annotated[
        str, typer.Option("--cluster-incarnation", metavar="NUMBER.ID", help="As `storage recover` printed it.")
    ],
    end_offset: Annotated[int, typer.Option(min=0, help="As `storage recover` printed it: KEPT BEFORE OFFSET.")],
    last_epoch: Annotated[int, typer.Option(min=-1, help="As `storage recover` printed it: LAST EPOCH.")],
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Bring a stopped broker and its records into the incarnation of a recovered cluster.

    Refused if the broker knows changes of partitions that the recovery has lost. Its copy of the metadata log is set
    aside, not deleted.
    """
    from quorumlog_server.directories.adopt import adopt
    from quorumlog_server.edge.random_uuid import random_uuid
    from quorumlog_storage.edge.disk import RealDisk

    output.use(output_format)
    done = adopt(
        RealDisk(),
        _read(config),
        incarnation=incarnation_of(cluster_incarnation),
        end_offset=end_offset,
        last_epoch=last_epoch,
        new_uuid=random_uuid,
    )
    output.show(
        ("ADOPTED",),
        [[path] for path in done.directories],
        {"directories": list(done.directories), "set_aside": done.set_aside},
    )
    if done.set_aside:
        output.say(f"the earlier metadata log is kept as {done.set_aside}; remove it when the cluster is whole again")


def incarnation_of(text: str) -> ClusterIncarnation:
    """Raises CliError."""
    from quorumlog.cluster_incarnation import parse_incarnation

    try:
        return parse_incarnation(text)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"--cluster-incarnation {text}: {error}", "storage recover printed it") from error


def _read(path: Path) -> NodeConfig:
    from quorumlog_server.config.config import read_config

    return read_config(str(path), (), os.environ)
