"""What a run needs before anything is timed: compiled bytecode, a SIGTERM that stops its nodes, a folder for logs."""

from __future__ import annotations

import compileall
import signal
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
FOLDERS = ("quorumlog", "storage", "quorum", "broker", "server", "cli")


def compile_tree() -> None:
    """Compiles only files that are new or changed."""
    for folder in FOLDERS:
        compileall.compile_dir(TREE / folder, quiet=1)


def exit_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def new_folder(name: str, parent: Path | None) -> Path:
    """A new folder below `parent`, which is made if it is not there; None: where temporary files are."""
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"quorumlog-{name}-", dir=parent))
