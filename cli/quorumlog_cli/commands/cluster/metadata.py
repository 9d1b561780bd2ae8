"""`quorumlog metadata`: the cluster's metadata, read from the files of one node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.cluster import metadata_snapshot
from quorumlog_cli.connecting.find import DataOption, data_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_cli.offline.metadata_log import LoggedRecord

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Read the cluster's metadata log from its files.")

app.add_typer(metadata_snapshot.app, name="snapshot")


@app.callback()
def metadata() -> None:
    """Read the cluster's metadata log from its files."""


@app.command()
def dump(
    place: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", help="A metadata log, a log directory that contains it, or a .checkpoint file."
        ),
    ] = None,
    node: Annotated[int | None, typer.Option("--node", help="Node of the local cluster; default: the first.")] = None,
    image: Annotated[bool, typer.Option("--image", help="Print the state after the records, not the records.")] = False,
    start: Annotated[int, typer.Option("--start", min=0, help="First offset.")] = 0,
    end: Annotated[int | None, typer.Option("--end", min=0, help="Stop before this offset.")] = None,
    all_records: Annotated[bool, typer.Option("--all", help="Also print NoOp records.")] = False,
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print the records of the metadata log, or with --image the state after them. -o json: one object per line.

    Where the log begins behind a snapshot, the records before it are in the snapshot: name its file to print them.

    Reads the files of one node, running or not. The newest records may be uncommitted: the files do not tell.
    """
    from quorumlog_cli.offline.metadata_log import find_metadata_log, read_image, read_log
    from quorumlog_cli.offline.snapshots import read_image_of, snapshot_of

    output.use(output_format)
    snapshot = snapshot_of(place) if place is not None else None
    if place is not None and snapshot is not None and image:
        from quorumlog_quorum.metadata.dump import describe_image

        _show_image(describe_image(read_image_of(place, snapshot)))
        return
    directory = place if place is not None and snapshot is not None else find_metadata_log(place or data_of(data, node))
    if image:
        from quorumlog_quorum.metadata.dump import describe_image

        _show_image(describe_image(read_image(directory, end)))
        return
    for record in read_log(directory, start, end):
        if all_records or record.meaning["type"] != "NoOpRecord":
            _show(record)


def _show(record: LoggedRecord) -> None:
    if output.is_json():
        output.show_json_line(
            {"offset": record.offset, "epoch": record.epoch, "timestamp": record.timestamp_ms, **record.meaning}
        )
        return
    if record.meaning["type"] == "ChangedByRecord":
        fields = _by(record.meaning)
    else:
        fields = " ".join(f"{name}={_short(value)}" for name, value in record.meaning.items() if name != "type")
    said = output.on_one_line(fields)
    print(f"@{record.offset:<6} epoch {record.epoch:<3} {record.meaning['type']:<31} {said}".rstrip())


def _by(meaning: dict[str, Any]) -> str:
    """The records before it in its batch or transaction are what was changed. A client has chosen its id."""
    host = f"@{meaning['host']}" if meaning["host"] else ""
    return f"by {meaning['principal']}{host} {meaning['client_id']}".rstrip()


def _short(value: Any) -> str:
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, list | dict) else str(value)
    )


def _show_image(image: dict[str, Any]) -> None:
    if output.is_json():
        output.show_json(image)
        return
    for path, value in _leaves("", image):
        print(output.on_one_line(f"{path:<48} {_short(value)}"))


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    """One line per value, with its path, so that grep and diff work on images."""
    if isinstance(value, dict):
        return [leaf for name, part in value.items() for leaf in _leaves(f"{path}/{name}", part)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [leaf for number, part in enumerate(value) for leaf in _leaves(f"{path}/{_name(part, number)}", part)]
    return [(path, value)]


def _name(part: dict[str, Any], number: int) -> str:
    for key in ("name", "id", "node_id", "broker_id", "partition", "resource_name"):
        if key in part:
            return str(part[key])
    return str(number)
