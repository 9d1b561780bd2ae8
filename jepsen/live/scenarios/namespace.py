"""A mount namespace of its own for runs of ordinary users: the run begins anew under `unshare`, as root of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

_INSIDE = "QL_LIVE_INSIDE"
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")
TRIAL_TIMEOUT_S = 10.0


def enter_namespace(arguments: Sequence[str]) -> None:
    """Returns where it is not needed, not possible, or done already. arguments: of `python -m jepsen`."""
    if os.geteuid() == 0 or _INSIDE in os.environ or shutil.which(_UNSHARE[0]) is None:
        return
    trial = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False, timeout=TRIAL_TIMEOUT_S)
    if trial.returncode == 0:
        os.environ[_INSIDE] = "1"
        os.execvp(_UNSHARE[0], [*_UNSHARE, sys.executable, "-m", "jepsen", *arguments])
