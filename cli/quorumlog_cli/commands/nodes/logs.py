"""`quorumlog logs [NODE]`."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from quorumlog_cli.connecting.find import DataOption, find_nodes
from quorumlog_cli.local.log_lines import LEVELS, LogFollower, LogLine
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.places import time_ms

app = typer.Typer(add_completion=False)
LAST_MS = 253_402_300_799_000  # of the year 9999
POLL_S = 0.2


@app.command()
def logs(
    node: Annotated[int | None, typer.Argument(metavar="[NODE]", help="One node; default: all.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Wait for new lines.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Show the last N lines; 0: all.")] = 100,
    level: Annotated[str, typer.Option("--level", help="Show this level and above.")] = "info",
    request: Annotated[
        str | None,
        typer.Option(
            "--request", metavar="ID", help="Lines of one request, NODE:CONNECTION:CORRELATION; or of NODE:CONNECTION."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Lines of 10m, 2h, PT1H ago, a date or ms since 1970, and later."),
    ] = None,
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the logs of local nodes: time in UTC, level, message, request. Lines of several nodes are merged by time."""
    output.use(output_format)
    if level not in LEVELS:
        raise CliError(Exit.USAGE, f"--level {level}: one of {', '.join(LEVELS)}")
    wanted = Wanted(level, request, "" if since is None else begin_of(since, datetime.now(UTC)))
    layout = find_nodes(data).layout
    chosen = layout.nodes if node is None else (layout.node(node),)
    followers = [LogFollower(files.node_id, files.log, from_end=False) for files in chosen]
    found = [line for line in _merged(followers) if wanted.has(line)]
    for line in found[-lines:] if lines else found:
        _show(line)
    while follow:
        time.sleep(POLL_S)
        for line in _merged(followers):
            if wanted.has(line):
                _show(line)


@dataclass(frozen=True, slots=True)
class Wanted:
    """level: and above. request: as in `LogLine.is_of`; None: any. since: the first time, as in lines; "": any."""

    level: str
    request: str | None = None
    since: str = ""

    def has(self, line: LogLine) -> bool:
        """A line without a time, which has got that of the one before it, goes with that."""
        return (
            line.at_least(self.level)
            and (self.request is None or line.is_of(self.request))
            and (not self.since or line.time >= self.since)
        )


def begin_of(since: str, now: datetime) -> str:
    """As times stand in lines, which compare as texts. Raises CliError(USAGE)."""
    since_ms = time_ms(since, round(now.timestamp() * 1_000), "--since")
    moment = datetime.fromtimestamp(min(since_ms, LAST_MS) / 1_000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _merged(followers: list[LogFollower]) -> list[LogLine]:
    """Sorted by time. A line without a time stays after its predecessor."""
    return list(heapq.merge(*(_timed(follower) for follower in followers), key=lambda line: line.time))


def _timed(follower: LogFollower) -> list[LogLine]:
    timed: list[LogLine] = []
    for line in follower.read_new():
        before = timed[-1].time if timed else ""
        timed.append(line if line.time else replace(line, time=before))
    return timed


def _show(line: LogLine) -> None:
    if output.is_json():
        output.show_json_line(
            {
                "node": line.node_id,
                "time": line.time,
                "level": line.level,
                "logger": line.where,
                "request": line.request,
                "text": line.text,
            }
        )
    else:
        print(line.render(), flush=True)
