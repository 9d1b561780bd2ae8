"""`quorumlog log export`: writes a partition as a directory that a stopped Kafka takes in the place of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from quorumlog.client.administration.export_partition import ExportedPart
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import Uuid
    from quorumlog.messages.cluster import TopicMetadata
    from quorumlog_storage.foreign.export import Export

SIZES = ("segment.bytes", "index.interval.bytes")


def export(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where <topic>-<number> is made.")],
    partition: Annotated[int, typer.Option("-p", "--partition", help="Number of the partition.")],
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The topic to export.")] = None,
    topic_id: Annotated[
        str | None,
        typer.Option(
            "--topic-id",
            metavar="ID",
            help="The topic to export, by its id. With --topic: the id to mark the directory with, which is that of "
            "the topic in the cluster that takes it.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Topic's name in the cluster that takes it.")
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Write a partition directory from one in-sync replica, up to the high watermark.

    Segments, indexes, producer snapshot, epochs and partition.metadata are as a broker leaves them when it is stopped;
    the recovery point, the high watermark and the log start are lines in the offset files of DIR.
    """
    from quorumlog.client.administration.export_partition import ExportFailed

    output.use(output_format)
    marked = _parsed(topic_id)
    out.mkdir(parents=True, exist_ok=True)
    with connected(find_target(servers, profile, options)) as cluster:
        found = _find(cluster, topic, marked)
        try:
            export = _export(cluster, found, partition, out, marked or found.topic_id, name or found.name)
        except ExportFailed as error:
            raise CliError(Exit.PARTIAL, str(error)) from error
    document = {"path": export.path, "end_offset": export.end_offset}
    if output.is_json():
        output.show_json(document)
    else:
        output.say(f"{export.path} ends at offset {export.end_offset}")


def _parsed(topic_id: str | None) -> Uuid | None:
    from quorumlog.ids import parse_uuid

    try:
        return None if topic_id is None else parse_uuid(topic_id)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"--topic-id {topic_id}: {error}") from error


def _find(cluster: Cluster, name: str | None, topic_id: Uuid | None) -> TopicMetadata:
    if name is not None:
        return cluster.admin.describe_topic(name)
    if topic_id is None:
        raise CliError(Exit.USAGE, "give --topic NAME or --topic-id ID")
    found = [topic for topic in cluster.admin.list_topics() if topic.topic_id == topic_id]
    if not found:
        raise CliError(Exit.NOT_FOUND, "no topic has this id; `quorumlog topic list -o json` shows the ids")
    return found[0]


def _export(cluster: Cluster, topic: TopicMetadata, partition: int, out: Path, topic_id: Uuid, name: str) -> Export:
    from quorumlog_storage.edge.disk import RealDisk
    from quorumlog_storage.foreign.export import Export, TargetExists

    described = cluster.admin.describe_configs(topic.name)
    sizes = {entry.name: int(entry.value or 0) for entry in described.configs if entry.name in SIZES}
    try:
        export = Export(
            RealDisk(), str(out.resolve()), (name, partition), topic_id,
            segment_bytes=sizes["segment.bytes"], interval_bytes=max(1, sizes["index.interval.bytes"]),
        )  # fmt: skip
    except TargetExists as error:
        raise CliError(Exit.PRECONDITION, str(error)) from error
    last: list[ExportedPart] = []
    with Progress(f"exporting {name}-{partition}", unit="offsets") as progress:

        def take(part: ExportedPart) -> None:
            export.take(part.records, part.log_start)
            last[:] = [part]
            progress.show(export.end_offset - part.log_start, part.high_watermark - part.log_start)

        cluster.admin.export_partition(topic.name, partition, take)
    export.finish(last[0].log_start, last[0].high_watermark)
    return export
