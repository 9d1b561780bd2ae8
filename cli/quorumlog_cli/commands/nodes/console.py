"""`quorumlog console`: a cluster in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.protected import Access
from quorumlog_cli.connecting import connect
from quorumlog_cli.connecting.connect import (
    API_TIMEOUT_MS,
    ConfigOption,
    ProfileOption,
    ServersOption,
    common_options,
    find_target,
)
from quorumlog_cli.profiles.client_security import of_registry, with_secrets
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_console.starting import LISTEN, host_and_port, missing_package

if TYPE_CHECKING:
    from quorumlog_console.options import ConsoleOptions

app = typer.Typer(add_completion=False)


@app.command("console")
def console(
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where the console is; port 0 takes a free one.")
    ] = LISTEN,
    host_names: Annotated[
        list[str] | None,
        typer.Option("--host-name", metavar="NAME", help="A name under which browsers may ask for it, too."),
    ] = None,
    certificate: Annotated[
        str, typer.Option("--tls-certificate", metavar="FILE", help="Its certificate (PEM): it speaks HTTPS then.")
    ] = "",
    key: Annotated[str, typer.Option("--tls-key", metavar="FILE", help="The key to --tls-certificate (PEM).")] = "",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show a cluster in a browser: what is wrong, who leads what, lag, settings, events. It only reads.

    Where a listener of the cluster asks its clients who they are, the console does, too: it takes the users and
    passwords of the cluster, and shows each what that user may see. A user of the profile is not used.
    It works with Apache Kafka as well.
    """
    output.use(output_format)
    run(find_target(servers, profile, options), listen, host_names or [], certificate, key)


def run(target: Target, listen: str, host_names: list[str], certificate: str = "", key: str = "") -> None:
    """In the foreground, until a signal ends it. Raises CliError."""
    if bool(certificate) is not bool(key):
        raise CliError(Exit.USAGE, "--tls-certificate and --tls-key go together: give both")
    connect.reach(target)
    given = console_options(target, host_names, certificate, key)
    from quorumlog_console.serving import address_of, server, url_of

    try:
        made = bound(*host_and_port(listen))
    except ValueError as error:
        raise CliError(Exit.USAGE, f"--listen {error}") from None
    try:
        program = server(given)
    except OSError as error:  # ssl.SSLError is one
        made.close()
        raise CliError(Exit.PRECONDITION, f"--tls-certificate {certificate}: {error}") from error
    url = url_of(address_of(made), given)
    if output.is_json():
        output.show_json({"url": url})
    else:
        output.say(f"  console     {url}   Ctrl-C ends it")
        if login := login_line(target):
            output.say(login)
    program.run(sockets=[made])


def login_line(target: Target) -> str:
    """Where `up --tls` made the cluster: whom its maker may log in as. Empty elsewhere."""
    if target.data_dir is None or not has_cluster(target.data_dir):
        return ""
    layout = LocalNodes.open(target.data_dir).layout
    return f"  log in as   {layout.user}; its password is in {Access(layout).password_file}" if layout.user else ""


@contextmanager
def beside(target: Target) -> Iterator[str]:
    """A console on a thread of this process, for the block; its address. Where the port is taken, it has a free one.

    Raises CliError.
    """
    given = console_options(target, [])
    from quorumlog_console.serving import ConsoleThread, address_of, url_of

    host, port = host_and_port(LISTEN)
    try:
        made = bound(host, port)
    except CliError:
        made = bound(host, 0)
    thread = ConsoleThread(given)
    thread.start(made)
    try:
        yield url_of(address_of(made), given)
    finally:
        thread.stop()


def console_options(target: Target, host_names: list[str], certificate: str = "", key: str = "") -> ConsoleOptions:
    """Nobody is logged in by what a profile says: who opens the console says who it is. Raises CliError."""
    missing = missing_package()
    if missing:
        text = f"the console needs the extra ui ({missing} is missing): pip install 'quorumlog[ui]'"
        raise CliError(Exit.PRECONDITION, text)
    from quorumlog_console.door import OF_A_PERSON
    from quorumlog_console.options import ConsoleOptions

    options: dict[str, Any] = {"default_api_timeout_ms": API_TIMEOUT_MS, "client_id": "quorumlog-console"}
    options |= {name: value for name, value in target.options.items() if name not in OF_A_PERSON}
    options = common_options(with_secrets(options))
    options["bootstrap_servers"] = target.bootstrap_servers
    registry = of_registry(target.registry) if "schema_registry_url" in target.registry else {}
    return ConsoleOptions(
        client=options, host_names=tuple(host_names), certificate=certificate, key=key, registry=registry
    )


def bound(host: str, port: int) -> Any:
    """A socket that listens. Raises CliError(PRECONDITION)."""
    from quorumlog_console.serving import listen

    try:
        return listen(host, port)
    except OSError as error:
        raise CliError(
            Exit.PRECONDITION, f"--listen {host}:{port}: {error.strerror}", "stop its user, or give another port"
        ) from error
