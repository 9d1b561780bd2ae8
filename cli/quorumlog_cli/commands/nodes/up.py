"""`quorumlog up`: starts a healthy cluster of three nodes in seconds, and prints what to try next."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog.ids import NO_NODE, NodeId
from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import MAX_NODES, STOP_TIMEOUT_S, LocalNodes, NodeState
from quorumlog.testing.ports import MAX_PORT, PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.connecting.find import DataOption
from quorumlog_cli.local.access import access_document, access_lines
from quorumlog_cli.local.follow import Stopped, follow, stop_signals
from quorumlog_cli.local.format_all import format_all
from quorumlog_cli.local.here import FOLDER
from quorumlog_cli.local.new_ports import give_ports
from quorumlog_cli.local.place import settle
from quorumlog_cli.local.profile_of import select_local
from quorumlog_cli.local.ready import wait_ready
from quorumlog_cli.profiles.profile import Asked, Target, names_another
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)
DEFAULT_NODES = 3
FAILED_STOP_S = 5.0  # nodes that never served have nothing to hand over
LEADER_TIMEOUT_S = 10.0  # nodes that serve usually know the leader; an election may be running


@app.command()
def up(
    nodes: Annotated[
        int | None, typer.Option("-n", "--nodes", min=1, max=MAX_NODES, help="Number of nodes. [default: 3]")
    ] = None,
    data: DataOption = None,
    background: Annotated[bool, typer.Option("-d", "--detach", help="Run the nodes in the background.")] = False,
    options: Annotated[
        list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="A key for every new node's server.properties.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1024, max=MAX_PORT, help="The first node's port for clients; node 2 has 100 more."),
    ] = None,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="A new cluster with TLS, a user with a password, and access rules."),
    ] = False,
    ui: Annotated[
        bool, typer.Option("--ui", help="Show the cluster in a browser, too, as quorumlog console does, until Ctrl-C.")
    ] = False,
    level: Annotated[
        str, typer.Option("--log-level", help="Lowest level of the nodes' log lines shown in the foreground.")
    ] = "warning",
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Start a cluster here: three nodes, on free ports from 9092 on, with their data in ./.quorumlog.

    An existing cluster is started again with its data, also where its directory was moved. While it is stopped, --port
    gives it other ports. A copy of a directory holds the same cluster: it does not start while the original runs. Only
    directories created by this command are ever formatted. In the foreground, Ctrl-C and a closed terminal stop the
    nodes that it started; nodes that ran before run on, and all data stays.

    With --tls clients log in over TLS, nodes show each other certificates, and access rules are on: there is one user,
    who may do everything. Commands in this directory log in as that user; files for other clients are beside the data.
    """
    output.use(output_format)
    if ui and background:
        raise CliError(
            Exit.USAGE,
            "--ui runs as long as this command, and --detach ends it at once",
            "leave out --detach, or run quorumlog console afterwards",
        )
    picker = PortPicker(port)
    try:
        with stop_signals():
            cluster = _find_or_create((data or Path(FOLDER)).absolute(), nodes, options, picker, tls=tls)
            take_ports(cluster, picker, port)
            run(cluster, background, level, ui=ui)
    except Stopped as error:
        raise KeyboardInterrupt from error
    finally:
        picker.close()


def _find_or_create(
    root: Path, count: int | None, options: list[str] | None, picker: PortPicker, *, tls: bool
) -> LocalNodes:
    if has_cluster(root):
        cluster = LocalNodes.open(root, picker)
        if tls and not cluster.layout.user:
            raise CliError(
                Exit.PRECONDITION,
                f"the cluster in {root} was made without TLS, and stays so: its clients would be locked out",
                "make another one (--tls --data DIR), or turn this one step by step: docs/tls-and-users.md",
            )
        return _existing(cluster, count, options)
    changes = dict(key_and_value(text) for text in options or ())
    cluster = LocalNodes.create(root, count or DEFAULT_NODES, changes, picker, format_all, tls=tls)
    names = " ".join(f"n{node_id}" for node_id in cluster.ids)
    output.say(f"  formatted   {root}  {names}   new cluster {cluster.layout.cluster_id}")
    return cluster


def _existing(cluster: LocalNodes, count: int | None, options: list[str] | None) -> LocalNodes:
    root = cluster.layout.root
    if count is not None and count != len(cluster.ids):
        raise CliError(
            Exit.PRECONDITION,
            f"the cluster in {root} has {len(cluster.ids)} nodes, not {count}",
            "omit -n, choose another folder with --data, or delete the data with quorumlog purge",
        )
    if options:
        raise CliError(Exit.PRECONDITION, f"-X is for new clusters; edit {root}/n*/server.properties instead")
    told = settle(cluster)
    output.say(f"  found       {root}   cluster {cluster.layout.cluster_id}{told and f' ({told})'}")
    return cluster


def take_ports(cluster: LocalNodes, picker: PortPicker, port: int | None) -> None:
    """Give an existing cluster the ports from `port` on, which the picker begins with. Raises CliError, NoFreePorts."""
    has = cluster.layout.nodes[0].ports.client
    if port not in (None, has):
        give_ports(cluster, picker)
        output.say(f"  ports       from {port} on, no longer from {has} on")


