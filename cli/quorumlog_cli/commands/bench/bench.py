"""`quorumlog bench`: how fast records go in, out and through, by our clients in worker processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.profiles.client_security import with_secrets
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_server.process.lean_start import leave_out

if TYPE_CHECKING:
    from quorumlog_cli.measuring.workers import Done, Work

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure a cluster; compare two results.")
MAX_CLIENTS = 64
SAVED = "bench-*.json"

TopicOption = Annotated[str, typer.Option("-t", "--topic", help="It has to exist.")]
RecordsOption = Annotated[int, typer.Option("-n", "--num-records", min=1, help="Of all clients together.")]
SizeOption = Annotated[int, typer.Option("--record-size", min=1, metavar="BYTES", help="Of each value.")]
ClientsOption = Annotated[int, typer.Option("--clients", min=1, max=MAX_CLIENTS, help="Processes.")]
ThroughputOption = Annotated[
    float | None,
    typer.Option("--throughput", metavar="N", help="Records a second, of all clients. [default: as fast as they can]"),
]
SaveOption = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="[default: bench-DATE-TIME-KIND.json, here]")
]


@app.command()
def produce(
    topic: TopicOption,
    records: RecordsOption = 1_000_000,
    record_size: SizeOption = 100,
    clients: ClientsOption = 1,
    throughput: ThroughputOption = None,
    save: SaveOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Send records and print kafka-producer-perf-test's last line; -X acks=1 -X linger.ms=5 and so on.

    With --throughput, latencies are also told from when each record was due, however late it was sent: what users would
    have met (coordinated omission). Exit code 9 if records failed.
    """
    output.use(output_format)
    from quorumlog_cli.measuring.workers import Work
    from quorumlog_cli.measuring.workers import produce as work_of

    target = find_target(servers, profile, options)
    _partitions(target, topic)
    each = None if throughput is None else throughput / clients
    work = [
        Work(topic=topic, records=share, record_bytes=record_size, per_s=each, options=_options(target))
        for share in _shares(records, clients)
    ]
    settings = {"records": records, "record_size": record_size, "clients": clients, "throughput": throughput}
    _run("produce", {**settings, **_told(target)}, work_of, work, save)


