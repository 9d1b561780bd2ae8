"""`quorumlog spark load`: topics into a folder of Parquet files, again and again, each offset once."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.watch.words import duration
from quorumlog_cli.connecting import connect
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, find_target
from quorumlog_cli.spark_session import SUBMITTED, session
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.progress import Progress

if TYPE_CHECKING:
    from quorumlog.spark.load.folder import LoadedRange
    from quorumlog.spark.load.job import Request
    from quorumlog.spark.load.protocol import Outcome
    from quorumlog.spark.load.store import Store
    from quorumlog.spark.load.verifying import Report

APP = "quorumlog spark load"
COLUMNS = ("LOAD", "TOPIC", "PARTITION", "FROM", "UNTIL", "ROWS", "FILES")
VERIFY_COLUMNS = ("COMMITS", "FILES", "ROWS", "LOST", "FAULTS")
LOG_LINES = 20  # of Spark's own log, where it does not start
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


class Isolation(StrEnum):
    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class Table(StrEnum):
    NONE = "none"
    DELTA = "delta"
    ICEBERG = "iceberg"


class PartitionBy(StrEnum):
    NONE = "none"
    DAY = "date(timestamp)"


def load(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC…", help="None: only --verify.")] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="DIR", help="A folder that all workers share, or an object store's address.")
    ] = "",
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="OFFSET|TIME", help="Load again from here, a time in ISO 8601, into the same files."
        ),
    ] = "",
    until: Annotated[str, typer.Option("--until", metavar="OFFSET|TIME", help="Load no further (exclusive).")] = "",
    rows_per_file: Annotated[str, typer.Option(metavar="ROWS", help="At most; as 500k, 5M.")] = "5M",
    partition_by: Annotated[
        PartitionBy | None, typer.Option(help="Folders by day (UTC). Stays as the first load had it; none if unsaid.")
    ] = None,
    isolation_level: Annotated[
        Isolation | None, typer.Option(help="Stays as the first load had it; read_committed if unsaid.")
    ] = None,
    table: Annotated[
        Table | None, typer.Option(help="Files alone, or a table of Delta Lake or Iceberg. Stays; none if unsaid.")
    ] = None,
    skip_lost: Annotated[
        bool, typer.Option("--skip-lost", help="Leave out what retention took before it was loaded, and note it.")
    ] = False,
    every: Annotated[str, typer.Option(metavar="TIME", help="Load again and again, as every 15m.")] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Read what is there, and judge it by the commits.")] = False,
    master: Annotated[
        str, typer.Option(metavar="URL", help="Spark's, as spark://host:7077; spark-submit's goes before it.")
    ] = "local[*]",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Load topics into Parquet files, from where the last load ended; each offset is in one file.

    It may be killed at any time: the next run does first what was planned.

    Exit code 4 if --verify finds a fault, 6 if another loader has just planned the same load.
    """
    from quorumlog.spark.load.job import Request
    from quorumlog.spark.load.store import open_store

    output.use(output_format)
    _check_words(topics or [], to, start, until, every, verify=verify)
    store = open_store(to)
    if topics:
        target = find_target(servers, profile, options)
        connect.reach(target)
        request = Request(
            topics=tuple(topics),
            client={**target.options, "bootstrap_servers": target.bootstrap_servers},
            start=start,
            until=until,
            rows_per_file=_rows(rows_per_file),
            partition_by=None if partition_by is None else partition_by.value.replace("none", ""),
            isolation_level=isolation_level,
            table=None if table is None else table.value.replace("none", ""),
            skip_lost=skip_lost,
        )
        pause_s = _pause_s(every)
        with _spark(master) as spark:
            _load_and_tell(request, store, spark, pause_s)
    if verify:
        _verify_and_tell(store)


def _check_words(topics: Sequence[str], to: str, start: str, until: str, every: str, *, verify: bool) -> None:
    """Raises CliError(USAGE)."""
    if not to:
        raise CliError(Exit.USAGE, "--to is missing: where the files go", "quorumlog spark load orders --to lake")
    if not topics and not verify:
        raise CliError(Exit.USAGE, "no topic is named", "name one, or --verify to look at what is there")
    if every and (start or until or verify):
        raise CliError(
            Exit.USAGE, "--every goes on from load to load, so it takes no --from, --until or --verify",
            "run these once, beside it",
        )  # fmt: skip


