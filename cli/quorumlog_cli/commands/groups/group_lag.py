"""`quorumlog group lag`: how far a group is behind, in records that it can read, and in time."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.watch.words import duration
from quorumlog_cli.commands.groups.group_lag_view import (
    MAX_BARS,
    Look,
    TopicLag,
    by_topic,
    counts_records,
    document,
    headline,
    rates,
    total_of,
)
from quorumlog_cli.commands.groups.group_reading import DEAD, GROUPS_HINT, NO_GROUP
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster

BETWEEN_LOOKS_SECONDS = 1.0


def lag(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    threshold: Annotated[
        int | None,
        typer.Option("--threshold", metavar="N", help="Exit code 5 if a partition is more than N records behind."),
    ] = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Count to the last stable offset, as such a consumer reads.")
    ] = False,
    by_time: Annotated[
        bool, typer.Option("--time", help="Show how old the first record is that is to be read.")
    ] = False,
    eta: Annotated[bool, typer.Option("--eta", help="Look twice; show rates, and when nothing will be left.")] = False,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Repeat every second until Ctrl-C.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the lag of a group per topic, and in all: records that it can read and has not committed.

    Markers of transactions, aborted records and what compaction has removed do not count; DISTANCE is of offsets, and
    counts them. An Apache Kafka tells the distance only. A topic that no member reads is no lag. Partitions without a
    committed offset do not count. Exit code 7 if there is no such group; 5 with --threshold if it is too far behind.
    """
    output.use(output_format)
    if threshold is not None and threshold < 0:
        raise CliError(Exit.USAGE, f"--threshold {threshold}: it is a number of records, at least 0")
    level = "read_committed" if read_committed else "read_uncommitted"
    totals: deque[int] = deque(maxlen=MAX_BARS)
    with connected(find_target(servers, profile, options)) as cluster:
        before, now = None, look(cluster, group, level)
        while True:
            if eta and before is None:
                time.sleep(BETWEEN_LOOKS_SECONDS)
                before, now = now, look(cluster, group, level)
            topics = by_topic(now.found)
            totals.append(total_of(topics))
            _show(before, now, topics, list(totals), watch=watch, by_time=by_time, eta=eta)
            if not watch:
                break
            time.sleep(BETWEEN_LOOKS_SECONDS)
            before, now = now, look(cluster, group, level)
    _check(now, topics, threshold)


def look(cluster: Cluster, group: str, isolation_level: str) -> Look:
    """Raises CliError(NOT_FOUND)."""
    found = cluster.admin.group_lag(group, isolation_level=isolation_level)
    if found.state == DEAD:
        raise CliError(Exit.NOT_FOUND, NO_GROUP.format(repr(group)), GROUPS_HINT)
    return Look(time.monotonic_ns() // 1_000_000, found)


def _show(
    before: Look | None, now: Look, topics: list[TopicLag], totals: list[int], *, watch: bool, by_time: bool, eta: bool
) -> None:
    speed = None if before is None else rates(before, now)
    if output.is_json():
        shown = document(now.found, topics, speed, with_eta=eta)
        output.show_json_line(shown) if watch else output.show_json(shown)
        return
    if watch:
        print(output.harmless(headline(now.found, topics, speed, totals)))
    is_told = not all(one.is_read for one in topics)
    columns = ["TOPIC", "TOTAL-LAG", "MAX-LAG", "DISTANCE"]
    columns += ["BEHIND"] * by_time + ["IN/S", "OUT/S", "CLEAR-IN"] * eta + ["READ"] * is_told
    rows: list[list[Any]] = []
    for one in topics:
        row: list[Any] = [one.topic, _count(one.total, one.is_estimate), one.max, one.distance]
        row += [_time(one.behind_ms)] * by_time
        row += _speed(None if before is None else rates(before, now, one.topic)) * eta + [one.is_read] * is_told
        rows.append(row)
    read = [one for one in topics if one.is_read]
    found = now.found
    last: list[Any] = ["(all)", _count(total_of(topics), found.is_estimate), max((one.max for one in read), default=0)]
    rows.append([*last, found.distance, *[_time(found.behind_ms)] * by_time, *_speed(speed) * eta, *[None] * is_told])
    output.show_table(columns, rows)
    if not topics:
        output.say(f"group {found.group_id!r} has committed nothing")
    elif not counts_records(found):
        output.say("this cluster does not count records: the lag is the distance of offsets")


def _count(number: int, is_estimate: bool) -> int | str:
    return f"≤{number}" if is_estimate else number


def _time(behind_ms: int | None) -> str | None:
    return None if behind_ms is None else duration(behind_ms)


def _speed(speed: Any) -> list[Any]:
    if speed is None:
        return [None, None, None]
    return [round(speed.comes_in), round(speed.is_read), _time(speed.clear_ms)]


def _check(now: Look, topics: list[TopicLag], threshold: int | None) -> None:
    read = {one.topic for one in topics if one.is_read}
    found = {key: one for key, one in now.found.partitions.items() if key[0] in read and one.lag is not None}
    if threshold is None or not found:
        return
    (topic, index), worst = max(found.items(), key=lambda one: one[1].lag or 0)
    if (worst.lag or 0) > threshold:
        unit = "offset" if worst.records is None else "record"
        output.say(f"{topic}-{index} is {output.counted(worst.lag or 0, unit)} behind, more than {threshold}")
        raise typer.Exit(Exit.UNHEALTHY)
