"""Which query a checkpoint is of, as its file `metadata` says. The driver of a stream is not told."""

from __future__ import annotations

import json
from pathlib import Path

MAX_BYTES = 4_096  # of the file; it has 45


def query_at(location: str) -> str:
    """The query's id; "" where the place cannot be read here: another file system, or nothing there yet."""
    if not location or "://" in location:
        return ""
    try:
        with (Path(location) / "metadata").open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    query = found.get("id") if isinstance(found, dict) else None
    return query if isinstance(query, str) else ""
