"""From the command line to a connected client; reports quickly and clearly if no broker answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.lost_quorum import is_silence
from quorumlog_cli.local.here import read_here
from quorumlog_cli.profiles.client_security import expanded, flattened, with_secrets
from quorumlog_cli.profiles.profile import Asked, Profiles, Target, names_another, resolve
from quorumlog_cli.profiles.profile_file import read_project, read_user
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit

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
    list[str] | None,
    typer.Option(
        "-X",
        "--command-config",
        metavar="KEY=VALUE|FILE",
        help="A client option, or a file of them, as Kafka's tools take it; may be repeated.",
    ),
]


def find_target(servers: str | None, profile: str | None, options: list[str] | None) -> Target:
    """Options under the clients' own names; a secret is still its source. Raises CliError, LayoutError."""
    target = _find_target(Asked(bootstrap_servers=servers, profile=profile, options=expanded(options or ())))
    from quorumlog.client.security.registry_names import is_registry_option

    flat = flattened(target.options)
    registry = {name: value for name, value in flat.items() if is_registry_option(name)}
    return replace(target, options={n: v for n, v in flat.items() if n not in registry}, registry=registry)


def _find_target(asked: Asked) -> Target:
    cwd = Path.cwd()
    here = None if names_another(asked, os.environ) else read_here(cwd)
    if here is not None:  # which needs no profile, and so no file that might not be readable
        return _of_nodes(resolve(asked, os.environ, Profiles(), Profiles(), here))
    return _of_nodes(resolve(asked, os.environ, read_project(cwd), read_user()))


def _of_nodes(target: Target) -> Target:
    """A local cluster as its files and processes are now: only nodes that run are asked, so that no other program or
    cluster that took a port answers. Raises CliError(PRECONDITION) if another cluster is in its folder now.
    """
    from quorumlog.testing.layout import has_cluster

    if target.data_dir is None or not has_cluster(target.data_dir):
        return target
    from quorumlog.testing.nodes import LocalNodes

    nodes = LocalNodes.open(target.data_dir)
    found = nodes.layout.cluster_id
    if target.cluster_id and target.cluster_id != found:
        raise CliError(
            Exit.PRECONDITION,
            f"{target.origin} means cluster {target.cluster_id}, but {target.data_dir} holds cluster {found} now",
            "quorumlog up there makes its profile anew; quorumlog profile delete removes the old one",
        )
    serving = nodes.serving()
    addresses = [nodes.layout.node(node_id).client_address for node_id in serving or nodes.ids]
    return replace(
        target,
        bootstrap_servers=",".join(addresses),
        options={**target.options, "cluster_id": found},
        is_stopped=not serving,
    )


@contextmanager
def connected(target: Target, **more: object) -> Iterator[Cluster]:
    """Blocking clients of the target's cluster.

    Raises CliError(UNREACHABLE) within some seconds if no broker answers, and at once if another cluster answers than
    the one that is meant. Where a local cluster's quorum is lost, a call that got no answer ends in
    CliError(UNHEALTHY), which says so; a command that did get one is told that it may be old.
    """
    from quorumlog.client.blocking import Cluster

    _reach_or_say_why(target)
    options = {"default_api_timeout_ms": API_TIMEOUT_MS, "client_id": "quorumlog-cli", **target.options, **more}
    options = with_secrets(options)
    try:
        with Cluster(target.bootstrap_servers, **options) as cluster:
            if target.cluster_id:
                _prove(cluster, target, options)
            yield cluster
    except Exception as error:
        if is_silence(error) and (lost := _lost(target)):
            raise CliError(Exit.UNHEALTHY, f"{lost[0]} ({error})", lost[1]) from error
        raise
    if not output.is_json() and (lost := _lost(target)):
        output.say(f"hint   {lost[0]}. What was shown may be old; {lost[1]}")


def _reach_or_say_why(target: Target) -> None:
    """`reach`; nodes that hang may be why a local cluster's quorum is lost. Raises CliError(UNREACHABLE, UNHEALTHY)."""
    try:
        reach(target)
    except CliError as error:
        if not target.is_stopped and (lost := _lost(target)):
            raise CliError(Exit.UNHEALTHY, f"{lost[0]} ({error})", lost[1]) from error
        raise


def _lost(target: Target) -> tuple[str, str] | None:
    """What a lost quorum of this local cluster means, and what to do. None: it is not lost, or not known here."""
    from quorumlog.testing.layout import has_cluster

    if target.data_dir is None or not has_cluster(target.data_dir):
        return None
    from quorumlog.testing.nodes import LocalNodes
    from quorumlog_cli.local.ready import hint_to_start, missing_quorum

    nodes = LocalNodes.open(target.data_dir)
    lost = missing_quorum(nodes)
    return (lost, hint_to_start(nodes)) if lost else None


def _prove(cluster: Cluster, target: Target, options: Mapping[str, Any]) -> None:
    """The clients prove each node on their own; a command hears of it here, before it has done anything."""
    from quorumlog.client.blocking import Cluster
    from quorumlog.client.errors import WrongCluster

    common = common_options(options)
    try:
        if len(common) == len(options):
            cluster.admin.prove_cluster()
        else:  # options of a producer or a consumer, which an admin client refuses
            with Cluster(target.bootstrap_servers, **common) as prover:
                prover.admin.prove_cluster()
    except WrongCluster as error:
        raise CliError(
            Exit.UNREACHABLE,
            f"{error}; the addresses are from {target.origin}. Nothing was asked of it",
            "start the cluster that is meant, or name the other one with --profile or -b",
        ) from error


def common_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `options` that every kind of client takes."""
    from quorumlog.client.options import CommonOptions

    return {name: value for name, value in options.items() if name in CommonOptions.__dataclass_fields__}


def reach(target: Target) -> None:
    """Checks that a broker seems to answer at one address. The client itself would keep trying; a person wants to know
    now. Raises CliError(UNREACHABLE)."""
    from quorumlog.client.options import parse_bootstrap
    from quorumlog_cli.connecting.who_answers import why_none_answers

    if target.is_stopped:
        raise CliError(
            Exit.UNREACHABLE,
            f"no node runs of {target.name}, which {target.origin} names",
            f"quorumlog up --data {target.data_dir} starts it; --profile or -b names another cluster",
        )
    if str(target.options.get("security_protocol", "PLAINTEXT")).upper() != "PLAINTEXT":
        return  # who does not log in hears little; a client that does tells a refusal within seconds
    failures = why_none_answers(parse_bootstrap(target.bootstrap_servers), CONNECT_TIMEOUT_S)
    if failures:
        raise CliError(
            Exit.UNREACHABLE,
            f"cannot reach the cluster ({'; '.join(failures)}); the addresses are from {target.origin}",
        )
