"""`quorumlog purge`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli import output
from quorumlog_cli.errors import CliError, Exit
from quorumlog_cli.local.find import DataOption, find_nodes
from quorumlog_cli.local.profile_of import forget_local
from quorumlog_cli.output import Format, OutputOption

app = typer.Typer(add_completion=False)
STOP_TIMEOUT_S = 5.0  # short: the data is deleted anyway


@app.command()
def purge(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Stop the local cluster and delete its data for good."""
    output.use(output_format)
    nodes = find_nodes(data)
    root = nodes.layout.root
    if not yes and not _confirmed(root):
        raise CliError(Exit.FAILED, "nothing was deleted", "--yes skips the question")
    nodes.stop(timeout_s=STOP_TIMEOUT_S)
    for node in nodes.layout.nodes:
        shutil.rmtree(node.folder, ignore_errors=True)
    (root / "cluster.json").unlink()
    if not any(root.iterdir()):
        root.rmdir()
    forget_local(nodes.layout)
    if output.is_json():
        output.show_json({"removed": str(root)})
    output.say(f"  deleted     {root}")


def _confirmed(root: Path) -> bool:
    try:
        return typer.confirm(f"Delete {root} and every record in it?", err=True)
    except typer.Abort:  # there is no terminal to answer
        return False
