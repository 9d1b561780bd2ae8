"""`quorumlog pause NODE`."""

from __future__ import annotations

import typer

from quorumlog_cli.connecting.find import DataOption, NodeArgument, find_nodes, name_of, where_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def pause(node: NodeArgument, data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Freeze a node: it stops answering, but its connections stay open. `resume` continues it.

    Acts on the cluster of this directory; --data names that of another one.
    """
    output.use(output_format)
    nodes = find_nodes(data, f"pause {node}")
    if not nodes.pause(node):
        raise CliError(
            Exit.PRECONDITION, f"node {node} of {name_of(nodes)} does not run", f"quorumlog restart {node} starts it"
        )
    if output.is_json():
        output.show_json({"paused": node, **where_of(nodes)})
    output.say(f"  paused      node {node} of {name_of(nodes)}")
