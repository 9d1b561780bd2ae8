"""`quorumlog tls init`: an authority, and certificates for nodes and clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.tls_files.tls_rows import DaysOption, folder_at, row, show_rows
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.security.tls.issuing.folder import Folder
    from quorumlog.security.tls.issuing.subjects import Subject


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go; it is made if it is not there.")],
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="ID=HOST,…",
            help="A node, and all names and addresses at which anybody reaches it; localhost is added.",
        ),
    ] = None,
    clients: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="A client that shows a certificate; it becomes User:CN=NAME."),
    ] = None,
    cluster_id: Annotated[
        str,
        typer.Option("--cluster-id", metavar="ID", help="Of a cluster that is formatted already; default: a new one."),
    ] = "",
    days: DaysOption = 90,
    force: Annotated[bool, typer.Option("--force", help="Issue anew what is there already, with new keys.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make an authority, and keys and certificates for nodes and clients. Call it again to add some.

    The authority (ca.pem, ca.key) is made once, lasts ten years and is never replaced here. Nodes and clients get keys
    of P-256. A node's certificate names its hosts, its cluster and its id.
    """
    from quorumlog.security.tls.issuing.folder import check_days
    from quorumlog.security.tls.issuing.subjects import parse_client, parse_node

    output.use(output_format)
    check_days(days)
    subjects: list[Subject] = [parse_node(text) for text in nodes or ()]
    subjects += [parse_client(text) for text in clients or ()]
    if twice := [one.file_name for one in subjects if [other.file_name for other in subjects].count(one.file_name) > 1]:
        raise CliError(Exit.USAGE, f"{twice[0]} is named twice; name a node once, with all its hosts behind it")
    place = folder_at(folder)
    is_new = not place.exists
    if is_new:
        _create(place, cluster_id)
    elif cluster_id and cluster_id != _cluster_of(place):
        raise CliError(
            Exit.PRECONDITION, f"{folder} is of cluster {_cluster_of(place)}; another one needs another folder"
        )
    place.issue(subjects, days, replace=force)
    place.write_common_client_files()
    _tell(place, subjects, is_new)


def _create(place: Folder, cluster_id: str) -> None:
    from quorumlog.ids import format_uuid, parse_uuid
    from quorumlog_server.edge.random_uuid import random_uuid

    try:
        identity = format_uuid(parse_uuid(cluster_id)) if cluster_id else format_uuid(random_uuid())
    except ValueError as error:
        raise CliError(
            Exit.USAGE, f"--cluster-id {cluster_id}: {error}", "quorumlog storage info shows a cluster's"
        ) from error
    place.create(identity)


def _cluster_of(place: Folder) -> str:
    from quorumlog.security.tls.issuing.certificates import cluster_of

    return cluster_of(place.authority().certificate)


def _tell(place: Folder, subjects: list[Subject], is_new: bool) -> None:
    from quorumlog.security.tls.issuing.client_files import node_lines
    from quorumlog.security.tls.issuing.subjects import NodeSubject

    made = {subject.file_name for subject in subjects}
    rows = [row("ca.pem", one) for one in place.trusted()] if is_new else []
    rows += [row(f"{one.name}.keystore.pem", one.certificate) for one in place.issued() if one.name in made]
    cluster_id, path = _cluster_of(place), place.path
    show_rows(rows, folder=str(path), cluster_id=cluster_id)
    if is_new:
        output.say(f"\nThe certificates are of cluster {cluster_id}: quorumlog storage format -t {cluster_id} ...")
        output.say(
            f"Keep {path / 'ca.key'} where no node and no client can read it: whoever has it can pass for anybody."
        )
    node = next((one for one in subjects if isinstance(one, NodeSubject)), None)
    if node is not None:
        output.say(
            f"\nBring ca.pem and each node's keystore to its machine. In server.properties of node {node.node_id}:"
        )
        output.say("\n".join(f"  {line}" for line in node_lines(node.file_name, path.resolve())))
    names = [one.file_name for one in subjects if not isinstance(one, NodeSubject)] or ["client"]
    said = ", ".join(
        f"{name}.properties (Java), {name}.librdkafka.properties, {name}.toml (quorumlog)" for name in names
    )
    output.say(f"\nClients: {said}")
