"""`quorumlog topic truncate`: deletes the oldest records of a topic (Kafka's delete-records)."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption


def truncate(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    before: Annotated[
        int | None, typer.Option("--before", metavar="OFFSET", help="Delete all records below this offset.")
    ] = None,
    all_records: Annotated[bool, typer.Option("--all", help="Delete every record.")] = False,
    partitions: Annotated[
        list[int] | None, typer.Option("-p", "--partition", help="Only this partition; may be repeated.")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete records from the beginning of a topic, on every replica. Later records keep their offsets."""
    from quorumlog.client.administration.logs import ALL_COMMITTED

    output.use(output_format)
    if (before is None) is not all_records:
        raise CliError(Exit.USAGE, "give either --before OFFSET or --all")
    if before is not None and before < 0:
        raise CliError(Exit.USAGE, f"--before {before}: an offset is at least 0")
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        known = [partition.index for partition in cluster.admin.describe_topic(topic).partitions]
        chosen = partitions or known
        left = cluster.admin.delete_records(
            {(topic, index): ALL_COMMITTED if before is None else before for index in chosen}
        )
    rows = [{"partition": index, "first_offset": left[topic, index]} for index in chosen]
    output.show(("PARTITION", "FIRST"), [list(row.values()) for row in rows], rows)
    output.say(f"deleted records of {topic} of {target.name}")
