"""`quorumlog group lag`: how far a group is behind the ends of its partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.commands.groups.group_reading import described, read_offsets
from quorumlog_cli.commands.groups.group_view import lag_by_topic
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption


def lag(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    threshold: Annotated[
        int | None,
        typer.Option("--threshold", metavar="N", help="Exit code 5 if a partition is more than N records behind."),
    ] = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Count to the last stable offset, as such a consumer reads.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the lag of a group per topic, and in all. Partitions without a committed offset do not count.

    Exit code 7 if there is no such group; 5 with --threshold if it is too far behind, for scripts and alarms.
    """
    output.use(output_format)
    if threshold is not None and threshold < 0:
        raise CliError(Exit.USAGE, f"--threshold {threshold}: it is a number of records, at least 0")
    with connected(find_target(servers, profile, options)) as cluster:
        level = "read_committed" if read_committed else "read_uncommitted"
        found = read_offsets(cluster, described(cluster, group), level)
    topics = lag_by_topic(found)
    total = sum(one for one, _ in topics.values())
    largest = max((one for _, one in topics.values()), default=0)
    rows = [(name, *both) for name, both in sorted(topics.items())]
    document = {
        "group": group,
        "total": total,
        "max": largest,
        "topics": [{"topic": name, "total": one, "max": most} for name, one, most in rows],
    }
    output.show(("TOPIC", "TOTAL-LAG", "MAX-LAG"), [*rows, ("(all)", total, largest)], document)
    if not topics:
        output.say(f"group {group!r} has committed nothing")
    if threshold is not None and largest > threshold:
        worst = max(found, key=lambda row: row.lag or 0)
        output.say(
            f"{worst.topic}-{worst.partition} is {output.counted(largest, 'record')} behind, more than {threshold}"
        )
        raise typer.Exit(Exit.UNHEALTHY)
