"""`quorumlog partition apply`, `move` and `drain`: replicas go to other brokers and directories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog.planner.plan import make_plan
from quorumlog.planner.plan_file import BadPlanFile, read_plan
from quorumlog_cli.commands.partitions.partition_carry_out import (
    TIMEOUT_S,
    DryRunOption,
    RollbackOption,
    ThrottleOption,
    TimeoutOption,
    WaitOption,
    Wish,
    carry_out,
    checked,
    planned,
)
from quorumlog_cli.commands.partitions.partition_goals import drained, moved, placed_exactly
from quorumlog_cli.commands.partitions.partition_reading import read_picture
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.planner.cluster import Assignment, TopicPartition


def apply(
    file: Annotated[str, typer.Argument(metavar="FILE", help="As partition plan --out wrote it; -: standard input.")],
    throttle: ThrottleOption = None,
    rollback: RollbackOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = TIMEOUT_S,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Carry a plan out: a file of partition plan, or of kafka-reassign-partitions.

    Partitions that lie as the plan wants already are left alone, so a plan can be applied again. Exit code 9: only some
    could begin.
    """
    output.use(output_format)
    wanted = plan_of(file)
    with connected(find_target(servers, profile, options)) as cluster:
        picture = read_picture(cluster.admin)
        checked(cluster.admin, picture, wanted)
        carry_out(cluster.admin, make_plan(picture, wanted), Wish(dry_run, wait, timeout, throttle, rollback))


def move(
    partitions: Annotated[
        list[str],
        typer.Argument(metavar="PARTITION[=ID,ID,…]...", help="orders-3=1,2,4 as it says; orders-3, orders: see --to."),
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="ID,ID,…", help="Place them on these brokers; the planner chooses.")
    ] = None,
    throttle: ThrottleOption = None,
    rollback: RollbackOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = TIMEOUT_S,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Move partitions to other brokers. The first of the list is the preferred leader."""
    output.use(output_format)
    exact = ["=" in name for name in partitions]
    if any(exact) != all(exact) or all(exact) is (to is not None):
        raise CliError(Exit.USAGE, "give PARTITION=ID,ID for each partition, or --to for all of them")
    make_exact = placed_exactly(partitions) if to is None else None
    make = moved(partitions, to) if to is not None else None
    with connected(find_target(servers, profile, options)) as cluster:
        picture = read_picture(cluster.admin)
        if make is not None:
            plan = planned(lambda: make(picture))
        else:
            assert make_exact is not None
            wanted = make_exact(picture)
            checked(cluster.admin, picture, wanted)
            plan = make_plan(picture, wanted)
        carry_out(cluster.admin, plan, Wish(dry_run, wait, timeout, throttle, rollback))


def drain(
    brokers: Annotated[list[int] | None, typer.Argument(metavar="[ID...]", help="Brokers to empty.")] = None,
    rack: Annotated[str | None, typer.Option("--rack", metavar="NAME", help="Every broker of a rack.")] = None,
    directory: Annotated[
        str | None, typer.Option("--directory", metavar="PATH", help="This log directory of the one broker only.")
    ] = None,
    throttle: ThrottleOption = None,
    rollback: RollbackOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = TIMEOUT_S,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Leave nothing on brokers, on a rack, or in a log directory: plan it and carry it out.

    New partitions may still be placed there; set cordoned.log.dirs first. Exit code 6: the others cannot take it all.
    """
    output.use(output_format)
    make = drained(brokers or [], rack, directory)
    with connected(find_target(servers, profile, options)) as cluster:
        picture = read_picture(cluster.admin)
        plan = planned(lambda: make(picture))
        carry_out(cluster.admin, plan, Wish(dry_run, wait, timeout, throttle, rollback))


def plan_of(file: str) -> dict[TopicPartition, Assignment]:
    """Raises CliError(DATA_INVALID)."""
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8", errors="replace")
    try:
        return read_plan(text)
    except BadPlanFile as error:
        raise CliError(Exit.DATA_INVALID, f"{file}: {error}") from None
