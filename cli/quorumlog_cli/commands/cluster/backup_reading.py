"""A backup's folder for `backup` and `restore`: read, with what is wrong told as a command tells it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.backup.manifest import Manifest
    from quorumlog_server.restoring.backup_folder import Backup


@contextmanager
def reading() -> Iterator[None]:
    """What is damaged, or cannot be read, in the block is CliError(DATA_INVALID)."""
    from quorumlog.backup.manifest import BadBackup
    from quorumlog_storage.files.disk import DiskError

    try:
        yield
    except (BadBackup, DiskError) as error:
        raise CliError(Exit.DATA_INVALID, str(error)) from error


def read(folder: Path) -> Backup:
    """Its manifest and metadata. Raises CliError(DATA_INVALID)."""
    from quorumlog_server.restoring.backup_folder import read_backup
    from quorumlog_storage.edge.disk import RealDisk

    with reading():
        return read_backup(RealDisk(), str(folder.absolute()))


def open_transactions(manifest: Manifest) -> list[dict[str, Any]]:
    """Of the document: those that a restore aborts."""
    return [
        {"transactional_id": name, "producer_id": producer, "partitions": ", ".join(where)}
        for (name, producer), where in sorted(manifest.open_transactions.items())
    ]


def in_words(one: dict[str, Any]) -> str:
    """One of `open_transactions`."""
    named = one["transactional_id"] or "(no transactional id is known)"
    return f"{named} of producer {one['producer_id']} in {one['partitions']}"
