"""`quorumlog partition`: where partitions lie and who leads them, plans to change that, and how far a change is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.errors import ErrorCode
from quorumlog_cli.commands.partitions import partition_apply, partition_plan, partition_status
from quorumlog_cli.commands.partitions.partition_carry_out import DryRunOption
from quorumlog_cli.commands.partitions.partition_reading import (
    ASK_TIMEOUT_MS,
    chosen_partitions,
    held_replicas,
    told_silent,
)
from quorumlog_cli.commands.partitions.partition_view import LIST_COLUMNS, partition_row
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.ids import NodeId

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show partitions; move, drain and balance them; elect their leaders.",
)
app.add_typer(partition_plan.app, name="plan")
app.command()(partition_apply.apply)
app.command()(partition_apply.move)
app.command()(partition_apply.drain)
app.command()(partition_status.status)
app.command()(partition_status.cancel)

STATES = ("recovering", "moving", "under-replicated", "without leader", "not preferred", "ok")

PartitionsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[PARTITION...]", help="orders-3, or orders for all of it.")
]


@app.command("list")
def list_(
    partitions: PartitionsArgument = None,
    node: Annotated[
        int | None, typer.Option("--node", metavar="ID", help="Only those with a replica on it.", show_default=False)
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="WORDS", help=f"Only those in this state: {', '.join(STATES)}."),
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show each partition: its leader, replicas and bytes, and whether it moves or lacks replicas.

    Exit code 5: one of those shown has no leader.
    """
    output.use(output_format)
    if state is not None and state not in STATES:
        raise CliError(Exit.USAGE, f"--state {state}: it is one of {', '.join(STATES)}")
    with connected(find_target(servers, profile, options)) as cluster:
        rows = _rows(cluster.admin, partitions)
    rows = [row for row in rows if node in (None, *row["replicas"]) and state in (None, row["state"])]
    output.show(LIST_COLUMNS, [_cells(row) for row in rows], rows)
    if any(row["leader"] is None for row in rows):
        raise typer.Exit(Exit.UNHEALTHY)


def _rows(admin: Admin, names: list[str] | None) -> list[dict[str, Any]]:
    topics, under_way = admin.list_topics(), admin.list_partition_reassignments()
    silent: dict[NodeId, str] = {}
    held = held_replicas(admin.describe_log_dirs(timeout_ms=ASK_TIMEOUT_MS, silent=silent))
    if silent:
        output.say(f"{told_silent(silent)}: BYTES are those of the other replicas")
    sizes: dict[tuple[str, int], int] = {}
    for (topic, index, _), copies in held.items():
        sizes[topic, index] = max([sizes.get((topic, index), 0), *(one.size_bytes for one in copies)])
    found = {(topic.name, one.index): one for topic in topics for one in topic.partitions}
    chosen = chosen_partitions(found, names) if names else sorted(found)
    return [partition_row(key[0], found[key], sizes.get(key), under_way.get(key)) for key in chosen]


def _cells(row: dict[str, Any]) -> list[Any]:
    name = f"{row['topic']}-{row['partition']}"
    fields = ("leader", "replicas", "isr", "size_bytes", "state", "adding", "removing")
    return [name, *(row[field] for field in fields)]


@app.command("elect-leader")
def elect_leader(
    partitions: PartitionsArgument = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Every partition that needs it.")] = False,
    preferred: Annotated[bool, typer.Option("--preferred", help="The first replica leads (the default).")] = False,
    unclean: Annotated[
        bool,
        typer.Option("--unclean", help="Any live replica leads, where none can without loss; records may be lost."),
    ] = False,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Elect leaders. A partition that is led so already counts as done. Exit code 9: only some could be elected."""
    from quorumlog.client.administration.partitions import ElectionType

    output.use(output_format)
    if everywhere is bool(partitions):
        raise CliError(Exit.USAGE, "name partitions, or give --all")
    if preferred and unclean:
        raise CliError(Exit.USAGE, "give --preferred or --unclean, not both")
    with connected(find_target(servers, profile, options)) as cluster:
        admin = cluster.admin
        found = {(topic.name, one.index): one for topic in admin.list_topics() for one in topic.partitions}
        keys = None if everywhere else chosen_partitions(found, partitions or ())
        if dry_run:
            needed = [f"{name}-{index}" for name, index in keys or sorted(found) if _needs(found[name, index], unclean)]
            output.tell(f"would elect leaders of {', '.join(needed) or 'no partition'}", {"would_elect": needed})
            return
        outcomes = admin.elect_leaders(ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED, keys)
    _tell(outcomes)


def _needs(one: Any, unclean: bool) -> bool:
    return one.leader_id < 0 if unclean else bool(one.replicas) and one.leader_id != one.replicas[0]


def _tell(outcomes: dict[tuple[str, int], Any]) -> None:
    names = {key: f"{key[0]}-{key[1]}" for key in outcomes}
    elected = [names[key] for key, outcome in outcomes.items() if outcome.error == ErrorCode.NONE]
    idle = [names[key] for key, outcome in outcomes.items() if outcome.error == ErrorCode.ELECTION_NOT_NEEDED]
    failed = {
        names[key]: outcome.message or outcome.error.name
        for key, outcome in outcomes.items()
        if names[key] not in (*elected, *idle)
    }
    if output.is_json():
        output.show_json({"elected": elected, "not_needed": idle, "failed": failed})
    else:
        output.say(f"elected leaders of {output.counted(len(elected), 'partition')}; {len(idle)} needed none")
    if failed:
        code = Exit.PARTIAL if elected or idle else Exit.UNHEALTHY
        raise CliError(code, "; ".join(f"{name}: {text}" for name, text in failed.items()))
