"""A disk that holds the files that it is made of, for parsers that read their file themselves."""

from __future__ import annotations

from typing import Any

from quorumlog_storage.files.disk import FileMissing
from quorumlog_storage.files.eviction import LogResources


class OneFile:
    """The part of `quorumlog_storage.files.disk.Disk` that such parsers call."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.resources = files, LogResources()

    def read_bytes(self, path: str) -> bytes:
        if path not in self.files:
            raise FileMissing(path, "read")
        return self.files[path]

    def unlink(self, path: str) -> None:
        del self.files[path]

    def sync_directory(self, path: str) -> None:
        return None

    def lock(self, path: str) -> Any:
        return None

    def open(self, path: str) -> Any:
        return _Bytes(self.read_bytes(path))


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def pread(self, position: int, length: int) -> bytes:
        return self._data[position : position + length]

    def size(self) -> int:
        return len(self._data)
