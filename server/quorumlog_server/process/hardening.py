"""What a process that knows keys and passwords does against other users of its machine.

Where a listener asks its clients who they are, memory is neither dumped nor shown to a debugger of the same user
(prctl(2), PR_SET_DUMPABLE). A node that serves everybody stays as it was, and loads nothing for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from quorumlog_server.config.config import NodeConfig

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