@app.command()
def consume(
    topic: TopicOption,
    records: RecordsOption = 1_000_000,
    clients: ClientsOption = 1,
    save: SaveOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Read records from the beginning; the clients share the partitions. It ends at the present end of the topic."""
    output.use(output_format)
    from quorumlog_cli.measuring.workers import Work
    from quorumlog_cli.measuring.workers import consume as work_of

    target = find_target(servers, profile, options)
    found = _partitions(target, topic)
    used = min(clients, len(found))
    work = [
        Work(topic=topic, records=share, partitions=tuple(found[index::used]), options=_options(target))
        for index, share in enumerate(_shares(records, used))
    ]
    _run("consume", {"records": records, "clients": used, **_told(target)}, work_of, work, save)


@app.command()
def e2e(
    topic: TopicOption,
    records: RecordsOption = 10_000,
    record_size: SizeOption = 100,
    throughput: ThroughputOption = None,
    save: SaveOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Time each record from `send` to the poll that returns it: one after the other, or by --throughput."""
    output.use(output_format)
    from quorumlog_cli.measuring.workers import Work, end_to_end

    target = find_target(servers, profile, options)
    _partitions(target, topic)
    work = Work(topic=topic, records=records, record_bytes=record_size, per_s=throughput, options=_options(target))
    settings = {"records": records, "record_size": record_size, "throughput": throughput}
    _run("e2e", {**settings, **_told(target)}, end_to_end, [work], save)


@app.command()
def compare(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A saved file; `last`: the last one here, with the one before.")
    ],
    second: Annotated[str | None, typer.Argument(metavar="B")] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show what has changed from A to B. Runs with other settings are compared, too, and the difference is told."""
    output.use(output_format)
    from quorumlog_cli.measuring.report import compared, differences

    before, after = _last_two() if first == "last" and second is None else _two(first, second)
    if before["kind"] != after["kind"]:
        raise CliError(Exit.USAGE, f"one is of bench {before['kind']}, the other of bench {after['kind']}")
    rows = list(compared(before, after))
    differing = differences(before, after)
    if output.is_json():
        changes = [dict(zip(("name", "a", "b", "percent"), row, strict=True)) for row in rows]
        ends = {"kind": before["kind"], "a": before["at"], "b": after["at"]}
        output.show_json({**ends, "differing": differing, "changes": changes})
        return
    lines = [
        (name, f"{a:,.3f}", f"{b:,.3f}", "" if percent is None else f"{percent:+.1f} %") for name, a, b, percent in rows
    ]
    output.show_table(("MEASURE", "A", "B", "CHANGE"), lines)
    if differing:
        output.say(f"hint   their settings differ: {'; '.join(differing)}")


def _options(target: Target) -> dict[str, Any]:
    given = {"bootstrap_servers": target.bootstrap_servers, "client_id": "quorumlog-bench", **target.options}
    return dict(with_secrets(given))


def _told(target: Target) -> dict[str, Any]:
    """Options that were given and may be written into a file."""
    return {name: value for name, value in sorted(target.options.items()) if not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "token", "jaas", "key", "certificate"))


def _partitions(target: Target, topic: str) -> list[int]:
    """Raises RequestFailed for a topic that does not exist."""
    from dataclasses import replace

    from quorumlog_cli.connecting.connect import common_options

    with connected(replace(target, options=common_options(target.options))) as cluster:
        return [partition.index for partition in cluster.admin.describe_topic(topic).partitions]


def _shares(records: int, clients: int) -> list[int]:
    return [records // clients + (index < records % clients) for index in range(clients)]


def _run(
    kind: str, settings: dict[str, Any], work_of: Callable[[Work], Done], work: list[Work], save: Path | None
) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from quorumlog_cli.measuring.report import document, kafka_line
    from quorumlog_cli.measuring.workers import Done

    began, done = datetime.now(UTC), Done()
    spawn = get_context("spawn")
    with ProcessPoolExecutor(len(work), spawn, initializer=leave_out, initargs=("hypothesis",)) as pool:  # as main does
        for one in pool.map(work_of, work):
            done.merge(one)
    found = document(kind, settings, done, began.isoformat(timespec="seconds"))
    path = save or Path(f"bench-{began:%Y%m%d-%H%M%S}-{kind}.json")
    path.write_text(json.dumps(found, indent=2) + "\n")
    if output.is_json():
        output.show_json({**found, "saved": str(path)})
    else:
        print(kafka_line(found))
        if "corrected_ms" in found:
            output.say(f"  corrected for coordinated omission: 99th {found['corrected_ms']['p99']:.2f} ms")
        output.say(f"  saved {path}   ·   compare: quorumlog bench compare last")
    if done.failed:
        code = Exit.PARTIAL if done.records else Exit.FAILED
        raise CliError(code, f"{done.failed} records failed, the first: {done.first}")


def _last_two() -> tuple[dict[str, Any], dict[str, Any]]:
    """The last run that was saved here, and the one of its kind before it."""
    saved = [_read(path) for path in Path().glob(SAVED)]
    saved.sort(key=lambda one: str(one["at"]))
    kin = [one for one in saved if one["kind"] == saved[-1]["kind"]] if saved else []
    if len(kin) < 2:
        what = f"only one result of bench {kin[0]['kind']}, the last one," if kin else "no result"
        raise CliError(Exit.NOT_FOUND, f"{what} is in this directory; name two files")
    return kin[-2], kin[-1]


def _two(first: str, second: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    if second is None:
        raise CliError(Exit.USAGE, "name two files, or `last`")
    return _read(Path(first)), _read(Path(second))


def _read(path: Path) -> dict[str, Any]:
    """Raises CliError."""
    from quorumlog_cli.measuring.report import FORMAT

    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise CliError(Exit.NOT_FOUND, f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CliError(Exit.DATA_INVALID, f"{path} is no result of a bench: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CliError(Exit.DATA_INVALID, f"{path} is no result of a bench of this version")
    return found
