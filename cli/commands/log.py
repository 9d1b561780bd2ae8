"""`quorumlog log`: reads segments and indexes from their files. It never writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import output
from cli.errors import CliError, Exit
from cli.output import Format, OutputOption

if TYPE_CHECKING:
    from cli.offline.batches import FoundBatch

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Read segments and indexes from their files.")

METADATA_PREFIX = "__cluster_metadata"
TEXT_NAMES = ("-checkpoint", "quorum-state", "partition.metadata", "meta.properties")
FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files, or directories of them.")]


@app.command()
def dump(
    files: FilesArgument,
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Also print the records.")] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Accepted for Kafka's sake; batches are always decoded.")
    ] = False,
    metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Read values as metadata records.")
    ] = False,
    sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", "--verify-index-only", help="Print only the errors of an index.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print the batches of segments (with --print-data-log also records), entries of indexes, text of checkpoints.

    Lines are like kafka-dump-log's; -o json prints a JSON object per line. Exit code 4 if anything is damaged.
    """
    output.use(output_format)
    damaged: list[str] = []
    for path in _expanded(files):
        if not output.is_json():
            print(f"Dumping {path}")
        if path.suffix == ".index":
            damaged += _dump_index(path, problems_only=sanity_check)
        elif path.name.endswith(TEXT_NAMES):
            print(path.read_text(), end="")
        else:
            decode = metadata_decoder or path.resolve().parent.name.startswith(METADATA_PREFIX)
            damaged += _dump_batches(path, records=print_data_log or deep_iteration, metadata=decode)
    _raise_damaged(damaged)


@app.command()
def verify(files: FilesArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Check every batch and record of segments, and indexes against their segments. Exit code 4 if any is damaged."""
    from cli.offline.batches import FoundBatch, read_batches

    output.use(output_format)
    rows: list[list[object]] = []
    damaged: list[str] = []
    for path in _expanded(files):
        if path.name.endswith(TEXT_NAMES):
            continue
        if path.suffix == ".index":
            problems, count = _index_problems(path), path.stat().st_size // 8
        else:
            problems = _batch_problems(path)
            count = sum(isinstance(found, FoundBatch) for found in read_batches(path))
        damaged += problems
        rows.append([path, count, "; ".join(problems) or "ok"])
    names = ("file", "entries", "result")
    output.show(("FILE", "ENTRIES", "RESULT"), rows, [dict(zip(names, map(str, row), strict=True)) for row in rows])
    _raise_damaged(damaged)


def _expanded(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            yield from sorted(found for found in path.iterdir() if found.suffix in (".log", ".index", ".checkpoint"))
        elif path.is_file():
            yield path
        else:
            raise CliError(Exit.NOT_FOUND, f"{path}: no such file or directory")


def _raise_damaged(damaged: list[str]) -> None:
    if damaged:
        raise CliError(Exit.DATA_INVALID, f"{len(damaged)} damaged: " + "; ".join(damaged[:5]))


def _dump_batches(path: Path, *, records: bool, metadata: bool) -> list[str]:
    from cli.offline.batches import Damage, read_batches
    from cli.offline.describe import batch_document, batch_line

    if not output.is_json() and path.stem.isdigit():
        print(f"Log starting offset: {int(path.stem)}")
    damaged: list[str] = []
    for found in read_batches(path):
        if isinstance(found, Damage):
            damaged.append(f"{path} at byte {found.position}: {found.reason}{' (torn tail)' if found.torn else ''}")
            continue
        if output.is_json():
            output.show_json_line(batch_document(found))
        else:
            print(batch_line(found))
        if not found.crc_ok:
            damaged.append(f"{path} at byte {found.position}: wrong checksum")
        elif records:
            damaged += _dump_records(path, found, metadata)
    return damaged


def _dump_records(path: Path, found: FoundBatch, metadata: bool) -> list[str]:
    from cli.offline.describe import control_meaning, record_document, record_line
    from cli.offline.metadata_log import meaning
    from quorum.metadata.frame import BadRecord
    from quorumlog.records import CorruptRecords

    try:
        for record in found.records():
            said = control_meaning(record) if found.header.is_control else None
            if metadata and said is None:
                said = meaning(found, record)
            if output.is_json():
                output.show_json_line(record_document(record, said))
            else:
                print(record_line(record, said))
    except (CorruptRecords, BadRecord) as error:
        return [f"{path} at byte {found.position}: {error}"]
    return []


def _dump_index(path: Path, *, problems_only: bool) -> list[str]:
    from cli.offline.index_file import read_index

    problems: list[str] = []
    try:
        for entry in read_index(path):
            if entry.problem:
                problems.append(f"{path}: offset {entry.offset} at {entry.position}: {entry.problem}")
            if output.is_json():
                output.show_json_line({"kind": "index", **entry._asdict()})
            elif entry.problem or not problems_only:
                print(f"offset: {entry.offset} position: {entry.position}{entry.problem and '  ' + entry.problem}")
    except ValueError as error:
        problems.append(str(error))
    if problems_only and not problems and not output.is_json():
        print(f"{path} passed sanity check.")
    return problems


def _index_problems(path: Path) -> list[str]:
    from cli.offline.index_file import read_index

    try:
        return [f"offset {entry.offset}: {entry.problem}" for entry in read_index(path) if entry.problem]
    except ValueError as error:
        return [str(error)]


def _batch_problems(path: Path) -> list[str]:
    from cli.offline.batches import Damage, read_batches
    from quorumlog.records import CorruptRecords

    problems: list[str] = []
    for found in read_batches(path):
        if isinstance(found, Damage):
            problems.append(f"byte {found.position}: {found.reason}")
            continue
        try:
            reason = "" if found.crc_ok else "wrong checksum"
            if found.crc_ok:
                found.records()
        except CorruptRecords as error:
            reason = error.reason
        if reason:
            problems.append(f"byte {found.position}: {reason}")
    return problems
