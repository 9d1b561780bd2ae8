"""One file that only its owner can read: a tar in zstd, with a manifest of what is in it and of what is not.

A part that could not be made is named in the manifest with its reason: half a bundle is worth more than none.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from quorumlog_cli.diagnosing.redact import redacted

ROOT = "quorumlog-diagnose"
MANIFEST = "manifest.json"
MAX_PART_BYTES = 64 << 20  # the end of a longer part is kept


class Bundle:
    """Use as a context manager: the file is whole after the block. Raises FileExistsError, OSError."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        """about: stands in the manifest."""
        import zstandard

        self._about = about
        self._parts: list[dict[str, Any]] = []
        self._missing: dict[str, str] = {}
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._stream: Any = zstandard.ZstdCompressor(level=6).stream_writer(self._file)
        self._tar = tarfile.open(  # noqa: SIM115 - it is closed by `__exit__`
            fileobj=self._stream, mode="w|", format=tarfile.PAX_FORMAT
        )

    def add_json(self, name: str, make: Callable[[], Any]) -> None:
        """A part that is made now, or is missing."""
        self._add(name, lambda: json.dumps(_redacted(make()), indent=1, ensure_ascii=False, default=str) + "\n")

    def add_text(self, name: str, make: Callable[[], str]) -> None:
        self._add(name, lambda: redacted(make()))

    def _add(self, name: str, make: Callable[[], str]) -> None:
        try:
            text = make()
        except Exception as error:  # whatever it is: a part that fails must not cost the others
            self.missing(name, f"{type(error).__name__}: {error}")
            return
        data = text.encode("utf-8", "replace")
        whole = len(data)
        data = data[-MAX_PART_BYTES:]
        self._put(name, data)
        cut = {"cut_bytes": whole - len(data)} if whole > len(data) else {}
        self._parts.append({"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **cut})

    def missing(self, name: str, why: str) -> None:
        self._missing[name] = redacted(why)

    def _put(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(f"{ROOT}/{name}")
        info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
        self._tar.addfile(info, io.BytesIO(data))

    def __enter__(self) -> Bundle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        manifest = {**self._about, "parts": self._parts, "missing": self._missing}
        self._put(MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
        self._tar.close()
        self._stream.close()
        self._file.close()

    @property
    def summary(self) -> dict[str, Any]:
        return {"parts": [one["name"] for one in self._parts], "missing": dict(self._missing)}


def _redacted(value: Any) -> Any:
    """Texts in it without secrets; the form stays."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: _redacted(one) for key, one in value.items()}
    return [_redacted(one) for one in value] if isinstance(value, list | tuple) else value
