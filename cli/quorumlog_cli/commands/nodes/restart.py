"""`quorumlog restart NODE`."""

from __future__ import annotations

import time

import typer

from quorumlog_cli.connecting.find import DataOption, NodeArgument, find_nodes, name_of, where_of
from quorumlog_cli.local.place import settle
from quorumlog_cli.local.ready import wait_restarted
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def restart(node: NodeArgument, data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Shut a node down cleanly if it runs, start it, and wait until it serves.

    Exit code 5: it runs, but too few others do, so that it cannot serve: start those, too.
    Acts on the cluster of this directory; --data names that of another one.
    """
    output.use(output_format)
    nodes = find_nodes(data, f"restart {node}")
    settle(nodes)
    began = time.monotonic()
    nodes.restart(node)
    wait_restarted(nodes, node)
    if output.is_json():
        output.show_json({"restarted": node, **where_of(nodes)})
    output.say(f"  restarted   node {node} of {name_of(nodes)}, ready after {time.monotonic() - began:.1f} s")
