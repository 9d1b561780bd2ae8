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
    """Of one certificate, for programs."""
    from quorumlog.security.tls.issuing.folder import der_of, hosts_of
    from quorumlog.security.tls.peer import fingerprint, node_of, read_subject

    der = der_of(certificate)
    node = node_of(der)
    return {
        "file": file,
        "subject": read_subject(der),
        "hosts": list(hosts_of(certificate)),
        "node_id": node.node_id if node else None,
        "cluster_id": node.cluster_id if node else None,
        "issuer": _issuer(certificate),
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
        "days_left": round((certificate.not_valid_after_utc - now()).total_seconds() / DAY_S),
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


def _issuer(certificate: Certificate) -> str:
    from quorumlog.security.tls.distinguished_name import read_name

    return read_name(certificate.issuer.public_bytes())
