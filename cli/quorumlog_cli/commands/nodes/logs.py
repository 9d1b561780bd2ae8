"""`quorumlog logs [NODE]`."""

from __future__ import annotations

import heapq
import time
from typing import Annotated

import typer

from quorumlog_cli.connecting.find import DataOption, find_nodes
from quorumlog_cli.local.log_lines import LEVELS, LogFollower, LogLine
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)
POLL_S = 0.2


@app.command()
def logs(
    node: Annotated[int | None, typer.Argument(metavar="[NODE]", help="One node; default: all.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for new lines.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Show the last N lines; 0: all.")] = 100,
    level: Annotated[str, typer.Option("--level", help="Show this level and above.")] = "info",
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the logs of local nodes: time in UTC, level, message. Lines of several nodes are merged by time."""
    output.use(output_format)
    if level not in LEVELS:
        raise CliError(Exit.USAGE, f"--level {level}: one of {', '.join(LEVELS)}")
    layout = find_nodes(data).layout
    chosen = layout.nodes if node is None else (layout.node(node),)
    followers = [LogFollower(files.node_id, files.log, from_end=False) for files in chosen]
    found = [line for line in _merged(followers) if line.at_least(level)]
    for line in found[-lines:] if lines else found:
        _show(line)
    while follow:
        time.sleep(POLL_S)
        for line in _merged(followers):
            if line.at_least(level):
                _show(line)


def _merged(followers: list[LogFollower]) -> list[LogLine]:
    """Sorted by time. A line without a time stays after its predecessor."""
    return list(heapq.merge(*(_timed(follower) for follower in followers), key=lambda line: line.time))


def _timed(follower: LogFollower) -> list[LogLine]:
    timed: list[LogLine] = []
    for line in follower.read_new():
        before = timed[-1].time if timed else ""
        timed.append(line if line.time else LogLine(line.node_id, line.text, line.level, before))
    return timed


def _show(line: LogLine) -> None:
    if output.is_json():
        output.show_json_line({"node": line.node_id, "time": line.time, "level": line.level, "text": line.text})
    else:
        print(line.render(), flush=True)
