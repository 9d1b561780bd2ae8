"""`quorumlog log import`: copies partition directories that a stopped broker wrote into a new topic (decision 37)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.cluster.config_values import keys_and_values
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from quorumlog.ids import Epoch, Offset
    from quorumlog.records import BatchHeader
    from quorumlog_storage.files.disk import Disk
    from quorumlog_storage.foreign.examine import Examined

PAUSED = "retention.paused"


@dataclass(frozen=True, slots=True)
class PartitionToImport:
    """A `quorumlog.client.administration.import_topic.Source`."""

    disk: Disk
    examined: Examined

    @property
    def start_offset(self) -> Offset:
        return self.examined.source.start_offset

    @property
    def log_start(self) -> Offset:
        return self.examined.source.log_start

    @property
    def end_offset(self) -> Offset:
        return self.examined.end_offset

    @property
    def last_epoch(self) -> Epoch:
        return self.examined.last_epoch

    @property
    def max_producer_id(self) -> int:
        return self.examined.max_producer_id

    @property
    def size(self) -> int:
        return self.examined.size

    def batches(self, from_offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]:
        return self.examined.batches(self.disk, from_offset)


def import_(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR...", help="Partition directories (<topic>-<number>) of a stopped broker."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="Name of the new topic; by default the old one.")
    ] = None,
    replication: Annotated[
        int, typer.Option("-r", "--replication-factor", help="Replicas of each partition; -1: the default.")
    ] = -1,
    configs: Annotated[
        list[str] | None,
        typer.Option("-c", "--config", metavar="KEY=VALUE", help="A topic config, over those of the source."),
    ] = None,
    to_end: Annotated[
        bool,
        typer.Option(
            "--to-end",
            help="Also take what lies above the high watermark. Those records may never have been acknowledged, and "
            "other replicas of the source may hold others in their place.",
        ),
    ] = False,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Take a source with offsets missing between two segments.")
    ] = False,
    activate: Annotated[
        bool,
        typer.Option(
            "--activate",
            help="Let retention and compaction work on the topic. With directories: from the start; without: on a "
            "topic that was imported before.",
        ),
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Copy partitions into a topic that does not exist yet; offsets, epochs and timestamps stay as they are.

    Each source is read and verified first, up to its high watermark; open transactions end with an abort marker. No
    partition has a leader before all its replicas hold everything. An import that was interrupted goes on when the same
    command runs again; `quorumlog topic delete` drops it. Retention is paused until --activate.
    """
    output.use(output_format)
    if not directories:
        _activate(topic, activate, servers, profile, options)
        return
    found = _examine_all(directories, to_end=to_end, accept_gaps=accept_gaps)
    name = topic or found[0].source.topic
    settings = _settings_of(found[0]) | keys_and_values(configs or ())
    if not activate:
        settings[PAUSED] = "true"
    _import(found, name, replication, settings, servers, profile, options)


def _activate(
    topic: str | None, activate: bool, servers: str | None, profile: str | None, options: list[str] | None
) -> None:
    if not activate or topic is None:
        raise CliError(Exit.USAGE, "give partition directories to import, or --activate --topic NAME")
    with connected(find_target(servers, profile, options)) as cluster:
        cluster.admin.alter_configs(topic, {PAUSED: None})
    if output.is_json():
        output.show_json({"topic": topic, "activated": True})
    else:
        output.say(f"retention and compaction work on topic {topic!r} from now on")


def _examine_all(directories: Sequence[Path], *, to_end: bool, accept_gaps: bool) -> list[Examined]:
    """Partitions 0, 1, 2... of one topic, each read whole. Raises CliError."""
    from quorumlog_storage.edge.disk import RealDisk
    from quorumlog_storage.files.disk import DiskError
    from quorumlog_storage.files.names import BadDirectoryName
    from quorumlog_storage.foreign.examine import examine
    from quorumlog_storage.foreign.source import BadSource, find_source

    disk = RealDisk()
    try:
        sources = [find_source(disk, str(path.resolve())) for path in directories]
    except (BadSource, BadDirectoryName, DiskError) as error:
        raise CliError(Exit.NOT_FOUND, str(error)) from error
    sources.sort(key=lambda source: source.index)
    names = sorted({source.topic for source in sources})
    if len(names) > 1:
        raise CliError(Exit.USAGE, f"directories of {len(names)} topics: {', '.join(names)}; import one at a time")
    if [source.index for source in sources] != list(range(len(sources))):
        numbers = ", ".join(str(source.index) for source in sources)
        raise CliError(Exit.USAGE, f"partitions {numbers} of {names[0]}; give each partition from 0 on once")
    try:
        return [examine(disk, source, to_end=to_end, accept_gaps=accept_gaps) for source in sources]
    except BadSource as error:
        raise CliError(Exit.DATA_INVALID, str(error)) from error
    except DiskError as error:
        raise CliError(Exit.DATA_INVALID, f"{error}; copy from another replica") from error


def _settings_of(examined: Examined) -> dict[str, str]:
    """What the metadata log beside the source says, as far as it is a setting here."""
    from quorumlog.configs.topic import validate
    from quorumlog.errors import ApiError
    from quorumlog_storage.edge.disk import RealDisk
    from quorumlog_storage.files.disk import parent_of
    from quorumlog_storage.foreign.kafka_metadata import topic_settings

    by_topic = topic_settings(RealDisk(), parent_of(examined.source.path))
    if by_topic is None:
        output.complain("no metadata log of Kafka lies beside the source: its settings are not known", "use --config")
        return {}
    kept: dict[str, str] = {}
    for name, value in sorted(by_topic.get(examined.source.topic, {}).items()):
        try:
            validate(name, value)
        except ApiError as error:
            output.complain(f"the source's setting {name}={value} is left out: {error.message}")
        else:
            kept[name] = value
    return kept


def _import(
    found: Sequence[Examined], name: str, replication: int, settings: Mapping[str, str],
    servers: str | None, profile: str | None, options: list[str] | None,
) -> None:  # fmt: skip
    from quorumlog.client.administration.import_topic import OtherSource
    from quorumlog_storage.edge.disk import RealDisk

    disk = RealDisk()
    with connected(find_target(servers, profile, options)) as cluster:
        with Progress(f"importing {name}") as progress:
            sources = [PartitionToImport(disk, one) for one in found]
            try:
                began = cluster.admin.import_topic(name, sources, replication, settings, progress.show)
            except OtherSource as error:
                raise CliError(Exit.PRECONDITION, str(error)) from error
    rows = [
        {
            "partition": one.source.index,
            "first_offset": one.source.log_start,
            "end_offset": one.end_offset,
            "records": one.records,
            "aborted_transactions": one.aborted,
        }
        for one in found
    ]
    if output.is_json():
        output.show_json({"topic": name, "resumed": began.resumed, "settings": dict(settings), "partitions": rows})
        return
    output.show(("PARTITION", "FIRST", "END", "RECORDS", "ABORTED TXNS"), [list(row.values()) for row in rows], rows)
    if settings.get(PAUSED) == "true":
        output.say(f"retention is paused; begin it with: quorumlog log import --activate --topic {name}")
