"""`quorumlog top`: the cluster at a glance, renewed each second; or one frame of it as text or JSON."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, find_target, reach
from quorumlog_cli.profiles.client_security import with_secrets
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_cli.profiles.profile import Target
    from quorumlog_cli.top.views import Watched

app = typer.Typer(add_completion=False)
LEAST_EVERY_S, MOST_EVERY_S = 0.2, 3_600.0
PIPE_WIDTH = 120
EXPLAIN_OVER_S = 3.0


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Print one frame as text, or a document with -o json.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="Between two looks; rates of --once are over one.")
    ] = 1.0,
    needle: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="Only topics, groups and events with it in their names.")
    ] = "",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Watch the cluster: quorum, elections, brokers, topics by rate, groups by lag with trend, events.

    Keys: tab, arrows, enter opens a row, e explains it, s sorts, / filters, space pauses, ? helps, q quits. It works
    with an Apache Kafka as far as its protocol tells. A cluster that does not answer is asked again until it does.
    """
    output.use(output_format)
    if not LEAST_EVERY_S <= every <= MOST_EVERY_S:
        raise CliError(Exit.USAGE, f"--every {every}: it is {LEAST_EVERY_S} to {MOST_EVERY_S:.0f} seconds")
    if output.is_json() and not once:
        raise CliError(Exit.USAGE, "a screen is no document", "quorumlog top --once -o json prints one")
    if not once:
        _check_screen()
    target = find_target(servers, profile, options)
    if once:
        reach(target)
        asyncio.run(_one_frame(target, needle, every))
        return
    from quorumlog_cli.top.screen.app import TopApp
    from quorumlog_cli.top.views import Watched

    watched = Watched()
    watched.every_ms = round(every * 1_000)

    async def explained(subject: str) -> list[str]:
        return await _beside(lambda: _lines_of(subject, servers, profile, options))

    screen = TopApp(watched, lambda told: _look(target, watched, told), target.name, explained)
    screen.run()
    if isinstance(screen.return_value, Exception):
        raise screen.return_value


def _lines_of(subject: str, servers: str | None, profile: str | None, options: list[str] | None) -> list[str]:
    """As `quorumlog explain` prints them. It looks twice, EXPLAIN_OVER_S apart, at a group that is behind."""
    from quorumlog.explaining.judging import explain, judge, subject_of
    from quorumlog.explaining.thresholds import Thresholds
    from quorumlog_cli.commands.explaining.explain import facts_of, lines_of, unknown_of

    facts = facts_of(subject, servers, profile, options, EXPLAIN_OVER_S)
    about = "cluster" if facts.unreachable else subject_of(subject, facts)
    return [*lines_of(explain(about, facts, judge(facts, Thresholds()))), *unknown_of(facts)]


async def _beside(call: Callable[[], list[str]]) -> list[str]:
    """On a thread that a screen which is left does not wait for. Raises what the call raises."""
    from quorumlog_cli.commands.explaining.reading import side_by_side

    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def called() -> list[str]:
        try:
            return call()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

    result = side_by_side(called)
    await done.wait()
    lines: list[str] = result()
    return lines


def _check_screen() -> None:
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise CliError(Exit.PRECONDITION, "top needs a terminal", "quorumlog top --once prints one frame")
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise CliError(
            Exit.PRECONDITION,
            f"top needs the extra ui ({error.name} is missing): pip install 'quorumlog[ui]'",
            "quorumlog top --once needs none",
        ) from None


async def _look(target: Target, watched: Watched, told: Callable[[], None]) -> None:
    from quorumlog.client.asynchronous import AsyncAdmin
    from quorumlog.client.real_edges import SystemClock
    from quorumlog_cli.top.watching import Watching, client_options

    admin = AsyncAdmin(bootstrap_servers=target.bootstrap_servers, **client_options(with_secrets(target.options)))
    try:
        await Watching(admin, SystemClock(), watched, told).run(watched.every_ms)
    finally:
        await admin.close()


async def _one_frame(target: Target, needle: str, every_s: float) -> None:
    """After two looks, which have rates. Raises CliError(UNREACHABLE) if none brings anything."""
    from quorumlog.client.asynchronous import AsyncAdmin
    from quorumlog.client.real_edges import SystemClock
    from quorumlog_cli.top.frame import document, text_frame
    from quorumlog_cli.top.views import Choice, Watched
    from quorumlog_cli.top.watching import Watching, client_options

    watched, clock, choice = Watched(), SystemClock(), Choice(needle=needle)
    admin = AsyncAdmin(bootstrap_servers=target.bootstrap_servers, **client_options(with_secrets(target.options)))
    try:
        watching = Watching(admin, clock, watched)
        await watching.look()
        await asyncio.sleep(every_s)
        await watching.look()
    finally:
        await admin.close()
    if watched.newest is None:
        raise CliError(Exit.UNREACHABLE, watched.trouble)
    if output.is_json():
        output.show_json(document(watched, choice))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    sys.stdout.write(text_frame(watched, choice, width, clock.wall_ms(), target.name))
