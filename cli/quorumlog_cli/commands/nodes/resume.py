"""`quorumlog resume NODE`."""

from __future__ import annotations

import typer

from quorumlog_cli.connecting.find import DataOption, NodeArgument, find_nodes
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def resume(node: NodeArgument, data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Continue a frozen node."""
    output.use(output_format)
    if not find_nodes(data).resume(node):
        raise CliError(Exit.PRECONDITION, f"node {node} is not paused", "quorumlog status shows its state")
    if output.is_json():
        output.show_json({"resumed": node})
    output.say(f"  resumed     node {node}")
