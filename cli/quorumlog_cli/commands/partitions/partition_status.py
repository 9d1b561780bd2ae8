"""`quorumlog partition status` and `cancel`: what moves, how far it is, and its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.partitions import partition_progress, partition_throttle
from quorumlog_cli.commands.partitions.log_dir_moves import places_in
from quorumlog_cli.commands.partitions.partition_apply import plan_of
from quorumlog_cli.commands.partitions.partition_carry_out import (
    TIMEOUT_S,
    DryRunOption,
    TimeoutOption,
    look,
    not_as_wanted,
    wait,
)
from quorumlog_cli.commands.partitions.partition_reading import chosen_partitions
from quorumlog_cli.commands.partitions.partition_view import COPY_COLUMNS, copy_row
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin

SECOND_LOOK_S = 1.0  # for a rate, and so for the time that is left


def status(
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="Also check that these partitions lie as it wants.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait until nothing moves, and tell how far it is.")
    ] = False,
    timeout: TimeoutOption = TIMEOUT_S,
    finish: Annotated[
        bool, typer.Option("--finish", help="Remove replication throttles, if nothing of it moves any more.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the replicas that are being copied to other brokers or directories: bytes, rate, time left.

    Exit code 5: the --plan has ended, and a partition lies elsewhere. --finish does what kafka-reassign-partitions
    --verify does.
    """
    output.use(output_format)
    wanted = plan_of(plan) if plan is not None else None
    with connected(find_target(servers, profile, options)) as cluster:
        admin = cluster.admin
        if watch:
            wait(admin, wanted, timeout)
        first, began_s = look(admin, wanted), time.monotonic()
        speed = 0.0
        if first.copies:
            time.sleep(SECOND_LOOK_S)
            found = look(admin, wanted)
            speed = partition_progress.rate(first, found, time.monotonic() - began_s)
        else:
            found = first
        amiss = not_as_wanted(admin, wanted) if wanted is not None and found.is_over else []
        removed = _finish(admin, wanted, found.is_over) if finish else None
    _show(found, speed, amiss, removed)
    if finish and removed is None:
        raise CliError(Exit.PRECONDITION, "replicas are still moving, so the throttles stay")
    if amiss:
        raise typer.Exit(Exit.UNHEALTHY)


def _finish(admin: Admin, wanted: Any, is_over: bool) -> int | None:
    if not is_over:
        return None
    topics = {key[0] for key in wanted} if wanted is not None else {topic.name for topic in admin.list_topics()}
    return partition_throttle.remove(admin, topics)


def _show(found: partition_progress.Sample, speed: float, amiss: list[str], removed: int | None) -> None:
    left = partition_progress.left_s(found, speed)
    if output.is_json():
        output.show_json(
            {
                "partitions": len(found.reassignments),
                "copies": [one._asdict() for one in found.copies],
                "done_bytes": found.done_bytes,
                "total_bytes": found.total_bytes,
                "bytes_per_second": round(speed),
                "left_seconds": None if left is None else round(left, 1),
                "waits_for_brokers": list(found.away),
                "not_as_planned": amiss,
                "throttles_removed": removed,
            }
        )
        return
    if found.copies:
        output.show_table(COPY_COLUMNS, [copy_row(one) for one in found.copies])
    output.say("nothing moves" if found.is_over else partition_progress.sentence(found, speed))
    for text in amiss:
        output.say(f"not as planned: {text}")
    if removed is not None:
        output.say(f"throttles removed from {removed} topics and brokers")


def cancel(
    partitions: Annotated[
        list[str] | None, typer.Argument(metavar="[PARTITION...]", help="orders-3, or orders for all of it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every reassignment and move between directories.")] = False,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """End reassignments, and moves between directories: replicas are again where they were before.

    Exit code 7: nothing of this moves. Exit code 9: only some could be ended.
    """
    output.use(output_format)
    if everything is bool(partitions):
        raise CliError(Exit.USAGE, "name partitions, or give --all")
    with connected(find_target(servers, profile, options)) as cluster:
        admin = cluster.admin
        found = look(admin)
        moving = {*found.reassignments, *(one[:2] for one in found.copies)}
        chosen = sorted(moving) if everything else chosen_partitions(_known(admin), partitions or ())
        ended = [key for key in chosen if key in moving]
        if not ended:
            raise CliError(Exit.NOT_FOUND, "nothing of this moves; quorumlog partition status shows what does")
        failed = {} if dry_run else _cancel(admin, found, ended)
    names = [f"{topic}-{index}" for topic, index in ended]
    if output.is_json():
        output.show_json(
            {"cancelled": [name for name in names if name not in failed], "failed": failed, "dry_run": dry_run}
        )
    else:
        output.say(
            f"{'would end' if dry_run else 'ended'} the moves of {', '.join(n for n in names if n not in failed)}"
        )
    if failed:
        code = Exit.PARTIAL if len(failed) < len(ended) else Exit.FAILED
        raise CliError(code, "; ".join(f"{name}: {text}" for name, text in failed.items()))


def _known(admin: Admin) -> list[tuple[str, int]]:
    return [(topic.name, one.index) for topic in admin.list_topics() for one in topic.partitions]


def _cancel(admin: Admin, found: partition_progress.Sample, ended: list[tuple[str, int]]) -> dict[str, str]:
    from quorumlog.client.administration.partitions import failures

    reassigned = {key: None for key in ended if key in found.reassignments}
    outcomes = failures(admin.alter_partition_reassignments(reassigned)) if reassigned else {}
    copies = [one for one in found.copies if one.path and one[:2] in ended]
    if copies:
        described = admin.describe_log_dirs()
        paths = {one[:3]: places_in(described, *one[:2])[one.node_id].path for one in copies}
        admin.alter_replica_log_dirs(paths)
    return {f"{topic}-{index}": outcome.message for (topic, index), outcome in outcomes.items()}
