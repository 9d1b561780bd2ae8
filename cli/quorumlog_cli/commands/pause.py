"""`quorumlog pause NODE`."""

from __future__ import annotations

import typer

from quorumlog_cli import output
from quorumlog_cli.errors import CliError, Exit
from quorumlog_cli.local.find import DataOption, NodeArgument, find_nodes
from quorumlog_cli.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def pause(node: NodeArgument, data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Freeze a node: it stops answering, but its connections stay open. `resume` continues it."""
    output.use(output_format)
    if not find_nodes(data).pause(node):
        raise CliError(Exit.PRECONDITION, f"node {node} does not run", f"quorumlog restart {node} starts it")
    if output.is_json():
        output.show_json({"paused": node})
    output.say(f"  paused      node {node}")
