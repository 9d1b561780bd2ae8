"""`quorumlog topic alter`: more partitions or other configs."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.commands.cluster.config_values import keys_and_values
from quorumlog_cli.commands.topics.replica_assignment import AssignmentOption, parse_assignment
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption


def alter(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", help="Total number of partitions; never fewer than now.")
    ] = None,
    configs: Annotated[
        list[str] | None, typer.Option("-c", "--config", metavar="KEY=VALUE", help="A topic config; may be repeated.")
    ] = None,
    assignment: AssignmentOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the controller check the change, but change nothing.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Add partitions or change configs. Existing records do not move, but keys may map to other partitions."""
    output.use(output_format)
    values, placed = keys_and_values(configs or ()), parse_assignment(assignment)
    if partitions is None and not values:
        raise CliError(Exit.USAGE, "nothing to alter; give --partitions N or -c KEY=VALUE")
    if partitions is None and placed is not None:
        raise CliError(
            Exit.USAGE, "--replica-assignment is of new partitions; give --partitions N, how many there will be"
        )
    with connected(find_target(servers, profile, options)) as cluster:
        if values:
            cluster.admin.alter_configs(topic, dict(values), validate_only=dry_run)
        if partitions is not None:
            cluster.admin.create_partitions(topic, partitions, assignment=placed, validate_only=dry_run)
    if output.is_json():
        output.show_json({"topic": topic, "partitions": partitions, "configs": values, "altered": not dry_run})
        return
    verb = "would give" if dry_run else "gave"
    what = [] if partitions is None else [output.counted(partitions, "partition")]
    what += [f"{key}={value}" for key, value in values.items()]
    output.say(f"{verb} topic {topic!r} {', '.join(what)}")
