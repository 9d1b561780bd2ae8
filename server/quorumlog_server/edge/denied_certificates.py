"""A file of certificates that count no more, read again when it has changed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    from quorumlog.security.tls.files import Files, FileState

MAX_BYTES = 1 << 20
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def parse_denied(text: str) -> frozenset[str]:
    """One fingerprint at the beginning of each line, in either case and with or without colons. What is behind it is
    passed over, and so are empty lines and those that begin with #. Raises ValueError, which names the line."""
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        mark = words[0].replace(":", "").lower()
        if not _FINGERPRINT.fullmatch(mark):
            raise ValueError(f"line {number} does not begin with a SHA-256 fingerprint of 64 hexadecimal figures")
        found.add(mark)
    return frozenset(found)


@dataclass
class DeniedCertificates:
    """key: that names it. A file that cannot be read, or is damaged, changes nothing: what was denied stays denied."""

    key: str
    path: str
    files: Files
    _marks: frozenset[str] = frozenset()
    _seen: FileState | None = None
    trouble: str | None = field(default=None)

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        self.look()
        if self.trouble is not None:
            raise ConfigError(f"{self.key}: {self.trouble}")

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._marks

    def look(self) -> bool:
        """True if other certificates are denied now. `trouble` says why not."""
        try:
            seen = self.files.state(self.path)
            if seen == self._seen and self.trouble is None:
                return False
            data = self.files.read(self.path, MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES} bytes")
            marks = parse_denied(data.decode("utf-8"))
        except FileNotFoundError:
            self.trouble = f"{self.path} cannot be read: there is no such file; an empty one denies nobody"
            return False
        except OSError as error:
            self.trouble = f"{self.path} cannot be read: {error.strerror or error}"
            return False
        except ValueError as error:
            self.trouble = f"{self.path}: {error}"
            return False
        changed, self._marks, self._seen, self.trouble = marks != self._marks, marks, seen, None
        return changed
