"""`quorumlog log grep`: records of segments by their keys, values and header names, with their offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.records import Record

Pattern = re.Pattern[bytes]


def grep(
    places: Annotated[list[Path], typer.Argument(metavar="FILE|DIR...", help="Segments, or directories of them.")],
    key: Annotated[str | None, typer.Option("--key", "-k", help="Regular expression that the key holds.")] = None,
    value: Annotated[str | None, typer.Option("--value", "-e", help="The same of the value.")] = None,
    header: Annotated[str | None, typer.Option("--header", help="The same of the name of a header.")] = None,
    start: Annotated[int, typer.Option("--start", help="First offset.")] = 0,
    end: Annotated[int | None, typer.Option("--end", help="Offset to stop before.")] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i")] = False,
    count_only: Annotated[bool, typer.Option("--count", "-c", help="Print only how many match.")] = False,
    most: Annotated[int | None, typer.Option("--max", "-m", min=1, help="Stop after so many.")] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Find records. All that is asked for must match; bytes are compared, so text is matched as UTF-8.

    Control records are left out. Exit code 7 if nothing matches, 4 if a batch could not be read: those are named.
    """
    output.use(output_format)
    asked = [_compiled(text, ignore_case) for text in (key, value, header)]
    if not any(asked):
        raise CliError(Exit.USAGE, "nothing to look for", "name --key, --value or --header; log dump prints everything")
    matches, damaged = 0, list[str]()
    for path, record in _records(places, start, end, damaged):
        if not _matches(record, *asked):
            continue
        matches += 1
        if not count_only:
            _show(path, record)
        if matches == most:
            break
    if count_only:
        output.show_json({"matches": matches}) if output.is_json() else print(matches)
    if damaged:
        raise CliError(Exit.DATA_INVALID, f"{output.counted(len(damaged), 'place')} not searched: {damaged[0]}")
    if not matches:
        raise CliError(Exit.NOT_FOUND, "no record matches")


def _compiled(text: str | None, ignore_case: bool) -> Pattern | None:
    if text is None:
        return None
    try:
        return re.compile(text.encode(), re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise CliError(Exit.USAGE, f"{text!r} is no regular expression: {error}") from error


def _matches(record: Record, key: Pattern | None, value: Pattern | None, header: Pattern | None) -> bool:
    return (
        _holds(key, record.key)
        and _holds(value, record.value)
        and (header is None or any(header.search(name.encode()) for name, _ in record.headers))
    )


def _holds(pattern: Pattern | None, data: bytes | None) -> bool:
    return pattern is None or (data is not None and pattern.search(data) is not None)


def _records(places: list[Path], start: int, end: int | None, damaged: list[str]) -> Iterator[tuple[Path, Record]]:
    """damaged: gets the places that could not be read."""
    from quorumlog.records import CorruptRecords
    from quorumlog_cli.offline.batches import Damage, read_batches

    for path in _segments(places, start):
        previous = start
        for found in read_batches(path):
            if isinstance(found, Damage):
                damaged.append(f"{path} at byte {found.position}: {found.reason}")
                continue
            if found.header.last_offset < start or found.header.is_control:
                continue
            lowest, previous = found.header.lowest_offset(previous), found.header.next_offset
            if end is not None and lowest >= end:
                break
            if not found.crc_ok:
                damaged.append(f"{path} at byte {found.position}: wrong checksum")
                continue
            try:
                for record in found.records():
                    if start <= record.offset and (end is None or record.offset < end):
                        yield path, record
            except CorruptRecords as error:
                damaged.append(f"{path} at byte {found.position}: {error.reason}")


def _segments(places: list[Path], start: int) -> Iterator[Path]:
    """Without those that end before `start`. Raises CliError(NOT_FOUND)."""
    from quorumlog_cli.offline.batches import log_files

    for place in places:
        if place.is_file():
            yield place
            continue
        files = log_files(place) if place.is_dir() else []
        if not files:
            raise CliError(Exit.NOT_FOUND, f"{place} is no segment and holds none")
        ends: list[int | None] = [*(int(path.stem) for path in files[1:]), None]
        yield from (path for path, until in zip(files, ends, strict=True) if until is None or until > start)


def _show(path: Path, record: Record) -> None:
    from quorumlog_cli.offline.describe import record_document, record_line

    if output.is_json():
        output.show_json_line({"file": str(path), **record_document(record, None)})
    else:
        print(f"{path.name} {record_line(record, None)}")
