"""`quorumlog log index` and `quorumlog log segments`: what the files of a log say about themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

PlacesArgument = Annotated[list[Path], typer.Argument(metavar="FILE|DIR...", help="Index files, or directories.")]
LogsArgument = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Directories of partitions.")]


def index(
    places: PlacesArgument,
    faults_only: Annotated[bool, typer.Option("--faults-only", help="Print only entries that are wrong.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Decode .index, .timeindex and .txnindex files, and check each entry against the batches of its segment.

    Exit code 4 if one is wrong. A node does not trust its indexes either: it builds a wrong one again.
    """
    from quorumlog_cli.offline.index_entries import index_files, read_index

    output.use(output_format)
    faults: list[str] = []
    for path in index_files(places):
        entries, report = read_index(path)
        faults += [str(fault) for fault in report.findings.faults]
        if not output.is_json():
            print(f"{path}: {output.counted(len(report.findings.faults), 'fault')}")
        for entry in entries:
            if faults_only and not entry["problem"]:
                continue
            if output.is_json():
                output.show_json_line({"file": str(path), "kind": path.suffix[1:], **entry})
            else:
                print("  " + " ".join(f"{name}: {value}" for name, value in entry.items() if value != ""))
        for note in report.findings.notes:
            output.say(f"note  {note}")
    if faults:
        raise CliError(Exit.DATA_INVALID, f"{output.counted(len(faults), 'fault')}, the first: {faults[0]}")


def segments(places: LogsArgument, output_format: OutputOption = Format.TABLE) -> None:
    """List the segments of logs: offsets, size, the entries of their indexes, the first and the largest timestamp.

    The largest one of a closed segment is read from its time index, where there is one.
    """
    from quorumlog_cli.offline.segment_list import segments_in

    output.use(output_format)
    found: list[dict[str, Any]] = [one for place in places for one in segments_in(place)]
    names = ("path", "base_offset", "end_offset", "bytes", "index", "timeindex", "txnindex", "snapshot",
             "first_timestamp", "largest_timestamp")  # fmt: skip
    heads = ("SEGMENT", "FROM", "TO", "BYTES", "INDEX", "TIMEINDEX", "TXNINDEX", "SNAPSHOT", "FIRST MS", "LARGEST MS")
    output.show(heads, [[one[name] for name in names] for one in found], found)
