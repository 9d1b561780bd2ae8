"""`quorumlog topic offsets`: first and end offsets of partitions, or the offsets at a time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quorumlog_cli import output
from quorumlog_cli.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.output import Format, OutputOption


def offsets(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    at_ms: Annotated[
        int | None, typer.Option("--at", metavar="MS", help="Also the first offset at this time or after (ms).")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the first and the end offset (exclusive) of each partition."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        keys = [(topic, partition.index) for partition in cluster.admin.describe_topic(topic).partitions]
        ranges = cluster.admin.list_offset_ranges(keys)
        found = cluster.admin.list_offsets(dict.fromkeys(keys, at_ms)) if at_ms is not None else {}
    rows: list[dict[str, Any]] = []
    for key in keys:
        first, end = ranges[key]
        row: dict[str, Any] = {"partition": key[1], "first_offset": first.offset, "end_offset": end.offset}
        row["records"] = row["end_offset"] - row["first_offset"]
        if at_ms is not None:
            row["offset_at"] = found[key].offset if found[key].offset >= 0 else None
        rows.append(row)
    columns = ["PARTITION", "FIRST", "END", "RECORDS", *(["AT"] if at_ms is not None else [])]
    output.show(columns, [list(row.values()) for row in rows], rows)
