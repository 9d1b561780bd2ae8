"""`quorumlog quorum history`: the leaders and the voters of the quorum, from the metadata log of one node."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.connecting.find import DataOption, data_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption


def history(
    place: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A metadata log, or a log directory that contains it.")
    ] = None,
    node: Annotated[int | None, typer.Option("--node", help="Node of the local cluster; default: the first.")] = None,
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print each election and each change of the voters that the metadata log still holds, the oldest first.

    Reads the files of one node, running or not. Older records are in snapshots, which keep no history.
    """
    from quorumlog_cli.offline.metadata_log import find_metadata_log
    from quorumlog_cli.offline.quorum_history import read_history

    output.use(output_format)
    events = [event.document for event in read_history(find_metadata_log(place or data_of(data, node)))]
    output.show(("OFFSET", "TIME", "EPOCH", "EVENT", "VOTERS"), [_row(event) for event in events], {"events": events})


def _row(event: dict[str, Any]) -> list[Any]:
    moment = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    what = f"node {event['leader']} elected by {_nodes(event['granted_by'])}" if "leader" in event else event["event"]
    return [event["offset"], moment.strftime("%Y-%m-%d %H:%M:%S"), event["epoch"], what, _nodes(event["voters"])]


def _nodes(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
