"""`quorumlog log hexdump`: the bytes of a batch with their meaning, for those who look for the one that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_cli.offline.batches import Damage, FoundBatch

DAMAGE_SHOWN = 256  # bytes of what is no batch


def hexdump(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A segment or a snapshot.")],
    offset: Annotated[int | None, typer.Option("--offset", help="Of a record: the batch that holds it.")] = None,
    position: Annotated[int | None, typer.Option("--position", help="In bytes: the batch that begins there.")] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="How many batches.")] = 1,
    records: Annotated[bool, typer.Option("--records", help="Also the fields of each record.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print each field of a batch: position, bytes, name, value. Without an offset: the first batch."""
    from quorumlog_cli.offline.batches import Damage

    output.use(output_format)
    if offset is not None and position is not None:
        raise CliError(Exit.USAGE, "--offset and --position exclude each other")
    if path.is_dir():
        raise CliError(Exit.USAGE, f"{path} is a directory", "name one of its files: quorumlog log segments lists them")
    if not path.is_file():
        raise CliError(Exit.NOT_FOUND, f"{path}: no such file")
    damaged = 0
    for found in _chosen(path, offset, position, count):
        if isinstance(found, Damage):
            damaged += 1
            _show_damage(path, found)
        else:
            damaged += not found.crc_ok
            _show_batch(found, records)
    if damaged:
        raise CliError(Exit.DATA_INVALID, f"{path}: {output.counted(damaged, 'damaged batch')}")


def _chosen(path: Path, offset: int | None, position: int | None, count: int) -> list[FoundBatch | Damage]:
    from quorumlog_cli.offline.batches import Damage, read_batches
    from quorumlog_storage.audit.batches import read_batch_at
    from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk

    if position is not None:
        file = ReadOnlyDisk().open(str(path))
        size = file.size()
        if not 0 <= position < size:
            raise CliError(Exit.NOT_FOUND, f"{path} has {size} bytes; byte {position} is not among them")
        found = read_batch_at(file, size, position)
        file.close()
        return [found]
    chosen: list[FoundBatch | Damage] = []
    last = -1
    for found in read_batches(path):
        is_wanted = isinstance(found, Damage) or offset is None or found.header.last_offset >= offset
        if isinstance(found, Damage) and offset is not None and not chosen:
            continue  # not the batch that was asked for
        if is_wanted:
            chosen.append(found)
            if len(chosen) == count:
                break
        last = last if isinstance(found, Damage) else found.header.last_offset
    if not chosen:
        said = "holds no batch" if offset is None else f"ends at offset {last}; offset {offset} is in a later segment"
        raise CliError(Exit.NOT_FOUND, f"{path} {said}")
    first = chosen[0]
    if offset is not None and not isinstance(first, Damage) and first.header.base_offset > offset:
        output.say(f"offset {offset} is in no batch here; the next one is shown")
    return chosen


def _show_damage(path: Path, found: Damage) -> None:
    with path.open("rb") as file:
        file.seek(found.position)
        data = file.read(min(DAMAGE_SHOWN, found.end - found.position))
    if output.is_json():
        output.show_json_line({"kind": "damage", "position": found.position, "end": found.end, "reason": found.reason,
                               "bytes": data.hex()})  # fmt: skip
        return
    print(f"bytes {found.position} to {found.end}: no batch: {found.reason}")
    for at in range(0, len(data), 16):
        print(f"{found.position + at:>10}  {data[at : at + 16].hex(' ')}")


def _show_batch(found: FoundBatch, records: bool) -> None:
    from quorumlog.records import BATCH_OVERHEAD, Codec, CorruptRecords
    from quorumlog.records.format.varint import Malformed
    from quorumlog.records.rowwise.plain import records_payload
    from quorumlog_cli.offline.annotate import Field, header_fields, record_fields

    if not found.data:
        size = found.header.size
        raise CliError(Exit.FAILED, f"the batch at byte {found.position} has {size} bytes: too many to show")
    fields = list(header_fields(found))
    stored = found.data[found.header.position + BATCH_OVERHEAD : found.header.end]
    if not records or found.header.codec != Codec.NONE:
        fields.append(
            Field(found.position + BATCH_OVERHEAD, stored, "records", output.counted(found.header.count, "record"))
        )
    for field in fields:
        _show_field(field)
    if not records:
        return
    try:
        payload = bytes(records_payload(found.data, found.header))
        if found.header.codec != Codec.NONE:
            output.say(f"expanded to {len(payload)} bytes; positions are counted from their start")
        for field in record_fields(found, payload):
            _show_field(field)
    except (CorruptRecords, Malformed) as error:
        raise CliError(Exit.DATA_INVALID, f"the records at byte {found.position}: {error}") from error


def _show_field(field: object) -> None:
    from quorumlog_cli.offline.annotate import Field

    assert isinstance(field, Field)
    if output.is_json():
        output.show_json_line(
            {"position": field.position, "bytes": field.data.hex(), "name": field.name, "value": field.meaning}
        )
    else:
        print(f"{field.position:>10}  {field.name:<24} {field.meaning:<32}  {field.hexadecimal}".rstrip())