def _rows(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([kM]?)", text, re.ASCII)
    if found is None or not int(found[1]):
        raise CliError(Exit.USAGE, f"--rows-per-file {text}: it is a number such as 1000, 500k or 5M")
    return int(found[1]) * _UNITS[found[2]]


def _pause_s(every: str) -> float:
    """0: once. Raises CliError(USAGE), ConfigError."""
    from quorumlog.spark.read.options import parse_duration_ms

    pause_ms = parse_duration_ms("--every", every) if every else 0
    if every and pause_ms <= 0:
        raise CliError(Exit.USAGE, f"--every {every}: it is a time above 0, as 15m; leave it out to load once")
    return pause_ms / 1000


def _spark(master: str) -> AbstractContextManager[Any]:
    return spark_for(APP, master)


@contextmanager
def spark_for(app: str, master: str) -> Iterator[Any]:
    """A session of a command. Raises CliError(PRECONDITION) where Spark does not start."""
    import os

    from quorumlog.spark.session.java import NoJava, use_java

    try:
        if SUBMITTED not in os.environ:
            use_java()
    except NoJava as error:
        raise CliError(Exit.PRECONDITION, str(error)) from error
    with tempfile.TemporaryDirectory(prefix="quorumlog-spark-") as folder:
        log, has_begun = Path(folder) / "spark.log", False
        output.say(f"Spark starts ({master})")
        try:
            with session(log, app, master) as spark:
                spark.sparkContext.setLogLevel("ERROR")
                has_begun = True
                yield spark
        except Exception as error:
            if has_begun:
                raise
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise CliError(Exit.PRECONDITION, f"Spark did not start at {master}: {error}\n{tail}") from error


def _load_and_tell(request: Request, store: Store, spark: Any, pause_s: float) -> None:
    from quorumlog.client.errors import ConfigError, QuorumlogError
    from quorumlog.spark.load.job import run_load

    while True:
        began = time.monotonic()
        try:
            with Progress("load", "ranges") as progress:
                outcomes = run_load(request, store, _runner(spark, progress))
            _tell(outcomes, is_repeated=bool(pause_s))
        except (QuorumlogError, OSError) as error:
            if not pause_s or isinstance(error, ConfigError):
                raise
            output.complain(f"{error}", f"the next load begins in {duration(pause_s * 1000)} at the most")
        if not pause_s:
            return
        time.sleep(max(0.0, pause_s - (time.monotonic() - began)))


def _runner(spark: Any, progress: Progress) -> Any:
    from quorumlog.spark.load.job import in_spark

    return in_spark(spark, None if output.is_json() else progress.show)


def _tell(outcomes: Sequence[Outcome], *, is_repeated: bool) -> None:
    """Raises CliError(PRECONDITION) if another loader was faster, unless the load is repeated anyway."""
    from quorumlog.spark.load.protocol import Ended

    for outcome in outcomes:
        for one in outcome.commit.ranges if outcome.commit and outcome.ended is Ended.COMMITTED else ():
            for note in one.notes:
                output.complain(f"load {outcome.number}: {note}")
    document = {"loads": [_document(outcome) for outcome in outcomes]}
    if output.is_json():
        (output.show_json_line if is_repeated else output.show_json)(document)
    else:
        rows = [row for outcome in outcomes if outcome.ended is Ended.COMMITTED for row in _table(outcome)]
        if rows:
            output.show_table(COLUMNS, rows)
        for outcome in outcomes:
            output.say(_text(outcome))
    lost = next((one for one in outcomes if one.ended is Ended.LOST), None)
    if lost is not None and not is_repeated:
        raise CliError(
            Exit.PRECONDITION,
            f"load {lost.number} was planned by another loader at the same moment; this one has written nothing",
            "let the other one end; if it has died, run this again, and it does that load first",
        )


def _text(outcome: Outcome) -> str:
    from quorumlog.spark.load.protocol import Ended

    first = " (which an earlier run had planned)" if outcome.was_pending else ""
    if outcome.ended is Ended.COMMITTED and outcome.commit is not None:
        rows = sum(file.rows for file in outcome.commit.files)
        files = output.counted(len(outcome.commit.files), "file")
        return f"load {outcome.number} is committed{first}: {output.counted(rows, 'row')} in {files}"
    return f"nothing is new since load {outcome.number}" if outcome.ended is Ended.NOTHING else "another loader works"


def _document(outcome: Outcome) -> dict[str, Any]:
    from quorumlog.spark.load.protocol import Ended

    is_done = outcome.ended is Ended.COMMITTED and outcome.commit is not None
    commit = outcome.commit if is_done else None
    return {
        "load": outcome.number,
        "ended": outcome.ended,
        "was_pending": outcome.was_pending,
        "rows": sum(file.rows for file in commit.files) if commit else 0,
        "bytes": sum(file.bytes for file in commit.files) if commit else 0,
        "files": [file.path for file in commit.files] if commit else [],
        "offsets": outcome.commit.position.to_json()["o"] if outcome.commit else {},
        "lost": [[lost.topic, lost.partition, lost.start, lost.end] for lost in commit.lost] if commit else [],
    }


def _table(outcome: Outcome) -> list[list[Any]]:
    """One row for each partition."""
    if outcome.commit is None:
        return []
    by_partition: dict[tuple[str, int], list[LoadedRange]] = {}
    for one in outcome.commit.ranges:
        by_partition.setdefault((one.topic, one.partition), []).append(one)
    return [
        [
            outcome.number, topic, partition, min(one.start for one in ranges), max(one.end for one in ranges),
            sum(file.rows for one in ranges for file in one.files), sum(len(one.files) for one in ranges),
        ]
        for (topic, partition), ranges in sorted(by_partition.items())
    ]  # fmt: skip


def _verify_and_tell(store: Store) -> None:
    """Raises CliError(DATA_INVALID)."""
    from quorumlog.spark.load.verifying import verify

    with Progress("verify", "files") as progress:
        shown: Callable[[int, int], None] | None = None if output.is_json() else progress.show
        report = verify(store, shown)
    if not report.commits and not report.pending and not report.faults:
        raise CliError(Exit.NOT_FOUND, "nothing was ever loaded into this folder", "is it the --to of the loads?")
    _show_report(report)
    if report.faults:
        raise CliError(
            Exit.DATA_INVALID,
            f"{output.counted(len(report.faults), 'fault')} in the folder, the first one: {report.faults[0]}",
        )


def _show_report(report: Report) -> None:
    document = {
        "commits": report.commits,
        "files": report.files,
        "rows": report.rows,
        "lost": [[lost.topic, lost.partition, lost.start, lost.end] for lost in report.lost],
        "faults": list(report.faults),
        "pending": report.pending or None,
    }
    row = [report.commits, report.files, report.rows, len(report.lost), len(report.faults)]
    output.show(VERIFY_COLUMNS, [row], document)
    for fault in report.faults:
        output.say(f"fault  {fault}")
    if report.pending:
        output.say(f"load {report.pending} is planned and not committed: the next load does it first")
