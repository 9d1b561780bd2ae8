"""`quorumlog transaction abort`: ends a transaction that hangs on one partition, or takes an id from its producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quorumlog_cli.commands.topics.topic_lookup import topic_of
from quorumlog_cli.commands.transactions.transaction_reading import described
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.transactions import ActiveProducer

HINT = "quorumlog transaction describe-producers shows the open transactions and where they begin"
UNKNOWN = -1  # a coordinator epoch that the partition does not know
HOW = (
    "give --topic and --partition with --start-offset, or with --producer-id, --producer-epoch and "
    "--coordinator-epoch; or --transactional-id alone"
)


class Open(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def abort(
    topic: Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="The topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", metavar="N", min=0, help="Its partition.")
    ] = None,
    start_offset: Annotated[
        int | None,
        typer.Option("--start-offset", metavar="OFFSET", min=0, help="Where the transaction begins on the partition."),
    ] = None,
    producer_id: Annotated[
        int | None,
        typer.Option("--producer-id", metavar="ID", min=0, help="Of the transaction, in place of its offset."),
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", metavar="EPOCH", min=0, help="As describe-producers shows it.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None,
        typer.Option("--coordinator-epoch", metavar="EPOCH", min=-1, help="As describe-producers shows it; -1: none."),
    ] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="Fence its producer; its coordinator aborts the transaction on all partitions.",
        ),
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Abort a transaction: of a transactional id, or of one partition where no coordinator will end it.

    An abort of one partition does not tell the coordinator. Use it for what find-hanging shows.
    """
    output.use(output_format)
    producer = (producer_id, producer_epoch, coordinator_epoch)
    _check_usage(transactional_id, (topic, partition), start_offset, producer)
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        if transactional_id is not None:
            _fence(cluster, transactional_id)
            return
        assert topic is not None and partition is not None
        if start_offset is not None:
            found = _open_at(cluster, topic, partition, start_offset)
        else:
            assert producer_id is not None and producer_epoch is not None and coordinator_epoch is not None
            _check_open(cluster, topic, partition, producer_id)
            found = Open(producer_id, producer_epoch, coordinator_epoch)
        cluster.admin.abort_transaction((topic, partition), *found)
    if output.is_json():
        output.show_json({"topic": topic, "partition": partition, **found._asdict(), "aborted": True})
    else:
        output.say(f"aborted the transaction of producer {found.producer_id} on {topic}-{partition} of {target.name}")


def _check_usage(
    transactional_id: str | None,
    place: tuple[str | None, int | None],
    start_offset: int | None,
    producer: tuple[int | None, ...],
) -> None:
    """Raises CliError(USAGE) unless one of three things is named: an id, an offset or a producer of a partition."""
    given = [one is not None for one in (transactional_id, *place, start_offset, *producer)]
    ways = (
        [True, False, False, False, False, False, False],
        [False, True, True, True, False, False, False],
        [False, True, True, False, True, True, True],
    )
    if given not in ways:
        raise CliError(Exit.USAGE, HOW)


def _fence(cluster: Cluster, transactional_id: str) -> None:
    """Of an id that exists; asking for a producer id would make it."""
    described(cluster, transactional_id)
    producer_id, producer_epoch = cluster.admin.fence_producer(transactional_id)
    if output.is_json():
        document = {
            "transactional_id": transactional_id,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "fenced": True,
        }
        output.show_json(document)
    else:
        output.say(f"fenced the producer of {transactional_id!r}; a transaction that it had open is aborted")


def _open_at(cluster: Cluster, topic: str, partition: int, start_offset: int) -> Open:
    """Raises CliError(NOT_FOUND)."""
    for one in _open(cluster, topic, partition):
        if one.current_transaction_start_offset == start_offset:
            return Open(one.producer_id, one.producer_epoch, max(UNKNOWN, one.coordinator_epoch))
    text = f"no open transaction of {topic}-{partition} begins at offset {start_offset}"
    raise CliError(Exit.NOT_FOUND, text, HINT)


def _check_open(cluster: Cluster, topic: str, partition: int, producer_id: int) -> None:
    """A marker for a producer without one would be written, and end nothing. Raises CliError(NOT_FOUND)."""
    if all(one.producer_id != producer_id for one in _open(cluster, topic, partition)):
        text = f"producer {producer_id} has no open transaction on {topic}-{partition}"
        raise CliError(Exit.NOT_FOUND, text, HINT)


def _open(cluster: Cluster, topic: str, partition: int) -> list[ActiveProducer]:
    """Producers with an open transaction on the partition. Raises CliError(NOT_FOUND)."""
    key = topic, partition
    topic_of(cluster, topic, partition)
    return [one for one in cluster.admin.describe_producers([key])[key] if one.current_transaction_start_offset >= 0]
