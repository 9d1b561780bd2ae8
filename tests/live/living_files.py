"""What lies below a directory whose nodes run: their probes, segments and checkpoints come and go meanwhile."""

from __future__ import annotations

from pathlib import Path


def contents(root: Path) -> dict[Path, bytes]:
    """Of each file that could still be read when its turn came."""
    found = {}
    for path in root.rglob("*"):
        try:
            if path.is_file():
                found[path] = path.read_bytes()
        except FileNotFoundError:
            continue
    return found


def bytes_of(file: Path) -> int:
    """Its size; 0 where it has gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def modes(root: Path) -> dict[Path, int]:
    """Of each file and directory below it, and its own, that was still there when its turn came."""
    found = {}
    for path in (root, *root.rglob("*")):
        try:
            found[path] = path.stat().st_mode
        except FileNotFoundError:
            continue
    return found
