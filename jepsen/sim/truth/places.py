"""Which log directory, which log and which file a path of a simulated disk names; what the names of copies say."""

from __future__ import annotations

from typing import NamedTuple

from jepsen.sim.settings import DIRECTORIES
from quorumlog_storage.files.names import FUTURE


class Place(NamedTuple):
    """name: of the log's directory, `topic-0`, or of a file beside the logs. file: in it; empty for `name` itself."""

    directory: str
    name: str
    file: str


def place_of(path: str) -> Place | None:
    """None for a path that is not inside a log directory."""
    for directory in DIRECTORIES:
        if path.startswith(directory) and path[len(directory) : len(directory) + 1] == "/":
            name, _, file = path[len(directory) + 1 :].partition("/")
            return Place(directory, name, file)
    return None


def is_copy(name: str) -> bool:
    """Whether a directory has the name of a replica's copy, which another log directory is to take over."""
    return name.endswith(f"-{FUTURE}")


def live_name(name: str) -> str:
    """Of the log whose copy this is. Topics here have no dots in their names."""
    return name.partition(".")[0]
