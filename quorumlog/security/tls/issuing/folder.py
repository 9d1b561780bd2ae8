"""The folder of `quorumlog tls`: an authority, and the keys and certificates that it has issued.

| file | what |
|---|---|
| `ca.pem` | authorities that everybody trusts: one, or two while one takes the place of the other |
| `ca.key` | the private key of the first of them; it stays on one safe machine |
| `ca-next.key` | that of the second, from the first to the second roll |
| `node-1.keystore.pem` | key and certificate of a node, for `ssl.keystore.location` |
| `node-1.key`, `node-1.pem` | the same in two files |
| `client-ada.*` | the same of a client, with what it reads (client_files.py) |
| `revoked.txt` | fingerprints of certificates that are to be refused |

Only the owner reads them, except for `ca.pem`. A file is replaced whole or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog.security.tls.errors import AlreadyThere, BadRequest, BadTls, NotThere
from quorumlog.security.tls.issuing.certificates import LEAF_DAYS, MAX_LEAF_DAYS, Pair, issue, new_authority, pem_of
from quorumlog.security.tls.issuing.client_files import client_files
from quorumlog.security.tls.issuing.subjects import (
    MAX_NAME,
    ClientSubject,
    Subject,
    parse_client,
    parse_node,
)
from quorumlog.security.tls.peer import MAX_NODE_ID, fingerprint, read_hosts
from quorumlog.security.tls.pem import Block, read_blocks

if TYPE_CHECKING:
    from cryptography import x509

TRUST, AUTHORITY_KEY, NEXT_KEY, REVOKED = "ca.pem", "ca.key", "ca-next.key", "revoked.txt"
_LEAF = re.compile(rf"(node-(?:0|[1-9][0-9]{{0,9}})|client-[A-Za-z0-9._@-]{{1,{MAX_NAME}}})\.keystore\.pem")
PRIVATE, PUBLIC = 0o600, 0o644


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate of the folder. name: of its files, as in node-1."""

    name: str
    certificate: x509.Certificate


