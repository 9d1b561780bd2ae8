"""`quorumlog group reset-offsets`: let a group without members go on from another place."""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quorumlog_cli.commands.groups.group_reading import DEAD, chosen_groups, existing
from quorumlog_cli.commands.groups.group_targets import Ends, Goal, duration_ms, read_csv, target, time_ms, write_csv
from quorumlog_cli.commands.groups.group_topics import partitions_of_topics
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import TopicPartition

Targets = dict["TopicPartition", int]
EMPTY = "Empty"


class Wish(NamedTuple):
    """amount: an offset, or by how much to shift. at_ms: a time since 1970."""

    goal: Goal
    amount: int = 0
    at_ms: int | None = None
    file: Path | None = None


def reset_offsets(
    groups: Annotated[list[str] | None, typer.Option("--group", "-g", metavar="GROUP", help="May be repeated.")] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Every group.")] = False,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="All or these partitions; may be repeated."),
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="All that the group has committed.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="What is committed; the end if nothing is.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", metavar="N", help="This offset.")] = None,
    shift_by: Annotated[int | None, typer.Option("--shift-by", metavar="N", help="N records on; back if < 0.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="2026-01-31T12:00:00.000; UTC without a zone."),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="PnDTnHnMnS", help="What was written since then.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", metavar="FILE", help="CSV, as --export prints it.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Commit the offsets; without it nothing changes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the new offsets (the default).")] = False,
    export: Annotated[bool, typer.Option("--export", help="Print CSV that --from-file reads.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Set committed offsets of groups that have no members. Shows them, and commits them with --execute.

    Offsets outside of a partition become its first offset or its end. Of several groups, those with members are left
    as they are (exit code 9); a single one is refused (6).
    """
    output.use(output_format)
    if execute and dry_run:
        raise CliError(Exit.USAGE, "give --execute or --dry-run, not both")
    wish = _wish(to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, from_file)
    if from_file is None and bool(topics) is all_topics:
        raise CliError(Exit.USAGE, "give --topic, or --all-topics" + (", not both" if topics else ""))
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        names = list(dict.fromkeys(chosen_groups(cluster, groups, all_groups)))
        busy = _with_members(cluster, names)
        if busy and len(busy) == len(names):
            raise CliError(Exit.PRECONDITION, _why_busy(busy))
        free = [name for name in names if name not in busy]
        found = {name: offsets for name, offsets in _targets(cluster, free, wish, topics).items() if offsets}
        if not found:
            raise CliError(Exit.NOT_FOUND, *_nothing(wish, free, topics))
        refused = _commit(cluster, found) if execute else {}
    _show(found, export, with_groups=all_groups or len(names) > 1)
    output.say(f"in {target.name}" if execute else "nothing was changed; --execute commits these offsets")
    if busy:
        output.complain(_why_busy(busy))
    for (name, topic, index), why in refused.items():
        output.complain(f"group {name!r}: {topic}-{index}: {why}")
    if busy or refused:
        raise typer.Exit(Exit.PARTIAL if len(refused) < sum(map(len, found.values())) else Exit.FAILED)


def _wish(
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: Path | None,
) -> Wish:
    """Raises CliError unless exactly one was given."""
    given: list[Wish] = []
    given += [Wish(Goal.EARLIEST)] * to_earliest + [Wish(Goal.LATEST)] * to_latest + [Wish(Goal.CURRENT)] * to_current
    given += [] if to_offset is None else [Wish(Goal.OFFSET, to_offset)]
    given += [] if shift_by is None else [Wish(Goal.SHIFT, shift_by)]
    given += [] if to_datetime is None else [Wish(Goal.TIME, at_ms=time_ms(to_datetime))]
    now_ms = int(time.time() * 1_000)
    given += [] if by_duration is None else [Wish(Goal.TIME, at_ms=max(0, now_ms - duration_ms(by_duration)))]
    given += [] if from_file is None else [Wish(Goal.FILE, file=from_file)]
    if len(given) != 1:
        raise CliError(Exit.USAGE, "give exactly one of --to-earliest, --to-latest, --to-current, --to-offset, "
                       "--shift-by, --to-datetime, --by-duration and --from-file")  # fmt: skip
    return given[0]


def _with_members(cluster: Cluster, names: list[str]) -> dict[str, str]:
    """The states of those groups that have members."""
    states = {name: cluster.admin.describe_group(name).group.group_state for name in names}
    return {name: state for name, state in states.items() if state not in (EMPTY, DEAD)}


def _why_busy(busy: dict[str, str]) -> str:
    told = ", ".join(f"{name!r} ({state})" for name, state in busy.items())
    return f"not reset, because they have members: {told}; stop those first"


def _nothing(wish: Wish, names: list[str], topics: list[str] | None) -> tuple[str, str]:
    """Why there is nothing to reset, and what to do."""
    if wish.file is not None:
        return f"{wish.file} names no partition to reset: none that is there, and of a group and topic asked for", ""
    if topics is not None:
        return "none of these partitions is there", "quorumlog topic list shows the topics"
    told = ", ".join(map(repr, names)) or "no group"
    return f"{told} has committed nothing", "name the topics: --topic TOPIC; quorumlog group list shows the groups"


def _targets(cluster: Cluster, names: list[str], wish: Wish, topics: list[str] | None) -> dict[str, Targets]:
    chosen = partitions_of_topics(cluster, topics) if topics else None
    wanted: dict[str, Targets] = {}
    if wish.file is not None:
        wanted = read_csv(_lines(wish.file), names)
    found: dict[str, Targets] = {}
    for name in names:
        committed = cluster.admin.group_offsets(name)
        keys = sorted(wanted.get(name, {}) if wish.file is not None else committed if chosen is None else chosen)
        if wish.file is not None and chosen is not None:
            keys = [key for key in keys if key in chosen]
        ends = _ends(cluster, keys, wish.at_ms)
        found[name] = {}
        for key, limits in ends.items():
            amount = wanted[name][key] if wish.file is not None else wish.amount
            before = committed[key].offset if key in committed else None
            if wish.goal is Goal.SHIFT and before is None:
                why = f"--shift-by: group {name!r} has no committed offset of {key[0]}-{key[1]} to shift"
                raise CliError(Exit.PRECONDITION, why, "--to-offset, --to-earliest or --to-latest sets one")
            at = target(wish.goal, amount, before, limits)
            if at.asked != at.offset:
                output.say(
                    f"{key[0]}-{key[1]} reaches from {limits.first} to {limits.end}: {at.offset} instead of {at.asked}"
                )
            found[name][key] = at.offset
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.USAGE, f"--from-file {path}: {getattr(error, 'strerror', None) or error}") from error


def _ends(cluster: Cluster, keys: list[TopicPartition], at_ms: int | None) -> dict[TopicPartition, Ends]:
    from quorumlog.client.offsets import EARLIEST, LATEST

    there = existing(cluster, keys)
    for topic, index in sorted(set(keys) - set(there)):
        output.say(f"{topic}-{index} does not exist any more, and is left as it is")
    if not there:
        return {}
    first = cluster.admin.list_offsets(dict.fromkeys(there, EARLIEST))
    end = cluster.admin.list_offsets(dict.fromkeys(there, LATEST))
    at = cluster.admin.list_offsets(dict.fromkeys(there, at_ms)) if at_ms is not None else None
    return {key: Ends(first[key].offset, end[key].offset, -1 if at is None else at[key].offset) for key in there}


def _commit(cluster: Cluster, found: dict[str, Targets]) -> dict[tuple[str, str, int], str]:
    """Why partitions were refused, by group, topic and number."""
    from quorumlog.client.group.offsets import CommittedOffset

    refused = {}
    for name, offsets in found.items():
        codes = cluster.admin.alter_group_offsets(name, {key: CommittedOffset(at) for key, at in offsets.items()})
        refused.update({(name, *key): code.name for key, code in codes.items() if code})
    return refused


def _show(found: dict[str, Targets], export: bool, *, with_groups: bool) -> None:
    if export and not output.is_json():
        csv.writer(sys.stdout, lineterminator="\n").writerows(write_csv(found, with_groups=with_groups))
        return
    rows = [(name, *key, at) for name, offsets in found.items() for key, at in offsets.items()]
    names = ("group", "topic", "partition", "new_offset")
    output.show(
        ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows, [dict(zip(names, row, strict=True)) for row in rows]
    )
