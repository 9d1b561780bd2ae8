"""`quorumlog down`."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog.testing.nodes import STOP_TIMEOUT_S, NodeState
from quorumlog_cli.connecting.find import DataOption, find_nodes, name_of, where_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def down(
    data: DataOption = None,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Seconds before a node is killed.")] = STOP_TIMEOUT_S,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Shut every local node down cleanly. The data stays; `up` starts the same cluster again.

    Acts on the cluster of this directory; --data names that of another one.
    """
    output.use(output_format)
    nodes = find_nodes(data, "down")
    running = [node_id for node_id in nodes.ids if nodes.state(node_id) is not NodeState.STOPPED]
    killed = nodes.stop(timeout_s=timeout_s)
    if output.is_json():
        output.show_json({"stopped": running, "killed": killed, **where_of(nodes)})
        return
    output.say(f"  cluster     {name_of(nodes).removeprefix('cluster ')}")
    what = f"nodes {', '.join(map(str, running))}" if running else "nothing ran"
    output.say(f"  stopped     {what}" + (f"; {killed} had to be killed" if killed else ""))
    output.say(f"  data        {nodes.layout.root} stays; quorumlog up starts it again, quorumlog purge deletes it")