class Folder:
    """One folder. now: the time at which certificates are made."""

    def __init__(self, path: Path, now: datetime) -> None:
        self.path, self._now = path, now

    @property
    def exists(self) -> bool:
        return (self.path / AUTHORITY_KEY).exists()

    def create(self, cluster_id: str) -> None:
        """Raises AlreadyThere if there is an authority, OSError, and ValueError for an id that no URI may have."""
        if self.exists or (self.path / TRUST).exists():
            raise AlreadyThere(f"{self.path} has an authority already; everybody trusts it, so it is not replaced")
        authority = new_authority(cluster_id, self._now)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.write(AUTHORITY_KEY, authority.key_pem)
        self.write(TRUST, authority.certificate_pem, PUBLIC)
        if not (self.path / REVOKED).exists():
            self.write(REVOKED, b"")  # a node whose file names it starts

    def authority(self, key_file: str = AUTHORITY_KEY) -> Pair:
        """That whose key it is. Raises NotThere, BadTls."""
        key = self._key(key_file)
        for certificate in self.trusted():
            if certificate.public_key() == key.public_key():
                return Pair(key, certificate)
        raise BadTls(f"{self.path / TRUST} has no certificate of {key_file}: one of the two files is of another folder")

    def trusted(self) -> list[x509.Certificate]:
        """The authorities that everybody trusts. Raises NotThere, BadTls."""
        return self._certificates(TRUST)

    def issue(
        self, subjects: Sequence[Subject], days: int = LEAF_DAYS, *, replace: bool, key_file: str = AUTHORITY_KEY
    ) -> None:
        """New keys with certificates. Raises AlreadyThere before it writes anything, BadRequest, NotThere, BadTls."""
        check_days(days)
        there = [subject.file_name for subject in subjects if self._keystore(subject.file_name).exists()]
        if there and not replace:
            raise AlreadyThere(f"{self.path} has {', '.join(there)} already; --force issues anew with new keys")
        authority = self.authority(key_file)
        for subject in subjects:
            self._write_leaf(subject, issue(authority, subject, self._now, days))

    def issued(self) -> list[Issued]:
        """Nodes by their ids, then clients by their names. Raises NotThere, BadTls."""
        if not self.path.is_dir():
            raise NotThere(f"{self.path} is no folder")
        names = sorted((match[1] for path in self.path.iterdir() if (match := _LEAF.fullmatch(path.name))), key=_order)
        return [Issued(name, self._certificates(f"{name}.keystore.pem")[0]) for name in names]

    def subject_of(self, issued: Issued) -> Subject:
        """As it can be issued again. Raises BadRequest."""
        kind, _, rest = issued.name.partition("-")
        if kind == "client":
            return parse_client(rest)
        return parse_node(f"{rest}={','.join(hosts_of(issued.certificate))}")

    def revoke(self, name: str) -> tuple[str, str]:
        """Notes the fingerprint of a certificate; returns the name of its files and the fingerprint. Raises NotThere,
        BadTls."""
        found = next((one for one in self.issued() if one.name in (name, f"client-{name}")), None)
        if found is None:
            raise NotThere(f"{self.path} has no certificate {name}; it has: {', '.join(self._names()) or 'none'}")
        mark = fingerprint(der_of(found.certificate))
        path = self.path / REVOKED
        known = path.read_text() if path.exists() else ""
        if mark not in known:
            self.write(REVOKED, f"{known}{mark} {found.name} {self._now:%Y-%m-%d}\n".encode(), replace=True)
        return found.name, mark

    def write(self, name: str, data: bytes, mode: int = PRIVATE, *, replace: bool = False) -> None:
        """Whole or not at all. Raises AlreadyThere, OSError."""
        path, new = self.path / name, self.path / f".{name}.new"
        if path.exists() and not replace:
            raise AlreadyThere(f"{path} is there already")
        new.unlink(missing_ok=True)
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)
        os.chmod(new, mode)  # whatever the umask
        os.replace(new, path)

    def _names(self) -> list[str]:
        return [one.name for one in self.issued()]

    def _keystore(self, name: str) -> Path:
        return self.path / f"{name}.keystore.pem"

    def _write_leaf(self, subject: Subject, pair: Pair) -> None:
        """The keystore last: what has one is whole."""
        name = subject.file_name
        self.write(f"{name}.key", pair.key_pem, replace=True)
        self.write(f"{name}.pem", pair.certificate_pem, replace=True)
        if isinstance(subject, ClientSubject):
            self._write_client_files(name)
        self.write(f"{name}.keystore.pem", pair.key_pem + pair.certificate_pem, replace=True)

    def write_common_client_files(self) -> None:
        """For clients that log in by a password, or not at all: they only check whom they talk to."""
        self._write_client_files("client")

    def _write_client_files(self, name: str) -> None:
        for file, text in client_files(name, self.path.resolve(), has_key=name != "client").items():
            self.write(file, text.encode(), replace=True)

    def _key(self, name: str) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            return load_pem_private_key(self._bytes(name), None)
        except (ValueError, TypeError) as error:
            raise BadTls(f"{self.path / name} is damaged, or no private key without a password") from error

    def _certificates(self, name: str) -> list[x509.Certificate]:
        from cryptography import x509

        blocks = [block for block in self._blocks(name) if block.is_certificate]
        try:
            found = [x509.load_der_x509_certificate(block.der) for block in blocks]
        except ValueError as error:
            raise BadTls(f"{self.path / name} has a certificate that is damaged: {error}") from error
        if not found:
            raise BadTls(f"{self.path / name} has no certificate")
        return found

    def _blocks(self, name: str) -> list[Block]:
        try:
            return read_blocks(self._bytes(name))
        except BadTls as error:
            raise BadTls(f"{self.path / name}: {error}") from error

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise NotThere(f"there is no {self.path / name}: `quorumlog tls init` makes such a folder") from None


def check_days(days: int) -> None:
    """Raises BadRequest."""
    if not 1 <= days <= MAX_LEAF_DAYS:
        raise BadRequest(f"a certificate lasts 1 to {MAX_LEAF_DAYS} days, not {days}")


def _order(name: str) -> tuple[int, str]:
    kind, _, rest = name.partition("-")
    return (int(rest), "") if kind == "node" else (MAX_NODE_ID + 1, rest)


def hosts_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Names and addresses that it is for."""
    return read_hosts(der_of(certificate))


def der_of(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def bundle(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(map(pem_of, certificates))
