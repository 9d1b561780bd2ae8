"""Where a run keeps its logs."""

from __future__ import annotations

import tempfile
from pathlib import Path


def new_folder(name: str, parent: Path | None) -> Path:
    """A new folder below `parent`, which is made if it is not there; None: where temporary files are."""
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"quorumlog-{name}-", dir=parent))
