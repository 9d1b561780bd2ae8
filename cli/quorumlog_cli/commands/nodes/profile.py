"""`quorumlog profile`: names clusters and chooses the one that commands use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, common_options, connected, find_target
from quorumlog_cli.local.here import read_here
from quorumlog_cli.profiles.client_security import expanded, flattened, hidden, refuse_secrets, rooted
from quorumlog_cli.profiles.profile import Profiles, Target, parse_options
from quorumlog_cli.profiles.profile_file import (
    is_legal_name,
    read_project,
    read_text,
    read_user,
    user_file,
    with_current,
    with_profile,
    without_profile,
    write_text,
)
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Choose the cluster that commands use.")
NameArgument = Annotated[str, typer.Argument(metavar="NAME")]


@app.command("list")
def list_profiles(output_format: OutputOption = Format.TABLE) -> None:
    """List profiles. A star marks the current one: commands use it where no directory above has a local cluster."""
    output.use(output_format)
    user, project = read_user(), read_project(Path.cwd())
    current = project.current or user.current
    rows = [_row(name, values, current) for name, values in {**user.by_name, **project.by_name}.items()]
    output.show(
        ("NAME", "SERVERS", "CLUSTER", "FOLDER"),
        [[f"{r['name']} *" if r["current"] else r["name"], r["servers"], r["cluster_id"], r["data_dir"]] for r in rows],
        rows,
    )
    _tell_here()


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None, output_format: OutputOption = Format.TABLE
) -> None:
    """Show what commands would use, and where each setting comes from."""
    output.use(output_format)
    target = find_target(None, name, None)
    document = {
        "bootstrap_servers": target.bootstrap_servers,
        "cluster_id": target.cluster_id or None,
        "from": target.origin,
        "options": hidden({**target.options, **target.registry}),
        "data_dir": str(target.data_dir) if target.data_dir else None,
        "file": str(user_file(os.environ)),
    }
    output.show(("FIELD", "VALUE"), [[key, value] for key, value in document.items()], document)


@app.command()
def use(name: NameArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Make a profile the current one."""
    output.use(output_format)
    _must_exist(name, read_user())
    path = user_file(os.environ)
    write_text(path, with_current(read_text(path), name))
    output.tell(f"commands now use profile {name!r}", {"current": name, "file": str(path)})
    _tell_here()


@app.command()
def create(
    name: NameArgument,
    servers: Annotated[str, typer.Option("--bootstrap-servers", "--bootstrap-server", "-b", metavar="HOST:PORT,…")],
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Add or replace a profile, and make it the current one.

    It notes the id of the cluster that answers now (or -X cluster.id=ID): commands refuse another one at its addresses.
    """
    output.use(output_format)
    if not is_legal_name(name):
        raise CliError(Exit.USAGE, f"{name!r} is not a legal profile name: use letters, digits, - and _ only")
    path = user_file(os.environ)
    given = flattened(parse_options(expanded(options or ())))
    refuse_secrets(given)
    given = rooted(given)
    values: dict[str, Any] = {"bootstrap_servers": servers.split(","), **given}
    if "cluster_id" not in values and (cluster_id := _ask_cluster_id(servers, given)):
        values["cluster_id"] = cluster_id
    write_text(path, with_current(with_profile(read_text(path), name, values), name))
    known = f"it means cluster {values['cluster_id']}" if "cluster_id" in values else UNKNOWN_CLUSTER
    output.tell(
        f"profile {name!r} is in {path} and in use; {known}",
        {"current": name, "file": str(path), "cluster_id": values.get("cluster_id")},
    )
    _tell_here()


@app.command()
def delete(name: NameArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Remove a profile."""
    output.use(output_format)
    user = read_user()
    _must_exist(name, user)
    path = user_file(os.environ)
    text = without_profile(read_text(path), name)
    write_text(path, with_current(text, "") if user.current == name else text)
    output.tell(f"profile {name!r} is removed", {"deleted": name, "file": str(path)})


UNKNOWN_CLUSTER = "no broker answered, so that it means any cluster there: create it again once one does"
ASK_TIMEOUT_MS = 3_000


def _ask_cluster_id(servers: str, options: dict[str, Any]) -> str:
    """Empty if no broker answers."""
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    target = Target(bootstrap_servers=servers, origin="--bootstrap-servers", options=common_options(options))
    try:
        with connected(target, default_api_timeout_ms=ASK_TIMEOUT_MS) as cluster:
            return cluster.admin.describe_cluster().cluster_id
    except (CliError, QuorumlogError, RpcError, TimeoutError):
        return ""


def _tell_here() -> None:
    """What wins over the current profile in this directory."""
    here = read_here(Path.cwd())
    if here is not None:
        output.say(
            f"in this directory commands use cluster {here.cluster_id} in {here.root}, unless --profile is given"
        )


def _must_exist(name: str, user: Profiles) -> None:
    if name not in user.by_name:
        known = ", ".join(user.by_name) or "none"
        raise CliError(Exit.NOT_FOUND, f"{user_file(os.environ)} has no profile {name!r}; it has: {known}")


def _row(name: str, values: Any, current: str) -> dict[str, Any]:
    servers = values.get("bootstrap_servers", "")
    text = servers if isinstance(servers, str) else ",".join(servers)
    return {
        "name": name,
        "servers": text,
        "current": name == current,
        "cluster_id": values.get("cluster_id"),
        "data_dir": values.get("data_dir"),
    }
