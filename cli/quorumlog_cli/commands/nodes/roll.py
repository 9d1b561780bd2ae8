"""`quorumlog roll`: restart the nodes of a cluster one by one."""

from __future__ import annotations

import getpass
import os
import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.connecting.find import DataOption, find_nodes, target_of
from quorumlog_cli.local.one_roll import one_roll
from quorumlog_cli.local.place import settle
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.first_interrupt import FirstInterrupt
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from pathlib import Path

    from quorumlog.client.blocking_admin import Admin
    from quorumlog.rolling.driving import AskedCluster
    from quorumlog.rolling.obstacles import Limits
    from quorumlog.rolling.picture import Node, Picture
    from quorumlog.rolling.plan import Plan
    from quorumlog.rolling.roll import End, Roll
    from quorumlog.rolling.turn import Turn
    from quorumlog_cli.profiles.profile import Target

app = typer.Typer(add_completion=False)
ASK_TIMEOUT_MS = 5_000  # of one question; a node that has just left is asked in vain
MOST_COSTS = 10  # lines
MOST_OF_A_NAME = 40  # characters of a user or host in a mark
RESTART_S, LIFE_S, WHOLE_S, MAX_LAG = 300.0, 120.0, 900.0, 1_000


RestartCommandOption = Annotated[
    str | None,
    typer.Option(
        "--restart-command",
        metavar="COMMAND",
        help="Of nodes elsewhere; a shell runs it for each node, with {host}, {port} and {id} filled in.",
    ),
]
InsteadOfOption = Annotated[
    str,
    typer.Option(
        "--instead-of",
        metavar="MARK",
        help="Of a roll that has died: take its mark away. It must not run any more.",
    ),
]


class _Restarter(Protocol):
    """A `Restarter` that can be waited for."""

    def begin(self, node: Node) -> None: ...
    def ended(self) -> str | None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    wanted: tuple[int, ...] | None
    limits: Limits
    dry_run: bool
    yes: bool
    may_take: bool
    elects: bool
    instead_of: str
    command: str | None  # None: a local cluster


