"""The command `quorumlog`: its verbs, each loaded when it is used, and the one place where errors become exit codes.

`--help` must answer in under 0.3 s (DESIGN 12), so this file knows every verb's name and sentence and imports none.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from cli import output
from cli.errors import report
from cli.server.lean_start import leave_out


class Verb(NamedTuple):
    """home: the module whose `app` is the verb. panel: the heading it stands under in the help."""

    name: str
    home: str
    help: str
    panel: str


LOCAL, DATA, CLUSTER, FILES, SETTINGS = "On this machine", "Records", "The cluster", "Nodes and files", "Settings"

VERBS = (
    Verb("up", "cli.commands.up", "Start a cluster of three nodes here, in one command.", LOCAL),
    Verb("status", "cli.commands.status", "Show the local nodes and the health of the cluster.", LOCAL),
    Verb("logs", "cli.commands.logs", "Show what the local nodes say.", LOCAL),
    Verb("kill", "cli.commands.kill", "Kill a local node at once, as kill -9 does.", LOCAL),
    Verb("pause", "cli.commands.pause", "Freeze a local node: silent, but not dead.", LOCAL),
    Verb("resume", "cli.commands.resume", "Let a frozen local node go on.", LOCAL),
    Verb("restart", "cli.commands.restart", "Stop a local node in order, if it runs, and start it.", LOCAL),
    Verb("down", "cli.commands.down", "Stop the local cluster; its data stays.", LOCAL),
    Verb("purge", "cli.commands.purge", "Stop the local cluster and remove its data.", LOCAL),
    Verb("topic", "cli.commands.topic", "Create, list, change and delete topics.", DATA),
    Verb("produce", "cli.commands.produce", "Send lines of standard input as records.", DATA),
    Verb("consume", "cli.commands.consume", "Print the records of a topic.", DATA),
    Verb("quorum", "cli.commands.quorum", "Look at the metadata quorum: leader, epoch, lag.", CLUSTER),
    Verb("config", "cli.commands.config", "See and change the settings of topics and brokers.", CLUSTER),
    Verb("metadata", "cli.commands.metadata", "Read the cluster's metadata log from its files.", CLUSTER),
    Verb("log", "cli.commands.log", "Read segments and indexes from their files.", FILES),
    Verb("storage", "cli.commands.storage", "Format a node's directories, and look at them.", FILES),
    Verb("server", "cli.commands.server", "Run one node in the foreground; check its configuration.", FILES),
    Verb("profile", "cli.commands.profile", "Choose the cluster that commands talk to.", SETTINGS),
    Verb("version", "cli.commands.version", "Show the versions that matter in a report.", SETTINGS),
)
_HOMES = {verb.name: verb.home for verb in VERBS}

EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 bad usage, 3 cannot reach the cluster, 4 data invalid, 5 unhealthy, "
    "6 precondition, 7 not found, 8 not authorised, 9 partial success, 10 timed out, 130 interrupted."
)


class LazyGroup(TyperGroup):
    """Lists every verb by its sentence alone; loads the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name in _HOMES else command, rest


def _load(name: str) -> Any:
    return typer.main.get_command(importlib.import_module(_HOMES[name]).app)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from quorumlog import __version__

        print(f"quorumlog {__version__}")
        raise typer.Exit()


@app.callback()
def quorumlog(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """quorumlog: a replicated commit log. Start with: quorumlog up"""


def _placeholder(verb: Verb) -> None:
    @app.command(verb.name, help=verb.help, rich_help_panel=verb.panel)
    def never_called() -> None:
        raise AssertionError(f"{verb.name} was not loaded")


for _verb in VERBS:
    _placeholder(_verb)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code (CLI.md 2.2). Data goes to stdout, talk and errors to stderr."""
    if arguments is None:  # a process of its own, which kio need not load hypothesis into where that is installed
        leave_out("hypothesis")
    given = sys.argv[1:] if arguments is None else arguments
    output.use_format_of(given)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # a lost connection is ours to tell, not the library's
    try:
        code = app(args=given, prog_name="quorumlog", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _seen_enough()
    except SystemExit as error:  # typer's own way out of a broken pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _seen_enough()
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report(error)


def _seen_enough() -> int:
    """`| head` has closed the pipe: no error. The interpreter's last flush must not complain of it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
