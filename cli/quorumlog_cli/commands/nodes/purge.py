"""`quorumlog purge`."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from quorumlog.testing.protected import unprotect
from quorumlog_cli.connecting.find import DataOption, find_nodes, name_of, where_of
from quorumlog_cli.local.profile_of import forget_local
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)
STOP_TIMEOUT_S = 5.0  # short: the data is deleted anyway


@app.command()
def purge(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Stop the local cluster and delete its data for good.

    Acts on the cluster of this directory; --data names that of another one. --yes does not look elsewhere either.
    """
    output.use(output_format)
    nodes = find_nodes(data, "purge")
    root = nodes.layout.root
    if not yes and not confirmed(f"Delete {name_of(nodes)} and every record of it?"):
        raise CliError(Exit.FAILED, "nothing was deleted", "--yes skips the question")
    nodes.stop(timeout_s=STOP_TIMEOUT_S)
    if serving := nodes.serving():
        raise CliError(
            Exit.PRECONDITION,
            f"node {serving[0]} of {name_of(nodes)} was started by hand and uses its data; nothing was deleted",
            "stop it where it was started",
        )
    for node in nodes.layout.nodes:
        shutil.rmtree(node.folder, ignore_errors=True)
    if nodes.layout.user:
        unprotect(root)
    (root / "cluster.json").unlink()
    if not any(root.iterdir()):
        root.rmdir()
    left = forget_local(nodes.layout)
    if output.is_json():
        output.show_json({"removed": str(root), **where_of(nodes)})
    output.say(f"  deleted     {name_of(nodes)}")
    if left:
        output.say(f"  {left}")