def key_and_value(text: str) -> tuple[str, str]:
    """Of -X, for a file of nodes. Raises CliError(USAGE)."""
    key, found, value = text.partition("=")
    if not found:
        raise CliError(Exit.USAGE, f"-X {text}: not KEY=VALUE")
    return key.strip(), value.strip()


def run(cluster: LocalNodes, background: bool, level: str, *, ui: bool = False) -> None:
    """Start the stopped nodes, wait until they serve, and show them unless they are left in the background.

    Whatever ends this before, or in the foreground, stops the nodes that were started here, and no others.
    """
    fresh = [node_id for node_id in cluster.ids if cluster.state(node_id) is NodeState.STOPPED]
    patience_s, is_left = FAILED_STOP_S, False
    try:
        began = time.monotonic()
        cluster.start(fresh)
        wait_ready(cluster)
        took_s, quorum = time.monotonic() - began, _quorum(cluster)
        patience_s, is_left = STOP_TIMEOUT_S, background
        _tell(cluster, fresh, quorum, took_s, select_local(cluster.layout))
        if not background:
            with _console(cluster) if ui else nullcontext():
                output.say(f"  Ctrl-C {_on_interrupt(cluster, fresh)}.\n")
                follow(cluster, level)
    finally:
        if not is_left:
            _stop(cluster, fresh, patience_s)


@contextmanager
def _console(cluster: LocalNodes) -> Iterator[None]:
    from quorumlog.testing.protected import login_options
    from quorumlog_cli.commands.nodes.console import beside

    options = dict(login_options(cluster.layout))
    target = Target(bootstrap_servers=cluster.layout.bootstrap_servers, origin="up", options=options)
    with beside(target) as url:
        output.say(f"  console     {url}\n")
        yield


def _tell(cluster: LocalNodes, started: list[int], quorum: dict[str, Any], took_s: float, profile: str) -> None:
    """profile: what became of it."""
    if output.is_json():
        output.show_json(_document(cluster, quorum))
        return
    for node in cluster.layout.nodes:
        how = "started" if node.node_id in started else "was running"
        output.say(
            f"  node {node.node_id}      controller+broker   {node.client_address} (clients)   "
            f":{node.ports.internal} (nodes)   :{node.ports.admin} (admin)   {how}"
        )
    output.say(f"  quorum      leader {quorum['leader']}, epoch {quorum['epoch']}; healthy after {took_s:.1f} s")
    output.say(f"  profile     {profile}")
    if variable := names_another(Asked(), os.environ):
        output.say(f"  note        {variable} is set: commands use what it names, not this cluster")
    if cluster.layout.user:
        for line in access_lines(cluster.layout):
            output.say(line)
    output.say(_NEXT)


_NEXT = """
  next        quorumlog topic create hello --partitions 3
              echo hi | quorumlog produce hello   ·   quorumlog consume hello -e
              quorumlog quorum status             ·   quorumlog kill 2   (then look again, and: quorumlog restart 2)
              quorumlog top                           watches it here; quorumlog console, in a browser
              quorumlog down                          stops all nodes; the data stays
"""


def _quorum(cluster: LocalNodes) -> dict[str, Any]:
    """The leader, from the first node that knows it, without loading a client. Raises TimedOut."""

    def said() -> dict[str, Any] | None:
        answers = (cluster.readiness(node_id) for node_id in cluster.ids)
        known = next((answer for answer in answers if answer.leader_id != NO_NODE), None)
        return None if known is None else {"leader": known.leader_id, "epoch": known.leader_epoch}

    return wait_until(said, LEADER_TIMEOUT_S, "a leader of the quorum")


def _document(cluster: LocalNodes, quorum: dict[str, Any]) -> dict[str, Any]:
    return {
        **access_document(cluster.layout),
        "cluster_id": cluster.layout.cluster_id,
        "data_dir": str(cluster.layout.root),
        "bootstrap_servers": cluster.layout.bootstrap_servers,
        "quorum": quorum,
        "nodes": [
            {
                "node_id": node.node_id,
                "client": node.client_address,
                "internal_port": node.ports.internal,
                "admin_port": node.ports.admin,
            }
            for node in cluster.layout.nodes
        ],
    }


def _stop(cluster: LocalNodes, fresh: list[NodeId], timeout_s: float) -> None:
    with suppress(OSError):  # where the terminal is gone the nodes must not stay
        output.say("\n  stopping the nodes …" if fresh else "")
    killed = cluster.stop(fresh, timeout_s=timeout_s)
    with suppress(OSError):
        output.say(_afterwards(fresh, killed))


def _on_interrupt(cluster: LocalNodes, fresh: list[NodeId]) -> str:
    if fresh == cluster.ids:
        return "stops the nodes"
    if not fresh:
        return "ends this view; the nodes run on, because they ran before (quorumlog down stops them)"
    return f"stops nodes {', '.join(map(str, fresh))}; the others ran before, and run on"


def _afterwards(fresh: list[NodeId], killed: list[NodeId]) -> str:
    if not fresh:
        return "  the nodes run on"
    return "  stopped" + (f"; killed after waiting: {killed}" if killed else "")
