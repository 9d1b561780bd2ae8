"""`quorumlog transaction find-hanging`: open transactions that no coordinator will end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.groups.group_view import dashes
from quorumlog_cli.commands.topics.topic_lookup import topic_of
from quorumlog_cli.commands.transactions.transaction_reading import check_broker
from quorumlog_cli.commands.transactions.transaction_view import HANGING_COLUMNS, hanging_row, utc_text
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import TopicPartition

MAX_TIMEOUT_MIN = 15  # Kafka's default; that of transaction.max.timeout.ms


def find_hanging(
    broker_id: Annotated[
        int | None, typer.Option("--broker-id", metavar="ID", min=0, help="All partitions that this broker holds.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="All partitions of it.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", metavar="N", min=0, help="With --topic: only this one.")
    ] = None,
    max_timeout_min: Annotated[
        int,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            min=0,
            help="What transaction.max.timeout.ms allows.",
        ),
    ] = MAX_TIMEOUT_MIN,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Find transactions that are open for longer than any may be, and that no coordinator knows."""
    import time

    output.use(output_format)
    if broker_id is None and topic is None:
        raise CliError(Exit.USAGE, "say where to look: --broker-id, --topic, or both")
    if partition is not None and topic is None:
        raise CliError(Exit.USAGE, "--partition needs --topic")
    with connected(find_target(servers, profile, options)) as cluster:
        check_broker(cluster, broker_id)
        now_ms = round(time.time() * 1_000)
        found = cluster.admin.find_hanging_transactions(
            _partitions(cluster, broker_id, topic, partition),
            max_timeout_min * 60_000,
            now_ms=now_ms,
            broker_id=broker_id,
        )
    rows = [hanging_row(one, now_ms) for one in found]
    cells = [dashes([*row[:6], utc_text(row.last_timestamp_ms), *row[7:]]) for row in rows]
    output.show(HANGING_COLUMNS, cells, [row._asdict() for row in rows])
    if not rows:
        output.say("no transaction hangs there")
    else:
        output.say("quorumlog transaction abort --topic TOPIC --partition N --start-offset OFFSET ends one of them")


def _partitions(
    cluster: Cluster, broker_id: int | None, topic: str | None, partition: int | None
) -> list[TopicPartition]:
    """Internal topics, too. Raises CliError(NOT_FOUND)."""
    topics = cluster.admin.list_topics() if topic is None else [topic_of(cluster, topic)]
    found = [
        (one.name, part.index)
        for one in topics
        for part in one.partitions
        if (broker_id is None or broker_id in part.replicas) and partition in (None, part.index)
    ]
    if not found and (topic is not None or partition is not None):
        where = "" if broker_id is None else f" on broker {broker_id}"
        what = f"topic {topic!r}" if partition is None else f"partition {partition} of topic {topic!r}"
        raise CliError(Exit.NOT_FOUND, f"there is no {what}{where}")
    return found
