"""`quorumlog purge`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from cli import output
from cli.errors import CliError, Exit
from cli.local.find import DataOption, find_nodes
from cli.local.profile_of import forget_local
from cli.output import Format, OutputOption

app = typer.Typer(add_completion=False)
STOP_TIMEOUT_S = 5.0  # nobody will read what a longer stop would save


@app.command()
def purge(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Stop the local cluster and remove its data for good."""
    output.use(output_format)
    nodes = find_nodes(data)
    root = nodes.layout.root
    if not yes and not _confirmed(root):
        raise CliError(Exit.FAILED, "nothing was removed", "--yes does not ask")
    nodes.stop(timeout_s=STOP_TIMEOUT_S)
    for node in nodes.layout.nodes:
        shutil.rmtree(node.folder, ignore_errors=True)
    (root / "cluster.json").unlink()
    if not any(root.iterdir()):
        root.rmdir()
    forget_local(nodes.layout)
    if output.is_json():
        output.show_json({"removed": str(root)})
    output.say(f"  removed     {root}")


def _confirmed(root: Path) -> bool:
    try:
        return typer.confirm(f"Remove {root} and every record in it?", err=True)
    except typer.Abort:  # nobody is there to answer
        return False
