"""The cluster's secret, which nodes prove to each other that they know, so that no other program can pass for a node.

One line of text in the metadata directory, readable by its owner only, the same on all nodes of a cluster. It is never
logged and never sent (`quorumlog.proof`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from quorumlog_storage.files.atomic import TEMPORARY_SUFFIX, write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing

SECRET_NAME = "cluster.secret"
SECRET_BYTES = 32
MIN_SECRET_CHARACTERS = 16


class NoSecret(Exception):
    """The metadata directory has no usable secret."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}; copy {SECRET_NAME} from another node of this cluster, or format again")
        self.path = path


def new_secret(random_bytes: bytes) -> str:
    """The text form of SECRET_BYTES random bytes."""
    assert len(random_bytes) == SECRET_BYTES
    return base64.urlsafe_b64encode(random_bytes).decode("ascii").rstrip("=")


def write_secret(disk: Disk, directory: str, secret: str, protect: Callable[[str], None]) -> None:
    """Durable on return. protect: makes the file readable by its owner only, before the secret is written."""
    path = f"{directory}/{SECRET_NAME}"
    disk.open(path + TEMPORARY_SUFFIX, create=True).close()
    protect(path + TEMPORARY_SUFFIX)
    write_atomically(disk, path, f"{secret}\n".encode())


def read_secret(disk: Disk, directory: str) -> bytes:
    """Raises NoSecret, DiskError."""
    path = f"{directory}/{SECRET_NAME}"
    try:
        secret = disk.read_bytes(path).strip()
    except FileMissing as error:
        raise NoSecret(path, "is missing") from error
    if len(secret) < MIN_SECRET_CHARACTERS:
        raise NoSecret(path, f"holds {len(secret)} characters, fewer than {MIN_SECRET_CHARACTERS}")
    return secret
