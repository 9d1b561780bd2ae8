"""The command `quorumlog`: its verbs, each imported when it is used, and the one place that maps errors to exit codes.

`--help` must answer in 150 ms, so this file has every verb's name and help text and imports no verb.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import report
from quorumlog_cli.terminal.root_help import root_help
from quorumlog_server.process.lean_start import leave_out


class Verb(NamedTuple):
    """home: the module whose `app` implements the verb. panel: its heading in the help."""

    name: str
    home: str
    help: str
    panel: str
    hidden: bool = False  # another name of a verb


LOCAL, DATA, CLUSTER, FILES, SETTINGS = "On this machine", "Records", "The cluster", "Nodes and files", "Settings"

VERBS = (
    Verb("up", "quorumlog_cli.commands.nodes.up", "Start a cluster of three nodes here, in one command.", LOCAL),
    Verb("status", "quorumlog_cli.commands.nodes.status", "Show the local nodes and the health of the cluster.", LOCAL),
    Verb("logs", "quorumlog_cli.commands.nodes.logs", "Show the logs of the local nodes.", LOCAL),
    Verb("kill", "quorumlog_cli.commands.nodes.kill", "Kill a local node at once, like kill -9.", LOCAL),
    Verb("pause", "quorumlog_cli.commands.nodes.pause", "Freeze a local node: silent, but not dead.", LOCAL),
    Verb("resume", "quorumlog_cli.commands.nodes.resume", "Continue a frozen local node.", LOCAL),
    Verb(
        "restart",
        "quorumlog_cli.commands.nodes.restart",
        "Shut a local node down cleanly, if it runs, and start it.",
        LOCAL,
    ),
    Verb(
        "roll",
        "quorumlog_cli.commands.nodes.roll",
        "Restart all nodes of a cluster one by one, here or elsewhere.",
        LOCAL,
    ),
    Verb("console", "quorumlog_cli.commands.nodes.console", "Show a cluster in a browser, to look at.", LOCAL),
    Verb("net", "quorumlog_cli.commands.nodes.net", "Cut the links between local nodes, and heal them.", LOCAL),
    Verb("down", "quorumlog_cli.commands.nodes.down", "Stop the local cluster; its data stays.", LOCAL),
    Verb("purge", "quorumlog_cli.commands.nodes.purge", "Stop the local cluster and delete its data.", LOCAL),
    Verb("topic", "quorumlog_cli.commands.topics.topic", "Create, list, change and delete topics.", DATA),
    Verb("produce", "quorumlog_cli.commands.records.produce", "Send lines of standard input as records.", DATA),
    Verb(
        "consume", "quorumlog_cli.commands.records.consume", "Print the records of topics, alone or in a group.", DATA
    ),
    Verb("bench", "quorumlog_cli.commands.bench.bench", "Measure how fast records go in, out and through.", DATA),
    Verb(
        "group", "quorumlog_cli.commands.groups.group", "Show consumer groups and their lag; reset their offsets.", DATA
    ),
    Verb(
        "transaction",
        "quorumlog_cli.commands.transactions.transaction",
        "Show transactions of producers; end those that hang.",
        DATA,
    ),
    Verb("spark", "quorumlog_cli.commands.spark_jobs.spark", "Load topics into Parquet by Spark; show its pins.", DATA),
    Verb("txn", "quorumlog_cli.commands.transactions.transaction", "The same as transaction.", DATA, hidden=True),
    Verb("top", "quorumlog_cli.commands.cluster.top", "Watch the cluster on a screen, renewed each second.", CLUSTER),
    Verb("quorum", "quorumlog_cli.commands.cluster.quorum", "Show the metadata quorum: leader, epoch, lag.", CLUSTER),
    Verb(
        "broker",
        "quorumlog_cli.commands.brokers.broker",
        "Show brokers and what they hold; empty one, forget one that is gone.",
        CLUSTER,
    ),
    Verb(
        "feature",
        "quorumlog_cli.commands.cluster.feature",
        "Show and change the levels of features, after an upgrade.",
        CLUSTER,
    ),
    Verb(
        "partition",
        "quorumlog_cli.commands.partitions.partition",
        "Move, drain and balance partitions; elect leaders.",
        CLUSTER,
    ),
    Verb(
        "log-dirs",
        "quorumlog_cli.commands.brokers.log_dirs",
        "Show log directories; bring a repaired one back online.",
        CLUSTER,
    ),
    Verb("config", "quorumlog_cli.commands.cluster.config", "Show and change settings of topics and brokers.", CLUSTER),
    Verb("acl", "quorumlog_cli.commands.access.acl", "Show, change and test who may do what (access rules).", CLUSTER),
    Verb(
        "user",
        "quorumlog_cli.commands.security.user",
        "Create users who log in with a password; change and delete them.",
        CLUSTER,
    ),
    Verb(
        "quota",
        "quorumlog_cli.commands.security.quota",
        "Show and change quotas of users, client ids and addresses.",
        CLUSTER,
    ),
    Verb(
        "metadata",
        "quorumlog_cli.commands.cluster.metadata",
        "Read the cluster's metadata log from its files.",
        CLUSTER,
    ),
    Verb(
        "explain",
        "quorumlog_cli.commands.explaining.explain",
        "Say why a partition, broker, group, topic, transaction or the quorum is as it is.",
        CLUSTER,
    ),
    Verb(
        "check",
        "quorumlog_cli.commands.explaining.check",
        "Look for what is wrong, for Nagios, Prometheus and people.",
        CLUSTER,
    ),
    Verb(
        "diagnose",
        "quorumlog_cli.commands.explaining.diagnose",
        "Write one file with what helps others to find a fault; no secret is in it.",
        CLUSTER,
    ),
    Verb(
        "generate",
        "quorumlog_cli.commands.monitoring.generate",
        "Make dashboards for Grafana, rules and targets for Prometheus.",
        CLUSTER,
    ),
    Verb(
        "backup",
        "quorumlog_cli.commands.cluster.backup",
        "Copy a running cluster into a folder; show and verify a copy.",
        FILES,
    ),
    Verb("restore", "quorumlog_cli.commands.nodes.restore", "Make a new cluster from a backup.", FILES),
    Verb("log", "quorumlog_cli.commands.log_files.log", "Read segments and indexes from their files.", FILES),
    Verb("storage", "quorumlog_cli.commands.nodes.storage", "Format a node's directories and show their owner.", FILES),
    Verb(
        "server",
        "quorumlog_cli.commands.nodes.server",
        "Run one node in the foreground; check its configuration.",
        FILES,
    ),
    Verb(
        "tls",
        "quorumlog_cli.commands.tls_files.tls",
        "Make certificates for nodes and clients; renew and check them.",
        FILES,
    ),
    Verb("profile", "quorumlog_cli.commands.nodes.profile", "Choose the cluster that commands use.", SETTINGS),
    Verb(
        "completion",
        "quorumlog_cli.commands.nodes.completion",
        "Print a script with which a shell completes commands.",
        SETTINGS,
    ),
    Verb("schema", "quorumlog_cli.commands.nodes.schema", "Show the JSON Schema of what a command prints.", SETTINGS),
    Verb("docs", "quorumlog_cli.commands.nodes.docs", "Show the documentation of this version; search it.", SETTINGS),
    Verb("version", "quorumlog_cli.commands.nodes.version", "Show the versions to name in a bug report.", SETTINGS),
)
_HOMES = {verb.name: verb.home for verb in VERBS}

GARBAGE_OBJECTS = 50_000  # before the collector looks: most of what a command makes in its first second stays

EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 bad usage, 3 cannot reach the cluster, 4 data invalid, 5 unhealthy, "
    "6 precondition, 7 not found, 8 not authorised, 9 partial success, 10 timed out, 130 interrupted."
)


class LazyGroup(TyperGroup):
    """Lists every verb by its help text alone; imports the verb that is called."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """By our own hand: rich takes twice the time of all else (terminal/root_help.py)."""
        del formatter
        shown = (one for one in self.get_params(ctx) if not getattr(one, "hidden", False))
        panels: dict[str, list[tuple[str, str]]] = {
            "Options": [(", ".join(one.opts), getattr(one, "help", None) or "") for one in shown]
        }
        for verb in VERBS:
            if not verb.hidden:
                panels.setdefault(verb.panel, []).append((verb.name, verb.help))
        usage = f"{ctx.command_path} [OPTIONS] COMMAND [ARGS]..."
        columns = shutil.get_terminal_size().columns
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        help_text = self.help or ""
        print(root_help(usage, help_text, panels, EPILOG, columns=columns, coloured=coloured), end="")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name in _HOMES else command, rest


def load(name: str) -> Any:
    """The command of a verb, with its examples."""
    from quorumlog_cli.terminal.examples import show_in_help
    from quorumlog_cli.terminal.help_text import flow

    home = _HOMES[name]
    command = typer.main.get_command(importlib.import_module(home).app)
    flow(command)
    show_in_help(command, (next(verb.name for verb in VERBS if verb.home == home),))
    return command


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
    @app.command(verb.name, help=verb.help, rich_help_panel=verb.panel, hidden=verb.hidden)
    def never_called() -> None:
        raise AssertionError(f"{verb.name} was not loaded")


for _verb in VERBS:
    _placeholder(_verb)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit code. Data goes to stdout, messages and errors to stderr."""
    if arguments is None:  # our own process: keep kio from loading hypothesis where it is installed
        leave_out("hypothesis")
        gc.set_threshold(GARBAGE_OBJECTS)
        output.show_all_signs()
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["_names"]:  # a shell completes a word
        from quorumlog_cli.completing.live_names import answer

        return answer(given[1:])
    output.use_format_of(given)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # we report lost connections ourselves
    try:
        code = app(args=given, prog_name="quorumlog", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _seen_enough()
    except SystemExit as error:  # typer exits so after a broken pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _seen_enough()
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report(error)


def _seen_enough() -> int:
    """A reader such as `| head` closed the pipe: not an error. Keeps the interpreter's last flush from reporting it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
