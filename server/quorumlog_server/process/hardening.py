"""What a process that knows keys and passwords does against other users of its machine.

Where a listener asks its clients who they are, memory is neither dumped nor shown to a debugger of the same user
(prctl(2), PR_SET_DUMPABLE). A node that serves everybody stays as it was, and loads nothing for it.

What a node writes is its own user's only (`__main__.py`). Files that were copied, or are from before that, may not be.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.secret import SECRET_NAME

PR_SET_DUMPABLE = 4
AS_ROOT = (
    "this node runs as root, so a mistake in it is one of the whole machine: start it as a user of its own, who owns "
    "its directories and keys (chown -R)"
)


def harden(config: NodeConfig, prctl: Callable[[int, int], int] | None = None, user_id: int | None = None) -> list[str]:
    """Returns what to warn of. prctl, user_id: by default the system's."""
    if not any(config.listener_security[one.name].authenticates for one in config.client_listeners):
        return []
    warnings = [AS_ROOT] if (os.geteuid() if user_id is None else user_id) == 0 else []
    if sys.platform == "linux" and (prctl or _prctl)(PR_SET_DUMPABLE, 0) != 0:
        warnings.append("a crash may dump keys and passwords, as PR_SET_DUMPABLE is refused: set ulimit -c 0")
    return warnings


def _prctl(option: int, value: int) -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def shown_to_others(config: NodeConfig) -> list[str]:
    """What to warn of: of the metadata directory, what other users of the machine may read. It is refused nowhere, so
    that no upgrade stops a node."""
    folder = Path(config.metadata_log_dir)
    log = folder / METADATA_DIRECTORY
    found = []
    if _may_enter(folder) and _may_read(folder / SECRET_NAME):
        found.append(f"{SECRET_NAME}, by which anybody passes for a node")
    if _may_enter(folder) and _may_enter(log) and any(_may_read(file) for file in log.iterdir()):
        found.append("the metadata log, in which the keys of passwords are")
    if not found:
        return []
    told = " and ".join(found)
    return [f"other users of this machine can read {told}: stop the node, chmod -R go= {folder}, and start it"]


def _may_read(path: Path) -> bool:
    return bool(_mode(path) & (stat.S_IRGRP | stat.S_IROTH))


def _may_enter(path: Path) -> bool:
    return bool(_mode(path) & (stat.S_IXGRP | stat.S_IXOTH))


def _mode(path: Path) -> int:
    """0: it is not there, or is gone meanwhile."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0
