"""`quorumlog spark sink`: what writers of batches have decided, and what they have open. On an Apache Kafka, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.groups.group_view import dashes
from quorumlog_cli.commands.spark_jobs.spark_sink_reading import sinks_of
from quorumlog_cli.commands.spark_jobs.spark_sink_view import (
    GROUP_COLUMNS,
    OPEN_COLUMNS,
    OpenRow,
    group_document,
    group_row,
    open_row,
)
from quorumlog_cli.commands.transactions.transaction_view import (
    partition_documents,
    partition_text,
    partitions_of,
    utc_text,
)
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.joint import ListedJointGroup

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Exactly-once writes: what was decided, and what is open."
)
GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="spark/QUERY-ID, the sinkId, or write/WRITE-ID; list shows them.")
]
HINT = "quorumlog spark sink list shows what there is"


@app.command("list")
def list_(
    is_open: Annotated[
        bool, typer.Option("--open", help="Each open transaction, and the partitions whose readers wait for it.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List the writers of batches: the last batch that each has decided, and what it has open.

    A dash stands for what there is not: no batch is decided yet, or nothing is open. Of an Apache Kafka, DECIDED is the
    time of the group's last record, and the run of an open transaction is a hash of the run's name.
    """
    import time

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        groups = sinks_of(cluster).groups()
        now_ms = round(time.time() * 1_000)
        children = _open_rows(cluster, groups, now_ms) if is_open else []
    if is_open:
        cells = [dashes([*row[:6], partition_text(row.partitions) or None]) for row in children]
        output.show(OPEN_COLUMNS, cells, [_open_document(row) for row in children])
        return
    rows = [group_row(group, now_ms) for group in groups]
    cells = [dashes([*row[:3], utc_text(row.decided_at_ms), *row[4:]]) for row in rows]
    documents = [group_document(group, row) for group, row in zip(groups, rows, strict=True)]
    output.show(GROUP_COLUMNS, cells, documents)


@app.command()
def abort(
    name: GroupArgument,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Abort what a writer has open and has not decided: readers of committed records wait for it no more.

    A query that still runs may end by it, and on an Apache Kafka it does: start it again then, and its batch is
    repeated. What is decided stays. Exit code 7 if there is no such group.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        sinks = sinks_of(cluster)
        group = next((one for one in sinks.groups() if one.group_id == name), None)
        if group is None:
            raise CliError(Exit.NOT_FOUND, f"no group {name!r}", HINT)
        aborted = sinks.abort(group)
    if output.is_json():
        output.show_json({"group": name, "aborted": aborted})
    else:
        output.say(f"{aborted} open transactions of {name} are aborted")


@app.command()
def forget(
    name: GroupArgument,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Forget what a writer has decided: the next one of this name begins anew, and may write its rows again.

    A stream that goes on from its checkpoint needs firstBatch then, with the number of its next batch. Refused while
    anything of it is open. Exit code 7 if nothing of this name is decided.
    """
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        try:
            sinks_of(cluster).forget(name)
        except RequestFailed as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise CliError(Exit.NOT_FOUND, error.message, HINT) from error
            if error.code is ErrorCode.JOINT_GROUP_OPEN:
                hint = f"quorumlog spark sink abort {name} aborts what is open"
                raise CliError(Exit.PRECONDITION, error.message, hint) from error
            raise
    if output.is_json():
        output.show_json({"forgotten": name})
    else:
        output.say(f"{name} is forgotten")


def _open_rows(cluster: Cluster, groups: list[ListedJointGroup], now_ms: int) -> list[OpenRow]:
    """A child that has ended since the list was made is left out."""
    ids = [child.transactional_id for group in groups for child in group.open]
    described = cluster.admin.describe_transactions(ids) if ids else {}
    rows = []
    for group in groups:
        for child in group.open:
            found = described.get(child.transactional_id)
            if found is not None and found.state == "Ongoing":
                rows.append(open_row(group.group_id, child, partitions_of(found), now_ms))
    return rows


def _open_document(row: OpenRow) -> dict[str, object]:
    return {**row._asdict(), "partitions": partition_documents(row.partitions)}
