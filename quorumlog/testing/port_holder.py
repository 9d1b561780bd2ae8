"""Who listens at a port of this machine, as far as Linux tells this user: the processes of others stay unknown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

UNKNOWN = "another program"
MAX_COMMAND = 120  # characters that are told of a command line
_PROC = Path("/proc")
_LISTENS = "0A"  # the state of a socket in /proc/net/tcp


def holder_of(port: int) -> str:
    """`process PID (COMMAND LINE)`, or `another program`."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    for process in _processes() if sockets else ():
        if sockets & set(_open_files(process)):
            return f"process {process.name} ({_command_of(process)})"
    return UNKNOWN


def _listening(port: int) -> Iterator[str]:
    """The inodes of the sockets that listen at the port. proc(5): /proc/net/tcp."""
    for name in ("tcp", "tcp6"):
        for line in _text(_PROC / "net" / name).splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                yield words[9]


def _processes() -> list[Path]:
    try:
        return [path for path in _PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return []


def _open_files(process: Path) -> Iterator[str]:
    try:
        names = os.listdir(process / "fd")
    except OSError:  # it has ended, or is another user's
        return
    for name in names:
        try:
            yield os.readlink(process / "fd" / name)
        except OSError:
            pass


def _command_of(process: Path) -> str:
    words = _text(process / "cmdline").replace("\0", " ").strip()
    return words if len(words) <= MAX_COMMAND else f"{words[:MAX_COMMAND]}…"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
