"""`quorumlog log explain-compaction`: what each broker's cleaner does with its replica of a partition, and why."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption


def explain_compaction(
    partition: Annotated[str, typer.Argument(metavar="TOPIC-PARTITION", help="Such as orders-0.")],
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Say what the cleaner of each broker does with its replica, or why it does nothing; the last failure included."""
    output.use(output_format)
    topic, _, number = partition.rpartition("-")
    if not topic or not number.isascii() or not number.isdigit():
        raise CliError(Exit.USAGE, f"{partition!r} is not TOPIC-PARTITION, such as orders-0")
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.explain_compaction(topic, int(number))
    rows: list[list[Any]] = []
    for node_id, one in found.items():
        if one.error_code:
            rows.append([node_id, "-", "-", "-", "-", "-", one.error_message])
            continue
        dirty = f"{one.dirty_percent} % of {one.clean_bytes + one.dirty_bytes} B"
        rows.append([node_id, one.state, one.first_dirty_offset, one.boundary_offset, dirty, _last(one), _why(one)])
    output.show(
        ("NODE", "STATE", "FIRST DIRTY", "BOUNDARY", "DIRTY", "LAST ROUND", "WHY"),
        rows,
        [{"node_id": node_id, **asdict(one)} for node_id, one in found.items()],
    )


def _last(one: Any) -> str:
    if one.last_round_ms < 0:
        return "-"
    age_s = max(0, int(time.time() - one.last_round_ms / 1000))
    return f"{one.last_bytes_before} -> {one.last_bytes_after} B, {age_s} s ago"


def _why(one: Any) -> str:
    return one.reason if one.retry_in_ms < 0 else f"{one.reason}; the next try is in {one.retry_in_ms // 1000} s"