@app.command()
def roll(
    restart_command: RestartCommandOption = None,
    nodes: Annotated[str | None, typer.Option("--nodes", metavar="ID,ID,…", help="Only these. [default: all]")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the order and what it takes; restart nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    allow_unavailable: Annotated[
        bool,
        typer.Option(
            "--allow-unavailable",
            help="Also where partitions cannot keep min.insync.replicas, or the quorum its majority.",
        ),
    ] = False,
    elect: Annotated[
        bool, typer.Option("--elect/--no-elect", help="Give each node back what it leads, once it is whole.")
    ] = True,
    restart_timeout: Annotated[
        float, typer.Option("--restart-timeout", metavar="S", min=1, help="For one command, which is ended then.")
    ] = RESTART_S,
    life_timeout: Annotated[
        float, typer.Option("--life-timeout", metavar="S", min=1, help="From its end until the node is back.")
    ] = LIFE_S,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=1, help="From then on until every replica is in sync.")
    ] = WHOLE_S,
    max_lag: Annotated[
        int, typer.Option("--max-lag", metavar="N", min=0, help="Records that a controller may be behind.")
    ] = MAX_LAG,
    instead_of: InsteadOfOption = "",
    data: DataOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Restart nodes one by one; the next one only once the last one is back and every replica is in sync.

    The active controller is the last. Partitions that cannot keep min.insync.replicas while a node is away are named
    first, and need --allow-unavailable. What fails stops the roll, and it says at which node; --nodes goes on with the
    rest. Ctrl-C restarts no further node, and waits for the one under way.

    Of several rolls of a cluster one goes; the others end with code 6, and say by whose mark.

    Without --restart-command it acts on the local cluster of this directory, or of --data.

    Exit code 6: something is in the way, and nothing was begun, or not the next node; 1: a command failed; 10: a node
    did not come back, or did not become whole in time; 5: another node was restarted by somebody else.
    """
    output.use(output_format)
    wish = _Wish(
        wanted=None if nodes is None else node_ids(nodes),
        limits=_limits(restart_timeout, life_timeout, timeout, max_lag),
        dry_run=dry_run,
        yes=yes,
        may_take=allow_unavailable,
        elects=elect,
        instead_of=instead_of,
        command=restart_command,
    )
    if restart_command is None:
        _roll_here(wish, data, is_elsewhere=bool(servers or profile))
    else:
        _roll_elsewhere(wish, restart_command, data, find_target(servers, profile, options))


def _limits(command_s: float, life_s: float, whole_s: float, max_lag: int) -> Limits:
    from quorumlog.rolling.obstacles import Limits

    command_ms, life_ms, whole_ms = (round(one * 1000) for one in (command_s, life_s, whole_s))
    return Limits(command_ms=command_ms, life_ms=life_ms, whole_ms=whole_ms, max_lag=max_lag)


def node_ids(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise CliError(Exit.USAGE, f"--nodes takes ids, as in 1,3, and not {text!r}")
    return tuple(dict.fromkeys(map(int, parts)))


def _roll_here(wish: _Wish, data: Path | None, *, is_elsewhere: bool) -> None:
    from quorumlog.testing.rolled import LocalRestarter

    if is_elsewhere:
        raise CliError(
            Exit.USAGE,
            "nodes elsewhere are restarted by a command",
            "--restart-command 'ssh {host} systemctl restart quorumlog'",
        )
    nodes = find_nodes(data, "roll")
    settle(nodes)
    with one_roll(nodes.layout.root):
        _roll(wish, target_of(nodes), LocalRestarter(nodes))


def _roll_elsewhere(wish: _Wish, command: str, data: Path | None, target: Target) -> None:
    from quorumlog.rolling.shell_command import BadCommand, ShellRestarter

    if data is not None:
        raise CliError(Exit.USAGE, "--data is of a local cluster, whose nodes need no --restart-command")
    try:
        restarter = ShellRestarter(command, wish.limits.command_ms / 1000)
    except BadCommand as error:
        raise CliError(Exit.USAGE, str(error)) from None
    _roll(wish, target, restarter)


def _roll(wish: _Wish, target: Target, restarter: _Restarter) -> None:
    from quorumlog.rolling.plan import make_plan
    from quorumlog.rolling.reading import read_picture

    with connected(target, default_api_timeout_ms=ASK_TIMEOUT_MS) as cluster:
        picture = read_picture(cluster.admin)
        unknown = [one for one in wish.wanted or () if one not in picture.nodes]
        if unknown:
            raise CliError(Exit.NOT_FOUND, f"there is no node {unknown[0]}, only {_listed(picture.nodes)}")
        plan = make_plan(picture, picture.nodes if wish.wanted is None else wish.wanted)
        _show_plan(plan, picture)
        _check(plan, picture, wish)
        if wish.dry_run:
            if output.is_json():
                output.show_json({**_plan_document(plan, picture), "dry_run": True})
            return
        if not wish.yes and not confirmed(f"Restart {output.counted(len(plan.nodes), 'node')}, one by one?"):
            raise CliError(Exit.FAILED, "nothing was restarted", "--yes skips the question")
        end = _carry_out(wish, plan, cluster.admin, restarter)
    if output.is_json():
        output.show_json({**_plan_document(plan, picture), **_end_document(end)})
    _conclude(end)


def _carry_out(wish: _Wish, plan: Plan, admin: Admin, restarter: _Restarter) -> End:
    from quorumlog.rolling.driving import AskedCluster, carry_out
    from quorumlog.rolling.roll import Roll
    from quorumlog.rolling.turn import Turn

    turn = Turn(_mark(), wish.instead_of)
    steps = Roll(plan.nodes, wish.limits, may_take=wish.may_take, elects=wish.elects, turn=turn)
    asked = AskedCluster(admin)
    with _left_in_order(steps, turn, restarter, asked), FirstInterrupt(lambda: None) as interrupt:
        return carry_out(
            steps,
            asked,
            restarter,
            now_ms=lambda: round(time.monotonic() * 1000),
            sleep_s=time.sleep,
            tell=lambda text: output.say(f"  {text}"),
            is_interrupted=lambda: interrupt.came,
        )


def _mark() -> str:
    """Who rolls, where, and since when; no other roll has it."""
    parts = (_user(), "@", socket.gethostname(), time.strftime("-%Y%m%dT%H%M%SZ-", time.gmtime()), secrets.token_hex(4))
    return "".join(re.sub(r"[^A-Za-z0-9_.@-]", "_", part)[:MOST_OF_A_NAME] for part in parts)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@contextmanager
def _left_in_order(steps: Roll, turn: Turn, restarter: _Restarter, cluster: AskedCluster) -> Iterator[None]:
    """A restart that runs comes to its end, whatever ends the roll; a second Ctrl-C says where it stands."""
    from quorumlog.rolling.driving import release
    from quorumlog.rolling.roll import Ending
    from quorumlog.rolling.turn import Release

    try:
        yield
    except KeyboardInterrupt:
        _say_interrupted(steps.end(Ending.INTERRUPTED))
        restarter.close()
        if turn.is_claimed:
            release(cluster, Release(mark=turn.mark), output.say)
        raise
    finally:
        restarter.close()


def _check(plan: Plan, picture: Picture, wish: _Wish) -> None:
    """Raises CliError(PRECONDITION)."""
    from quorumlog.rolling.obstacles import obstacles
    from quorumlog.rolling.turn import under_way

    others = [mark for mark in picture.rolls if mark != wish.instead_of]
    if others:
        raise CliError(Exit.PRECONDITION, f"{under_way(others[0])}; nothing was restarted", "wait until it has ended")
    if not plan.is_harmless and not wish.may_take:
        raise CliError(
            Exit.PRECONDITION,
            f"{_taken(plan)}; nothing was restarted",
            "add replicas, or lower min.insync.replicas; --allow-unavailable restarts the nodes all the same",
        )
    found = obstacles(picture, wish.limits)
    if found:
        raise CliError(
            Exit.PRECONDITION,
            f"{'; '.join(found)}; nothing was restarted",
            "quorumlog check says why; a node that is gone for good is forgotten by quorumlog broker unregister",
        )


def _taken(plan: Plan) -> str:
    parts = []
    if count := len({cost.partition.key for cost in plan.costs}):
        parts.append(f"{output.counted(count, 'partition')} cannot keep the minimum of replicas: {plan.costs[0]}")
    if plan.majority_lost:
        parts.append(f"without {_listed(plan.majority_lost)} the quorum has no majority")
    return "; ".join(parts)


def _show_plan(plan: Plan, picture: Picture) -> None:
    if output.is_json():
        return
    rows = [
        (
            number,
            node_id,
            f"{picture.nodes[node_id].host}:{picture.nodes[node_id].port}",
            _role(picture, node_id),
            picture.leaderships(node_id),
            sum(cost.node_id == node_id for cost in plan.costs),
        )
        for number, node_id in enumerate(plan.nodes, 1)
    ]
    output.show_table(("TURN", "NODE", "ADDRESS", "ROLE", "LEADS", "BELOW MINIMUM"), rows)
    for cost in plan.costs[:MOST_COSTS]:
        output.say(f"  {cost}")
    if len(plan.costs) > MOST_COSTS:
        output.say(f"  and {len(plan.costs) - MOST_COSTS} more")


def _role(picture: Picture, node_id: int) -> str:
    node = picture.nodes[node_id]
    roles = (["broker"] if node.is_broker else []) + (["controller"] if node.voter is not None else [])
    return ", ".join(roles) + (" (active)" if node_id == picture.leader else "")


def _plan_document(plan: Plan, picture: Picture) -> dict[str, Any]:
    return {
        "plan": [
            {
                "node": node_id,
                "host": picture.nodes[node_id].host,
                "port": picture.nodes[node_id].port,
                "broker": picture.nodes[node_id].is_broker,
                "controller": picture.nodes[node_id].voter is not None,
                "active_controller": node_id == picture.leader,
                "leads": picture.leaderships(node_id),
            }
            for node_id in plan.nodes
        ],
        "below_minimum": [
            {
                "node": cost.node_id,
                "topic": cost.partition.topic,
                "partition": cost.partition.index,
                "replicas": list(cost.partition.replicas),
                "isr": list(cost.partition.isr),
                "min_isr": cost.partition.min_isr,
                "left": cost.left,
            }
            for cost in plan.costs
        ],
        "majority_lost": list(plan.majority_lost),
    }


def _end_document(end: End) -> dict[str, Any]:
    return {
        "ending": end.ending.value,
        "reason": end.reason,
        "at": end.at,
        "restarted": list(end.done),
        "left": list(end.left),
    }


def _conclude(end: End) -> None:
    """Raises CliError unless all is done."""
    from quorumlog.rolling.roll import Ending

    codes = {
        Ending.REFUSED: Exit.PRECONDITION,
        Ending.COMMAND_FAILED: Exit.FAILED,
        Ending.NOT_RESTARTED: Exit.TIMED_OUT,
        Ending.NOT_WHOLE: Exit.TIMED_OUT,
        Ending.ELSEWHERE: Exit.UNHEALTHY,
        Ending.INTERRUPTED: Exit.INTERRUPTED,
    }
    if end.ending is Ending.DONE:
        output.say(f"done: restarted {_listed(end.done)}")
        return
    if end.ending is Ending.INTERRUPTED:
        _say_interrupted(end)
    raise CliError(codes[end.ending], _story(end), _next_step(end))


def _say_interrupted(end: End) -> None:
    """For itself, because the error of an interrupt has no text."""
    output.say("; ".join(part for part in (_story(end), _next_step(end)) if part))


def _story(end: End) -> str:
    where = (
        f"stopped at node {end.at}" if end.at is not None else "stopped between two nodes" if end.done else "stopped"
    )
    done = f"restarted and whole: {_listed(end.done)}" if end.done else "no node is done"
    left = f"left: {_listed(end.left)}" if end.left else "none is left"
    return f"{where}: {end.reason or 'interrupted'}. {done}; {left}"


def _next_step(end: End) -> str:
    again = f"--nodes {','.join(map(str, end.left))} goes on" if end.left else ""
    if end.at is None:
        return again
    return f"no other node was touched; quorumlog check says how the cluster is, {again} once node {end.at} is back"


def _listed(ids: Iterable[int]) -> str:
    """node 2; nodes 1, 3."""
    found = list(ids)
    return f"{'node' if len(found) == 1 else 'nodes'} {', '.join(map(str, found))}"
