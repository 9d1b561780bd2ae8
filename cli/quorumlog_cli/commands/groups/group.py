"""`quorumlog group`: consumer groups. lag and reset-offsets have files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.filters import one_of
from quorumlog_cli.commands.groups.group_lag import lag
from quorumlog_cli.commands.groups.group_reading import DEAD, GROUPS_HINT, NO_GROUP, chosen_groups, read_offsets
from quorumlog_cli.commands.groups.group_reset import reset_offsets
from quorumlog_cli.commands.groups.group_topics import TopicsOption, partitions_of_topics
from quorumlog_cli.commands.groups.group_view import (
    address_of,
    dashes,
    member_rows,
    member_table,
    offset_table,
    state_row,
    state_table,
)
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.administration.groups import GroupDescription
    from quorumlog.client.blocking import Cluster

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show consumer groups; change what they have committed."
)

GroupsArgument = Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups.")]
# of both protocols; a group in the state Dead is not listed
STATES = (
    "Assigning", "CompletingRebalance", "Empty", "PreparingRebalance", "Reconciling", "Stable",
)  # fmt: skip
TYPES = ("classic", "consumer")


@app.command("list")
def list_(
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help=f"Only in this state: {', '.join(STATES)}; may be repeated."),
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only of this type: classic or consumer.")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List the groups of all brokers."""
    output.use(output_format)
    wanted_states, wanted_types = one_of("--state", states, STATES), one_of("--type", types, TYPES)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.list_groups(states=wanted_states, types=wanted_types)
    documents = [
        {"group": one.group_id, "type": one.group_type, "protocol_type": one.protocol_type, "state": one.state}
        for one in found
    ]
    output.show(("GROUP", "TYPE", "PROTOCOL", "STATE"), [dashes(list(row.values())) for row in documents], documents)


@app.command()
def describe(
    groups: Annotated[list[str] | None, typer.Argument(metavar="GROUP...", help="The groups.")] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Every group.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Offsets and lag by partition (the default).")] = False,
    members: Annotated[bool, typer.Option("--members", help="Members, and how many partitions each reads.")] = False,
    state: Annotated[bool, typer.Option("--state", help="State, coordinator and assignment strategy.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Epochs; with --members, which partitions each reads, too.")
    ] = False,
    records: Annotated[
        bool, typer.Option("--records", help="How many records are to be read, and how old the first of them is.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show what groups have committed, their members, or their state. Exit code 7 if one does not exist.

    A dash stands for what there is not: nothing committed, no member that reads the partition, no such topic any more.
    """
    output.use(output_format)
    if offsets + members + state > 1:
        raise CliError(Exit.USAGE, "give one of --offsets, --members and --state")
    with connected(find_target(servers, profile, options)) as cluster:
        names = chosen_groups(cluster, groups, all_groups)
        found, missing = _described(cluster, names)
        if members:
            shown: list[Any] = [row for one in found for row in member_rows(one)]
            table = member_table(shown, verbose=verbose)
        elif state:
            brokers = cluster.admin.describe_cluster().brokers
            addresses = {broker.node_id: address_of(broker) for broker in brokers}
            shown = [state_row(one, addresses) for one in found]
            table = state_table(shown, verbose=verbose)
        else:
            shown = [row for one in found for row in read_offsets(cluster, one, "read_uncommitted")]
            table = offset_table(shown, verbose=verbose, records=records)
    for one in found:
        if not one.group.members and not state:
            output.say(f"group {one.group.group_id!r} has no active members")
    if found or all_groups:
        output.show(table.columns, table.rows, [row._asdict() for row in shown])
    if missing and not all_groups:
        text = ", ".join(map(repr, missing))
        raise CliError(Exit.NOT_FOUND, NO_GROUP.format(text), GROUPS_HINT)


def _described(cluster: Cluster, names: list[str]) -> tuple[list[GroupDescription], list[str]]:
    """The groups that exist, and the names of those that do not."""
    found, missing = [], []
    for name in dict.fromkeys(names):
        one = cluster.admin.describe_group(name)
        if one.group.group_state == DEAD:
            missing.append(name)
        else:
            found.append(one)
    return found, missing


@app.command()
def delete(
    groups: GroupsArgument,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete groups without members, and their offsets.

    Exit code 9 if only some could be deleted; if none could, 7 if there are no such groups, else 1.
    """
    from quorumlog.client.errors import RequestFailed

    output.use(output_format)
    results: dict[str, str | None] = {}
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        for name in dict.fromkeys(groups):
            try:
                cluster.admin.delete_group(name)
                results[name] = None
            except RequestFailed as error:
                results[name] = WHY.get(error.code.name, str(error))
    documents = [{"group": name, "deleted": why is None, "error": why} for name, why in results.items()]
    output.show(("GROUP", "RESULT"), [(name, why or "deleted") for name, why in results.items()], documents)
    output.say(f"in {target.name}")
    _exit_for(results)


UNKNOWN_GROUP = "there is no such group"
WHY = {
    "GROUP_ID_NOT_FOUND": UNKNOWN_GROUP,
    "INVALID_GROUP_ID": "this is not the name of a group",
    "NON_EMPTY_GROUP": "the group has members; stop them first",
    "GROUP_SUBSCRIBED_TO_TOPIC": "a member of the group reads this topic",
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such partition",
}


@app.command("delete-offsets")
def delete_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    topics: TopicsOption,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Forget committed offsets of topics that no member reads.

    Exit code 7 if there is no such group, 9 if only some could be forgotten, 1 if none.
    """
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    output.use(output_format)
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        try:
            codes = cluster.admin.delete_group_offsets(group, partitions_of_topics(cluster, topics))
        except RequestFailed as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            raise CliError(Exit.NOT_FOUND, NO_GROUP.format(repr(group)), GROUPS_HINT) from error
    results = {key: WHY.get(code.name, code.name) if code else None for key, code in codes.items()}
    documents = [
        {"topic": topic, "partition": index, "deleted": why is None, "error": why}
        for (topic, index), why in results.items()
    ]
    rows = [(*key, why or "deleted") for key, why in results.items()]
    output.show(("TOPIC", "PARTITION", "RESULT"), rows, documents)
    output.say(f"in {target.name}")
    _exit_for(results)


def _exit_for(results: dict[Any, str | None]) -> None:
    failed = [why for why in results.values() if why is not None]
    if failed:
        all_ = Exit.NOT_FOUND if {*failed} == {UNKNOWN_GROUP} else Exit.FAILED
        raise typer.Exit(Exit.PARTIAL if len(failed) < len(results) else all_)


app.command()(lag)
app.command("reset-offsets")(reset_offsets)
app.command("reset", hidden=True)(reset_offsets)
