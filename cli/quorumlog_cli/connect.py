"""From the command line to a connected client; reports quickly and clearly if no broker answers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.errors import CliError, Exit
from quorumlog_cli.profile import Asked, Target, resolve
from quorumlog_cli.profile_file import read_project, read_user

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster

CONNECT_TIMEOUT_S = 2.0
API_TIMEOUT_MS = 10_000  # short, for a person who waits; programs set -X default.api.timeout.ms=60000

ServersOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers", "--bootstrap-server", "-b", metavar="HOST:PORT,…", help="Brokers to ask first."
    ),
]
ProfileOption = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Profile of the config file.")]
ConfigOption = Annotated[
    list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="A client option; may be repeated.")
]


def find_target(servers: str | None, profile: str | None, options: list[str] | None) -> Target:
    asked = Asked(bootstrap_servers=servers, profile=profile, options=options or ())
    return resolve(asked, os.environ, read_project(Path.cwd()), read_user())


@contextmanager
def connected(target: Target, **more: object) -> Iterator[Cluster]:
    """Blocking clients of the target's cluster. Raises CliError(UNREACHABLE) at once if no address accepts."""
    from quorumlog.client.blocking import Cluster

    reach(target)
    options = {"default_api_timeout_ms": API_TIMEOUT_MS, "client_id": "quorumlog-cli", **target.options, **more}
    with Cluster(target.bootstrap_servers, **options) as cluster:
        yield cluster


def reach(target: Target) -> None:
    """Checks that one address accepts a connection. The client itself would keep trying; a person wants to know now."""
    from quorumlog.client.options import parse_bootstrap

    failures: list[str] = []
    for address in parse_bootstrap(target.bootstrap_servers):
        try:
            socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S).close()
            return
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
    raise CliError(
        Exit.UNREACHABLE,
        f"cannot reach the cluster ({'; '.join(failures)}); the addresses are from {target.origin}",
    )
