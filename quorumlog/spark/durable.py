"""Folders and files that a power cut does not take back: what Spark's jobs keep beside the data that they move."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """A file's bytes, or a folder's names, are on the disk when this returns. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folder: Path) -> None:
    """The folder and those above it that are missing, each with its name on the disk. Raises OSError."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)
