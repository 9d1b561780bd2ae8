"""`quorumlog log dump`: the content of every kind of file of a log, in the words of kafka-dump-log, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.records import Record
    from quorumlog_cli.offline.batches import FoundBatch
    from quorumlog_cli.offline.describe import Plain

    Meaning = Callable[[FoundBatch, Record], Plain | None]

METADATA_PREFIX = "__cluster_metadata"
TEXT_NAMES = ("-checkpoint", "quorum-state", "partition.metadata", "meta.properties")
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
DUMPED = (".log", ".checkpoint", SNAPSHOT_SUFFIX, *INDEX_SUFFIXES)
FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files, or directories of them.")]


def dump(
    files: FilesArgument,
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Also print the records.")] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Accepted for Kafka's sake; batches are always decoded.")
    ] = False,
    metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Read values as metadata records.")
    ] = False,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Read records as those of __consumer_offsets.")
    ] = False,
    transaction_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Read records as those of __transaction_state.")
    ] = False,
    key_decoder: Annotated[
        str | None,
        typer.Option("--key-decoder", "--key-decoder-class", metavar="NAME", help="string, integer, long or hex."),
    ] = None,
    value_decoder: Annotated[
        str | None,
        typer.Option("--value-decoder", "--value-decoder-class", metavar="NAME", help="The same; or Kafka's class."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option("--max-bytes", min=0, metavar="N", help="Only the batches that end in the file's first N bytes."),
    ] = None,
    sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", "--verify-index-only", help="Print only the errors of an index.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print batches, entries of indexes, producer snapshots, text of checkpoints.

    --print-data-log and the decoders print records, too. A decoder shows nothing else of a record than key and payload.

    Lines are like kafka-dump-log's; -o json prints a JSON object per line. Exit code 4 if anything is damaged.
    """
    output.use(output_format)
    damaged: list[str] = []
    for path in _expanded(files):
        if not output.is_json():
            print(f"Dumping {path}")
        if path.suffix in INDEX_SUFFIXES:
            damaged += _dump_index(path, problems_only=sanity_check)
        elif path.suffix == SNAPSHOT_SUFFIX:
            damaged += _dump_producers(path)
        elif path.name.endswith(TEXT_NAMES):
            _dump_text(path)
        else:
            shown = print_data_log or deep_iteration or metadata_decoder or offsets_decoder or transaction_decoder
            meaning = _meaning(path, metadata_decoder, offsets_decoder, transaction_decoder) if shown else None
            if key_decoder is not None or value_decoder is not None:
                meaning = _decoding(meaning, key_decoder or "string", value_decoder or "string")
            damaged += _dump_batches(path, meaning, max_bytes)
    _raise_damaged(damaged)


def _meaning(path: Path, metadata: bool, offsets: bool, transactions: bool) -> Meaning:
    """How the records of this file are read: as an option says, or as the name of its directory does."""
    from quorumlog.records.control import describe_control
    from quorumlog.records.coordinator import GROUP_TYPES, TRANSACTION_TYPES
    from quorumlog_cli.offline.internal_topics import internal_meaning, types_of
    from quorumlog_cli.offline.metadata_log import meaning

    if sum((metadata, offsets, transactions)) > 1:
        raise CliError(Exit.USAGE, "choose one decoder: a file holds records of one kind")
    types = GROUP_TYPES if offsets else TRANSACTION_TYPES if transactions else None
    if metadata or (types is None and path.resolve().parent.name.startswith(METADATA_PREFIX)):
        return meaning
    types = types or types_of(path)

    def said(found: FoundBatch, record: Record) -> Plain | None:
        if found.header.is_control:
            return describe_control(record)
        return None if types is None else internal_meaning(types, record)

    return said


def _decoding(meaning: Meaning | None, key: str, value: str) -> Meaning:
    """meaning: of what the file is known to hold, which comes first. Raises CliError for a decoder that is none."""
    from quorumlog.records.control import describe_control
    from quorumlog_cli.offline.decoders import DECODERS, decoded, decoder

    of_key, of_value = decoder(key), decoder(value)
    if of_key is None or of_value is None:
        name = key if of_key is None else value
        raise CliError(Exit.USAGE, f"{name!r} is no decoder that is known here: {', '.join(DECODERS)}")

    def said(found: FoundBatch, record: Record) -> Plain | None:
        known = meaning(found, record) if meaning is not None else None
        if known is None and found.header.is_control:
            known = describe_control(record)
        return decoded(record, of_key, of_value) if known is None else known

    return said


