"""`quorumlog topic offsets`: first and end offsets of partitions, or the offsets at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster


def offsets(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    at_ms: Annotated[
        int | None, typer.Option("--at", metavar="MS", help="Also the first offset at this time or after (ms).")
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Read the topic whole, and count the records that readers of committed see.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the first and the end offset (exclusive) of each partition.

    OFFSETS is how many lie between them, which is more than the number of records where a marker ended a transaction,
    one was aborted, or compaction has left gaps. --count reads, and shows RECORDS.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        keys = [(topic, partition.index) for partition in cluster.admin.describe_topic(topic).partitions]
        ranges = cluster.admin.list_offset_ranges(keys)
        found = cluster.admin.list_offsets(dict.fromkeys(keys, at_ms)) if at_ms is not None else {}
        records = _count(cluster, topic) if count else {}
    rows: list[dict[str, Any]] = []
    for key in keys:
        first, end = ranges[key]
        row: dict[str, Any] = {"partition": key[1], "first_offset": first.offset, "end_offset": end.offset}
        row["offsets"] = row["end_offset"] - row["first_offset"]
        if count:
            row["records"] = records[key[1]]
        if at_ms is not None:
            row["offset_at"] = found[key].offset if found[key].offset >= 0 else None
        rows.append(row)
    columns = ["PARTITION", "FIRST", "END", "OFFSETS"]
    columns += [*(["RECORDS"] if count else []), *(["AT"] if at_ms is not None else [])]
    output.show(columns, [list(row.values()) for row in rows], rows)


def _count(cluster: Cluster, topic: str) -> Counter[int]:
    """Records by partition, up to the end that readers of committed records see now."""
    found: Counter[int] = Counter()
    for record in cluster.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed"):
        found[record.partition] += 1
    return found
