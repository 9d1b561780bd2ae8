"""`quorumlog kill NODE`."""

from __future__ import annotations

import typer

from quorumlog_cli.connecting.find import DataOption, NodeArgument, find_nodes, name_of, where_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def kill(node: NodeArgument, data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Kill a node at once, like `kill -9`: no shutdown, no last sync. `restart` starts it again.

    Acts on the cluster of this directory; --data names that of another one.
    """
    output.use(output_format)
    nodes = find_nodes(data, f"kill {node}")
    if not nodes.kill(node):
        raise CliError(
            Exit.PRECONDITION, f"node {node} of {name_of(nodes)} does not run", f"quorumlog restart {node} starts it"
        )
    if output.is_json():
        output.show_json({"killed": node, **where_of(nodes)})
    output.say(f"  killed      node {node} of {name_of(nodes)}")