def _expanded(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            found = sorted(one for one in path.iterdir() if one.suffix in DUMPED)
            if not found:
                raise CliError(Exit.NOT_FOUND, f"{path} holds no file of a log", "name the directory of a partition")
            yield from found
        elif path.is_file():
            yield path
        else:
            raise CliError(Exit.NOT_FOUND, f"{path}: no such file or directory")


def _raise_damaged(damaged: list[str]) -> None:
    if damaged:
        raise CliError(Exit.DATA_INVALID, f"{len(damaged)} damaged: " + "; ".join(damaged[:5]))


def _dump_batches(path: Path, meaning: Meaning | None, max_bytes: int | None = None) -> list[str]:
    """meaning: None to leave the records out. max_bytes: None: all."""
    from quorumlog_cli.offline.batches import Damage, read_batches
    from quorumlog_cli.offline.describe import batch_document, batch_line

    if not output.is_json() and path.stem.isdigit():
        print(f"Log starting offset: {int(path.stem)}")
    damaged: list[str] = []
    for found in read_batches(path):
        end = found.position if isinstance(found, Damage) else found.position + found.header.size
        if max_bytes is not None and end > max_bytes:
            break
        if isinstance(found, Damage):
            damaged.append(f"{path} at byte {found.position}: {found.reason}{' (torn tail)' if found.torn else ''}")
            continue
        if output.is_json():
            output.show_json_line(batch_document(found))
        else:
            print(batch_line(found))
        if not found.crc_ok:
            damaged.append(f"{path} at byte {found.position}: wrong checksum")
        elif meaning is not None:
            damaged += _dump_records(path, found, meaning)
    return damaged


def _dump_records(path: Path, found: FoundBatch, meaning: Meaning) -> list[str]:
    from quorumlog.records import CorruptRecords
    from quorumlog_cli.offline.describe import record_document, record_line
    from quorumlog_quorum.metadata.frame import BadRecord

    try:
        for record in found.records():
            said = meaning(found, record)
            if output.is_json():
                output.show_json_line(record_document(record, said))
            else:
                print(record_line(record, said))
    except (CorruptRecords, BadRecord) as error:
        return [f"{path} at byte {found.position}: {error}"]
    return []


def _dump_index(path: Path, *, problems_only: bool) -> list[str]:
    from quorumlog_cli.offline.index_entries import read_index

    entries, report = read_index(path)
    for entry in entries:
        if output.is_json():
            output.show_json_line({"kind": path.suffix[1:], **entry})
        elif entry["problem"] or not problems_only:
            problem = entry.pop("problem")
            print(" ".join(f"{name}: {value}" for name, value in entry.items()) + (f"  {problem}" if problem else ""))
    faults = [str(fault) for fault in report.findings.faults]
    if problems_only and not faults and not output.is_json():
        print(f"{path} passed sanity check.")
    return faults


def _dump_producers(path: Path) -> list[str]:
    from quorumlog_storage.audit.entries import BadSnapshot, read_snapshot

    try:
        rows = read_snapshot(path.read_bytes())
    except BadSnapshot as error:
        return [f"{path} at {error}"]
    for row in rows:
        if output.is_json():
            output.show_json_line({"kind": "producer", **row._asdict()})
        else:
            print(
                f"producerId: {row.producer_id} producerEpoch: {row.epoch} coordinatorEpoch: {row.coordinator_epoch} "
                f"currentTxnFirstOffset: {row.transaction_offset} lastTimestamp: {row.timestamp_ms} "
                f"lastSequence: {row.last_sequence} lastOffset: {row.last_offset} offsetDelta: {row.offset_delta}"
            )
    return []


def _dump_text(path: Path) -> None:
    text = path.read_text(errors="backslashreplace")
    if output.is_json():
        output.show_json_line({"kind": "text", "file": str(path), "text": text})
    else:
        print(text, end="")
