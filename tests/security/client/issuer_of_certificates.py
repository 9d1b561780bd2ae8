"""Files of certificates for tests: an authority of one's own, and what it issues."""

from __future__ import annotations

from pathlib import Path

from tests.security.tls.certificates import DAY, NOW, authority, leaf


class Authority:
    """folder: of its files. name: of the authority and of its file. strict: certificates pass X509_STRICT."""

    def __init__(self, folder: Path, name: str, *, strict: bool = True) -> None:
        self._folder, self._own, self._strict = folder, authority(name), strict
        self.path = folder / f"{name}.pem"
        self.path.write_text(self._own.pem)

    def issue(
        self, name: str, *, hosts: tuple[str, ...] = (), addresses: tuple[str, ...] = (), expired: bool = False
    ) -> Path:
        """A PEM file with the key and the certificate. hosts: names, which may look like numbers."""
        ends = NOW - DAY if expired else NOW + DAY
        names = {"dns": hosts, "ip": addresses}
        pair = leaf(self._own, name, **names, identifier=self._strict, not_before=NOW - 2 * DAY, not_after=ends)
        path = self._folder / f"{name}.keystore.pem"
        path.write_text(pair.key_pem() + pair.pem)
        path.chmod(0o600)
        return path
