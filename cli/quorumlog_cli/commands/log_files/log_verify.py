"""`quorumlog log verify`: the auditor on directories of stopped nodes, or on single files. It changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_storage.audit.audit import AuditReport
    from quorumlog_storage.audit.finding import Finding
    from quorumlog_storage.audit.log_audit import LogReport

EVERY_TOPIC = "*"
FAULTS_SHOWN = 50  # in a table; JSON has all that are kept
HEADINGS = ("LOG", "SEGMENTS", "BATCHES", "RECORDS", "START", "HIGH WATERMARK", "END", "BYTES", "RESULT")


def verify(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Log directories, directories of partitions, or single files of a log."),
    ],
    replicas: Annotated[
        bool, typer.Option("--replicas", help="The directories are replicas of one partition, whatever their names.")
    ] = False,
    at_rest: Annotated[
        bool, typer.Option("--at-rest", help="The nodes had nothing left to copy: replicas must have the same end.")
    ] = False,
    compacted: Annotated[
        list[str] | None, typer.Option("--compacted", metavar="TOPIC", help="May have gaps; '*' for any topic.")
    ] = None,
    kafka: Annotated[
        bool,
        typer.Option(
            "--kafka",
            help="Kafka wrote them: gaps between segments and a meta.properties of version 0 are no faults.",
        ),
    ] = False,
    nothing_expired: Annotated[
        bool, typer.Option("--nothing-expired", help="Every producer that wrote must still be remembered.")
    ] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Check every byte that the nodes left: batches, indexes, checkpoints, snapshots, and replicas with each other.

    Nothing is changed. A directory in which a node runs is refused. Exit code 4 if there is a fault: its file,
    position, offset, what was expected and what is there are printed. Notes are no faults: a start repairs them.
    """
    output.use(output_format)
    for place in places:
        if not place.exists():
            raise CliError(Exit.NOT_FOUND, f"{place}: no such file or directory")
    if all(place.is_file() for place in places):
        _verify_files(places)
        return
    files = [str(place) for place in places if place.is_file()]
    if files:
        raise CliError(Exit.USAGE, f"{files[0]} is a file among directories", "verify files in a command of their own")
    paths = [str(place.resolve()) for place in places]
    report = _audit(paths, replicas, at_rest, compacted or [], kafka, nothing_expired)
    _show(report)
    _raise_faults(report.faults)


def _audit(
    paths: list[str], replicas: bool, at_rest: bool, compacted: list[str], kafka: bool, nothing_expired: bool
) -> AuditReport:
    from quorumlog_cli.offline.audit_metadata import check_assignments, check_metadata_files, compacted_topics, image_in
    from quorumlog_storage.audit.audit import audit
    from quorumlog_storage.audit.directory_audit import Options
    from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
    from quorumlog_storage.files.disk import DirectoryLocked

    try:
        image = image_in(paths)
        topics = None if EVERY_TOPIC in compacted else compacted_topics(image) | frozenset(compacted)
        options = Options(
            compacted=topics, gaps_between_segments=kafka, nothing_expired=nothing_expired, by_kafka=kafka
        )
        with _progress(paths) as told:
            report = audit(
                ReadOnlyDisk(), paths, options,
                replicas=replicas, to_end=at_rest, progress=told, check_extra=check_metadata_files,
            )  # fmt: skip
    except DirectoryLocked as error:
        where = error.path.removesuffix("/.lock")
        hint = "stop the node first, or verify a copy: its files change while it runs"
        raise CliError(Exit.PRECONDITION, f"{where} is in use by a running node", hint) from error
    check_assignments(report, image)
    return report


def _verify_files(files: list[Path]) -> None:
    from quorumlog_storage.audit.file_audit import NotAuditable, audit_file
    from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk

    reports: list[LogReport] = []
    for path in files:
        try:
            reports.append(audit_file(ReadOnlyDisk(), str(path)))
        except NotAuditable as error:
            raise CliError(Exit.USAGE, str(error)) from error
    rows = [[report.path, report.batches, report.records, _result(report)] for report in reports]
    faults = [fault for report in reports for fault in report.findings.faults]
    if output.is_json():
        output.show_json({"files": [_log_document(report) for report in reports], "faults": _documents(faults)})
    else:
        output.show_table(("FILE", "BATCHES", "RECORDS", "RESULT"), rows)
        _show_findings("fault", faults)
    _raise_faults(faults)


def _show(report: AuditReport) -> None:
    if output.is_json():
        output.show_json(_document(report))
        return
    rows = [_row(log) for _, log in report.logs]
    output.show_table(HEADINGS, rows)
    if report.compared:
        print(f"{output.counted(report.compared, 'partition')} compared between nodes")
    _show_findings("note", report.notes)
    _show_findings("fault", report.faults)


def _show_findings(kind: str, findings: list[Finding]) -> None:
    for finding in findings[:FAULTS_SHOWN]:
        print(f"{kind}  {finding}")
    if len(findings) > FAULTS_SHOWN:
        print(f"... and {len(findings) - FAULTS_SHOWN} more; -o json shows them")


def _row(log: LogReport) -> list[object]:
    offsets = (log.start, log.high_watermark, log.end)
    return [log.path, log.segments, log.batches, log.records, *offsets, log.size, _result(log)]


def _result(log: LogReport) -> str:
    faults = len(log.findings.faults)
    return output.counted(faults, "fault") if faults else "ok"


def _document(report: AuditReport) -> dict[str, Any]:
    directories = [
        {
            "path": one.path,
            "cluster_id": None if one.meta is None else one.meta.cluster_id,
            "node_id": None if one.meta is None else one.meta.node_id,
            "clean_shutdown": one.is_clean,
            "logs": [
                {"topic": topic, "partition": partition, **_log_document(log)}
                for (topic, partition), log in one.logs.items()
            ],
        }
        for one in report.directories
    ]
    return {
        "directories": directories,
        "compared": report.compared,
        "faults": _documents(report.faults),
        "notes": _documents(report.notes),
    }


def _log_document(log: LogReport) -> dict[str, Any]:
    from quorumlog.ids import format_uuid

    return {
        "path": log.path,
        "topic_id": None if log.topic_id is None else format_uuid(log.topic_id),
        "segments": log.segments,
        "batches": log.batches,
        "records": log.records,
        "bytes": log.size,
        "start_offset": log.start,
        "high_watermark": log.high_watermark,
        "end_offset": log.end,
        "has_gaps": log.has_gaps,
        "faults": len(log.findings.faults),
    }


def _documents(findings: list[Finding]) -> list[dict[str, Any]]:
    names = ("check", "path", "position", "offset", "expected", "found")
    return [{name: getattr(finding, name) for name in names} for finding in findings]


def _raise_faults(faults: list[Finding]) -> None:
    if faults:
        hint = "a replica with a fault can be copied anew from its leader: set its directory aside, then start the node"
        raise CliError(Exit.DATA_INVALID, f"{output.counted(len(faults), 'fault')}, the first: {faults[0]}", hint)


@contextmanager
def _progress(paths: list[str]) -> Iterator[Callable[[int], object]]:
    """A bar on stderr, where somebody looks at it."""
    if output.is_json() or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("verifying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=sum(map(_bytes_below, paths)))
        yield lambda count: progress.advance(task, count)


def _bytes_below(path: str) -> int:
    """Of all segments."""
    total = 0
    for folder, _, names in os.walk(path):
        total += sum(os.stat(os.path.join(folder, name)).st_size for name in names if name.endswith(".log"))
    return total
