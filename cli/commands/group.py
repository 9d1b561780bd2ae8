"""`quorumlog group`: consumer groups. lag and reset-offsets have files of their own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli import output
from cli.commands.group_lag import lag
from cli.commands.group_reading import chosen_groups, described, read_offsets
from cli.commands.group_reset import reset_offsets
from cli.commands.group_topics import TopicsOption, partitions_of_topics
from cli.commands.group_view import (
    EPOCH_COLUMNS,
    GROUP_EPOCH_COLUMNS,
    MEMBER_COLUMNS,
    OFFSET_COLUMNS,
    STATE_COLUMNS,
    dashes,
    epoch_columns,
    epochs_of,
    member_rows,
    strategy_of,
)
from cli.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from cli.errors import CliError, Exit
from cli.output import Format, OutputOption

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show consumer groups; change what they have committed."
)

GroupsArgument = Annotated[list[str], typer.Argument(metavar="GROUP...")]


@app.command("list")
def list_(
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only these, e.g. Stable; may be repeated."),
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only these: classic, consumer; may be repeated.")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List the groups of all brokers."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.list_groups(states=states or (), types=types or ())
    rows = [
        {"group": one.group_id, "type": one.group_type, "protocol_type": one.protocol_type, "state": one.state}
        for one in found
    ]
    output.show(("GROUP", "TYPE", "PROTOCOL", "STATE"), [dashes(list(row.values())) for row in rows], rows)


@app.command()
def describe(
    groups: Annotated[list[str] | None, typer.Argument(metavar="GROUP...")] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Every group.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Offsets and lag by partition (the default).")] = False,
    members: Annotated[bool, typer.Option("--members", help="Members, and how many partitions each reads.")] = False,
    state: Annotated[bool, typer.Option("--state", help="State, coordinator and assignment strategy.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --members: which partitions; with --state: epochs.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show what groups have committed, their members, or their state. Exit code 7 if a group does not exist."""
    output.use(output_format)
    if offsets + members + state > 1:
        raise CliError(Exit.USAGE, "give one of --offsets, --members and --state")
    documents: list[dict[str, Any]] = []
    rows: list[list[Any]] = []
    with connected(find_target(servers, profile, options)) as cluster:
        for name in chosen_groups(cluster, groups, all_groups):
            found = described(cluster, name)
            if not found.group.members and not state:
                output.say(f"group {name!r} has no active members")
            if members:
                shown = member_rows(found)
                documents += [row._asdict() for row in shown]
                rows += [[*row[:5], *(epoch_columns(row) if verbose else [])] for row in shown]
            elif state:
                row = {
                    "group": name,
                    "coordinator": found.coordinator,
                    "assignment_strategy": strategy_of(found),
                    "state": found.group.group_state,
                    "members": len(found.group.members),
                }
                epochs = dict(zip(("group_epoch", "target_assignment_epoch"), epochs_of(found), strict=True))
                documents.append(row | epochs)
                rows.append([*row.values(), *(epochs.values() if verbose else ())])
            else:
                offsets_found = read_offsets(cluster, found, "read_uncommitted")
                documents += [one._asdict() for one in offsets_found]
                rows += [list(one) for one in offsets_found]
    columns = MEMBER_COLUMNS if members else STATE_COLUMNS if state else OFFSET_COLUMNS
    columns = (*columns, *_more_columns(members, state)) if verbose else columns
    output.show(columns, [dashes(row) for row in rows], documents)


def _more_columns(members: bool, state: bool) -> tuple[str, ...]:
    return EPOCH_COLUMNS if members else GROUP_EPOCH_COLUMNS if state else ()


@app.command()
def delete(
    groups: GroupsArgument,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete groups without members, and their offsets. Exit code 9 if only some could be deleted."""
    from quorumlog.client.errors import RequestFailed

    output.use(output_format)
    results: dict[str, str | None] = {}
    with connected(find_target(servers, profile, options)) as cluster:
        for name in groups:
            try:
                cluster.admin.delete_group(name)
                results[name] = None
            except RequestFailed as error:
                results[name] = WHY.get(error.code.name, str(error))
    documents = [{"group": name, "deleted": why is None, "error": why} for name, why in results.items()]
    output.show(("GROUP", "RESULT"), [(name, why or "deleted") for name, why in results.items()], documents)
    _exit_for(results)


WHY = {
    "GROUP_ID_NOT_FOUND": "there is no such group",
    "NON_EMPTY_GROUP": "the group has members; stop them first",
    "GROUP_SUBSCRIBED_TO_TOPIC": "a member of the group reads this topic",
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such partition",
}


@app.command("delete-offsets")
def delete_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    topics: TopicsOption,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Forget committed offsets of topics that no member reads. Exit code 9 if only some could be forgotten."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        codes = cluster.admin.delete_group_offsets(group, partitions_of_topics(cluster, topics))
    results = {key: WHY.get(code.name, code.name) if code else None for key, code in codes.items()}
    documents = [
        {"topic": topic, "partition": index, "deleted": why is None, "error": why}
        for (topic, index), why in results.items()
    ]
    rows = [(*key, why or "deleted") for key, why in results.items()]
    output.show(("TOPIC", "PARTITION", "RESULT"), rows, documents)
    _exit_for(results)


def _exit_for(results: dict[Any, str | None]) -> None:
    failed = sum(why is not None for why in results.values())
    if failed:
        raise typer.Exit(Exit.PARTIAL if failed < len(results) else Exit.FAILED)


app.command()(lag)
app.command("reset-offsets")(reset_offsets)
app.command("reset", hidden=True)(reset_offsets)
