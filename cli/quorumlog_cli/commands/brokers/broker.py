"""`quorumlog broker`: the brokers of the cluster, what each holds, and how one is emptied and forgotten."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.commands.brokers import broker_unregister
from quorumlog_cli.commands.brokers.broker_view import (
    FENCED,
    SILENT,
    Directories,
    broker_row,
    directory_rows,
    listeners_of,
    shown_state,
)
from quorumlog_cli.commands.partitions import partition_apply
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.connecting.lost_quorum import lost_quorum
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show brokers and what they hold; empty one, forget one that is gone.",
)
COLUMNS = ("ID", "STATE", "RACK", "LISTENERS", "LEADERS", "REPLICAS", "DIRS", "BYTES", "EPOCH")

app.command()(broker_unregister.unregister)
app.command()(partition_apply.drain)


@app.command("list")
def list_(
    no_bytes: Annotated[bool, typer.Option("--no-bytes", help="Do not ask each broker for its directories.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show each registered broker: its state, rack and listeners, and how much it leads and holds.

    BYTES counts directories that are online; a broker that is fenced or does not answer has none. A broker that is
    cordoned gets no new partitions: all its directories are in its `cordoned.log.dirs`.

    A broker that the metadata calls running and that does not answer has the state "no answer" (not with --no-bytes).

    Exit code 5: one is fenced, or does not answer.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_cluster(include_partition_counts=True)
        rows = [
            broker_row(broker, Directories.skipped() if no_bytes else Directories.ask(cluster.admin, broker))
            for broker in found.brokers
        ]
        lost = lost_quorum(cluster.admin) if any(row["state"] == SILENT for row in rows) else ""
    cells = [
        [
            row["broker_id"],
            shown_state(row),
            row["rack"],
            listeners_of(row),
            row["leaders"],
            row["replicas"],
            row["directory_count"],
            row["bytes"],
            row["broker_epoch"],
        ]
        for row in rows
    ]
    output.show(COLUMNS, cells, rows)
    if lost:
        output.say(f"hint  {lost}")
    if any(row["state"] in (FENCED, SILENT) for row in rows):
        raise typer.Exit(Exit.UNHEALTHY)


@app.command()
def describe(
    broker_id: Annotated[int, typer.Argument(metavar="ID", help="Its node.id.")],
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show one broker: its registration, its log directories with their bytes, and the features that it supports."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_cluster(include_partition_counts=True)
        broker = next((one for one in found.brokers if one.node_id == broker_id), None)
        if broker is None:
            known = ", ".join(str(one.node_id) for one in found.brokers)
            raise CliError(Exit.NOT_FOUND, f"broker {broker_id} is not registered; the brokers are {known}")
        directories = Directories.ask(cluster.admin, broker)
    row = broker_row(broker, directories)
    if output.is_json():
        output.show_json(row)
        return
    shown = {
        "broker": row["broker_id"],
        "state": shown_state(row),
        "rack": row["rack"] or None,
        "listeners": listeners_of(row),
        "leaders": row["leaders"],
        "replicas": row["replicas"],
        "epoch": row["broker_epoch"],
    }
    for name, value in shown.items():
        print(f"{name:<10} {'—' if value is None else value}")
    print()
    columns, cells = directory_rows(row)
    output.show_table(columns, cells)
    print()
    ranges = [[one["name"], f"{one['min_level']} to {one['max_level']}"] for one in row["features"]]
    output.show_table(("FEATURE", "SUPPORTS"), ranges)
    if directories.why:
        output.say(directories.why)
