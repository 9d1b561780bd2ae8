"""Kafka's text checkpoints: a version line, a count line, then one entry a line (`CheckpointFile`).

A file consists of `0`, the number of entries, and the entries, each on a line that ends with a newline. An empty file,
or one with the version line only, holds no entries, as in Kafka; the atomic replace keeps a torn file from looking like
that. The grammar is strict: Python's `int` would take " 1_0 " for ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO

VERSION = "0"
MAX_CHECKPOINT_BYTES = 64 << 20  # of one file; a million partitions are about 40 MB
MAX_WORDS = 4  # of an entry: topic, partition, directory, offset

_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


class CorruptCheckpoint(Exception):
    """A checkpoint file that is not in its format. line: counted from 1."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(
            f"{path} line {line}: {reason}; restore the file, or remove it and let the node rebuild it from the log"
        )
        self.path, self.line, self.reason = path, line, reason


def render_checkpoint(lines: Iterable[str]) -> bytes:
    """The bytes of a checkpoint with these entries."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (VERSION, str(len(entries)), *entries)).encode()


def parse_checkpoint(path: str, content: bytes) -> Iterator[list[str]]:
    """The entries, one at a time, each split at its first MAX_WORDS spaces: one with more words is longer than any that
    a file of Kafka's has. Raises CorruptCheckpoint, also between two entries."""
    if len(content) > MAX_CHECKPOINT_BYTES:
        raise CorruptCheckpoint(path, 1, f"{len(content)} bytes are more than the limit of {MAX_CHECKPOINT_BYTES}")
    lines = _lines(path, content)
    version = next(lines, None)
    if version is None:
        return
    if version != VERSION:
        raise CorruptCheckpoint(path, 1, f"version is {version[:20]!r}, not {VERSION!r}")
    promised = next(lines, None)
    if promised is None:
        return
    count, there = parse_number(path, 2, promised), content.count(b"\n") + (not content.endswith(b"\n")) - 2
    if count != there:
        raise CorruptCheckpoint(path, 2, f"{count} entries are promised, {there} are there")
    for line in lines:
        yield line.split(" ", MAX_WORDS)


def _lines(path: str, content: bytes) -> Iterator[str]:
    """One at a time: a list of short lines takes a dozen times their bytes."""
    for number, line in enumerate(BytesIO(content), start=1):
        try:
            yield line.removesuffix(b"\n").decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptCheckpoint(path, number, "the text is not UTF-8") from error


def parse_number(path: str, line: int, text: str) -> int:
    """A decimal of 64 bits. Raises CorruptCheckpoint."""
    if not _NUMBER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise CorruptCheckpoint(path, line, f"{text[:40]!r} is not a number")
    return int(text)
