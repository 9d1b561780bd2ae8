"""`quorumlog partition plan`: makes a plan and shows it, or writes it as a file that `apply` reads; changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog.planner.plan_file import as_document, write_plan
from quorumlog_cli.commands.partitions.partition_carry_out import planned
from quorumlog_cli.commands.partitions.partition_goals import GIVEN, ByOption, balanced, drained, filled, moved, within
from quorumlog_cli.commands.partitions.partition_reading import read_picture
from quorumlog_cli.commands.partitions.partition_view import show_plan
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorumlog.planner.cluster import Cluster
    from quorumlog.planner.plan import Plan

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make a plan that drains, balances, fills a new broker or moves partitions; change nothing.",
)
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file for partition apply.")
]
MaxBytesOption = Annotated[
    int | None, typer.Option("--max-bytes", min=0, metavar="N", help="Copy at most so many bytes.", show_default=False)
]
ToleranceOption = Annotated[
    float, typer.Option("--tolerance", metavar="PART", help="Leave brokers alone that are so near to the mean.")
]


@app.command()
def balance(
    by: ByOption = GIVEN,
    tolerance: ToleranceOption = 0.05,
    max_bytes: MaxBytesOption = None,
    out: OutOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Give every broker about as many bytes and preferred leaders as the others, with few bytes copied."""
    _make(
        servers, profile, options, output_format, out, lambda found: balanced(found, by, within(tolerance, max_bytes))
    )


@app.command("add-broker")
def add_broker(
    brokers: Annotated[list[int], typer.Argument(metavar="ID...", help="Brokers that were added.")],
    by: ByOption = GIVEN,
    tolerance: ToleranceOption = 0.05,
    max_bytes: MaxBytesOption = None,
    out: OutOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Give new brokers their share; nothing moves among the others, apart from preferred leaders."""
    wish = within(tolerance, max_bytes)
    _make(servers, profile, options, output_format, out, lambda found: filled(found, brokers, by, wish))


@app.command()
def drain(
    brokers: Annotated[list[int] | None, typer.Argument(metavar="[ID...]", help="Brokers to empty.")] = None,
    rack: Annotated[str | None, typer.Option("--rack", metavar="NAME", help="Every broker of a rack.")] = None,
    directory: Annotated[
        str | None, typer.Option("--directory", metavar="PATH", help="This log directory of the one broker only.")
    ] = None,
    out: OutOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Leave nothing on brokers, on a rack, or in a log directory of a broker."""
    make = drained(brokers or [], rack, directory)
    _make(servers, profile, options, output_format, out, make)


@app.command()
def move(
    partitions: Annotated[list[str], typer.Argument(metavar="PARTITION...", help="orders-3, or orders for all of it.")],
    to: Annotated[str, typer.Option("--to", metavar="ID,ID,…", help="The brokers that may have them.")],
    out: OutOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Place partitions on given brokers only; replicas that are there already stay."""
    make = moved(partitions, to)
    _make(servers, profile, options, output_format, out, make)


def _make(
    servers: str | None,
    profile: str | None,
    options: list[str] | None,
    output_format: Format,
    out: Path | None,
    make: Callable[[Cluster], Plan],
) -> None:
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        picture = read_picture(cluster.admin)
    plan = planned(lambda: make(picture))
    if out is not None:
        out.write_text(write_plan(plan.assignments()))
    if output.is_json():
        output.show_json(as_document(plan.assignments()))
    show_plan(plan, quiet=output.is_json())
    if out is not None and plan.moves:
        output.say(f"quorumlog partition apply {out} carries it out")
