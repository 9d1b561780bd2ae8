"""`quorumlog net`: cut the links between local nodes, as a broken network would, and heal them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer

from quorumlog.testing.cuts import Link, cut_links, described
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog_cli.connecting.find import DataOption, find_nodes, name_of, where_of
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Cut the links between local nodes, and heal them.")


@app.command()
def cut(
    groups: Annotated[
        list[str], typer.Argument(metavar="GROUP...", help="Nodes: 1 2,3 or '1|2,3'; 1 alone: from all.")
    ],
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Cut every link between nodes of different groups, both ways: nothing passes, and no connection ends.

    A node in no group keeps its links. Clients still reach every node. Cuts add up and outlast restart, kill and pause;
    they end with `net heal`, and when all nodes are stopped. Acts on the cluster of this directory; --data names
    another one.
    """
    output.use(output_format)
    nodes = find_nodes(data, f"net cut {' '.join(groups)}")
    if not nodes.in_state(NodeState.RUNNING):
        raise CliError(Exit.PRECONDITION, f"no node of {name_of(nodes)} runs", "quorumlog up starts it")
    try:
        links = nodes.cut(*parse_groups(groups))
    except ValueError as error:
        raise CliError(Exit.USAGE, str(error), "e.g. quorumlog net cut 1 2,3") from None
    _show(nodes, links, "cut")


@app.command()
def heal(
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", help="As of net cut; none: every link.")
    ] = None,
    data: DataOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Heal the links that are cut. What waited at them goes on."""
    output.use(output_format)
    nodes = find_nodes(data)
    before = cut_links(nodes.layout)
    try:
        links = nodes.heal(*parse_groups(groups or ()))
    except ValueError as error:
        raise CliError(Exit.USAGE, str(error), "quorumlog net status shows what is cut") from None
    _show(nodes, links, "healed", before - links)


@app.command()
def status(data: DataOption = None, output_format: OutputOption = Format.TABLE) -> None:
    """Show which nodes cannot reach each other because of net cut."""
    output.use(output_format)
    nodes = find_nodes(data)
    _show(nodes, cut_links(nodes.layout), "")


def parse_groups(words: Sequence[str]) -> list[list[int]]:
    """1 2,3 and '1|2,3' are the same two groups. Raises ValueError."""
    groups = []
    for text in (part for word in words for part in word.split("|")):
        numbers = [number.strip() for number in text.split(",")]
        if not all(number.isascii() and number.isdigit() for number in numbers):
            raise ValueError(f"{text!r} is no group of nodes")
        groups.append([int(number) for number in numbers])
    return groups


def _show(nodes: LocalNodes, links: Collection[Link], done: str, healed: Collection[Link] = ()) -> None:
    document: dict[str, Any] = {"cut": sorted(map(list, links)), **where_of(nodes)}
    if done == "healed":
        document["healed"] = sorted(map(list, healed))
    if output.is_json():
        output.show_json(document)
        return
    if done == "healed":
        output.say(f"  healed      {', '.join(described(healed)) or 'nothing was cut'}")
    output.say(f"  cut         {', '.join(described(links)) or 'nothing'}   {name_of(nodes)}")
    paused = nodes.in_state(NodeState.PAUSED) if done else []
    if paused:
        output.say(f"hint  nodes {', '.join(map(str, paused))} are paused; each takes it when it goes on")
    if links and done == "cut":
        output.say("  heal        quorumlog net heal   ·   clients still reach every node")
