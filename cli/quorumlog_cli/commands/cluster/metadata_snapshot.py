"""`quorumlog metadata snapshot`: the snapshots of one node's metadata, read from its files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Look at the snapshots of a node's metadata.")

ConfigOption = Annotated[Path | None, typer.Option("-c", "--config", metavar="FILE", help="Of the node.")]
PlaceArgument = Annotated[
    Path | None, typer.Argument(metavar="[PLACE]", help="A metadata log, a log directory with one, or a .checkpoint.")
]


@app.callback()
def snapshot() -> None:
    """Look at the snapshots of a node's metadata."""


@app.command("list")
def list_snapshots(
    place: PlaceArgument = None, config: ConfigOption = None, output_format: OutputOption = Format.TABLE
) -> None:
    """List the snapshots of a node, oldest first. Reads the files; the node may run. Exit code 4 if one is damaged."""
    _show(place, config, output_format, contents=False)


@app.command()
def verify(
    place: PlaceArgument = None, config: ConfigOption = None, output_format: OutputOption = Format.TABLE
) -> None:
    """Check every byte and every record of a node's snapshots, and their state hash. Exit code 4 if one is damaged.

    Files that a start has set aside (.checkpoint.damaged) are not looked at.
    """
    _show(place, config, output_format, contents=True)


def _show(place: Path | None, config: Path | None, output_format: Format, *, contents: bool) -> None:
    from quorumlog_cli.offline.metadata_log import find_metadata_log
    from quorumlog_cli.offline.snapshots import find_snapshots, look_at, snapshot_of

    output.use(output_format)
    path = _place(place, config)
    snapshot = snapshot_of(path)
    if snapshot is not None and path.is_file():
        one = look_at(path, snapshot, contents=contents)
        found = [one] if one is not None else []
    else:
        found = list(find_snapshots(find_metadata_log(path), contents=contents))
    now_ms = int(time.time() * 1_000)
    rows = [
        {
            "path": str(one.path),
            "end_offset": one.id.offset,
            "epoch": one.id.epoch,
            "size": one.size,
            "records": one.records,
            "last_contained_timestamp_ms": one.last_contained_timestamp_ms,
            "age_ms": now_ms - one.last_contained_timestamp_ms if one.last_contained_timestamp_ms >= 0 else None,
            "problem": one.problem or None,
        }
        for one in found
    ]
    output.show(
        ("END OFFSET", "EPOCH", "BYTES", "RECORDS", "AGE", "RESULT"),
        [
            [row["end_offset"], row["epoch"], row["size"], row["records"], _age(row["age_ms"]), row["problem"] or "ok"]
            for row in rows
        ],
        {"snapshots": rows},
    )
    damaged = [row["path"] for row in rows if row["problem"]]
    if damaged:
        raise CliError(
            Exit.DATA_INVALID,
            f"{len(damaged)} damaged: {', '.join(map(str, damaged))}",
            "a restart sets it aside and goes on with another one, or with the log",
        )


def _age(age_ms: object) -> str:
    return "unknown" if not isinstance(age_ms, int) else f"{age_ms // 1000} s"


def _place(place: Path | None, config: Path | None) -> Path:
    if (place is None) == (config is None):
        raise CliError(Exit.USAGE, "name a directory or a file, or a node's configuration with -c FILE")
    if place is not None:
        return place
    from quorumlog_server.config.config import read_config

    return Path(read_config(str(config), (), os.environ).metadata_log_dir)
