"""What `quorumlog tls` tells of certificates."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.terminal import output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.x509 import Certificate

    from quorumlog.security.tls.issuing.folder import Folder

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder that `tls init` made, with ca.key and ca.pem.")
]
DaysOption = Annotated[int, typer.Option("--days", help="How long the certificates last, 1 to 825.")]
DAY_S = 86_400
COLUMNS = ("FILE", "FOR", "UNTIL", "DAYS")


def now() -> datetime:
    return datetime.now(UTC)


def folder_at(path: Path) -> Folder:
    from quorumlog.security.tls.issuing.folder import Folder

    return Folder(path, now())


def row(file: str, certificate: Certificate) -> dict[str, Any]:
    from quorumlog.security.tls.issuing.folder import der_of

    return row_of(file, der_of(certificate))


def row_of(file: str, der: bytes) -> dict[str, Any]:
    """Of one certificate, for programs. Raises BadDer."""
    from quorumlog.security.tls.peer import (
        fingerprint,
        node_of,
        read_hosts,
        read_issuer,
        read_subject,
        read_validity_ms,
    )

    node = node_of(der)
    begins, ends = (datetime.fromtimestamp(ms / 1000, UTC) for ms in read_validity_ms(der))
    return {
        "file": file,
        "subject": read_subject(der),
        "hosts": list(read_hosts(der)),
        "node_id": node.node_id if node else None,
        "cluster_id": node.cluster_id if node else None,
        "issuer": read_issuer(der),
        "not_before": begins.isoformat(),
        "not_after": ends.isoformat(),
        "days_left": round((ends - now()).total_seconds() / DAY_S),
        "sha256": fingerprint(der),
    }


def show_rows(rows: Iterable[dict[str, Any]], **more: Any) -> None:
    """more: beside the certificates, for programs."""
    found = list(rows)
    cells = [[one["file"], whom(one), one["not_after"][:10], one["days_left"]] for one in found]
    output.show(COLUMNS, cells, {"certificates": found, **more})


def whom(one: dict[str, Any]) -> str:
    """Whom a certificate is for, for people."""
    if one["node_id"] is not None:
        return f"node {one['node_id']}: {', '.join(one['hosts'])}"
    if one["subject"] == one["issuer"]:
        return f"authority {one['subject']}"
    return str(one["subject"]) + "".join(f" {host}" for host in one["hosts"])
