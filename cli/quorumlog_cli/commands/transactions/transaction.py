"""`quorumlog transaction`: transactions of producers. Ending one that hangs is in transaction_abort.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.filters import one_of
from quorumlog_cli.commands.groups.group_view import dashes
from quorumlog_cli.commands.topics.topic_lookup import topic_of
from quorumlog_cli.commands.transactions.transaction_abort import abort
from quorumlog_cli.commands.transactions.transaction_hanging import find_hanging
from quorumlog_cli.commands.transactions.transaction_reading import check_broker, described
from quorumlog_cli.commands.transactions.transaction_view import (
    DESCRIBE_COLUMNS,
    LIST_COLUMNS,
    PRODUCER_COLUMNS,
    description_row,
    listing_row,
    partition_documents,
    partition_text,
    producer_row,
    utc_text,
)
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_cli.commands.transactions.transaction_view import DescriptionRow

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show transactions of producers; end those that hang."
)

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")

TopicOption = Annotated[str, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic.")]
PartitionOption = Annotated[int, typer.Option("--partition", "-p", metavar="N", min=0, help="Its partition.")]


@app.command("list")
def list_(
    duration_ms: Annotated[
        int | None,
        typer.Option("--duration-filter", metavar="MS", min=0, help="Only transactions that are open for longer."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option("--transactional-id-pattern", metavar="RE2", help="Only ids that this expression matches whole."),
    ] = None,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help=f"Only in this state: {', '.join(STATES)}; may be repeated."),
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List the transactional ids of all brokers."""
    output.use(output_format)
    wanted = one_of("--state", states, STATES)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.list_transactions(
            states=wanted, duration_ms=-1 if duration_ms is None else duration_ms, pattern=pattern
        )
    rows = [listing_row(one) for one in found]
    output.show(LIST_COLUMNS, [dashes(row) for row in rows], [row._asdict() for row in rows])


@app.command()
def describe(
    transactional_id: Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID", help="The id.")],
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the state of one transactional id. Exit code 7 if there is none of that name."""
    import time

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        row = description_row(described(cluster, transactional_id), round(time.time() * 1_000))
    output.show(DESCRIBE_COLUMNS, [_described_cells(row)], _described_document(row))


def _described_cells(row: DescriptionRow) -> list[Any]:
    start, partitions = utc_text(row.start_time_ms), partition_text(row.partitions)
    return dashes([*row[:6], start, row.duration_ms, partitions, row.joint_group])


def _described_document(row: DescriptionRow) -> dict[str, Any]:
    return {**row._asdict(), "partitions": partition_documents(row.partitions)}


@app.command("describe-producers")
def describe_producers(
    topic: TopicOption,
    partition: PartitionOption,
    broker_id: Annotated[
        int | None, typer.Option("--broker-id", metavar="ID", min=0, help="Ask this replica instead of the leader.")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show what a partition knows of its producers, and where their open transactions begin."""
    output.use(output_format)
    key = topic, partition
    with connected(find_target(servers, profile, options)) as cluster:
        check_broker(cluster, broker_id)
        topic_of(cluster, topic, partition)
        found = cluster.admin.describe_producers([key], broker_id=broker_id)[key]
    rows = [producer_row(one) for one in sorted(found, key=lambda one: one.producer_id)]
    cells = [dashes([*row[:4], utc_text(row.last_timestamp_ms), row[5]]) for row in rows]
    output.show(PRODUCER_COLUMNS, cells, [row._asdict() for row in rows])


app.command()(abort)
app.command("find-hanging")(find_hanging)
